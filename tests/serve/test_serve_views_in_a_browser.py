"""The views of the web page on what was pruned and on summary trees, in a real Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests import extras
from tests.extras import need
from tests.serve.running import Running, running

from prunus import Index
from prunus.core.errors import MissingExtra
from prunus.core.settings import load_settings
from prunus.web.fetch.browser import find_browser

pytestmark = pytest.mark.full

EVIL = "<img src=x onerror=\"document.title='x'\"><script>document.title='x'</script>"
SHOWN = EVIL.replace("<", "&lt;")
PAGE = (
    f"<title>{SHOWN}</title><h1>Towns {SHOWN}</h1>"
    + "".join(
        f"<h2>Town {n}</h2><p>Town {n} lies on a hill. Its market opens on day {n}.</p>"
        f"<p>The ferry of town {n} leaves at {n} o'clock, and the fare is {n} coins.</p>"
        for n in range(1, 61)
    )
    + f"<h2 title='{SHOWN}'>Odd</h2><table><tr><th>{SHOWN}<th>Ferry<tr><td>{SHOWN}<td>{SHOWN}</table><p>{SHOWN}</p>"
)
WANTED = "When does the ferry of town 17 leave?"


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
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("page")
    settings = load_settings({"home": str(folder / "home"), "chunk_tokens": 30})
    index = Index.open(folder / "towns", settings=settings)
    index.add({"towns.html": PAGE, "evil.html": f"<p>{SHOWN} The lamp was lit in 1871. It burns oil."})
    with running(folder, indexes={"towns": str(folder / "towns")}) as found:
        yield found


def visit(
    browser: str, server: Running, view: str, work: Callable[[Any], Awaitable[None]], width: int = 1280
) -> list[str]:
    """Open a view, act on it, and return the errors of the page, and its requests to anywhere else."""
    from playwright.async_api import async_playwright

    wrong: list[str] = []

    async def run() -> None:
        async with async_playwright() as driver:
            program = await driver.chromium.launch(executable_path=browser, chromium_sandbox=False)
            try:
                tab = await program.new_page(viewport={"width": width, "height": 800})
                tab.set_default_timeout(10_000)
                tab.on("pageerror", lambda error: wrong.append(f"error: {error}"))
                tab.on("console", lambda line: wrong.append(f"{line.type}: {line.text}"))
                tab.on(
                    "request",
                    lambda one: None if one.url.startswith(server.url) else wrong.append(f"request: {one.url}"),
                )
                await tab.goto(f"{server.url}/#{view}")
                await work(tab)
                assert await tab.title() == "Prunus" and await tab.locator("main img").count() == 0
            finally:
                await program.close()

    asyncio.run(asyncio.wait_for(run(), 100))
    return wrong


async def prune(tab: Any, page: str = PAGE) -> None:
    await tab.fill("#prune [name=question]", WANTED)
    await tab.fill("#prune [name=pasted]", page)
    await tab.click("#prune form button:text-is('Prune')")
    await tab.wait_for_selector(".heat")


async def to_budget(tab: Any, tokens: int) -> int:
    """Give another budget, wait for its result, and return its tokens."""
    await tab.fill("#prune [type=number]", str(tokens))
    await tab.press("#prune [type=number]", "Enter")
    await tab.wait_for_selector(".pruned:not(.working)")
    return int((await tab.inner_text(".figures .big b")).replace(",", ""))


def test_the_heat_map_shows_kept_and_dropped_blocks_in_their_order_and_sections(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await prune(tab)
        assert await to_budget(tab, 200) <= 200
        kept = " ".join(await tab.locator(".block.k .text").all_inner_texts())
        assert "ferry of town 17 leaves at 17" in kept
        assert await tab.locator(".part .heading", has_text="Town 17").count() == 1
        folds = tab.locator(".fold > button")
        assert await folds.count() >= 2, "long runs of dropped blocks are folded"
        before = await tab.locator(".block").count()
        await folds.first.click()
        assert await tab.locator(".block").count() > before
        assert await folds.first.get_attribute("aria-expanded") == "true"
        dropped = tab.locator(".block:not(.k)").first
        assert "rank" in await dropped.locator(".why").inner_text()
        assert await dropped.locator(".fate .unseen").inner_text() == "dropped"
        order = await tab.locator("[data-index]").evaluate_all("all => all.map((one) => +one.dataset.index)")
        assert order == sorted(order)
        cells = await tab.locator(".map i").count()
        assert cells > 100 and 0 < await tab.locator(".map i.k").count() < cells
        assert "pruned in" in await tab.inner_text(".times")
        assert "ms" in await tab.locator(".times span").first.get_attribute("title"), "the parts are in a tooltip"
        await tab.locator(".map i").nth(cells - 1).click()
        await tab.wait_for_selector(".found")  # a cell opens the folds around its block

    assert visit(browser, server, "prune", look) == []


def test_the_slider_prunes_again_and_the_tokens_stay_within_the_budget(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await prune(tab)
        whole = int((await tab.inner_text(".figures .big")).split()[0].replace(",", ""))
        assert 0.05 * whole < int(await tab.input_value("#prune [type=number]")) <= max(50, 0.11 * whole)
        sent: list[Any] = []
        tab.on("request", lambda one: sent.append(one.post_data_json))
        slider = tab.locator("#prune-slider")
        seen = []
        for place in (150, 500, 800):
            await slider.evaluate(
                "(one, place) => { one.value = place; one.dispatchEvent(new Event('input')); }", place
            )
            await tab.wait_for_selector(".pruned:not(.working)")
            budget = int(await tab.input_value("#prune [type=number]"))
            tokens = int((await tab.inner_text(".figures .big b")).replace(",", ""))
            assert tokens <= budget and f"{budget:,} tokens" == await slider.get_attribute("aria-valuetext")
            seen.append((tokens, await tab.locator(".map i.k").count()))
        assert seen == sorted(seen) and len(set(seen)) == 3
        assert all("pages" not in body and body["kept"] for body in sent), "the page itself is not sent again"
        await slider.focus()
        await tab.keyboard.press("ArrowLeft")
        await tab.wait_for_selector(".pruned:not(.working)")
        assert int(await tab.input_value("#prune [type=number]")) <= budget
        await to_budget(tab, 1)
        assert "smallest piece" in await tab.inner_text(".pruned .problem")
        assert await to_budget(tab, 100) <= 100 and await tab.locator(".pruned .problem").count() == 0

    assert [line for line in visit(browser, server, "prune", look) if "400" not in line] == []


def test_from_an_answer_one_comes_to_what_was_pruned_of_a_page(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await tab.fill("#question", WANTED)
        await tab.evaluate("for (const one of document.querySelectorAll('#ask details')) one.open = true")
        await tab.fill("#ask [name=pasted]", PAGE)
        await tab.press("#question", "Control+Enter")
        await tab.click(".sources button:text-is('What was pruned of this page')")
        await tab.wait_for_selector("#prune .heat")
        assert await tab.input_value("#prune [name=question]") == WANTED
        assert await to_budget(tab, 150) <= 150
        assert "ferry of town 17" in " ".join(await tab.locator(".block.k .text").all_inner_texts())

    assert visit(browser, server, "ask", look) == []


def test_pages_that_the_server_forgot_are_sent_again(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await prune(tab)
        forget = {"question": "a", "pages": [{"html": "<p>other</p>"}], "keep": True}
        for _ in range(4):  # as many as are kept for one key
            assert server.post("/v1/prune", forget).json()["kept"]
        assert await to_budget(tab, 120) <= 120 and await tab.locator(".pruned .problem").count() == 0

    assert [line for line in visit(browser, server, "prune", look) if "404" not in line] == []


def test_the_evidence_is_shown_as_html_markdown_and_text(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await prune(tab)
        await to_budget(tab, 150)
        for name, has in (("html", "<p>"), ("markdown", "## Town 17"), ("text", "leaves at 17")):
            await tab.click(f"#prune-{name}")
            await tab.wait_for_selector(f"#prune-body[aria-labelledby=prune-{name}] .output")
            text = await tab.inner_text(".output")
            assert has in text and "tokens in this form" in await tab.inner_text(".output-box")
            note = await tab.get_by_text("Tables with merged cells stay HTML").count()
            assert note == (1 if name == "markdown" else 0)
        await tab.focus("#prune-text")
        await tab.keyboard.press("ArrowRight")
        assert await tab.get_attribute("#prune-heat", "aria-selected") == "true"
        await tab.wait_for_selector(".heat")

    assert visit(browser, server, "prune", look) == []


def test_markup_of_a_hostile_page_is_shown_as_text_and_does_nothing(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await prune(tab)
        assert EVIL in await tab.inner_text(".heat header h3")
        await to_budget(tab, 5000)
        assert EVIL in " ".join(await tab.locator(".block .text").all_inner_texts())
        for name in ("html", "markdown", "text"):
            await tab.click(f"#prune-{name}")
            await tab.wait_for_selector(f"#prune-body[aria-labelledby=prune-{name}] .output")
        assert await tab.locator("#prune script").count() == 0

    assert visit(browser, server, "prune", look) == []


def test_a_keyboard_walks_from_a_summary_to_a_sentence_and_back(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await tab.wait_for_selector(".tree [aria-selected=true]")
        press = tab.keyboard.press
        assert (await tab.inner_text(".detail h3")).startswith("Summary, level")
        top = tab.locator(".tree > .summary[aria-selected=true]")
        assert await top.get_attribute("aria-expanded") == "true", "without a question the first root is open"
        assert await top.locator(".summary").count() + await top.locator(".leaf").count() > 1
        assert "Summary, level" not in " ".join(await tab.locator(".trail").all_inner_texts()), "it is named once"
        assert await tab.locator(".tree [tabindex='0']").count() == 1
        await tab.focus(".tree [aria-selected=true]")
        for _ in range(20):
            if await tab.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false":
                open_before = await tab.locator(".tree [aria-expanded=true]").count()
                await press("ArrowRight")
                await tab.wait_for_selector(f".tree [aria-expanded=true] >> nth={open_before}")
                await tab.wait_for_selector(".tree [aria-expanded=true]:not(:has([aria-busy]))")
            await press("ArrowRight")
            focused = "document.activeElement.className"
            if (await tab.evaluate(focused)) == "sentence":
                break
        assert await tab.evaluate(focused) == "sentence"
        words = await tab.evaluate("document.activeElement.innerText")
        assert (await tab.inner_text(".detail h3")) == "Sentence 1" and words.strip() in await tab.inner_text(
            ".detail mark"
        )
        levels = int(await tab.evaluate("document.activeElement.getAttribute('aria-level')"))
        assert await tab.locator(".trail li").count() == levels - 1
        for level in range(levels - 1, 0, -1):
            await press("ArrowLeft")  # to the parent; then it is closed
            assert await tab.evaluate("+document.activeElement.getAttribute('aria-level')") == level
            await press("ArrowLeft")
            assert await tab.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
        await press("End")
        await press("Home")
        assert await tab.evaluate("+document.activeElement.getAttribute('aria-level')") == 1

    assert visit(browser, server, "indexes", look) == []


def test_the_tree_opens_at_what_is_found_for_a_question(browser: str, server: Running) -> None:
    async def look(tab: Any) -> None:
        await tab.fill("#indexes [name=wanted]", "When was the lamp lit?")
        await tab.fill("#indexes [name=tokens]", "120")
        await tab.click("#indexes form button")
        await tab.wait_for_selector(".taken-list")
        await tab.wait_for_selector(".tree .hit[aria-selected=true]")
        assert "lit in 1871" in await tab.inner_text(".detail .words") and EVIL in await tab.inner_text(
            ".detail .words"
        )
        assert "found, no. 1" in await tab.inner_text(".detail")
        assert "found for the question" in await tab.inner_text(".taken-list h3")
        await tab.wait_for_selector(".tree .near > .line > .taken")
        second = tab.locator(".taken-list button").nth(1)
        words = await second.locator(".what").inner_text()
        await second.click()
        await tab.wait_for_selector(".tree .hit[aria-selected=true] .taken:text-is('found, no. 2')")
        assert words[:40] in await tab.inner_text(".detail .words")
        assert await tab.evaluate("document.activeElement.getAttribute('role')") == "treeitem"

    assert visit(browser, server, "indexes", look) == []


@pytest.mark.parametrize("view", ["prune", "indexes"])
def test_on_a_phone_nothing_stands_outside(browser: str, server: Running, view: str) -> None:
    async def look(tab: Any) -> None:
        if view == "prune":
            await prune(tab, PAGE * 3)
            await to_budget(tab, 200)
            await tab.locator(".fold > button").first.click()
            texts = tab.locator(".block:not(.k) .text, .block.k .text")
            left = await texts.evaluate_all(
                "all => all.map((one) => one.parentNode.firstChild.getBoundingClientRect().right <= one.getBoundingClientRect().left)"
            )
            assert left and all(left), "a text keeps its column beside the sign"
            await tab.get_by_text("The map goes on below").first.wait_for()
        else:
            await tab.wait_for_selector(".tree [aria-selected=true]")
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert visit(browser, server, view, look, 380) == []
