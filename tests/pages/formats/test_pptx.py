"""PowerPoint presentations, written by python-pptx."""

from __future__ import annotations

import io

import pytest
from tests.extras import need
from tests.pages.formats.documents import (
    answers_or_refuses,
    every,
    headings,
    mutated,
    mutated_parts,
    outline,
    packed,
    read,
    refused,
    table,
    text,
    texts,
    words,
)

from prunus.core.types import Page
from prunus.pages.formats.pptx.engine import Engine

P = "http://schemas.openxmlformats.org/presentationml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"


def presentation(*slides: str) -> bytes:
    """A presentation with little more than the shapes of its slides."""
    spaces = f'xmlns:p="{P}" xmlns:a="{A}" xmlns:r="{R}"'
    rels = "".join(
        f'<Relationship Id="r{n}" Type="{R}/slide" Target="slides/slide{n}.xml"/>' for n in range(len(slides))
    )
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in range(len(slides)))
    return packed(
        {
            "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="{RELS}">{rels}</Relationships>',
            **{
                f"ppt/slides/slide{n}.xml": f"<p:sld {spaces} {slide.partition('|')[0]}><p:cSld><p:spTree>"
                f"{slide.partition('|')[2]}</p:spTree></p:cSld></p:sld>"
                for n, slide in enumerate(slides)
            },
        }
    )


def shape(words: str, x: int = 0, y: int = 0, props: str = "") -> str:
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="x" {props}/></p:nvSpPr><p:spPr><a:xfrm><a:off x="{x}" y="{y}"/>'
        f'<a:ext cx="100" cy="100"/></a:xfrm></p:spPr><p:txBody><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody></p:sp>'
    )


@pytest.fixture(scope="module")
def talk() -> bytes:
    """A talk with what python-pptx can write."""
    need("pptx")
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    made = Presentation()
    first = made.slides.add_slide(made.slide_layouts[0])
    first.shapes.title.text, first.placeholders[1].text = "Tides", "A talk about the sea"
    second = made.slides.add_slide(made.slide_layouts[1])
    second.shapes.title.text = "Stations"
    frame = second.placeholders[1].text_frame
    frame.text = "pier"
    for level, item in ((1, "north end"), (1, "south end"), (0, "lock")):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = item, level
    second.notes_slide.notes_text_frame.text = "Say that the lock is new."
    third = made.slides.add_slide(made.slide_layouts[5])
    third.shapes.title.text = "Depths"
    grid = third.shapes.add_table(4, 3, Inches(1), Inches(4), Inches(6), Inches(2)).table
    for row, line in enumerate(
        (("Station", "Depth", ""), ("", "low", "high"), ("Pell", "2.1", "7.9"), ("Vor", "dry", ""))
    ):
        for column, entry in enumerate(line):
            grid.cell(row, column).text = entry
    grid.cell(0, 1).merge(grid.cell(0, 2))
    grid.cell(0, 0).merge(grid.cell(1, 0))
    grid.cell(3, 1).merge(grid.cell(3, 2))
    right = third.shapes.add_textbox(Inches(5), Inches(2), Inches(3), Inches(1))
    right.text_frame.text = "on the right"
    left = third.shapes.add_textbox(Inches(1), Inches(2.05), Inches(3), Inches(1))
    run = left.text_frame.paragraphs[0].add_run()
    run.text, run.hyperlink.address = "on the left", "https://example.org/left"
    fourth = made.slides.add_slide(made.slide_layouts[5])
    fourth.shapes.title.text = "Chart"
    data = CategoryChartData()
    data.categories = ["January", "July"]
    data.add_series("mean", (3.1, 4.5))
    data.add_series("max", (6.0, 7.5))
    fourth.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(5), Inches(4), data)
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


@pytest.mark.full
def test_slides_are_sections_with_titles_lists_tables_and_notes(talk: bytes) -> None:
    tree = read(Engine(), talk)
    assert headings(tree) == [
        ("h1", "Tides"),
        ("h2", "Stations"),
        ("h3", "Speaker notes"),
        ("h2", "Depths"),
        ("h2", "Chart"),
    ]
    assert len(every(tree, "section")) == 4
    assert outline(tree, every(tree, "ul")[0]) == ["pier", ["north end", "south end"], "lock"]
    assert texts(tree, "aside") == ["Speaker notesSay that the lock is new."]
    assert table(tree, 0) == [
        ["#Station 1x2", "#Depth 2x1"], ["low", "high"], ["Pell", "2.1", "7.9"], ["Vor", "dry 2x1"],
    ]  # fmt: skip
    assert table(tree, 1) == [["#", "#mean", "#max"], ["#January", "3.1", "6.0"], ["#July", "4.5", "7.5"]]
    assert [(tree.attrs[node] or {}).get("value") for node in every(tree, "data")] == [
        "slide-1", "slide-2", "aside-notes", "slide-3", "slide-4",
    ]  # fmt: skip


