"""The page of ``prunus index tree --html``, opened in a real Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests import extras
from tests.cli.command import Cli
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need

from prunus import Index
from prunus.cli.tree_page import TreeDrawing, TreeMatches, write_tree
from prunus.core.errors import MissingExtra
from prunus.web.fetch.browser import find_browser

pytestmark = pytest.mark.full

TALE = Path(__file__).parents[2] / "docs" / "examples" / "cinderella.txt"
EVIL = "</script><script>document.title='x'</script><img src=x onerror=\"document.title='x'\"> The slipper was gold."


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


@pytest.fixture
def drawn(cli: Cli, folder: Path) -> Path:  # noqa: F811
    (folder / "evil.txt").write_text(EVIL, "utf-8")
    assert cli("index", "add", "tale", TALE, "evil.txt").exit_code == 0
    question = "How did she lose her slipper of gold?"
    result = cli("index", "tree", "tale", "--html", "tree.html", "-q", question, "--budget", "300")
    assert result.exit_code == 0, result.stderr
    return folder / "tree.html"


def opened(browser: str, page: Path, work: Callable[[Any], Awaitable[None]], width: int = 1280) -> list[str]:
    """Open a page, act on it, and return the errors and the requests of the page."""
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
                tab.on("request", lambda one: wrong.append(f"request: {one.url}") if one.url != page.as_uri() else None)
                await tab.goto(page.as_uri())
                await work(tab)
            finally:
                await program.close()

    asyncio.run(asyncio.wait_for(run(), 100))
    return wrong


def test_it_opens_at_what_the_question_takes_and_the_keyboard_walks_to_every_node(
    browser: str, drawn: Path, folder: Path
) -> None:
    ids = set(Index.open(folder / "tale", create=False).store.view().ids.tolist())

    async def look(tab: Any) -> None:
        assert await tab.title() == "Summary tree: tale"
        await tab.wait_for_selector(".tree .hit[aria-selected=true]")
        assert await tab.locator(".tree .near").count() >= 1, "closed summaries tell what is found below them"
        chosen = await tab.locator("[aria-selected=true] > .line > .label").bounding_box()
        frame = await tab.locator("#walk").bounding_box()
        assert frame["y"] <= chosen["y"] and chosen["y"] + chosen["height"] <= frame["y"] + frame["height"]
        assert await tab.locator(".columns section").count() == 2 and await tab.locator(".key").count() == 2
        await tab.focus(".tree [aria-selected=true]")
        await tab.keyboard.press("Home")
        closed = tab.locator(".tree .summary[aria-expanded=false]")
        while await closed.count():
            await closed.first.focus()
            await tab.keyboard.press("ArrowRight")
        seen = set(await tab.locator(".tree [data-id]").evaluate_all("all => all.map((one) => +one.dataset.id)"))
        assert seen == ids
        leaf = tab.locator(".tree .leaf").first
        await leaf.focus()
        await tab.keyboard.press("ArrowRight")
        await tab.keyboard.press("ArrowRight")
        assert await tab.evaluate("document.activeElement.className") == "sentence"
        assert await tab.inner_text("#text mark") in await tab.inner_text("#text")
        assert (await tab.inner_text("#about")).startswith("Passage ")

    assert opened(browser, drawn, look) == []


def test_search_finds_nodes_and_a_chosen_node_shows_its_text_as_text(browser: str, drawn: Path) -> None:
    async def look(tab: Any) -> None:
        search, found = tab.locator("#search"), tab.locator("#found")
        await search.fill("SLIPPER")
        hits = await tab.locator("#hits button").count()
        assert hits > 1 and await found.inner_text() == f"{hits} nodes"
        await search.fill("onerror")
        await tab.locator("#hits button").first.click()
        await tab.wait_for_selector(".tree [aria-selected=true]:focus")
        assert EVIL in await tab.inner_text("#text") and await tab.locator("#text img").count() == 0
        await search.fill("no such words anywhere")
        assert await tab.locator("#hits button").count() == 0 and await found.inner_text() == "0 nodes"
        await search.fill("")
        assert await found.inner_text() == "" and await tab.title() == "Summary tree: tale"

    assert opened(browser, drawn, look) == []


def test_of_a_large_tree_only_what_is_open_is_in_the_page(browser: str, folder: Path) -> None:
    leaves = [
        {"id": id, "layer": 0, "document": "a", "tokens": 3, "text": f"Leaf {id}.", "children": [], "root": False}
        for id in range(1, 40_001)
    ]
    root = {"id": 40_001, "layer": 1, "document": "", "tokens": 1, "text": "All", "children": [*range(1, 40_001)]}
    page = folder / "large.html"
    page.write_text(
        write_tree(TreeDrawing("I", [*leaves, {**root, "root": True}]), "q", [TreeMatches("tree", [20_050], "", 3)])
    )

    async def look(tab: Any) -> None:
        await tab.wait_for_selector(".tree .hit[aria-selected=true]")
        assert await tab.inner_text("#text") == "Leaf 20050." and await tab.locator(".tree li").count() < 110
        for way, first, last in (("more", 20_001, 20_200), ("earlier", 19_901, 20_200)):
            await tab.locator(f".rest[data-way={way}]").click()
            await tab.wait_for_selector(f"[data-id='{first if way == 'earlier' else last}']")
            shown = await tab.locator(".tree .leaf").evaluate_all("all => all.map((one) => +one.dataset.id)")
            assert shown == [*range(first, last + 1)]
        assert await tab.locator(".rest").evaluate_all("all => all.map((one) => one.innerText.trim())") == [
            "Show the ones before (19,900)",
            "Show more (19,800 follow)",
        ]

    assert opened(browser, page, look) == []


def test_on_a_narrow_screen_nothing_stands_outside(browser: str, drawn: Path) -> None:
    async def look(tab: Any) -> None:
        await tab.wait_for_selector(".tree [aria-selected=true]")
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert opened(browser, drawn, look, 380) == []
