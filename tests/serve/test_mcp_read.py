"""The tool `read`: pages word for word by parts, outlines, evidence with what was dropped, and typed errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import World, let_in, world
from tests.serve.running import BRIDGE, QUESTION, running
from tests.serve.tools_client import over_http, text_of

import prunus

pytestmark = pytest.mark.full

TOWN = (
    "<title>The town</title><h1>Town</h1><p>A town on a river.</p>"
    "<h2>Bridge</h2><p>The bridge opened in 1932.</p><h3>Tolls</h3><p>Cars pay 4 coins.</p>"
    "<h2>Mill</h2><p>The mill grinds rye.</p><h3>Wheel</h3><p>It turns slowly.</p>"
    + "".join(f"<p>Paragraph {n} tells of the weather, the harvest and the market.</p>" for n in range(60))
)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world() as found:
        let_in(monkeypatch, found)
        found.pages |= {"/town": TOWN, "/bridge": BRIDGE}
        yield found


MEADOW = (
    "The meadow number {} lies by the river, and the family that farms it cuts the grass twice a year, in June and in "
    "September, so that rare flowers can seed before the machines come."
)


def reading(folder: Path, *calls: dict[str, Any], **settings: Any) -> list[Any]:
    """Return the results of calls of `read`."""

    async def scene(url: str) -> list[Any]:
        async with over_http(url) as client:
            return [await client.call_tool("read", call) for call in calls]

    with running(folder, settings) as server:
        return asyncio.run(scene(server.url))


def test_a_long_page_comes_word_for_word_in_parts_that_say_what_is_missing(web: World, tmp_path: Path) -> None:
    whole = prunus.clean(TOWN, "markdown")

    async def scene(url: str) -> None:
        async with over_http(url) as client:
            start: int | None = 0
            texts = []
            while start is not None:
                call = {"pages": [f"{web.url}/town"], "start": start, "max_tokens": 300}
                result = await client.call_tool("read", call)
                [page] = result.structured_content["pages"]
                assert page["start"] == start and 0 < page["tokens"] <= 300 < page["total_tokens"]
                assert page["notice"] in text_of(result) and page["text"] in text_of(result)
                following = page["next_start"]
                said = "the end of the page" if following is None else f"call read with start={following}"
                assert said in page["notice"] and "Left out" in page["notice"]
                assert not start or page["under"] == "Town > Mill > Wheel"
                texts.append(page["text"])
                start = following
            assert len(texts) > 3 and "".join(texts) == whole

    with running(tmp_path) as server:
        asyncio.run(scene(server.url))


def test_menus_stay_out_of_what_is_read_and_are_told(web: World, tmp_path: Path) -> None:
    menu = "".join(
        f"<li><a href=/{place}>Offers and prices of {place}</a>" for place in ("Mill", "Bridge", "Tolls") * 9
    )
    prose = "".join(f"<p>{MEADOW.format(number)}</p>" for number in ("one", "two", "three", "four"))
    web.pages["/farm"] = f"<title>The farm</title><nav><ul>{menu}</ul></nav><main><h1>The farm</h1>{prose}</main>"
    page = f"{web.url}/farm"
    own, outlined, whole, asked = reading(
        tmp_path,
        {"pages": page},
        {"pages": page, "outline": True},
        {"pages": page, "main": False},
        {"pages": page, "question": "What are the offers and prices of Bridge?"},
    )
    [shown], [all_] = own.structured_content["pages"], whole.structured_content["pages"]
    assert "meadow number four" in shown["text"] and "Offers" not in shown["text"]
    assert all_["text"] == prunus.clean(web.pages["/farm"], "markdown")
    assert all_["tokens"] > 2 * shown["tokens"] == 2 * shown["total_tokens"]
    missing = all_["tokens"] - shown["tokens"]
    assert f"{missing:,} tokens of menus" in shown["notice"] and f"{missing:,} tokens of menus" in text_of(outlined)
    assert "Offers" in asked.structured_content["pages"][0]["text"]


def test_an_outline_has_the_starts_of_the_headings(web: World, tmp_path: Path) -> None:
    page = f"{web.url}/town"
    whole = prunus.clean(TOWN, "markdown")
    start = whole.index("## Mill")
    outlined, section = reading(
        tmp_path, {"pages": [page], "outline": True}, {"pages": page, "start": start, "max_tokens": 16}
    )
    [shown] = outlined.structured_content["pages"]
    assert f"  - Mill (start {start}, " in shown["text"] and "its text is left out" in shown["notice"]
    assert "rye" not in text_of(outlined)
    assert section.structured_content["pages"][0]["text"].startswith("## Mill")


def test_several_pages_share_the_tokens_and_a_short_one_leaves_its_own(web: World, tmp_path: Path) -> None:
    pages = [f"{web.url}/town", f"{web.url}/bridge", f"{web.url}/none", f"{web.url}/town"]
    [result] = reading(tmp_path, {"pages": pages, "max_tokens": 400})
    town, bridge, none = result.structured_content["pages"]  # an address that is given twice is read once
    assert not result.is_error and none["error"]["type"] == "not_found"
    assert bridge["notice"] == f"Whole, {bridge['tokens']} tokens." and bridge["next_start"] is None
    assert 300 < town["tokens"] + bridge["tokens"] <= 400 and town["tokens"] > 200
    assert "3. Not read (not_found)" in text_of(result)
    assert {part.title for part in result.content if part.type == "resource_link"} == {"The town", "The bridge"}


def test_with_a_question_the_headings_of_what_was_dropped_are_named(web: World, tmp_path: Path) -> None:
    pages = [f"{web.url}/town", f"{web.url}/bridge"]
    one, both, nothing = reading(
        tmp_path,
        {"pages": pages[:1], "question": QUESTION, "max_tokens": 60},
        {"pages": pages, "question": QUESTION, "max_tokens": 60},
        {"pages": pages[:1], "question": "What is the melting point of tungsten?"},
    )
    [town] = one.structured_content["pages"]
    assert "opened in 1932" in town["text"] and "Mill" in town["left_out"]
    assert not {"Wheel", "Bridge"} & {
        *town["left_out"]
    }  # the first is part of the mill, of the second something is kept
    assert "Nothing chosen under: " in text_of(one) and f"of the page's {town['total_tokens']:,}" in town["notice"]
    assert sum(page["tokens"] for page in both.structured_content["pages"]) <= 60
    assert one.structured_content["confidence"] > nothing.structured_content["confidence"]
    assert "likely to answer" in text_of(nothing) and "likely to answer" not in text_of(one)


@pytest.mark.parametrize(
    ("page", "type"),
    [
        ((404, "<p>No such page.</p>"), "not_found"),
        ((403, "<p>Go away.</p>"), "denied"),
        ((500, "<p>Broken.</p>"), "failed"),
        ("<title>Just a moment...</title><p>Checking your browser before accessing the site.</p>", "wall"),
        ("<p></p>", "unreadable"),
        (f"<p>{'word ' * 300_000}</p>", "too_large"),
        (30, "timeout"),
    ],
)
def test_errors_are_typed(web: World, tmp_path: Path, page: Any, type: str) -> None:
    web.pages["/x"] = page
    [result] = reading(tmp_path, {"pages": [f"{web.url}/x"]}, max_file_mb=1, total_seconds=2, retries=0)
    assert result.is_error and text_of(result).startswith(f"Not read ({type}): ") and "\n" not in text_of(result)
    assert result.structured_content["pages"][0]["error"]["type"] == type, text_of(result)


def test_what_is_not_even_asked_for_is_typed_too(web: World, tmp_path: Path) -> None:
    web.pages["/robots.txt"] = "User-agent: *\nDisallow: /private"
    web.pages["/private"] = BRIDGE
    pages = [f"{web.url}/private", "http://169.254.169.254/latest", "/etc/passwd"]
    [result] = reading(tmp_path, {"pages": pages}, robots=True)
    found = [page["error"]["type"] for page in result.structured_content["pages"]]
    assert found == ["robots", "refused", "bad_input"] and "/private" not in web.requests