@pytest.mark.full
def test_every_word_of_a_talk_comes_in_the_order_in_which_it_stands(talk: bytes) -> None:
    expected = """Tides A talk about the sea Stations pier north end south end lock Speaker notes Say that the lock is new
    Depths on the left on the right Station Depth low high Pell 2 1 7 9 Vor dry
    Chart mean max January 3 1 6 0 July 4 5 7 5"""
    assert words(read(Engine(), talk)) == expected.split()


@pytest.mark.full
def test_links_of_a_talk_are_kept(talk: bytes) -> None:
    tree = read(Engine(), talk)
    node = every(tree, "a")[0]
    assert (text(tree, node), (tree.attrs[node] or {})["href"]) == ("on the left", "https://example.org/left")


def test_what_a_show_does_not_show_stays_out() -> None:
    made = presentation(
        "|" + shape("seen") + shape("hidden", props='hidden="1"') + shape("far away", x=99_999_999),
        "|"
        + '<p:sp><p:nvSpPr><p:nvPr><p:ph type="ftr"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>footer</a:t></a:r>'
        "</a:p></p:txBody></p:sp>" + shape("also seen"),
    )
    assert words(read(Engine(), made)) == ["seen", "also", "seen"]


def test_shapes_of_a_group_are_read_and_pictures_say_their_alt_text() -> None:
    picture = '<p:pic><p:nvPicPr><p:cNvPr id="2" name="Picture 2" descr="A pier at low tide"/></p:nvPicPr></p:pic>'
    group = "<p:grpSp>" + shape("second", y=5_000_000) + shape("first", y=10) + picture + "</p:grpSp>"
    tree = read(Engine(), presentation("|" + group))
    assert set(words(tree)) == set("first second A pier at low tide".split())
    assert texts(tree, "p") == ["first", "second"]
    assert (tree.attrs[every(tree, "img")[0]] or {})["alt"] == "A pier at low tide"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no PowerPoint"),
        (b"{}", "no PowerPoint"),
        (packed({"ppt/presentation.xml": "<x/>"}), "no PowerPoint"),
        (b"PK\x03\x04...", "damaged or cut off"),
        (presentation("|" + "<p:grpSp>" * 200 + "</p:grpSp>" * 200), "nested too deep"),
    ],
)
def test_bad_input_is_one_line(content: bytes, reason: str) -> None:
    assert reason in refused(Engine(), content, "talk.pptx")


def test_a_presentation_that_is_damaged_is_read_or_refused() -> None:
    whole = presentation("|" + shape("one"), "|" + shape("two"))
    for broken in (*mutated(whole, 60), *mutated_parts(whole, 100)):
        answers_or_refuses(Engine(), broken)


@pytest.mark.full
def test_a_written_presentation_that_is_damaged_is_read_or_refused(talk: bytes) -> None:
    for broken in (*mutated(talk, 24), *mutated_parts(talk, 60)):
        answers_or_refuses(Engine(), broken)


def test_letters_of_symbol_fonts_are_what_they_show() -> None:
    runs = "".join(
        f"<a:r><a:rPr>{fonts}</a:rPr><a:t>{words}</a:t></a:r>"
        for words, fonts in (
            ("à plan ", '<a:latin typeface="Arial"/><a:sym typeface="Wingdings"/>'),
            ("à la carte ", '<a:latin typeface="Arial"/>'),
            ("ü", '<a:latin typeface="Wingdings"/>'),
        )
    )
    html = Engine().to_html(Page(presentation(f"|<p:sp><p:txBody><a:p>{runs}</a:p></p:txBody></p:sp>")))
    assert "→ plan à la carte ✓" in html


def test_struck_runs_are_marked() -> None:
    runs = "".join(
        f"<a:r><a:rPr {look}/><a:t>{words}</a:t></a:r>"
        for words, look in (
            ("Fee ", ""),
            ("500 ", 'strike="sngStrike"'),
            ("EUR", 'strike="dblStrike"'),
            (" 700", 'strike="noStrike"'),
        )
    )
    html = Engine().to_html(Page(presentation(f"|<p:sp><p:txBody><a:p>{runs}</a:p></p:txBody></p:sp>")))
    assert "Fee </data>" not in html and "<s>500</s> <s>EUR</s> 700" in html
