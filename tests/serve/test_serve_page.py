"""The page of the server in a real Chromium: ask, watch, and open each citation where it stands."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests import extras
from tests.extras import need
from tests.llamacpp import llamacpp
from tests.serve.running import BRIDGE, QUESTION, Running, model, running

from prunus.core.errors import MissingExtra
from prunus.web.fetch.browser import find_browser

pytestmark = pytest.mark.full

PICTURES = os.environ.get("TEST_PICTURES", "")
"""A folder outside the repository that gets pictures of the page, for people who look at them."""

LONG = (
    '<html lang="en"><title>The harbour bridge</title><meta property="og:site_name" content="City guide">'
    '<meta name="author" content="R. Vale"><meta property="article:published_time" content="2024-05-02">'
    "<h1>The harbour bridge</h1><p>The harbour bridge is the longest crossing of the bay.</p>"
    + "".join(
        f"<h2>Part {part}</h2><p>Workers painted section {part} of the parapet in grey.</p>" for part in range(30)
    )
    + "<h2>Opening</h2><p>The bridge opened in 1932, after eight years of <em>hard</em> work. Trams ran from the first "
    "day.</p><table><tr><th>Class<th>Toll<tr><td>car<td>4 coins<tr><td>lorry<td>9 coins</table>"
)
REPLY = (
    "The bridge **opened in 1932**, after eight years of hard work [1].\n\nIt was designed by the French government in "
    "secret. [1]\n\n| Class | Toll |\n|---|---|\n| car | 4 coins [1] |\n| lorry | 9 coins [1] |\n"
)
WHOLE = "When did the bridge open, and what toll does each class pay, a car and a lorry?"
HOSTILE = (
    "<title>\"><script>parent.evil=1</script><img src=x onerror='evil=1'></title>"
    '<meta http-equiv="refresh" content="0;url=http://evil.invalid/"><base href="http://evil.invalid/">'
    "<style>body{background:url(http://evil.invalid/css)}</style><link rel=stylesheet href=http://evil.invalid/sheet>"
    "<script>parent.evil=1;alert(1)</script><svg onload=parent.evil=1><script>parent.evil=1</script></svg>"
    "<p style=background:url(http://evil.invalid/p) onclick=parent.evil=1 id=quote>The bridge opened in 1932. "
    "<img src=http://evil.invalid/i.png onerror=parent.evil=1 alt='\"><script>parent.evil=1</script>'>"
    "<a href='javascript:parent.evil=1'>one</a> <a href=http://evil.invalid/link>two</a> "
    "<a href='data:text/html,<script>parent.evil=1</script>'>three</a></p>"
    "<form action=http://evil.invalid/form><input name=q value=typed><button>Send</button></form>"
    "<iframe src=http://evil.invalid/frame></iframe><object data=http://evil.invalid/o>fallback</object>"
    "<video src=http://evil.invalid/v autoplay></video><math><mtext><mglyph><style><img src=x onerror=parent.evil=1>"
)


@dataclass
class Seen:
    """What a browser did: errors and lines of its console, dialogs, and requests to anywhere but the server."""

    wrong: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> str:
    """Return an installed Chromium; without one these tests skip, or fail where all extras are required."""
    need("playwright.async_api")
    try:
        return find_browser()
    except MissingExtra as error:
        if extras.ALL:
            pytest.fail(f"PRUNUS_ALL_EXTRAS is set, but {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a server without a model."""
    with running(tmp_path_factory.mktemp("plain")) as server:
        yield server


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a server with a model that writes."""
    folder = tmp_path_factory.mktemp("written")
    with running(folder, {"llm": model(folder, REPLY, 0.01)}) as server:
        yield server


def opened(browser: str, url: str, work: Callable[[Any], Awaitable[None]], **context: Any) -> list[str]:
    """Open the page, act on it, and return what must not happen."""
    from playwright.async_api import async_playwright

    seen = Seen()

    def watch(tab: Any) -> None:
        tab.on("pageerror", lambda error: seen.wrong.append(f"error: {error}"))
        tab.on("console", lambda line: seen.wrong.append(f"{line.type}: {line.text}"))
        tab.on("dialog", lambda dialog: seen.wrong.append(f"dialog: {dialog.message}"))
        tab.on("request", lambda one: None if one.url.startswith(url) else seen.wrong.append(f"request: {one.url}"))

    async def run() -> None:
        async with async_playwright() as driver:
            program = await driver.chromium.launch(executable_path=browser, chromium_sandbox=False)
            try:
                shown = await program.new_context(
                    viewport={"width": 1280, "height": 820}, reduced_motion="reduce", **context
                )
                shown.on("page", watch)
                tab = await shown.new_page()
                tab.set_default_timeout(15_000)
                await tab.goto(url)
                await work(tab)
                assert len(shown.pages) == 1, "nothing opens a window"
            finally:
                await program.close()

    asyncio.run(asyncio.wait_for(run(), 100))
    return seen.wrong


async def ask(tab: Any, page: str, question: str = QUESTION) -> None:
    await tab.get_by_label("Or paste a page").fill(page)
    await tab.locator("#question").fill(question)
    await tab.keyboard.press("Enter")
    await tab.locator(".sources").wait_for()


async def picture(tab: Any, name: str) -> None:
    if PICTURES:
        await tab.screenshot(path=Path(PICTURES) / f"{name}.png")


def framed(tab: Any) -> Any:
    """Return the frame of the snapshot."""
    return tab.frame_locator(".snapshot iframe")


# --- ask and check -------------------------------------------------------------------------------------


def test_a_question_is_answered_while_its_stages_are_shown(browser: str, written: Running) -> None:
    async def work(tab: Any) -> None:
        await ask(tab, LONG, WHOLE)
        answer = tab.locator(".answer")
        assert "opened in 1932, after eight years of hard work 1." in (await answer.inner_text()).replace("\xa0", " ")
        assert await answer.locator("strong").inner_text() == "opened in 1932"
        assert await answer.locator("td").all_inner_texts() == ["car", "4 coins 1", "lorry", "9 coins 1"]
        summary = tab.locator(".progress > summary")
        assert "Answered in" in await summary.inner_text() and "model tokens" in await summary.inner_text()
        await summary.click()
        steps = await tab.locator(".steps .name").all_inner_texts()
        assert steps[:3] == ["Page", "Evidence", "Extract"] and {"Answer", "Check", "Model", "Stages"} <= set(steps)
        source = await tab.locator(".cited").inner_text()
        assert "City guide · R. Vale · 2 May 2024" in source and "score" in source
        assert "quotes were found in their pages" in await tab.locator("#ask > [role=status]").inner_text()

    assert opened(browser, written.url, work) == []


def test_a_citation_opens_its_page_at_the_quote_marked_in_its_own_element(browser: str, written: Running) -> None:
    async def work(tab: Any) -> None:
        await ask(tab, LONG, WHOLE)
        mark = tab.locator(".answer button.cite").first
        await mark.click()
        quote = framed(tab).locator("#quote")
        await quote.wait_for()
        marked = framed(tab).locator("mark.chosen")
        assert "".join(await marked.all_inner_texts()) == "The bridge opened in 1932, after eight years of hard work."
        assert await quote.evaluate("one => one.parentElement.previousElementSibling.textContent") == "Opening"
        assert await quote.evaluate("one => one.parentElement.tagName") == "P"
        top = await quote.evaluate("one => one.getBoundingClientRect().top")
        height = await quote.evaluate("() => innerHeight")
        assert await quote.evaluate("() => scrollY") > 500 and 0 < top < height, "it is scrolled to"
        assert await tab.evaluate("document.activeElement.id") == "snapshot-title", "the focus moves to the page"
        assert "word for word" in await tab.locator(".snapshot .verdict").inner_text()
        await picture(tab, "citation")
        await tab.get_by_label("Next citation").click()
        await framed(tab).locator("td mark.chosen").first.wait_for()
        await tab.get_by_label("Next citation").focus()
        await tab.keyboard.press("Escape")
        assert await tab.locator(".snapshot").is_hidden()
        assert await mark.evaluate("one => one === document.activeElement"), "and back to the citation"

    assert opened(browser, written.url, work) == []


def test_a_row_of_the_answer_opens_the_row_of_the_page(browser: str, written: Running) -> None:
    async def work(tab: Any) -> None:
        await ask(tab, LONG, WHOLE)
        await tab.locator(".answer tr", has_text="lorry").locator("button.cite").click()
        chosen = framed(tab).locator("td mark.chosen")
        await chosen.first.wait_for()
        assert await chosen.all_inner_texts() == ["lorry", "9 coins"]

    assert opened(browser, written.url, work) == []


def test_sentences_without_support_are_marked_and_counted(browser: str, written: Running) -> None:
    async def work(tab: Any) -> None:
        await ask(tab, LONG, WHOLE)
        marked = await tab.locator(".answer mark.unsupported").all_inner_texts()
        assert "It was designed by the French government in secret." in marked
        assert not any("1932" in one for one in marked)
        assert await tab.locator(".answer .badge").first.inner_text() == "no evidence found"
        assert await tab.locator(".warning", has_text="No evidence was found for").count() == 1

    assert opened(browser, written.url, work) == []


def test_a_quote_that_was_not_found_says_so(browser: str, plain: Running) -> None:
    reply = plain.post("/v1/ask", {"question": QUESTION, "pages": [{"html": BRIDGE}]}).json()
    lost = reply["citations"][0] | {"found": False, "xpath": "", "quote": "The bridge never opened."}

    async def work(tab: Any) -> None:
        events = [("token", {"text": "It never opened [1]."}), ("done", {"answer": reply | {"citations": [lost]}})]
        body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
        await tab.route("**/v1/ask", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
        await ask(tab, BRIDGE)
        assert "not found in the page" in await tab.locator(".cited").inner_text()
        await tab.locator("button.quote").click()
        assert "was not found" in await tab.locator(".snapshot .verdict").inner_text()
        assert await tab.locator(".snapshot iframe").count() == 0
        assert await tab.locator(".snapshot blockquote").inner_text() == "The bridge never opened."

    assert opened(browser, plain.url, work) == []


def test_a_running_answer_can_be_stopped_and_the_next_question_asked(
    browser: str, tmp_path: Path, plain: Running
) -> None:
    async def work(tab: Any) -> None:
        await tab.get_by_label("Or paste a page").fill(LONG)
        await tab.locator("#question").fill(QUESTION)
        await tab.get_by_role("button", name="Ask", exact=True).click()
        await tab.get_by_text("Writing").wait_for()
        await tab.get_by_role("button", name="Stop").click()
        assert "Stopped after" in await tab.locator(".progress > summary").inner_text()
        assert await tab.get_by_role("button", name="Ask", exact=True).is_enabled()
        await tab.get_by_role("button", name="New conversation").click()
        assert await tab.locator(".turn").count() == 0

    with running(tmp_path, {"llm": model(tmp_path, "word " * 400, 0.2), "extractor": "sentences:3"}) as slow:
        assert opened(browser, slow.url, work) == []


def test_a_second_question_sends_the_first_as_a_turn(browser: str, written: Running) -> None:
    async def work(tab: Any) -> None:
        await ask(tab, LONG, WHOLE)
        async with tab.expect_request("**/v1/ask") as sent:
            await tab.locator("#question").fill("And for a lorry?")
            await tab.keyboard.press("Enter")
        body = json.loads((await sent.value).post_data)
        assert [turn["role"] for turn in body["turns"]] == ["user", "assistant"]
        assert body["turns"][0]["content"] == WHOLE and body["keep"] and body["stream"]
        await tab.locator(".sources").nth(1).wait_for()
        assert await tab.locator(".turn h2").all_inner_texts() == [WHOLE, "And for a lorry?"]

    assert opened(browser, written.url, work) == []


def test_files_are_sent_and_called_by_their_names(browser: str, plain: Running) -> None:
    async def work(tab: Any) -> None:
        name = "<img src=x onerror=evil=1>.md"
        await tab.locator("input[type=file]").set_input_files(
            [
                {"name": name, "mimeType": "text/markdown", "buffer": b"# Bridge\n\nThe bridge opened in 1932."},
                {"name": "b.txt", "mimeType": "text/plain", "buffer": b"Trams run daily from six."},
            ]
        )
        await tab.get_by_label(f"Remove {name}").wait_for()
        await tab.get_by_label("Remove b.txt").wait_for()
        assert await tab.locator(".material > summary").inner_text() == "Pages and files (2)"
        await tab.locator("#question").fill(QUESTION)
        await tab.get_by_role("button", name="Ask", exact=True).click()
        await tab.locator(".sources").wait_for()
        await tab.locator(".answer button.cite").first.click()
        await framed(tab).locator("#quote").wait_for()
        assert await framed(tab).locator("#quote").inner_text() == "The bridge opened in 1932."
        assert await tab.evaluate("window.evil") is None
        assert "word for word in the page" in await tab.locator(".cited .verdict").first.inner_text()
        await tab.get_by_role("button", name="New conversation").click()
        assert await tab.locator(".material > summary").inner_text() == "Pages and files"
        assert await tab.locator(".files li").count() == 0

    assert opened(browser, plain.url, work) == []


def test_dropped_files_are_all_taken(browser: str, plain: Running) -> None:
    drop = """label => {
        const given = new DataTransfer();
        for (const name of ["a.txt", "b.txt", "c.txt"]) given.items.add(new File(["The bridge opened in 1932."], name));
        label.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true }));
    }"""

    async def work(tab: Any) -> None:
        await tab.locator("#ask .drop").evaluate(drop)
        await tab.get_by_label("Remove c.txt").wait_for()
        assert await tab.locator("#ask .files li > span").all_inner_texts() == ["a.txt", "b.txt", "c.txt"]

    assert opened(browser, plain.url, work) == []


def test_where_the_model_fails_a_line_above_the_answer_says_so(browser: str, plain: Running) -> None:
    reply = plain.post("/v1/ask", {"question": QUESTION, "pages": [{"html": BRIDGE}]}).json()
    failures = {"generator": "llm: " + "no connection " * 30, "https://example.org/gone": "404"}
    body = f"event: done\ndata: {json.dumps({'answer': reply | {'failures': failures}})}\n\n"

    async def work(tab: Any) -> None:
        await tab.route("**/v1/ask", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
        await ask(tab, BRIDGE)
        line = tab.get_by_text("The language model could not be used; these are quotes of the pages.").and_(
            tab.locator(".warning")
        )
        assert await line.evaluate("one => Boolean(one.compareDocumentPosition(document.querySelector('.answer')) & 4)")
        notes = tab.locator(".notes li")
        assert not await notes.first.is_visible()
        await tab.get_by_text("Details (2)").click()
        first = await notes.first.inner_text()
        assert first.startswith("generator: llm: no connection") and len(first) < 200
        assert await notes.nth(1).inner_text() == "https://example.org/gone: 404"

    assert opened(browser, plain.url, work) == []


@pytest.mark.parametrize("status", [200, 502])
def test_after_a_failure_the_question_is_in_the_box_again(browser: str, plain: Running, status: int) -> None:
    failed = {"error": {"message": "the search failed", "param": ""}}
    streamed = 'event: error\ndata: {"message": "the search failed"}\n\n'

    async def work(tab: Any) -> None:
        await tab.route(
            "**/v1/ask",
            lambda route: route.fulfill(
                status=status,
                body=streamed if status == 200 else json.dumps(failed),
                content_type="text/event-stream" if status == 200 else "application/json",
            ),
        )
        await tab.get_by_label("Or paste a page").fill(BRIDGE)
        await tab.locator("#question").fill(QUESTION)
        await tab.keyboard.press("Enter")
        await tab.get_by_role("alert").get_by_text("the search failed").wait_for()
        assert await tab.locator("#question").input_value() == QUESTION

    wrong = opened(browser, plain.url, work)
    assert [line for line in wrong if "status of 502" not in line] == []


def test_an_error_is_told_at_the_question_which_stays(browser: str, plain: Running) -> None:
    async def work(tab: Any) -> None:
        await tab.locator("#question").fill(QUESTION)
        await tab.keyboard.press("Enter")
        assert "Give a page" in await tab.locator("[role=alert]").first.inner_text()
        await tab.get_by_label("Or paste a page").fill("<p></p>")
        await tab.locator("#question").press("Enter")
        await tab.locator(".turn .problem, form .problem").first.wait_for()
        await tab.locator("#question").fill("Who painted it?")

    wrong = opened(browser, plain.url, work)
    assert [line for line in wrong if "status of 4" not in line] == []  # the browser itself notes such replies


def test_that_nothing_was_found_is_no_failure(browser: str, plain: Running) -> None:
    async def work(tab: Any) -> None:
        await tab.get_by_label("Or paste a page").fill(BRIDGE)
        await tab.locator("#question").fill("Which enzymes split starch?")
        await tab.keyboard.press("Enter")
        await tab.locator(".turn .nothing", has_text="Nothing found").wait_for()
        assert await tab.locator(".problem:visible").count() == 0

    assert [line for line in opened(browser, plain.url, work) if "status of 404" not in line] == []


# --- hostile pages and models --------------------------------------------------------------------------


def test_a_hostile_page_does_nothing(browser: str, plain: Running) -> None:
    async def work(tab: Any) -> None:
        before = await tab.evaluate("document.querySelectorAll('script, style, link, meta, base').length")
        await ask(tab, HOSTILE)
        await tab.locator(".answer button.cite").first.click()
        await framed(tab).locator("#quote").wait_for()
        assert (await framed(tab).locator("#quote").inner_text()).strip() == "The bridge opened in 1932."
        bad = "script, svg, img, a, form, input, button, iframe, object, video, base, link, meta[http-equiv], math"
        assert await framed(tab).locator(bad).count() == 0
        kept = (
            await framed(tab)
            .locator("html")
            .evaluate("root => [...root.querySelectorAll('*')].flatMap(one => one.getAttributeNames())")
        )
        assert set(kept) <= {"charset", "class", "id", "colspan", "rowspan"}
        await tab.wait_for_timeout(300)
        assert await tab.evaluate("window.evil") is None
        assert await tab.evaluate("document.querySelectorAll('script, style, link, meta, base').length") == before
        assert await tab.locator("main img, main script, main svg").count() == 0
        assert await tab.locator(".snapshot iframe").get_attribute("sandbox") == ""

    assert opened(browser, plain.url, work) == []


HOSTILE_TEXT = (
    "<script>evil=1</script><img src=http://evil.invalid/a onerror=evil=1> ![x](http://evil.invalid/b) "
    "[one](javascript:evil=1) [two](data:text/html,evil) [three]( JaVaScRiPt:evil=1 ) [four](//evil.invalid/c) "
    "[five](java\nscript:evil=1) <javascript:evil=1> [six](&#106;avascript:evil=1) [seven](http://evil.invalid/d) "
    "[eight][x] &lt;script&gt;evil=1&lt;/script&gt; `<b>` [1](javascript:evil=1) [2]\n\n[x]: javascript:evil=1\n\n"
    "<iframe src=http://evil.invalid/e></iframe>\n\n```html\n<script>evil=1</script>\n```\n\n"
    "| <img src=x onerror=evil=1> | b |\n|---|---|\n| <svg onload=evil=1> | **x** |\n\n> <style>*{display:none}</style>"
)


def test_hostile_model_output_is_shown_as_text(browser: str, plain: Running) -> None:
    reply = plain.post("/v1/ask", {"question": QUESTION, "pages": [{"html": BRIDGE}]}).json()
    cited = reply["citations"][0] | {
        "number": 2, "title": "<img src=x onerror=evil=1>", "url": "javascript:evil=1", "site": "<script>evil=1</script>",
        "authors": ["<b>x</b>"], "published": "<i>2024</i>", "quote": "<script>evil=1</script>", "document": "<x>",
    }  # fmt: skip
    answer = reply | {
        "text": HOSTILE_TEXT, "citations": [cited], "unsupported": ["<img src=x onerror=evil=1>"],
        "warnings": ["<script>evil=1</script>"], "failures": {"<b>": "<svg onload=evil=1>"},
    }  # fmt: skip
    hit = {"url": "javascript:evil=1", "title": "<b>", "rank": 1, "engine": "<script>"}
    events = [
        ("plan", {"plan": {"needs_search": True, "reason": "", "queries": [{"text": "<img src=x onerror=evil=1>"}]}}),
        ("search", {"query": "<svg onload=evil=1>", "hits": [hit], "warnings": ["<script>"], "failure": ""}),
        ("page", {"url": "javascript:evil=1", "title": "<script>evil=1</script>", "failure": ""}),
        ("page", {"url": "<b>", "title": "", "failure": "<img src=x onerror=evil=1>"}),
        *[("token", {"text": piece}) for piece in HOSTILE_TEXT.split(" ")],
        ("citation", {"citation": cited}),
        ("done", {"answer": answer}),
    ]
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)

    async def work(tab: Any) -> None:
        await tab.route("**/v1/ask", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
        await ask(tab, BRIDGE, "<script>evil=1</script>")
        await tab.locator("button.quote").click()
        await tab.locator(".snapshot .problem").wait_for()
        assert await tab.locator("main :is(script, img, svg, style, iframe, b, i)").count() == 0
        links = await tab.locator("main a").evaluate_all("all => all.map(one => [one.href, one.rel, one.target])")
        assert ["http://evil.invalid/d", "noopener noreferrer nofollow", "_blank"] in links
        assert all(one[0].startswith("http://evil.invalid/") and one[1:] == links[0][1:] for one in links)
        text = await tab.locator(".answer").inner_text()
        for piece in ("<script>evil=1</script>", "[picture: x]", "<iframe src=", "<svg onload=evil=1>", "<style>"):
            assert piece in text
        marks = await tab.locator("main *").evaluate_all(
            "all => all.flatMap(one => one.getAttributeNames().filter(name => name.startsWith('on') || name === 'style'))"
        )
        assert marks == [] and await tab.evaluate("window.evil") is None
        assert await tab.locator(".answer").is_visible()

    wrong = opened(browser, plain.url, work)
    assert [line for line in wrong if "status of 404" not in line] == []


def test_markdown_is_drawn_as_it_is_meant_and_in_linear_time(browser: str, plain: Running) -> None:
    drawn = {
        "# A\n\none *two* __three__ ~~four~~ snake_case 2*3*4": "<h3>A</h3><p>one <em>two</em> <strong>three</strong> <del>four</del> snake_case 2<em>3</em>4</p>",
        "***both*** **open *": "<p><strong><em>both</em></strong> **open *</p>",
        "- a\n  - b\n- c\n\n1. x\n2. y": "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ol><li>x</li><li>y</li></ol>",
        "5. five\n6. six": '<ol start="5"><li>five</li><li>six</li></ol>',
        "> q\n> r\n\ntext": "<blockquote><p>q<br>r</p></blockquote><p>text</p>",
        "`a<b>` ``c`d`` \\*e\\*": "<p><code>a&lt;b&gt;</code> <code>c`d</code> *e*</p>",
        "~~~\n<b>\n~~~\n---": '<pre tabindex="0"><code>&lt;b&gt;</code></pre><hr>',
        "a | b": "<p>a | b</p>",
        "[n](https://a.example/x_(y)) https://b.example/.": '<p><a href="https://a.example/x_(y)" target="_blank" rel="noopener noreferrer nofollow">n</a> <a href="https://b.example/" target="_blank" rel="noopener noreferrer nofollow">https://b.example/</a>.</p>',
    }
    attacks = ["*" * 20_000, "[" * 20_000, "`" * 20_000, "> " * 10_000, "- " * 10_000, "*a _b " * 4_000, "![" * 9_000,
               "\n".join(" " * (n % 40) + "- x" for n in range(3_000)), "|" * 9_000 + "\n" + "|-" * 9_000, "<http://" * 3_000]  # fmt: skip

    async def work(tab: Any) -> None:
        draw = """async text => {
            const { markdown } = await import("/page/markdown.js");
            const box = document.createElement("div");
            const began = performance.now();
            box.append(markdown(text));
            return [box.innerHTML, performance.now() - began];
        }"""
        for text, html in drawn.items():
            assert (await tab.evaluate(draw, text))[0] == html
        for attack in attacks:
            html, took = await tab.evaluate(draw, attack)
            assert html and took < 2_000, (attack[:10], took)

    assert opened(browser, plain.url, work) == []


# --- everybody -----------------------------------------------------------------------------------------


def test_the_page_is_used_with_the_keyboard_alone(browser: str, plain: Running) -> None:
    async def work(tab: Any) -> None:
        await tab.locator("#question").wait_for()
        await tab.locator("#tab-ask").focus()
        await tab.keyboard.press("ArrowRight")
        await tab.locator("#prune:not([hidden])").wait_for(state="attached")
        assert await tab.locator("#ask").is_hidden()
        assert tab.url.endswith("#prune")
        await tab.keyboard.press("Home")
        await tab.locator("#ask").wait_for()
        unnamed = await tab.locator("button, input, textarea, [role=tab]").evaluate_all(
            "all => all.filter(one => !(one.ariaLabel || one.textContent.trim() || one.labels?.length)).map(one => one.outerHTML)"
        )
        assert unnamed == [], "every control has a name"

    assert opened(browser, plain.url, work) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(browser: str, written: Running, scheme: str) -> None:
    contrast = """all => all.map(one => {
        const light = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
            return .2126 * r + .7152 * g + .0722 * b;
        };
        let ground = one;
        while (/, 0\\)|transparent/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
        const [a, b] = [light(getComputedStyle(one).color), light(getComputedStyle(ground).backgroundColor)];
        return [one.className + " " + one.textContent.slice(0, 20), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
    })"""

    async def work(tab: Any) -> None:
        await picture(tab, f"start-{scheme}")
        await ask(tab, LONG, WHOLE)
        await picture(tab, f"answer-{scheme}")
        seen = ".answer p, .cite, .badge, mark, .warning, .muted, .verdict, .brand, [role=tab], button:enabled, label, summary"
        pairs = await tab.locator(seen).evaluate_all(contrast)
        assert len(pairs) > 20 and [pair for pair in pairs if pair[1] < 4.5] == []
        await tab.locator(".answer button.cite").first.click()
        await framed(tab).locator("#quote").wait_for()
        pairs = await framed(tab).locator("p, mark, h2, th").evaluate_all(contrast)
        assert len(pairs) > 20 and [pair for pair in pairs if pair[1] < 4.5] == []
        await picture(tab, f"citation-{scheme}")

    assert opened(browser, written.url, work, color_scheme=scheme) == []


def test_nothing_is_cut_off_at_the_width_of_a_phone(browser: str, written: Running) -> None:
    wide = "document.documentElement.scrollWidth <= innerWidth"

    async def work(tab: Any) -> None:
        await tab.set_viewport_size({"width": 360, "height": 740})
        assert await tab.evaluate(wide)
        await picture(tab, "start-phone")
        await ask(tab, LONG, WHOLE)
        assert await tab.evaluate(wide)
        await picture(tab, "answer-phone")
        await tab.locator(".answer button.cite").first.click()
        await framed(tab).locator("#quote").wait_for()
        box = await tab.locator(".snapshot").bounding_box()
        assert box["width"] == 360 and box["height"] == 740, "the page covers the screen"
        word = framed(tab).locator("th").first
        assert await word.evaluate("one => getComputedStyle(one).overflowWrap") == "normal", (
            "no word of a table is broken"
        )
        await picture(tab, "citation-phone")
        await tab.get_by_label("Close the page").click()
        assert await tab.locator(".answer").is_visible()

    assert opened(browser, written.url, work) == []


def test_the_page_is_useful_within_a_second(browser: str, plain: Running) -> None:
    async def work(tab: Any) -> None:
        times = []
        for _ in range(3):
            await tab.goto("about:blank")
            await tab.goto(plain.url)
            await tab.locator("#question").wait_for()
            times.append(await tab.evaluate("performance.now()"))
        assert min(times) < 1_000, times

    wrong = opened(browser, plain.url, work)
    assert [line for line in wrong if line != "request: about:blank"] == []


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(browser: str, tmp_path: Path) -> None:
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    home = tmp_path / "home"
    state = ServerState(str(home / "serve.db"))
    key = new_key(state, "anna", ())
    state.close()

    async def work(tab: Any) -> None:
        box = tab.get_by_label("Key", exact=True).and_(tab.locator("input"))
        await box.fill("prunus-wrong")
        await tab.get_by_role("button", name="Use this key").click()
        await tab.get_by_text("This key does not work.").wait_for()
        await box.fill(key)
        await tab.keyboard.press("Enter")
        await ask(tab, BRIDGE)
        await tab.locator(".answer button.cite").first.click()
        await framed(tab).locator("#quote").wait_for()
        assert key not in await tab.locator(".snapshot iframe").get_attribute("src")
        assert await tab.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        assert await tab.evaluate("Object.values(sessionStorage)") == [key]

    with running(tmp_path) as server:
        wrong = opened(browser, server.url, work)
    assert [line for line in wrong if "status of 401" not in line] == []


def test_a_key_that_is_given_late_opens_the_whole_page(browser: str, tmp_path: Path) -> None:
    import prunus
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    home = tmp_path / "home"
    state = ServerState(str(home / "serve.db"))
    key = new_key(state, "anna", ())
    state.close()
    (tmp_path / "town.html").write_text(BRIDGE, "utf-8")
    prunus.Index.open(tmp_path / "made").add(tmp_path / "town.html")

    async def work(tab: Any) -> None:
        await tab.get_by_role("button", name="Cancel").click()
        await tab.locator("#ask .problem", has_text="This server needs a key").wait_for()
        await tab.locator("#tab-indexes").click()
        await tab.get_by_role("button", name="Cancel").click()
        await tab.locator("#indexes .problem", has_text="This server needs a key").wait_for()
        await tab.locator("#key-open").click()
        await tab.locator("#key-input").fill("prunus-wrong")
        await tab.keyboard.press("Enter")
        await tab.locator("#key-problem", has_text="This key does not work.").wait_for()
        await tab.get_by_role("button", name="Cancel").click()
        await tab.locator("#indexes .problem", has_text="This key does not work.").wait_for()
        await tab.locator("#indexes .problem button").click()
        await tab.locator("#key-input").fill(key)
        await tab.keyboard.press("Enter")
        await tab.locator("#indexes .tree [aria-selected=true]").wait_for()
        await tab.locator("#tab-ask").click()
        await tab.get_by_label("Index: town").wait_for()
        assert await tab.get_by_label("Index: town").count() == 1
        assert await tab.locator("main .problem").count() == 0

    with running(tmp_path, indexes={"town": str(tmp_path / "made")}) as server:
        wrong = opened(browser, server.url, work)
    assert [line for line in wrong if "status of 401" not in line] == []


def test_sources_tell_by_which_hit_and_score_they_were_chosen_and_are_copied_as_markdown(
    browser: str, plain: Running
) -> None:
    reply = plain.post("/v1/ask", {"question": QUESTION, "pages": [{"html": BRIDGE}]}).json()
    cited = reply["citations"][0] | {"url": "https://example.org/bridge", "title": "The [old] bridge"}
    hit = {"url": cited["url"], "title": "", "rank": 2, "engine": "wikipedia"}
    passage = {"text": "", "spans": [cited["span"]], "score": 1.5}
    events = [
        ("search", {"query": "bridge open", "hits": [hit], "warnings": [], "failure": ""}),
        ("page", {"url": cited["url"], "title": "The old bridge", "failure": ""}),
        ("page", {"url": "https://example.org/other", "title": "Another", "failure": ""}),
        ("page", {"url": "https://example.org/gone", "title": "", "failure": "404"}),
        ("extracted", {"passages": [passage]}),
        ("done", {"answer": reply | {"citations": [cited]}}),
    ]
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)

    async def work(tab: Any) -> None:
        await tab.route("**/v1/ask", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
        await ask(tab, BRIDGE)
        source = await tab.locator(".cited").inner_text()
        assert "hit 2 of “bridge open” (wikipedia); one passage, score 1.50" in source
        assert await tab.locator(".cited a").get_attribute("href") == "https://example.org/bridge"
        assert await tab.get_by_text("Read and not cited: 1").count() == 1
        await tab.locator(".progress > summary").click()
        assert "404" in await tab.locator(".steps .bad").inner_text()
        await tab.get_by_role("button", name="Copy as Markdown").click()
        await tab.get_by_text("Copied.").wait_for()
        copied = await tab.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(reply["text"]) and "## Sources" in copied
        assert "- [1] The \\[old\\] bridge, <https://example.org/bridge>: “The bridge opened in 1932.”" in copied

    allowed = {"permissions": ["clipboard-read", "clipboard-write"]}
    assert opened(browser, plain.url, work, **allowed) == []


def test_an_index_is_chosen_and_its_page_opens(browser: str, tmp_path: Path) -> None:
    import prunus

    (tmp_path / "town.html").write_text(BRIDGE, "utf-8")
    prunus.Index.open(tmp_path / "made").add(tmp_path / "town.html")

    async def work(tab: Any) -> None:
        index = tab.get_by_label("Index: town")
        assert await index.is_checked()
        await tab.locator(".material > summary").click()
        await tab.get_by_label("Or paste a page").fill("<p>Words.")
        assert not await index.is_checked(), "a page is asked alone"
        await tab.get_by_label("Or paste a page").fill("")
        assert await index.is_checked()
        await tab.locator("#question").fill(QUESTION)
        await tab.keyboard.press("Enter")
        await tab.locator(".sources").wait_for()
        await tab.locator(".answer button.cite").first.click()
        await framed(tab).locator("#quote").wait_for()
        assert "1932" in await framed(tab).locator("#quote").inner_text()

    with running(tmp_path, indexes={"town": str(tmp_path / "made")}) as server:
        assert opened(browser, server.url, work) == []


@pytest.mark.slow
def test_a_real_model_answers_and_its_citation_opens(browser: str, tmp_path: Path) -> None:
    page = (
        "<title>Dunnock Quay</title><h1>Ferry</h1><p>The ferry leaves Dunnock Quay at 9:40 every morning.</p>"
        "<h2>Charts</h2><p>Charts of the harbour are sold at the office.</p>"
    )

    async def work(tab: Any) -> None:
        tab.set_default_timeout(90_000)
        await ask(tab, page, "Repeat this sentence: The ferry leaves Dunnock Quay at 9:40 every morning [1].")
        assert "model tokens" in await tab.locator(".progress > summary").inner_text()
        assert "9:40" in await tab.locator(".answer").inner_text()
        await tab.locator("button.quote").first.click()
        await framed(tab).locator("#quote").wait_for()
        assert await framed(tab).locator("#quote").inner_text() in page

    with llamacpp() as address:
        settings = {"llm": f"{address}/v1#smollm2", "extractor": "sentences:3", "model_calls": True}
        with running(tmp_path, settings) as server:
            assert opened(browser, server.url, work) == []
