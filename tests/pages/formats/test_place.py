"""Where words stand in a document: page, slide, sheet and row, chapter."""

from __future__ import annotations

import pytest
from tests.pages.formats import test_epub, test_ods, test_pptx, test_xlsx
from tests.pages.formats.documents import read
from tests.pages.formats.pdfs import Sheet, pdf
from tests.pages.formats.test_pdf import prose

from prunus.pages.formats.epub.engine import Engine as Epub
from prunus.pages.formats.ods import Engine as Ods
from prunus.pages.formats.pdf.engine import Engine as Pdf
from prunus.pages.formats.pptx.engine import Engine as Pptx
from prunus.pages.formats.xlsx import Engine as Xlsx
from prunus.pages.place import place_in_document
from prunus.pages.tree import Tree


def places(tree: Tree, *words: str) -> list[str]:
    """Return the place of the text in which each of these words first stands."""
    return [place_in_document(tree, tree.node_at(tree.canonical.index(word))) for word in words]


def test_a_paragraph_over_two_pages_begins_on_the_first() -> None:
    sheets = []
    for page in range(2):
        sheets.append(Sheet())
        sheets[-1].lines(40, 100, prose(f"p{page}l", 20))
    tree = read(Pdf(), pdf(*sheets))
    assert places(tree, "p0l00", "p0l19", "p1l00", "p1l19") == ["page 1", "page 1", "page 2", "page 2"]
    (paragraph,) = (node for node, tag in enumerate(tree.tag) if tag == "p")
    assert place_in_document(tree, paragraph) == "page 1"


def test_slides_with_and_without_titles_know_their_number() -> None:
    deck = test_pptx.presentation(
        "|" + test_pptx.shape("Tides"),
        'show="0"|' + test_pptx.shape("Gone"),
        "|" + test_pptx.shape("Locks &amp; piers") + test_pptx.shape("Weirs", y=4000),
    )
    tree = read(Pptx(), deck)
    assert places(tree, "Tides", "Locks", "Weirs") == ["slide 1", "slide 3", "slide 3"]


def test_rows_have_the_number_that_the_spreadsheet_shows() -> None:
    tree = read(Ods(), test_ods.spreadsheet(test_ods.BODY, test_ods.STYLES))
    assert places(tree, "Heights", "Port", "2.5 m", "31", "two") == [
        "sheet Tides, row 1", "sheet Tides, row 2", "sheet Tides, row 3", "sheet Tides, row 5", "sheet Tides, row 9",
    ]  # fmt: skip


def cells(*rows: tuple[int, str]) -> str:
    written = "".join(
        f'<row r="{number}" hidden="{int(text == "hidden")}">'
        + "".join(f'<c r="{letter}{number}" t="inlineStr"><is><t>{text}{letter}</t></is></c>' for letter in "ABD")
        + "</row>"
        for number, text in rows
    )
    return f"<sheetData>{written}</sheetData>"


def test_tables_beside_and_below_each_other_count_their_own_rows() -> None:
    body = cells((1, "one"), (2, "two"), (3, "hidden"), (4, "four"), (9, "nine"))
    tree = read(Xlsx(), test_xlsx.workbook({"Costs &amp; more": body, "Second": cells((1, "first"))}))
    wanted = {"oneA": 1, "twoB": 2, "fourA": 4, "oneD": 1, "fourD": 4, "nineB": 9, "nineD": 9}
    assert places(tree, *wanted) == [f"sheet Costs & more, row {number}" for number in wanted.values()]
    assert places(tree, "firstB", "Second") == ["sheet Second, row 1", "sheet Second, row 1"]


def test_chapters_are_counted_in_the_order_of_the_book() -> None:
    tree = read(Epub(), test_epub.book())
    assert places(tree, "The harbour", "Depth", "The sea", "raw") == [
        "chapter 1",
        "chapter 1",
        "chapter 2",
        "chapter 2",
    ]


@pytest.mark.parametrize("content", [b"<p>A page of the web", b'<p><data value="page-x">1</data> <data value="2024">2'])
def test_a_page_of_the_web_has_no_places(content: bytes) -> None:
    from prunus.pages.formats.html import Engine as Html

    tree = read(Html(), content)
    assert place_in_document(tree, len(tree) - 1) == ""
