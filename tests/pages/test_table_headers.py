"""Which rows of a table label its columns."""

from __future__ import annotations

import pytest

from prunus.pages.clean.walk import clean_tree
from prunus.pages.table_headers import group_titles, header_rows
from prunus.pages.tree import subtree_text

PLAIN = "<tr><td>Elm<td>12<td>3.5 m<tr><td>Oak<td>9<td>4.1 m<tr><td>Yew<td>31<td>2 m"


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ("<thead><tr><td>Tree<td>Number<td>12</thead>" + PLAIN, 1),
        ("<tr><th>Tree<th>Number<th>Height" + PLAIN, 1),
        ("<tr><th><th>Number<th>Height" + PLAIN, 1),
        ("<tr><td><b>Tree</b><td><p><strong>Number</strong></p><td><b>Height</b>" + PLAIN, 1),
        ("<tr><td><b>Tree</b><td><b>Number</b> about<td><b>42</b>" + PLAIN, 0),
        ("<tr><td>Tree<td>Number<td>Height" + PLAIN, 1),
        ("<tr><td><td>Number<td>Height" + PLAIN, 1),
        ("<tr><td>Tree<td>2022<td>2023" + PLAIN, 1),
        ("<tr><td>Ash<td>7<td>2 m" + PLAIN, 0),
        ("<tr><td>Tree<td>Number<td>" + PLAIN, 0),
        ("<tr><td rowspan=2>Tree<td colspan=2>2022<tr><td>Number<td>Height" + PLAIN, 2),
        ("<tr><td colspan=3>Trees of the park<tr><td>Tree<td>Number<td>Height" + PLAIN, 2),
        ("<tr><th rowspan=2>Tree<th colspan=2>Park<tr><td>Number<td>Height" + PLAIN, 2),
        ("<tr><th rowspan=2>Tree<th>Number<th>Height<tr><td>12<td>3" + PLAIN, 1),
        ("<tr><td>Name<td>Ann<tr><td>Age<td>41<tr><td>Height<td>170<tr><td>Weight<td>70", 0),
        ("<tr><td>Year<td>Boats<tr><td>2001<td>41<tr><td>2002<td>170<tr><td>2003<td>70", 1),
        ("<tr><td>2000<td>2001<td>2002<tr><td>2003<td>2004<td>2005<tr><td>2006<td>2007<td>2008", 0),
        ("<tr><td>Plan<td>Basic<td>Pro<tr><td>Price<td>$5<td>$9", 1),
        ("<tr><td>Plan<td>Basic<td>Pro<tr><td>Help<td>mail<td>phone<tr><td>Price<td>5 USD<td>9 USD", 1),
        ("<tr><th>Plan<td>Basic<td>Pro<tr><th>Price<td>$5<td>$9", 1),
        ("<tr><td>Plan<td>Basic<td>Pro<tr><td>Help<td>mail<td>phone", 0),
        ("<tr><td>Plan<td>Basic<td>Pro<tr><td>Price<td>$5<td>free", 0),
        ("<tr><td>Plan<td>Basic<td>Basic<tr><td>Price<td>$5<td>$9", 0),
        ("<tr><td>Plan<td>Basic<td>3 users<tr><td>Price<td>$5<td>$9", 0),
        ("<tr><td>Plan<td>Basic<td>for a team of five<tr><td>Price<td>$5<td>$9", 0),
        ("<tr><td>Plan<td>Basic<td><tr><td>Price<td>$5<td>$9", 0),
        ("<tr><td>Plan<td>Basic<tr><td>Price<td>$5", 0),
        ("<tr><td>Plan<td colspan=2>Basic<td>Pro<tr><td>Price<td>1<td>$5<td>$9", 0),
        ("<tr><td>May<td>June<td>July<tr><td>7<td>5<td>9", 0),
        ("<tr><td><td>Basic<td>Pro<tr><td>Help<td>mail<td>phone<tr><td>Price<td>$5<td>free", 1),
        ("<tr><td><td>Basic<td>Pro<tr><td>Help<td>mail<td>phone", 0),
        ("<tr><td><td>Basic<td>Pro<tr><td>Help<td>mail<td><tr><td>Price<td>$5<td>free", 0),
        ("<tr><td>Name<td>City<td>Job<tr><td>Ann<td>Rome<td>cook<tr><td>Bea<td>Oslo<td>smith", 0),
        ("<tr><td><b>Harbour news</b><tr><td>The ferry left.<tr><td>It came back.", 0),
        ("<tr><td><b>a</b><td><b>b</b>" * 6, 0),
        ("<tr><th>a<th>b", 0),
        ("<tr><th>Tree<th>Number<th>Height<tr><td colspan=3><b>North</b>" + PLAIN, 1),
        ("<tr><th>Tree<th>Number<th>Height<tr><th colspan=3>North" + PLAIN, 1),
        ("<tr><td><b>Tree</b><td><b>Number</b><td><b>Height</b><tr><td><b>North:</b><td><td>" + PLAIN, 1),
        ("<thead><tr><th>Tree<th>Number<th>Height<tr><th colspan=3>of 2023</thead>" + PLAIN, 2),
    ],
)
def test_header_rows_are_known_by_their_elements_or_by_the_numbers_below(rows: str, count: int) -> None:
    tree = clean_tree(f"<table>{rows}</table>")
    assert len(header_rows(tree, tree.tag.index("table"))) == count


@pytest.mark.parametrize(
    ("rows", "titles"),
    [
        ("<tr><td colspan=2>North<tr><td>Elm<td>1<tr><td colspan=2>South<tr><td>Elm<td>2", ["", "North", "", "South"]),
        ("<tr><td>North:<td><tr><td>Elm<td>1<tr><td>Total<td>2<tr><td>Yew<td>3", ["", "North:", "North:", ""]),
        ("<tr><td>North:<td><tr><td>Elm<td>1<tr><td>合计数<td>2<tr><td>Yew<td>3", ["", "North:", "North:", ""]),
        ("<tr><td><b>Park</b><td><tr><th>North<td><tr><td>Elm<td>1", ["", "", "Park North"]),
        ("<tr><td>Elm<td>1<tr><td>Yew<td><tr><td>Oak<td>3", ["", "", ""]),  # a value is missing
        ("<tr><td>Elm<td>1<tr><td><td><b>North</b><tr><td>Oak<td>3", ["", "", ""]),
        ("<tr><td colspan=2>12<tr><td>Elm<td>1", ["", ""]),
        ("<tr><td><b>North</b><tr><td>Elm", ["", ""]),
    ],
)
def test_titles_of_rows_hold_up_to_the_next_one_or_a_total(rows: str, titles: list[str]) -> None:
    tree = clean_tree(f"<table><tr><th>Tree<th>Number{rows}</table>")
    table = tree.tag.index("table")
    known = group_titles(tree, table)
    below = [row for row in tree.children(table + 1) if row not in header_rows(tree, table)]
    assert [" ".join(subtree_text(tree, title) for title in known.get(row, ())) for row in below] == titles
