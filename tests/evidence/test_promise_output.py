"""Promise 2: valid HTML in document order, without invented tags; rows keep their header, blocks their headings."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
import turbohtml
from hypothesis import given
from hypothesis import strategies as st
from tests import oracle
from tests.strategies import Made, articles, worded_documents

import prunus
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.render import Rendering, render_blocks
from prunus.pages.clean.walk import clean_tree
from prunus.pages.write.selection import MARK
from prunus.pages.write.style import CLEAN, LEAN, Style
from prunus.pages.write.whole import render_tree

FULL = Style(full=True)
ALWAYS_MADE = {"html", "head", "body", "tbody"}
"""Elements that any parser adds."""


def errors_of(html: str) -> list[str]:
    """Return what the parser's tokeniser complains of."""
    return [error.code for error in turbohtml.parse(html).errors]


def tags_of(html: str) -> Counter[str]:
    return Counter(element.tag for element in oracle.parse(html).find_all())


def is_mark(element: Any) -> bool:
    """Tell whether an element holds nothing but the mark of something that was left out."""
    return bool(element.text.strip() == MARK)


# --- whole documents -----------------------------------------------------------------------------


@given(worded_documents)
def test_compact_html_parses_to_the_structure_of_full_html(made: Made) -> None:
    """End tags and wrappers that are left out change nothing that says something."""
    tree = clean_tree(made.html)
    compact, full = render_tree(tree, "html", CLEAN), render_tree(tree, "html", FULL)
    assert oracle.visible(compact) == oracle.visible(full)
    assert oracle.grids(compact) == oracle.grids(full)
    assert oracle.preformatted(compact) == oracle.preformatted(full)


@given(worded_documents)
def test_lean_html_keeps_the_structure_and_leaves_out_emphasis_and_links(made: Made) -> None:
    tree = clean_tree(made.html)
    lean, full = render_tree(tree, "html", LEAN), render_tree(tree, "html", FULL)
    assert oracle.visible(lean, oracle.STRUCTURE) == oracle.visible(full, oracle.STRUCTURE)
    assert oracle.grids(lean) == oracle.grids(full)
    assert not set(tags_of(lean)) & {"b", "i", "em", "strong", "a", "u", "small"}


@given(worded_documents)
def test_full_html_holds_no_tag_that_the_page_lacks(made: Made) -> None:
    before, after = tags_of(made.html), tags_of(render_tree(clean_tree(made.html), "html", FULL))
    assert not {tag: count for tag, count in after.items() if count > before[tag] and tag not in ALWAYS_MADE}


@given(worded_documents)
def test_only_attributes_that_carry_meaning_are_written(made: Made) -> None:
    html = made.html.replace("<p>", "<p class=a id=b onclick=c style='color:red' data-d=e>")
    for element in oracle.parse(prunus.clean(html, style=FULL)).find_all():
        assert not {"class", "id", "onclick", "style", "data-d"} & set(element.attrs)


# --- any subset of blocks ------------------------------------------------------------------------


def subset_of(blocks: Blocks, seed: int) -> list[int]:
    """Return blocks chosen by the bits of a number, each with what it requires."""
    chosen = {index for index in range(len(blocks)) if seed >> (index % 30) & 1}
    todo = list(chosen)
    while todo:
        more = set(blocks.blocks[todo.pop()].requires) - chosen
        chosen |= more
        todo += more
    return sorted(chosen)


seeds = st.integers(0, 2**30 - 1)
sizes = st.sampled_from((1, 2, 4, 9, 30))
styles = st.sampled_from((CLEAN, LEAN, FULL, Style(full=True, pretty=True)))


@given(worded_documents, sizes, seeds, styles)
def test_a_subset_shows_exactly_the_words_of_its_blocks(made: Made, size: int, seed: int, style: Style) -> None:
    blocks = cut([clean_tree(made.html)], size, whole_words=0)
    kept = subset_of(blocks, seed)
    shown = render_blocks(blocks, kept, Rendering("html", style))
    said = "".join("".join(blocks.texts[index].split()) for index in kept)
    assert Counter("".join(oracle.words(shown))) >= Counter(oracle.without_marks(said))
    assert _numbers(shown) >= _numbers(" ".join(blocks.texts[index] for index in kept))


