"""Rich Text, as Word and WordPad write it."""

from __future__ import annotations

import pytest
from tests.clock import within
from tests.pages.formats.documents import (
    answers_or_refuses,
    every,
    headings,
    mutated,
    outline,
    read,
    refused,
    table,
    text,
    texts,
    words,
)

from prunus.core.types import Page
from prunus.pages.formats.rtf.engine import Engine


def rtf(body: str, head: str = "") -> bytes:
    """A document with a body and what comes before it."""
    return (r"{\rtf1\ansi\ansicpg1252\deff0" + head + body + "}").encode("latin-1")


STYLES = r"{\stylesheet{\s0 Normal;}{\s1\b heading 1;}{\s2 heading 2;}{\s3 caption;}{\s4 Quote;}{\*\cs10 Default;}}"

REPORT = rtf(
    r"{\info{\title Tide report}{\author A. Ito}{\creatim\yr2024\mo5\dy1}}"
    r"{\header Every page {\b repeats} this}"
    r"\pard\s1 Tide report\par"
    r"\pard\s0 The harbour opened in {\b 1932} and never closed.\par"
    r"\pard\s2 Readings\par"
    r"\pard{\listtext\f1\'B7\tab}\ls1\ilvl0 pier\par"
    r"\pard{\listtext o\tab}\ls1\ilvl1 north end\par"
    r"\pard{\listtext o\tab}\ls1\ilvl1 south end\par"
    r"\pard{\listtext\'B7\tab}\ls1\ilvl0 lock\par"
    r"\pard{\pntext 3.\tab}read\par\pard{\pntext 4.\tab}write\par"
    r"\pard\s3 Table 1: Depths\par"
    r"\trowd\trhdr\clvmgf\cellx2000\cellx6000\pard\intbl Station\cell Depth\cell\row"
    r"\trowd\trhdr\clvmrg\cellx2000\cellx4000\cellx6000\pard\intbl\cell low\cell high\cell\row"
    r"\trowd\cellx2000\cellx4000\cellx6000\pard\intbl Pell\cell 2.1\cell 7.9\cell\row"
    r"\trowd\cellx2000\clmgf\cellx4000\clmrg\cellx6000\pard\intbl Vor\cell dry\cell\cell\row"
    r"\pard\s4 Nobody knows.\par\pard The last words.\par",
    STYLES,
)


def test_headings_lists_tables_and_order() -> None:
    tree = read(Engine(), REPORT)
    assert headings(tree) == [("h1", "Tide report"), ("h2", "Readings")]
    assert tree.title == "Tide report"
    assert outline(tree, every(tree, "ul")[0]) == ["pier", ["north end", "south end"], "lock"]
    assert tree.attrs[every(tree, "ol")[0]] == {"start": "3"}
    assert table(tree) == [
        ["#Station 1x2", "#Depth 2x1"],
        ["#low", "#high"],
        ["Pell", "2.1", "7.9"],
        ["Vor", "dry 2x1"],
    ]
    assert texts(tree, "caption") == ["Table 1: Depths"]
    assert texts(tree, "b") == ["1932"]
    expected = """Tide report The harbour opened in 1932 and never closed Readings pier north end south end lock read write
    Table 1 Depths Station Depth low high Pell 2 1 7 9 Vor dry Nobody knows The last words"""
    assert words(tree) == expected.split()


def test_what_the_reader_does_not_see_stays_out() -> None:
    body = (
        r"Kept{\v  hidden}{\deleted  deleted}{\*\unknown strange}"
        r"{\object\objemb{\*\objdata 504b0304}{\result  shown}}{\pict\pngblip 89504e47}\par"
    )
    assert words(read(Engine(), rtf(body))) == ["Kept", "shown"]


def test_binary_data_is_stepped_over() -> None:
    whole = rtf(r"before {\pict\bin9 " + r"}}\par{{{" + r"} after\par")
    assert words(read(Engine(), whole)) == ["before", "after"]


def test_letters_of_every_kind() -> None:
    head = r"{\fonttbl{\f0\fcharset0 Times;}{\f1\fcharset204 Cyrillic;}{\f2\fcharset128 Gothic;}}"
    body = (
        r"caf\'e9 {\f1\'ec\'e8\'f0} {\f2\'93\'fa\'96\'7b} \u8364?5 \u-10179?\u-8704? {\uc2\u228\'c3\'a4}hnlich"
        r" \ldblquote so\rdblquote\emdash a\~b\_c \{x\} \\\par"
    )
    tree = read(Engine(), rtf(body, head))
    assert texts(tree, "p")[0] == "café мир 日本 €5 \U0001f600 ähnlich “so”—a b\u2011c {x} \\"


def test_letters_of_symbol_fonts_are_what_they_show_and_struck_words_are_marked() -> None:
    fonts = r"{\fonttbl{\f0\fnil Arial;}{\f2\froman\fcharset2{\*\panose 05050102}Symbol;}{\f3\fcharset2 Wingdings;}}"
    body = r"\pard D {\f2 D\'a3} 5 {\f2\u-3987?}m, {\f3\'fc} done, {\strike $99}{\strike\strike0  $79}\par"
    tree = read(Engine(), rtf(body, fonts))
    assert texts(tree, "p") == ["D Δ≤ 5 μm, ✓ done, $99 $79"] and texts(tree, "s") == ["$99"]


