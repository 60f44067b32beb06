"""Word documents, written by python-docx and by hand."""

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
    unpacked,
    words,
)

from prunus.core.types import Page
from prunus.pages.formats.docx.engine import Engine
from prunus.pages.tree import Tree

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def document(body: str, **parts: str) -> bytes:
    """A Word document with little more than a body; further parts by name, ``_`` for ``.``."""
    spaces = (
        f'xmlns:w="{W}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
        'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
        'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
        'xmlns:v="urn:schemas-microsoft-com:vml"'
    )
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    rels = (
        "".join(f'<Relationship Id="r{name}" Type="{kind}/{name}" Target="{name}.xml"/>' for name in parts)
        + f'<Relationship Id="web" Type="{kind}/hyperlink" Target="https://example.org/a?b=1&amp;c" TargetMode="External"/>'
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return packed(
        {
            "[Content_Types].xml": TYPES,
            "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{space}">{rels}</Relationships>',
            **{f"word/{name}.xml": part.replace("SPACES", spaces) for name, part in parts.items()},
        }
    )


def run(words: str, props: str = "") -> str:
    return f'<w:r><w:rPr>{props}</w:rPr><w:t xml:space="preserve">{words}</w:t></w:r>'


def paragraph(*runs: str, props: str = "") -> str:
    return f"<w:p><w:pPr>{props}</w:pPr>{''.join(runs)}</w:p>"


@pytest.fixture(scope="module")
def report() -> bytes:
    """A report with everything that python-docx can write."""
    docx = need("docx")
    made = docx.Document()
    made.core_properties.title, made.core_properties.author = "Tide report", "A. Ito"
    made.add_heading("Tide report", 0)
    made.add_heading("Stations", 1)
    paragraph = made.add_paragraph("The harbour opened in ")
    paragraph.add_run("1932").bold = True
    paragraph.add_run(" and never closed.")
    made.add_heading("Readings", 2)
    for style, item in (
        ("List Bullet", "pier"), ("List Bullet 2", "north end"), ("List Bullet 2", "south end"),
        ("List Bullet", "lock"), ("List Number", "read"), ("List Number", "write"),
    ):  # fmt: skip
        made.add_paragraph(item, style=style)
    made.add_paragraph("Table 1: Depths", style="Caption")
    grid = made.add_table(rows=4, cols=3)
    for row, line in enumerate(
        (("Station", "Depth", ""), ("", "low", "high"), ("Pell", "2.1", "7.9"), ("Vor", "dry", ""))
    ):
        for column, entry in enumerate(line):
            grid.cell(row, column).text = entry
    grid.cell(0, 1).merge(grid.cell(0, 2))
    grid.cell(0, 0).merge(grid.cell(1, 0))
    grid.cell(3, 1).merge(grid.cell(3, 2))
    made.add_paragraph("Nobody <b>knows</b> & cares.", style="Quote")
    made.add_paragraph("The last words.")
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


@pytest.mark.full
def test_headings_lists_tables_and_order_of_a_document_that_another_library_wrote(report: bytes) -> None:
    tree = read(Engine(), report)
    assert headings(tree) == [("h1", "Tide report"), ("h1", "Stations"), ("h2", "Readings")]
    assert tree.title == "Tide report"
    assert outline(tree, every(tree, "ul")[0]) == ["pier", ["north end", "south end"], "lock"]
    assert outline(tree, every(tree, "ol")[0]) == ["read", "write"]
    assert table(tree) == [
        ["#Station 1x2", "#Depth 2x1"],
        ["low", "high"],
        ["Pell", "2.1", "7.9"],
        ["Vor", "dry 2x1"],
    ]
    assert texts(tree, "caption") == ["Table 1: Depths"]
    assert texts(tree, "b") == ["1932"]
    assert texts(tree, "blockquote") == ["Nobody <b>knows</b> & cares."]
    expected = """Tide report Stations The harbour opened in 1932 and never closed Readings pier north end south end lock
    read write Table 1 Depths Station Depth low high Pell 2 1 7 9 Vor dry Nobody b knows b cares The last words"""
    assert words(tree) == expected.split()


def test_lists_nest_by_their_level_and_keep_their_numbers() -> None:
    numbering = (
        "<w:numbering SPACES><w:abstractNum w:abstractNumId='0'>"
        "<w:lvl w:ilvl='0'><w:start w:val='3'/><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.'/></w:lvl>"
        "<w:lvl w:ilvl='1'><w:start w:val='1'/><w:numFmt w:val='lowerLetter'/><w:lvlText w:val='%2)'/></w:lvl>"
        "<w:lvl w:ilvl='2'><w:numFmt w:val='bullet'/></w:lvl></w:abstractNum>"
        "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num></w:numbering>"
    )
    items = [(0, "read"), (1, "the gauge"), (1, "the clock"), (2, "twice"), (0, "write")]
    body = "".join(
        paragraph(run(words), props=f"<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='1'/></w:numPr>")
        for level, words in items
    )
    tree = read(Engine(), document(body, numbering=numbering))
    top = every(tree, "ol")[0]
    assert outline(tree, top) == ["read", ["a) the gauge", "b) the clock", ["twice"]], "write"]
    assert tree.attrs[top] == {"start": "3"}
    assert len(every(tree, "ul")) == 2


def test_what_the_final_text_does_not_show_stays_out() -> None:
    body = paragraph(
        run("Kept "),
        f"<w:del>{run('')}<w:r><w:delText>deleted</w:delText></w:r></w:del>",
        f"<w:moveFrom>{run('moved away')}</w:moveFrom>",
        f"<w:ins>{run('inserted')}</w:ins>",
        run(" secret", "<w:vanish/>"),
        run(" shown", "<w:vanish w:val='0'/>"),
        "<w:commentRangeStart w:id='1'/><w:r><w:commentReference w:id='1'/></w:r>",
        "<w:r><w:object><w:t>embedded</w:t></w:object></w:r>",
    )
    tree = read(Engine(), document(body, comments="<w:comments SPACES><w:comment w:id='1'/></w:comments>"))
    assert words(tree) == ["Kept", "inserted", "shown"]


def test_links_lead_to_the_web_and_nowhere_else() -> None:
    field = (
        "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText> HYPERLINK \"{}\" </w:instrText></w:r>"
        "<w:r><w:fldChar w:fldCharType='separate'/></w:r>{}<w:r><w:fldChar w:fldCharType='end'/></w:r>"
    )
    body = paragraph(
        f"<w:hyperlink r:id='web'>{run('one')}</w:hyperlink>",
        run(" "),
        field.format("https://example.org/f", run("two", "<w:b/>")),
        run(" "),
        field.format("file:///etc/passwd", run("three")),
    )
    tree = read(Engine(), document(body))
    found = [(text(tree, node), (tree.attrs[node] or {})["href"]) for node in every(tree, "a")]
    assert found == [("one", "https://example.org/a?b=1&c"), ("two", "https://example.org/f")]
    assert words(tree) == ["one", "two", "three"]


def test_notes_follow_the_text_and_are_numbered_by_their_references() -> None:
    notes = (
        "<w:footnotes SPACES><w:footnote w:id='0' w:type='separator'><w:p/></w:footnote>"
        f"<w:footnote w:id='7'>{paragraph(run('The second note.'))}</w:footnote>"
        f"<w:footnote w:id='8'>{paragraph(run('The first note.'))}</w:footnote></w:footnotes>"
    )
    refer = "<w:r><w:footnoteReference w:id='{}'/></w:r>"
    body = paragraph(run("One"), refer.format(8), run(" two"), refer.format(7), run("."))
    tree = read(Engine(), document(body, footnotes=notes))
    assert texts(tree, "p")[0] == "One[1] two[2]."
    assert texts(tree, "li") == ["The first note.", "The second note."]


def test_an_equation_is_tex() -> None:
    fraction = (
        "<m:oMath><m:r><m:t>α=</m:t></m:r><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:rad><m:radPr>"
        "<m:degHide m:val='1'/></m:radPr><m:deg/><m:e><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r>"
        "<m:t>2</m:t></m:r></m:sup></m:sSup></m:e></m:rad></m:den></m:f></m:oMath>"
    )
    made = Engine().to_html(Page(document(paragraph(run("Let "), fraction)), url="x.docx"))
    assert '<code class="math">\\alpha =\\frac{1}{\\sqrt{x^{2}}}</code>' in made


@pytest.mark.parametrize(
    ("font", "letters", "shown"),
    [
        ("Symbol", "\uf061\uf0a3 b", "α≤ β"),
        ("Symbol", "D\u00b1", "Δ±"),
        ("Wingdings", "\uf0fe\uf0a8", "☑☐"),
        ("Arial", "Da", "Da"),
    ],
)
def test_letters_of_symbol_fonts_are_what_they_show(font: str, letters: str, shown: str) -> None:
    styles = (
        "<w:styles SPACES><w:style w:type='character' w:styleId='G'><w:name w:val='Greek'/>"
        f"<w:rPr><w:rFonts w:ascii='{font}'/></w:rPr></w:style></w:styles>"
    )
    body = paragraph(run(letters, f'<w:rFonts w:hAnsi="{font}"/>')) + paragraph(run(letters, "<w:rStyle w:val='G'/>"))
    body += paragraph("".join(f'<w:r><w:sym w:font="{font}" w:char="{ord(letter):04X}"/></w:r>' for letter in letters))
    by_font, by_style, by_code = texts(read(Engine(), document(body, styles=styles)), "p")
    assert by_font == by_style == shown and by_code.replace(" ", "") == shown.replace(" ", "")


def test_styles_raise_lower_and_strike_words_as_runs_do() -> None:
    styles = "<w:styles SPACES>" + "".join(
        f"<w:style w:type='{kind}' w:styleId='{id}'><w:name w:val='{id}'/><w:rPr>{what}</w:rPr></w:style>"
        for kind, id, what in (
            ("character", "Up", "<w:vertAlign w:val='superscript'/>"),
            ("character", "Down", "<w:vertAlign w:val='subscript'/>"),
            ("character", "Off", "<w:dstrike/>"),
            ("paragraph", "Void", "<w:strike/>"),
        )
    )
    up, down, off = (f"<w:rStyle w:val='{id}'/>" for id in ("Up", "Down", "Off"))
    body = paragraph(run("10") + run("6", up) + run(" H") + run("2", down) + run("O ") + run("$9", off))
    body += paragraph(run("7", up + "<w:vertAlign w:val='baseline'/>"))
    body += (
        "<w:p><w:pPr><w:pStyle w:val='Void'/></w:pPr>" + run("old") + run(" new", "<w:strike w:val='0'/>") + "</w:p>"
    )
    made = read(Engine(), document(body, styles=styles + "</w:styles>")).canonical
    assert made == "10⁶ H₂O ~~$9~~\n7\n~~old~~ new"


def test_a_break_of_the_page_parts_words() -> None:
    body = paragraph("<w:r><w:t>one</w:t><w:br w:type='page'/><w:t>two</w:t></w:r>")
    assert read(Engine(), document(body)).canonical == "one two"


def form_field(form: str, instruction: str, result: str = "") -> str:
    return (
        f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{form}</w:ffData></w:fldChar></w:r>'
        f'<w:r><w:instrText> {instruction} </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        f'{run(result) if result else ""}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def test_old_form_fields_show_their_ticks_choices_and_words() -> None:
    boxes = (
        "<w:default w:val='1'/>",
        "<w:default w:val='1'/><w:checked w:val='0'/>",
        "<w:default w:val='0'/><w:checked/>",
    )
    ticks = [
        form_field(f"<w:checkBox>{box}</w:checkBox>", "FORMCHECKBOX") + run(f" box {at} ")
        for at, box in enumerate(boxes)
    ]
    entries = "<w:listEntry w:val='pier'/><w:listEntry w:val='lock'/>"
    choice = form_field(f"<w:ddList><w:result w:val='1'/>{entries}</w:ddList>", "FORMDROPDOWN", "lock")
    unset = form_field(f"<w:ddList>{entries}</w:ddList>", "FORMDROPDOWN")
    words = form_field("<w:textInput/>", "FORMTEXT", "Ina Wolf")
    body = paragraph(*ticks) + paragraph(run("At the "), choice, run(" or "), unset) + paragraph(run("Name: "), words)
    assert texts(read(Engine(), document(body)), "p") == [
        "☒ box 0 ☐ box 1 ☒ box 2",
        "At the lock or pier",
        "Name: Ina Wolf",
    ]


def test_labels_of_lists_that_say_more_than_a_number_are_read() -> None:
    levels = (
        ("upperRoman", "Article %1", ""), ("decimal", "%1.%2", "<w:isLgl/>"), ("lowerLetter", "%3)", ""),
    )  # fmt: skip
    numbering = "<w:numbering SPACES><w:abstractNum w:abstractNumId='0'>" + "".join(
        f"<w:lvl w:ilvl='{at}'><w:numFmt w:val='{kind}'/>{legal}<w:lvlText w:val='{label}'/></w:lvl>"
        for at, (kind, label, legal) in enumerate(levels)
    )
    numbering += "</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num></w:numbering>"
    body = "".join(
        paragraph(run(words), props=f"<w:numPr><w:ilvl w:val='{at}'/><w:numId w:val='1'/></w:numPr>")
        for at, words in ((0, "Names"), (0, "Fees"), (1, "Due in May"), (2, "in cash"))
    )
    tree = read(Engine(), document(body, numbering=numbering))
    assert outline(tree, every(tree, "ul")[0]) == [
        "Article I Names",
        "Article II Fees",
        ["2.1 Due in May", ["a) in cash"]],
    ]


def numbered(levels: list[tuple[str, str, str]], extra: str = "", style: str = "") -> str:
    """The part of a numbering 1, whose levels have a kind, a label and further elements."""
    made = "".join(
        f"<w:lvl w:ilvl='{at}'><w:start w:val='1'/><w:numFmt w:val='{kind}'/>{more}<w:lvlText w:val='{label}'/></w:lvl>"
        for at, (kind, label, more) in enumerate(levels)
    )
    return (
        f"<w:numbering SPACES><w:abstractNum w:abstractNumId='0'>{style}{made}</w:abstractNum>"
        f"<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>{extra}</w:numbering>"
    )


def item(words: str, level: int | None, key: str = "1", more: str = "") -> str:
    """A paragraph of a list; without a level, where that is None."""
    at = "" if level is None else f"<w:ilvl w:val='{level}'/>"
    named = f"<w:numId w:val='{key}'/>" if key else ""
    return paragraph(run(words) if words else "", props=f"{more}<w:numPr>{at}{named}</w:numPr>")


@pytest.mark.parametrize(
    ("kind", "label", "read"),
    [
        ("decimal", "%1.", ["x", "y"]),  # a numbered list, which shows 1 and 2
        ("decimal", "(%1)", ["x", "y"]),
        ("decimal", "4.%1", ["4.1 x", "4.2 y"]),
        ("decimal", "§ %1", ["§ 1 x", "§ 2 y"]),
        ("decimal", "Q%1", ["Q1 x", "Q2 y"]),
        ("decimalZero", "%1.", ["01. x", "02. y"]),
        ("lowerLetter", "(%1)", ["(a) x", "(b) y"]),
        ("upperRoman", "%1.", ["I. x", "II. y"]),
        ("russianLower", "%1)", ["а) x", "б) y"]),
        ("chineseCountingThousand", "第%1条", ["第一条 x", "第二条 y"]),
        ("decimalEnclosedCircle", "%1", ["① x", "② y"]),
        ("none", "Note:", ["Note: x", "Note: y"]),
        ("none", "%1", ["x", "y"]),
        ("bullet", "o", ["x", "y"]),
        ("bullet", "\uf0b7", ["x", "y"]),
        ("bullet", "✓", ["✓ x", "✓ y"]),
    ],
)
def test_a_label_that_a_list_does_not_show_by_itself_stands_before_the_item(
    kind: str, label: str, read: list[str]
) -> None:
    body = item("x", 0) + item("y", 0)
    tree = tree_of(document(body, numbering=numbered([(kind, label, "")])))
    assert outline(tree, every(tree, "ul", "ol")[0]) == read


def tree_of(content: bytes) -> Tree:
    return read(Engine(), content)


def test_a_tick_in_a_symbol_font_is_a_label_and_an_arrow_is_not() -> None:
    font = "<w:rPr><w:rFonts w:ascii='Wingdings' w:hAnsi='Wingdings'/></w:rPr>"
    body = item("included", 0) + item("left out", 1) + item("an arrow", 2)
    levels = [("bullet", "ü", font), ("bullet", "\uf0fb", font), ("bullet", "Ø", font)]
    tree = tree_of(document(body, numbering=numbered(levels)))
    assert outline(tree, every(tree, "ul")[0]) == ["✓ included", ["✗ left out", ["an arrow"]]]


@pytest.mark.parametrize(
    ("restart", "read"),
    [
        ("", ["1", "1.1", "1.1.a", "2", "2.1", "2.1.a"]),
        ("<w:lvlRestart w:val='0'/>", ["1", "1.1", "1.1.a", "2", "2.1", "2.1.b"]),
        ("<w:lvlRestart w:val='1'/>", ["1", "1.1", "1.1.a", "2", "2.1", "2.1.a"]),
    ],
)
def test_a_level_restarts_after_the_levels_that_its_numbering_names(restart: str, read: list[str]) -> None:
    levels = [("decimal", "Part %1", ""), ("decimal", "%1.%2", ""), ("lowerLetter", "%1.%2.%3", restart)]
    body = "".join(item("x", at) for at in (0, 1, 2, 0, 1, 2))
    tree = tree_of(document(body, numbering=numbered(levels)))
    assert [text(tree, node).split("x")[0].removeprefix("Part ").strip() for node in every(tree, "li")] == read


def test_a_level_that_only_the_highest_level_restarts_goes_on_in_the_next_section() -> None:
    restart = "<w:lvlRestart w:val='1'/>"
    levels = [("decimal", "Part %1", ""), ("decimal", "%1.%2", ""), ("lowerLetter", "(%3)", restart)]
    body = "".join(item("x", at) for at in (0, 1, 2, 1, 2, 0, 1, 2))
    tree = tree_of(document(body, numbering=numbered(levels)))
    letters = [text(tree, node) for node in every(tree, "li") if text(tree, node).startswith("(")]
    assert letters == ["(a) x", "(b) x", "(a) x"]


def test_an_empty_item_is_counted_unless_it_is_deleted_or_hidden() -> None:
    numbering = numbered([("lowerLetter", "(%1)", "")])
    gone = item("", 0, more="<w:rPr><w:del w:id='1'/></w:rPr>") + item("", 0, more="<w:rPr><w:vanish/></w:rPr>")
    tree = tree_of(document(item("x", 0) + gone + item("y", 0) + item("", 0) + item("z", 0), numbering=numbering))
    assert [text(tree, node) for node in every(tree, "li")] == ["(a) x", "(b) y", "(d) z"]


def test_the_levels_of_a_numbering_may_stand_in_another_one_that_a_style_names() -> None:
    extra = (
        "<w:abstractNum w:abstractNumId='7'><w:numStyleLink w:val='L'/></w:abstractNum>"
        "<w:num w:numId='7'><w:abstractNumId w:val='7'/></w:num>"
    )
    levels = [("decimal", "Article %1", ""), ("decimal", "%1.%2", "")]
    numbering = numbered(levels, extra, "<w:styleLink w:val='L'/>")
    tree = tree_of(document(item("Scope", 0, "7") + item("Fees", 1, "7"), numbering=numbering))
    assert outline(tree, every(tree, "ul")[0]) == ["Article 1 Scope", ["1.1 Fees"]]


def test_a_paragraph_and_its_style_may_each_name_a_part_of_the_numbering() -> None:
    styles = "<w:styles SPACES>" + "".join(
        f"<w:style w:type='paragraph' w:styleId='S{at}'><w:name w:val='Clause {at}'/>{based}"
        "<w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:style>"
        for at, based in ((1, ""), (2, "<w:basedOn w:val='S1'/>"))
    )
    levels = [("decimal", "Article %1", "<w:pStyle w:val='S1'/>"), ("decimal", "%1.%2", "<w:pStyle w:val='S2'/>")]
    of = "<w:pStyle w:val='S{}'/>".format
    body = (
        paragraph(run("Scope"), props=of(1))
        + paragraph(run("Fees"), props=of(2))  # its level names the style
        + item("Dues", 1, "", of(1))  # its style names the numbering
        + item("Aside", None, "0", of(2))  # no numbering at all
        + item("Term", None, "1", of(1))
    )
    tree = tree_of(document(body, styles=f"{styles}</w:styles>", numbering=numbered(levels)))
    lists = [node for node in every(tree, "ul") if tree.tag[tree.parent[node]] != "li"]
    assert [outline(tree, node) for node in lists] == [
        ["Article 1 Scope", ["1.1 Fees", "1.2 Dues"]],
        ["Article 2 Term"],
    ]


def test_a_text_box_is_read_once_and_a_picture_by_its_alt_text() -> None:
    box = "<w:txbxContent>" + paragraph(run("In the box")) + "</w:txbxContent>"
    body = paragraph(
        run("Before"),
        "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:inline><wp:docPr id='1' name='Picture 1' "
        f"descr='A pier at low tide'/><wps:txbx>{box}</wps:txbx></wp:inline></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>",
    ) + paragraph(run("After"))
    tree = read(Engine(), document(body))
    assert words(tree) == "Before A pier at low tide In the box After".split()
    assert (tree.attrs[every(tree, "img")[0]] or {})["alt"] == "A pier at low tide"


def test_numbered_headings_keep_the_numbers_that_word_prints() -> None:
    numbering = (
        "<w:numbering SPACES><w:abstractNum w:abstractNumId='0'>"
        "<w:lvl w:ilvl='0'><w:start w:val='1'/><w:numFmt w:val='upperRoman'/><w:lvlText w:val='%1.'/></w:lvl>"
        "<w:lvl w:ilvl='1'><w:start w:val='1'/><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.%2'/></w:lvl>"
        "</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num></w:numbering>"
    )
    props = "<w:outlineLvl w:val='{0}'/><w:numPr><w:ilvl w:val='{0}'/><w:numId w:val='1'/></w:numPr>"
    body = "".join(
        paragraph(run(words), props=props.format(level))
        for level, words in ((0, "Place"), (1, "Sea"), (0, "Time"), (1, "Day"), (1, "Night"))
    )
    tree = read(Engine(), document(body, numbering=numbering))
    assert headings(tree) == [
        ("h1", "I. Place"), ("h2", "I.1 Sea"), ("h1", "II. Time"), ("h2", "II.1 Day"), ("h2", "II.2 Night"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no Word document"),
        (b"not a zip at all", "no Word document"),
        ("text", "no Word document"),
        (b"PK\x03\x04 and nothing more", "damaged or cut off"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "encrypted"),
        (packed({"a.txt": "hello"}), "lacks its part"),
        (packed({"word/document.xml": "<html/>"}), "no Word document"),
        (packed({"word/document.xml": "<w:document"}), "no valid XML"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(content: bytes | str, reason: str) -> None:
    assert reason in refused(Engine(), content, "notes.docx")


def test_a_document_that_is_cut_off_is_refused() -> None:
    whole = document(paragraph(run("Words. " * 500)))
    assert "damaged or cut off" in refused(Engine(), whole[: len(whole) // 2])


def test_a_document_that_is_damaged_is_read_or_refused() -> None:
    notes = f"<w:footnotes SPACES><w:footnote w:id='7'>{paragraph(run('note'))}</w:footnote></w:footnotes>"
    grid = "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>"
    whole = document(paragraph(run("Words")) + grid, footnotes=notes)
    for broken in (*mutated(whole, 80), *mutated_parts(whole, 120)):
        answers_or_refuses(Engine(), broken)


@pytest.mark.full
def test_a_written_document_that_is_damaged_is_read_or_refused(report: bytes) -> None:
    for broken in (*mutated(report, 24), *mutated_parts(report, 60)):
        answers_or_refuses(Engine(), broken)


def test_deep_nesting_is_refused() -> None:
    depth = 3000
    deep = "<w:sdt><w:sdtContent>" * depth + paragraph(run("x")) + "</w:sdtContent></w:sdt>" * depth
    assert "nested too deep" in refused(Engine(), document(deep))


def with_chunk(
    chunk: bytes | str, body: str = '<w:p><w:r><w:t>Before</w:t></w:r></w:p><w:altChunk r:id="c"/>'
) -> bytes:
    """A document that shows a part of another format."""
    parts = unpacked(document(body + "<w:p><w:r><w:t>After</w:t></w:r></w:p>"))
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk"
    relation = f'<Relationship Id="c" Type="{kind}" Target="chunk.dat"/></Relationships>'.encode()
    rels = parts["word/_rels/document.xml.rels"].replace(b"</Relationships>", relation)
    return packed({**parts, "word/_rels/document.xml.rels": rels, "word/chunk.dat": chunk})


WEB_ARCHIVE = (
    "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n"
    "<h2>Tides</h2><p>the ferry\r\n--b--\r\n"
)
CHUNKS = {
    "HTML": ("<html><head><title>t</title></head><body><h2>Tides</h2><p>the ferry</body></html>", "h2"),
    "web archive": (WEB_ARCHIVE, "h2"),
    "Rich Text": (r"{\rtf1 Tides\par the ferry}", "p"),
    "words": ("Tides\n\nthe ferry", "p"),
    "Word": (document("<w:p><w:r><w:t>Tides the ferry</w:t></w:r></w:p>"), "p"),
}


@pytest.mark.parametrize(("chunk", "tag"), CHUNKS.values(), ids=CHUNKS)
def test_a_document_of_another_format_inside_is_shown_in_its_place(chunk: bytes | str, tag: str) -> None:
    tree = read(Engine(), with_chunk(chunk))
    assert words(tree) == ["Before", "Tides", "the", "ferry", "After"]
    assert any(found.startswith("Tides") for found in texts(tree, tag))


@pytest.mark.parametrize("chunk", [b"PK\x03\x04", b"\x89PNG\0\0", r"{\rtf1}", b""])
def test_a_damaged_document_inside_costs_nothing_but_itself(chunk: bytes | str) -> None:
    tree = read(Engine(), with_chunk(chunk))
    assert (words(tree)[0], words(tree)[-1]) == ("Before", "After")


def test_a_document_inside_a_document_inside_is_not_read() -> None:
    assert words(read(Engine(), with_chunk(with_chunk("secret")))) == ["Before", "Before", "After", "After"]


def style(key: str, props: str, kind: str = "character", base: str = "") -> str:
    """One style of a document."""
    based = f'<w:basedOn w:val="{base}"/>' if base else ""
    return f'<w:style w:type="{kind}" w:styleId="{key}"><w:name w:val="{key}"/>{based}<w:rPr>{props}</w:rPr></w:style>'


def html_with_styles(body: str, *styles: str) -> str:
    return Engine().to_html(Page(document(body, styles=f"<w:styles SPACES>{''.join(styles)}</w:styles>")))


def test_styles_raise_lower_and_strike_words() -> None:
    styles = (
        style("Up", '<w:vertAlign w:val="superscript"/>'),
        style("Down", '<w:vertAlign w:val="subscript"/>'),
        style("Level", '<w:vertAlign w:val="baseline"/>', base="Up"),
        style("Gone", "<w:dstrike/>"),
        style("Void", '<w:strike/><w:dstrike w:val="0"/>', "paragraph"),
    )
    named = '<w:rStyle w:val="{}"/>'.format
    body = (
        paragraph(
            run("10"), run("6", named("Up")), run(" H"), run("2", named("Down")), run("O 1"), run("0", named("Level"))
        )
        + paragraph(run("5"), run("0", named("Up") + '<w:vertAlign w:val="baseline"/>'))
        + paragraph(
            run("Fee "), run("500", named("Gone")), run(" 7"), run("0", named("Gone") + '<w:dstrike w:val="0"/>')
        )
        + paragraph(
            run("All of "), run("this "), run("but that", '<w:strike w:val="0"/>'), props='<w:pStyle w:val="Void"/>'
        )
    )
    html = html_with_styles(body, *styles)
    assert "<p>10<sup>6</sup> H<sub>2</sub>O 10</p><p>50</p>" in html.replace("\n", "")
    assert "<p>Fee <s>500</s> 70</p>" in html
    assert "<p><s>All of</s> <s>this</s> but that</p>" in html


def test_the_mark_of_a_note_is_raised_once_whatever_its_style() -> None:
    body = paragraph(
        run("Claim"), '<w:r><w:rPr><w:rStyle w:val="Up"/></w:rPr><w:footnoteReference w:id="2"/></w:r>', run(".")
    )
    notes = f'<w:footnotes SPACES><w:footnote w:id="2">{paragraph(run("Proof."))}</w:footnote></w:footnotes>'
    raised = style("Up", '<w:vertAlign w:val="superscript"/>')
    styles = f"<w:styles SPACES>{raised}</w:styles>"
    assert "Claim<sup>[1]</sup>." in Engine().to_html(Page(document(body, styles=styles, footnotes=notes)))


def test_breaks_of_pages_and_columns_part_words() -> None:
    page, column = (f'<w:r><w:br w:type="{kind}"/></w:r>' for kind in ("page", "column"))
    body = paragraph(run("one"), page, run("two"), column, run("three")) + paragraph(page) + paragraph(page, run("end"))
    assert texts(read(Engine(), document(body)), "p") == ["one two three", "end"]


def chart(*series: str) -> str:
    """The only table of a document with a chart."""
    spaces = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    body = paragraph(f'<w:r><w:drawing><c:chart {spaces} r:id="rchart"/></w:drawing></w:r>')
    part = f"<c:chartSpace {spaces}>{''.join(f'<c:ser>{each}</c:ser>' for each in series)}</c:chartSpace>"
    return Engine().to_html(Page(document(body, chart=part))).replace("<th></th>", "<th>-</th>")


def points(*texts: str, code: str = "") -> str:
    kept = "".join(f'<c:pt idx="{at}"><c:v>{each}</c:v></c:pt>' for at, each in enumerate(texts) if each)
    return (f"<c:formatCode>{code}</c:formatCode>" if code else "") + kept


def test_points_of_a_chart_show_as_their_format_says() -> None:
    dates, shares = points("45000", "soon", code="d mmm yyyy"), points("0.25", "1e400", code="0%")
    html = chart(f"<c:tx><c:v>Share</c:v></c:tx><c:cat>{dates}</c:cat><c:val>{shares}</c:val>")
    assert "<th>15 Mar 2023</th><td>25%</td>" in html and "<th>soon</th><td>1e400</td>" in html


def test_a_category_inside_others_has_all_their_names() -> None:
    levels = "".join(
        f"<c:lvl>{points(*texts)}</c:lvl>" for texts in (("Q1", "Q2", "Q1"), ("2022", "", "2023"), ("Tea",))
    )
    html = chart(f"<c:cat>{levels}</c:cat><c:val>{points('1', '2', '3')}</c:val>")
    assert "<th>Tea, 2022, Q1</th><td>1</td>" in html and "<th>Tea, 2022, Q2</th><td>2</td>" in html
    assert "<th>Tea, 2023, Q1</th><td>3</td>" in html


def test_each_series_of_a_scatter_chart_has_its_own_places() -> None:
    def series(x: str, y: str) -> str:
        return f"<c:tx><c:v>of {x}</c:v></c:tx><c:xVal>{points(x, '9')}</c:xVal><c:yVal>{points(y, '8')}</c:yVal>"

    html = chart(series("1", "2"), series("3", "4"))
    assert "<th>1</th><td>2</td><td></td>" in html and "<th>3</th><td></td><td>4</td>" in html
    assert html.count("<th>9</th>") == 2
    assert "<th>1</th><td>2</td><td>2</td>" in chart(series("1", "2"), series("1", "2"))


def field(instruction: str, result: str = "") -> str:
    """A field; the instruction and the result are runs."""
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    return mark("begin") + instruction + (mark("separate") + result if result else "") + mark("end")


def instruct(words: str) -> str:
    return f'<w:r><w:instrText xml:space="preserve">{words}</w:instrText></w:r>'


def test_a_field_in_the_instruction_of_another_shows_nothing() -> None:
    inner = field(instruct(" MERGEFIELD sex "), run("female"))
    asked = field(instruct(" IF ") + inner + instruct(' = "female" "Ms" "Mr" '), run("Ms"))
    deeper = field(instruct(" IF ") + field(instruct(" = ") + inner, run("1")) + instruct(" x "), run("yes"))
    unanswered = field(instruct(" IF ") + inner)
    link = field(instruct(" IF ") + field(instruct(' HYPERLINK "https://a.org" '), run("here")), run("there"))
    shown = field(instruct(" QUOTE "), run("Dr ") + inner)
    for runs, expected in ((asked, "Ms"), (deeper, "yes"), (unanswered, ""), (link, "there"), (shown, "Dr female")):
        html = Engine().to_html(Page(document(paragraph(run("Dear "), runs, run(" Smith")))))
        assert f"<p>Dear {expected} Smith</p>" in html


def test_fields_that_set_a_bookmark_show_nothing() -> None:
    simple = f'<w:fldSimple w:instr=" ASK name &quot;Who?&quot; ">{run("Ann")}</w:fldSimple>'
    setting = field(instruct(' SET rate "7.5" '), run("7.5"))
    body = paragraph(run("Rate"), setting, simple, run(" is "), field(instruct(" REF rate "), run("7.5")), run("%."))
    assert "<p>Rate is 7.5%.</p>" in Engine().to_html(Page(document(body)))


DRAWN = {
    r" EQ \f(1,2) ": "1/2",
    r" EQ \f(a + b;2c)": "(a + b)/2c",
    r" EQ \r(3,x+1)": "root(3, x+1)",
    r" EQ \r(,2)": "√(2)",
    r" EQ x\s\up4(2)+y\s\do3(i)": "x<sup>2</sup>+y<sub>i</sub>",
    r" EQ \b\bc\[(\f(a;b))": "[a/b]",
    r" EQ \b(a)": "(a)",
    r" EQ \i\su(i=1,n,x)": "Σ<sub>i=1</sub><sup>n</sup> x",
    r" EQ f(x, y) = 3\,5": "f(x, y) = 3,5",
    r" EQ \o(a,b)": "ab",
    r' EQ \* jc2 \* "Font:MS Mincho" \* hps10 \o\ad(\s\up 9(かん),漢)': "<ruby>漢<rt>かん</rt></ruby>",
    r" SYMBOL 254 \f Wingdings \s 12": "☑",
    " SYMBOL 8482 ": "™",
    " MACROBUTTON NoMacro [Click here] ": "[Click here]",
    " PAGE ": "",
}
"""Fields without a result, and what Word draws."""


@pytest.mark.parametrize("instruction", DRAWN)
@pytest.mark.parametrize("separated", [True, False])
def test_fields_without_a_result_are_what_word_draws(instruction: str, separated: bool) -> None:
    marks = ["begin", *["separate"] * separated, "end"]
    begin, *rest = (f'<w:r><w:fldChar w:fldCharType="{mark}"/></w:r>' for mark in marks)
    body = paragraph(run("Is "), begin, instruct(instruction), *rest, run(" it?"))
    assert f"<p>Is {DRAWN[instruction]} it?</p>" in Engine().to_html(Page(document(body)))


@pytest.mark.parametrize(("hidden", "is_shown"), [("1", False), ("true", False), ("0", True)])
def test_hidden_drawings_are_not_shown(hidden: str, is_shown: bool) -> None:
    box = f"<wps:txbx><w:txbxContent>{paragraph(run('In the box'))}</w:txbxContent></wps:txbx>"
    drawing = f'<w:r><w:drawing><wp:anchor><wp:docPr id="1" descr="A pier" hidden="{hidden}"/>{box}</wp:anchor></w:drawing></w:r>'
    html = Engine().to_html(Page(document(paragraph(run("Text"), drawing))))
    assert ("In the box" in html, "A pier" in html) == (is_shown, is_shown) and "<p>Text</p>" in html