def _numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"w\d+", text))


@given(worded_documents, sizes, seeds, styles)
def test_a_subset_joins_no_two_words(made: Made, size: int, seed: int, style: Style) -> None:
    """Words on both sides of something dropped stay two words, in every format; nothing is added but marks."""
    blocks = cut([clean_tree(made.html)], size, whole_words=0)
    kept = subset_of(blocks, seed)
    whole = {*made.words, MARK}
    shown = oracle.words(render_blocks(blocks, kept, Rendering("html", style)))
    shown += oracle.without_marks(render_blocks(blocks, kept, Rendering("text", style))).split()
    for word in shown:
        assert word in whole or any(word in oracle.without_marks(one) for one in whole), (
            f"{word!r} is no word of the page"
        )


@given(worded_documents, sizes, seeds, styles)
def test_a_subset_is_in_document_order_and_doubles_nothing(made: Made, size: int, seed: int, style: Style) -> None:
    blocks = cut([clean_tree(made.html)], size, whole_words=0)
    shown = oracle.words(render_blocks(blocks, subset_of(blocks, seed), Rendering("html", style)))
    numbers = [int(number) for number in re.findall(r"w(\d+)", " ".join(shown))]
    assert len(numbers) == len(set(numbers))
    if "rowspan" not in made.html:  # the first kept row of a cell's rows shows it, behind the words of cells before it
        assert numbers == sorted(numbers)


@given(worded_documents, sizes, seeds)
def test_a_compact_subset_parses_to_the_structure_of_the_full_one(made: Made, size: int, seed: int) -> None:
    blocks = cut([clean_tree(made.html)], size, whole_words=0)
    kept = subset_of(blocks, seed)
    compact, full = (render_blocks(blocks, kept, Rendering("html", style)) for style in (CLEAN, FULL))
    assert oracle.visible(compact) == oracle.visible(full)
    assert oracle.grids(compact) == oracle.grids(full)


@given(worded_documents, sizes, seeds, styles)
def test_a_subset_holds_no_tag_that_the_page_lacks(made: Made, size: int, seed: int, style: Style) -> None:
    """Only a mark may stand in an item, or in a row and a cell, of its own."""
    blocks = cut([clean_tree(made.html)], size, whole_words=0)
    html = render_blocks(blocks, subset_of(blocks, seed), Rendering("html", style))
    shown = tags_of(html) - Counter(element.tag for element in oracle.parse(html).find_all() if is_mark(element))
    assert not {
        tag: count for tag, count in shown.items() if count > tags_of(made.html)[tag] and tag not in ALWAYS_MADE
    }


@given(articles(), sizes, seeds)
def test_kept_rows_keep_their_columns(html: str, size: int, seed: int) -> None:
    """Every cell that is shown stands in the column in which it stood."""
    blocks = cut([clean_tree(html)], size, whole_words=0)
    shown = oracle.grids(render_blocks(blocks, subset_of(blocks, seed), Rendering()))
    columns: dict[tuple[str, ...], set[int]] = {}
    for grid in oracle.grids(html):
        for row in grid:
            for column, cell in enumerate(row):
                columns.setdefault(cell or (), set()).add(column)
    for grid in shown:
        for row in grid:
            for column, cell in enumerate(row):
                if cell and cell in columns:
                    assert column in columns[cell]


# --- rows and their header, blocks and their headings --------------------------------------------

FARES = "<h1>Harbour</h1><h2>Fares</h2><table><caption>Fares</caption><tr><th>Zone<th>Coins" + "".join(
    f"<tr><td>zone {number}<td>{number}.50 coins" for number in range(1, 30)
)


def test_a_kept_row_keeps_its_header_row() -> None:
    context = prunus.prune(FARES, "fare for zone 17?", 48)
    (grid,) = oracle.grids(context.html)
    assert grid[0] == [("Zone",), ("Coins",)]
    assert [("zone", "17"), ("17.50", "coins")] in grid
    assert grid[-1][0] == (MARK,)
    assert any(block.role == "header" and "Zone" in block.text for block in context.kept) or len(grid) > 2