def test_links_notes_boxes_and_pictures() -> None:
    body = (
        r'See {\field{\*\fldinst{HYPERLINK "https://example.org/a"}}{\fldrslt{\ul the page}}} and '
        r'{\field{\*\fldinst HYPERLINK "file:///etc/passwd"}{\fldrslt a file}}{\super\chftn{\footnote {\super\chftn} As they say.}}.'
        r"{\shp{\*\shpinst{\sp{\sn wzDescription}{\sv A pier}}{\shptxt In the box\par}}{\shprslt twice}}\par After\par"
    )
    tree = read(Engine(), rtf(body))
    assert [(text(tree, node), (tree.attrs[node] or {})["href"]) for node in every(tree, "a")] == [
        ("the page", "https://example.org/a")
    ]
    expected = "See the page and a file 1 A pier In the box After As they say"
    assert words(tree) == expected.split()


def test_a_note_that_old_readers_may_skip_is_read() -> None:
    body = r"The pier.{\super\chftn}{\*\footnote\chftn\~\plain\pard It burned down in {\b 1912}.\par}\par After\par"
    tree = read(Engine(), rtf(body))
    assert words(tree) == "The pier 1 After It burned down in 1912".split()
    assert texts(tree, "sup") == ["[1]"]


NESTED = (
    r"\trowd\cellx4000\cellx8000\pard\intbl\itap1 Depths\par"
    r"\pard\intbl\itap2 low\nestcell high\nestcell{\*\nesttableprops\trowd\trhdr\cellx1000\cellx2000\nestrow}{\nonesttables\par}"
    r"\pard\intbl\itap2 2.1\nestcell 7.9\nestcell{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}{\nonesttables\par}"
    r"\pard\intbl\itap1 in metres\cell Pell\cell\row\pard After\par"
)


def test_a_table_inside_a_cell_is_a_table() -> None:
    tree = read(Engine(), rtf(NESTED))
    assert table(tree, 1) == [["#low", "#high"], ["2.1", "7.9"]]
    assert words(tree) == "Depths low high 2 1 7 9 in metres Pell After".split()
    outer, inner = every(tree, "table")
    assert tree.end[inner] < tree.end[outer]


@pytest.mark.parametrize("end", [r"\nestrow", r"\nestcell", r"\cell", r"\row", "7.9"])
def test_the_words_of_an_inner_table_that_does_not_end_are_kept(end: str) -> None:
    cut = NESTED[: NESTED.rindex(end)]
    assert {"Depths", "low", "high", "2", "1"} <= set(words(read(Engine(), rtf(cut))))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no RTF"),
        (b"plain words", "no RTF"),
        (b"PK\x03\x04", "no RTF"),
        (b"{\\rtf1}", "shows no text"),
        (rtf("{" * 2000 + "x" + "}" * 2000), "nested more than"),
    ],
)
def test_bad_input_is_one_line(content: bytes, reason: str) -> None:
    assert reason in refused(Engine(), content, "notes.rtf")


def test_what_is_cut_off_is_read_as_far_as_it_goes() -> None:
    cut = REPORT[: REPORT.index(b"south end")]
    assert words(read(Engine(), cut))[-2:] == ["north", "end"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        rb"\b ",
        rb"{}",
        rb"\'e4",
        rb"\cell\row",
        rb"\trowd\cellx1 ",
        rb"\u1?",
        b"x\\",
        rb"{\footnote ",
        rb"{\*\footnote x}",
        rb"\itap8 x\par\itap0 y\par ",
        rb"\itap2 x\nestcell ",
        rb"\itap8\nestcell{\*\nesttableprops\nestrow}",
    ],
)
def test_long_documents_take_time_in_proportion(piece: bytes) -> None:
    document = b"{\\rtf1 x" + piece * (300_000 // len(piece)) + b"}"
    assert within(5, lambda: answers_or_refuses(Engine(), document))


def test_a_document_that_is_damaged_is_read_or_refused() -> None:
    for broken in mutated(REPORT, 300):
        answers_or_refuses(Engine(), broken)


def test_words_moved_up_or_down_are_raised_or_lowered() -> None:
    body = r"\pard 10{\up6 7} x{\dn4 3}y \up 1{\up0 2}3\par\pard\plain\dropcapli3\dropcapt1\dn4 T\par\pard\plain he end\par"
    html = Engine().to_html(Page(rtf(body)))
    assert "<p>10<sup>7</sup> x<sub>3</sub>y <sup>1</sup>2<sup>3</sup></p>" in html
    assert "<p>T</p>" in html and "<p>he end</p>" in html


def test_breaks_of_pages_columns_and_lines_part_words() -> None:
    html = Engine().to_html(Page(rtf(r"one\page two\column three\softline four\par\page\par end\page\par")))
    assert "<p>one two three four</p>" in html and "<p>end</p>" in html and html.count("<p>") == 2


@pytest.mark.parametrize(
    ("marker", "shown"),
    [
        (r"7.", "x"),
        (r"(7)", "x"),
        (r"\'B7", "x"),
        (r"o", "x"),
        (r"-", "x"),
        (r"(a)", "(a) x"),
        (r"iv.", "iv. x"),
        (r"1.2", "1.2 x"),
        (r"Article 3.", "Article 3. x"),
        (r"\'a7 4", "§ 4 x"),
        (r"\f7 \'fc", "✓ x"),
        (r"\f7 \'d8", "x"),
    ],
)
def test_a_printed_label_that_a_list_does_not_show_by_itself_stands_before_the_item(marker: str, shown: str) -> None:
    fonts = r"{\fonttbl{\f0 Arial;}{\f7\fcharset2 Wingdings;}}"
    tree = read(Engine(), rtf(rf"\pard{{\listtext {marker}\tab}}x\par", fonts))
    assert texts(tree, "li") == [shown]
    assert len(every(tree, "ol")) == (marker in ("7.", "(7)"))
