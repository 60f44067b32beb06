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


def test_every_node_is_drawn_inside_the_picture_and_marked_nodes_look_it(
    browser: str, drawn: Path, folder: Path
) -> None:
    store = Index.open(folder / "tale", create=False).store
    ids, edges = {f"n{one}" for one in store.view().ids.tolist()}, sum(map(len, store.edges().values()))

    async def look(tab: Any) -> None:
        assert await tab.title() == "Summary tree: tale"
        await tab.locator("#whole").click()  # it opens at what was retrieved
        circles = await tab.locator("circle").evaluate_all(
            "all => all.map(one => { const b = one.getBoundingClientRect(), s = getComputedStyle(one);"
            " return [one.id, b.left, b.top, b.right, b.bottom, one.getAttribute('class'), s.fill, s.stroke]; })"
        )
        assert {one[0] for one in circles} == ids and await tab.locator(".lines path").count() == edges
        frame = await tab.locator("#tree").bounding_box()
        for _, left, top, right, bottom, *_ in circles:
            assert right - left > 1 and bottom - top > 1
            assert frame["x"] <= left and right <= frame["x"] + frame["width"]
            assert frame["y"] <= top and bottom <= frame["y"] + frame["height"]
        fills = {name: {one[6] for one in circles if (name in one[5].split()) == there}
                 for name, there in (("tree", True), ("leaf", False))}  # fmt: skip
        assert len(fills["tree"]) == 1, "nodes that the tree takes have a colour of their own"
        plain = {one[6] for one in circles if "tree" not in one[5].split()}
        assert fills["tree"].isdisjoint(plain)
        flat = {one[7] for one in circles if "flat" in one[5].split()}
        assert len(flat) == 1 and flat.isdisjoint({one[7] for one in circles if "flat" not in one[5].split()})
        assert await tab.locator(".columns section").count() == 2 and await tab.locator(".key").count() == 2

    assert opened(browser, drawn, look) == []


def test_search_finds_nodes_and_a_chosen_node_shows_its_text_as_text(browser: str, drawn: Path) -> None:
    async def look(tab: Any) -> None:
        search, hits = tab.locator("#search"), tab.locator("#hits")
        filtered = "one => getComputedStyle(one).filter"
        strokes = "all => all.map(one => getComputedStyle(one).stroke)"
        taken = await tab.locator("circle.flat").evaluate_all(strokes)
        await search.fill("SLIPPER")
        found = await tab.locator("circle.hit").count()
        assert found > 1 and await hits.inner_text() == f"{found} nodes"
        assert await tab.locator("circle.flat.hit").first.evaluate(filtered) != "none", "a hit is seen"
        assert await tab.locator("circle.flat").evaluate_all(strokes) == taken, "and so is what retrieval took"
        await search.fill("onerror")
        assert await tab.locator("circle.leaf.hit").count() == 1
        leaf = tab.locator("circle.leaf.hit")
        await leaf.focus()
        await tab.keyboard.press("Enter")
        assert EVIL in await tab.locator("#text").inner_text() and await tab.locator("#text img").count() == 0
        assert (await tab.locator("#about").inner_text()).startswith("Leaf ")
        await search.fill("no such words anywhere")
        assert await tab.locator("circle.hit").count() == 0 and await hits.inner_text() == "0 nodes"
        await search.fill("")
        assert await hits.inner_text() == "" and await tab.title() == "Summary tree: tale"
        await tab.locator("#whole").click()
        summary = tab.locator("circle.summary").first
        await summary.click()
        assert (await tab.locator("#about").inner_text()).startswith("Summary ")
        assert await tab.locator("circle.chosen").count() == 1
        await tab.locator("circle.leaf").first.focus()
        await tab.keyboard.press(" ")
        assert (await tab.locator("#about").inner_text()).startswith("Leaf ")

    assert opened(browser, drawn, look) == []


def test_the_picture_is_zoomed_moved_and_made_whole_again(browser: str, drawn: Path) -> None:
    async def look(tab: Any) -> None:
        async def box() -> list[float]:
            return [float(one) for one in (await tab.locator("#tree").get_attribute("viewBox")).split()]

        await tab.locator("#whole").click()
        whole = await box()
        await tab.locator("#in").click()
        near = await box()
        assert near[2] < whole[2] and near[3] < whole[3]
        await tab.mouse.move(400, 400)
        await tab.mouse.down()
        await tab.mouse.move(300, 350, steps=4)
        await tab.mouse.up()
        moved = await box()
        assert moved[0] > near[0] and moved[1] > near[1] and moved[2:] == near[2:]
        await tab.mouse.wheel(0, -200)
        await tab.wait_for_function("before => +tree.getAttribute('viewBox').split(' ')[2] < before", arg=moved[2])
        await tab.locator("#whole").click()
        assert await box() == whole
        await tab.locator("#out").click()
        assert (await box())[2] > whole[2]

    assert opened(browser, drawn, look) == []


def test_on_a_narrow_screen_nothing_stands_outside(browser: str, drawn: Path) -> None:
    async def look(tab: Any) -> None:
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await tab.locator("circle").count() > 3

    assert opened(browser, drawn, look, 380) == []