def test_breadcrumbs_keep_the_headings_above_a_kept_block() -> None:
    words = "Some words about it. " * 5
    page = "<h1>Harbour</h1>" + "".join(
        f"<h2>Pier {number}</h2><p>{words}</p><h3>Depth</h3><p>The depth is {number} metres at low water.</p>"
        for number in range(2, 12)
    )
    options = prunus.Options(breadcrumbs=True, max_words=12)
    context = prunus.prune(page, "the depth is 7 metres", 56, options=options)
    assert oracle.outline(context.html)[:3] == [("h1", "Harbour"), ("h2", "Pier 7"), ("h3", "Depth")]
    assert context.tokens <= 56


@given(articles(), st.integers(20, 200))
def test_breadcrumbs_are_all_the_headings_above(html: str, budget: int) -> None:
    try:
        context = prunus.prune(
            html, "When did the canal open?", budget, options=prunus.Options(breadcrumbs=True, max_words=20)
        )
    except prunus.BadBudget:
        return
    blocks = cut([clean_tree(html)], 20)
    kept = {block.index for block in context.kept}
    scored = sum(block.role == "scored" for block in context.kept)
    if len(context.blocks) != len(blocks) or scored == 1:
        return  # the best block was cut, or is kept without what does not fit beside it
    for index in kept:
        for heading in blocks.contexts[index].headings:
            assert any(blocks.blocks[i].lo <= heading < blocks.blocks[i].hi for i in kept)


# --- several documents ---------------------------------------------------------------------------


def test_several_documents_are_told_apart_by_title_and_address() -> None:
    pages = [
        prunus.Page("<title>Tide -- tables > all</title><p>high water at noon", url="https://example.org/tides"),
        prunus.Page("<title>Ferries</title><p>the ferry leaves at noon", url="https://example.org/ferries"),
    ]
    context = prunus.prune(pages, "what is at noon?")
    for shown in (context.html, context.markdown, context.text):
        assert shown.index("example.org/tides") < shown.index("high water")
        assert shown.index("high water") < shown.index("example.org/ferries") < shown.index("ferry leaves")
    assert "example.org" not in prunus.clean(context.html, "text")


def test_a_document_without_kept_blocks_has_no_header() -> None:
    pages = [
        prunus.Page("<p>" + "nothing of any use here. " * 20, url="https://example.org/a"),
        prunus.Page("<p>the ferry leaves at noon", url="https://example.org/b"),
    ]
    context = prunus.prune(pages, "when does the ferry leave?", 30)
    assert "example.org/a" not in context.html
    assert [document.kept for document in context.documents] == [0, 1]


@pytest.mark.parametrize("name", ["faq.html", "plans-and-prices.html", "levelcast-docs.html", "gallery.html"])
def test_example_pages_pruned_are_valid_and_say_what_was_kept(site: dict[str, str], name: str) -> None:
    for format_options in (prunus.Options(), prunus.Options(full=True), prunus.Options(links=True, emphasis=True)):
        context = prunus.prune(site[name], "How much is it?", 600, options=format_options)
        before, after = tags_of(site[name]), tags_of(context.html)
        assert not {tag for tag, count in after.items() if count > before[tag] and tag not in ALWAYS_MADE}
        shown = "".join(oracle.words(context.html))
        for block in context.kept:
            assert all("".join(line.split()) in shown for line in block.text.split("\n") if "\t" not in line)


@given(worded_documents)
def test_full_html_makes_the_parser_complain_of_nothing_new(made: Made) -> None:
    before = set(errors_of(made.html))
    assert set(errors_of(prunus.clean(made.html, style=FULL))) <= before


@given(articles(), sizes, seeds, styles)
def test_a_subset_of_an_article_is_valid(html: str, size: int, seed: int, style: Style) -> None:
    blocks = cut([clean_tree(html)], size)
    assert errors_of(render_blocks(blocks, subset_of(blocks, seed), Rendering("html", style))) == []
