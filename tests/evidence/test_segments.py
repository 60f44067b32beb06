"""Segments that can be quoted: sentences, and whole rows, pairs, lists and code; each is a slice of the page."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import articles, broken_documents, worded_documents

from prunus.core.ports import Segment
from prunus.evidence.segments import segments_of
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree

PAGE = """<title>Harbour guide</title><h1>Harbour</h1><p>The ferry leaves at noon. It is small.
<h2>Fares</h2><table><caption>Fares of 2024</caption><tr><th>Zone<th>Coins<th>Note
<tr><td>inner<td>2<td><tr><td>outer<td><td>by sail. And oar.</table>
<h2>In the box</h2><p>What comes with it:</p><ul><li>a cone<li>a key</ul>
<dl><dt>Slack<dd>The pause between tides.</dl><pre>def go():

    return 1</pre>"""


def quoted(html: str, kept: slice = slice(None)) -> list[tuple[str, str, str]]:
    tree = clean_tree(html)
    start, end, _ = kept.indices(len(tree.canonical))
    return [
        (segment.kind, tree.canonical[segment.span.start : segment.span.end], segment.label)
        for segment in segments_of(tree, [(start, end)])
    ]


def test_each_thing_is_quoted_whole_with_what_a_reader_needs() -> None:
    assert quoted(PAGE) == [
        ("sentence", "Harbour", ""),
        ("sentence", "The ferry leaves at noon.", ""),
        ("sentence", "It is small.", ""),
        ("sentence", "Fares", ""),
        ("sentence", "Fares of 2024", ""),
        ("row", "inner\t2", "Zone | Coins | Note"),
        ("row", "outer\t\tby sail. And oar.", "Zone | Coins | Note"),
        ("sentence", "In the box", ""),
        ("sentence", "What comes with it:", ""),
        ("list", "a cone\na key", ""),
        ("sentence", "a cone", "What comes with it:"),
        ("sentence", "a key", "What comes with it:"),
        ("pair", "Slack\nThe pause between tides.", ""),
        ("code", "def go():\n\n    return 1", ""),
    ]


def test_what_stands_above_is_told_apart() -> None:
    tree = clean_tree(PAGE)
    above = {
        tree.canonical[segment.span.start : segment.span.end]: segment.above
        for segment in segments_of(tree, [(0, len(tree.canonical))])
    }
    assert above["inner\t2"].split("\n") == ["Harbour guide", "Harbour", "Fares", "Fares of 2024 Zone Coins Note"]
    assert above["a cone\na key"].split("\n")[-1] == "What comes with it:"


def test_header_cells_that_span_columns_head_all_of_them() -> None:
    page = "<table><tr><th>Day<th colspan=2>Level<tr><td>Monday<td>1<td>2<tr><td>Tuesday<td><td>3</table>"
    rows = [entry for entry in quoted(page) if entry[0] == "row"]
    assert rows == [("row", "Monday\t1\t2", "Day | Level | Level"), ("row", "Tuesday\t\t3", "Day | Level | Level")]


TWO_HEADER_ROWS = """<table><tr><th rowspan=2>Town<th colspan=2>Population<th rowspan=2>Mayor<tr><th>2000<th>2010
<tr><td>Ashby<td>100<td>120<td>Jo Lind<tr><td>Brill<td><td>90<td>
<tr><td rowspan=2>Corby<td>5<td>6<td>Al Gray<tr><td>7<td>8<td>Ed Moss</table>"""


def test_a_row_is_labelled_by_the_title_of_its_group_and_that_title_is_no_quote() -> None:
    rows = "<tr><td colspan=3><b>Assets</b><tr><td>Other<td>7<td>8<tr><td><b>Debts:</b><td><td><tr><td>Other<td>5<td>9"
    found = quoted(f"<table><tr><th>Item<th>2023<th>2022{rows}<tr><td>Total<td>5<td>9<tr><td>Staff<td>3<td>4</table>")
    heads = "Item | 2023 | 2022"
    assert [(text, label) for _, text, label in found] == [
        ("Other\t7\t8", f"Assets: {heads}"),
        ("Other\t5\t9", f"Debts: {heads}"),
        ("Total\t5\t9", f"Debts: {heads}"),
        ("Staff\t3\t4", heads),
    ]


def test_a_row_is_labelled_by_the_header_right_above_it_and_no_header_is_quoted() -> None:
    cats, dogs = "<tr><td>1990<td>4<tr><td>1991<td>5", "<tr><td>1990<td>8<tr><th>1991<td>9"
    found = quoted(f"<table><tr><th>Year<th>Cats{cats}<tr><th>Year<th>Dogs{dogs}</table>")
    assert [(text, label) for _, text, label in found] == [
        ("1990\t4", "Year | Cats"),
        ("1991\t5", "Year | Cats"),
        ("1990\t8", "Year | Dogs"),
        ("1991\t9", "Year | Dogs"),
    ]


def test_a_cell_under_two_header_rows_is_labelled_by_both() -> None:
    labels = {text: label for _, text, label in quoted(TWO_HEADER_ROWS)}
    assert labels["Ashby\t100\t120\tJo Lind"] == "Town | Population \u203a 2000 | Population \u203a 2010 | Mayor"


def test_a_cell_that_spans_rows_is_named_with_the_rows_that_it_reaches() -> None:
    labels = {text: label for _, text, label in quoted(TWO_HEADER_ROWS)}
    assert labels["7\t8\tEd Moss"] == "Population \u203a 2000 | Population \u203a 2010 | Mayor; Town: Corby"


def test_empty_cells_stay_in_place_where_a_row_is_shown() -> None:
    tree = clean_tree(TWO_HEADER_ROWS)
    shown = {
        tree.canonical[one.span.start : one.span.end]: one.shown
        for one in segments_of(tree, [(0, len(tree.canonical))])
    }
    assert shown["Brill\t\t90"] == "Brill\t\t90\t"
    assert shown["Ashby\t100\t120\tJo Lind"] == ""


def test_a_header_over_all_columns_is_said_once() -> None:
    page = "<table><tr><th colspan=2>Results<tr><th>Team<th>Goals<tr><td>North<td>3</table>"
    assert quoted(page) == [("row", "North\t3", "Results: Team | Goals")]


def test_a_header_row_without_a_cell_names_no_column() -> None:
    assert quoted("<table><thead><tr></tr><tbody><tr><td>w1</table>") == [("row", "w1", "")]


def test_only_what_was_kept_is_quoted() -> None:
    text = clean_tree(PAGE).canonical
    found = quoted(PAGE, slice(text.index("outer"), text.index("a key")))
    assert [entry[1] for entry in found] == [
        "outer\t\tby sail. And oar.",
        "In the box",
        "What comes with it:",
        "a cone",
    ]


def test_a_long_list_is_quoted_item_by_item() -> None:
    page = "<ul>" + "".join(f"<li>item {number}" for number in range(30)) + "</ul>"
    assert {kind for kind, _, _ in quoted(page)} == {"sentence"}


def spans_of(tree: Tree, every: int) -> list[tuple[int, int]]:
    lines, start = [], 0
    for line in tree.canonical.split("\n"):
        lines.append((start, start + len(line)))
        start += len(line) + 1
    return [line for number, line in enumerate(lines) if every == 0 or number % every]


@given(
    st.one_of(articles(), worded_documents.map(lambda made: made.html), broken_documents()), st.sampled_from((0, 2, 3))
)
def test_segments_are_slices_in_order_of_what_was_kept(html: str, every: int) -> None:
    tree = clean_tree(html)
    kept = spans_of(tree, every)
    found: list[Segment] = segments_of(tree, kept)
    held = {place for start, end in kept for place in range(start, end)}
    for segment in found:
        text = tree.canonical[segment.span.start : segment.span.end]
        assert text == text.strip()
        assert text
        assert all(
            place in held or tree.canonical[place].isspace() for place in range(segment.span.start, segment.span.end)
        )
    assert [segment.span.start for segment in found] == sorted(segment.span.start for segment in found)
    single = [segment for segment in found if segment.kind != "list"]
    assert all(segment.span.end <= other.span.start for segment, other in pairwise(single))


@pytest.mark.parametrize("head", ["<tr></tr>", "<tr><th hidden>x</th></tr>", "<tr>loose words</tr>"])
def test_a_header_row_without_a_cell_labels_nothing(head: str) -> None:
    assert ("row", "one two\td", "") in quoted(f"<table><thead>{head}</thead><tr><td>one two<td>d</table>")
