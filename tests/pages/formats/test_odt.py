"""OpenDocument texts, written by odfpy and by hand."""

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

import prunus
from prunus.core.types import Page
from prunus.pages.formats.odt.engine import Engine

NAMES = "office text table style meta"
SPACES = " ".join(
    [f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in NAMES.split()]
    + [
        'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"',
        'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"',
        'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"',
        'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:math="http://www.w3.org/1998/Math/MathML"',
        'xmlns:dc="http://purl.org/dc/elements/1.1/"',
    ]
)


def content(body: str, styles: str = "") -> str:
    """The main part of a document."""
    return (
        f'<?xml version="1.0"?><office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>'
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )


def document(body: str, styles: str = "", **parts: str) -> bytes:
    """A document with little more than a body."""
    return packed(
        {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content(body, styles), **parts}
    )


@pytest.fixture(scope="module")
def report() -> bytes:
    """A report that odfpy writes."""
    need("odf")
    from odf import style, table, text
    from odf.opendocument import OpenDocumentText

    made = OpenDocumentText()
    bold = style.Style(name="B", family="text")
    bold.addElement(style.TextProperties(fontweight="bold"))
    made.automaticstyles.addElement(bold)
    numbers = text.ListStyle(name="N")
    numbers.addElement(text.ListLevelStyleNumber(level="1", numformat="1", startvalue="3"))
    numbers.addElement(text.ListLevelStyleBullet(level="2", bulletchar="-"))
    made.automaticstyles.addElement(numbers)
    made.text.addElement(text.H(outlinelevel=1, text="Tide report"))
    paragraph = text.P(text="The harbour opened in ")
    paragraph.addElement(text.Span(stylename=bold, text="1932"))
    paragraph.addText(" and never closed.")
    note = text.Note(noteclass="footnote")
    note.addElement(text.NoteCitation(text="1"))
    body = text.NoteBody()
    body.addElement(text.P(text="As they say."))
    note.addElement(body)
    paragraph.addElement(note)
    made.text.addElement(paragraph)
    made.text.addElement(text.H(outlinelevel=2, text="Readings"))
    outer = text.List(stylename=numbers)
    first = text.ListItem()
    first.addElement(text.P(text="pier"))
    inner = text.List()
    for name in ("north end", "south end"):
        item = text.ListItem()
        item.addElement(text.P(text=name))
        inner.addElement(item)
    first.addElement(inner)
    last = text.ListItem()
    last.addElement(text.P(text="lock"))
    outer.addElement(first)
    outer.addElement(last)
    made.text.addElement(outer)
    grid = table.Table()
    head = table.TableHeaderRows()
    layout = (
        (head, (("Station", 1, 2), ("Depth", 2, 1), None)),
        (head, (None, ("low", 1, 1), ("high", 1, 1))),
        (grid, (("Pell", 1, 1), ("2.1", 1, 1), ("7.9", 1, 1))),
        (grid, (("Vor", 1, 1), ("dry", 2, 1), None)),
    )
    for number, (parent, cells) in enumerate(layout):
        row = table.TableRow()
        for entry in cells:
            if entry is None:
                row.addElement(table.CoveredTableCell())
                continue
            words, wide, high = entry
            cell = table.TableCell(numbercolumnsspanned=wide, numberrowsspanned=high)
            cell.addElement(text.P(text=words))
            row.addElement(cell)
        parent.addElement(row)
        if number == 1:
            grid.addElement(head)
    made.text.addElement(grid)
    made.text.addElement(text.P(text="The last words."))
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


@pytest.mark.full
def test_headings_lists_tables_and_notes_of_a_document_that_another_library_wrote(report: bytes) -> None:
    tree = read(Engine(), report)
    assert headings(tree) == [("h1", "Tide report"), ("h2", "Readings")]
    top = every(tree, "ol")[0]
    assert outline(tree, top) == ["pier", ["north end", "south end"], "lock"]
    assert tree.attrs[top] == {"start": "3"}
    assert table(tree) == [
        ["#Station 1x2", "#Depth 2x1"],
        ["#low", "#high"],
        ["Pell", "2.1", "7.9"],
        ["Vor", "dry 2x1"],
    ]
    assert texts(tree, "b") == ["1932"]
    expected = """Tide report The harbour opened in 1932 and never closed 1 Readings pier north end south end lock
    Station Depth low high Pell 2 1 7 9 Vor dry The last words As they say"""
    assert words(tree) == expected.split()


def test_what_the_final_text_does_not_show_stays_out() -> None:
    styles = (
        '<style:style style:name="H" style:family="text"><style:text-properties text:display="none"/></style:style>'
        '<style:style style:name="PH" style:family="paragraph" style:parent-style-name="H"/>'
    )
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        '<text:p>Kept<text:span text:style-name="H"> secret'
        '</text:span></text:p><text:p text:style-name="PH">hidden</text:p>'
        '<text:section text:name="s" text:display="none"><text:p>hidden section</text:p></text:section>'
        "<text:p><text:hidden-paragraph/>hidden paragraph</text:p>"
        '<text:section text:name="t"><text:p>shown</text:p></text:section>'
    )
    assert words(read(Engine(), document(body, styles))) == ["Kept", "shown"]


def test_letters_of_symbol_fonts_are_what_they_show_and_struck_words_are_marked() -> None:
    styles = "".join(
        f'<style:style style:name="{name}" style:family="text"><style:text-properties {props}/></style:style>'
        for name, props in (
            ("G", 'style:font-name="Symbol"'), ("S", 'style:text-line-through-style="solid"'),
            ("N", 'style:text-line-through-style="none"'),
        )
    )  # fmt: skip
    spans = (
        '<text:span text:style-name="G">D &lt; \uf06d</text:span>m for <text:span text:style-name="S">$99</text:span>'
    )
    tree = read(Engine(), document(f'<text:p>{spans} <text:span text:style-name="N">$79</text:span></text:p>', styles))
    assert texts(tree, "p") == ["Δ < μm for $99 $79"] and texts(tree, "s") == ["$99"]


def test_spaces_links_boxes_pictures_and_equations() -> None:
    body = (
        '<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d '
        '<text:a xlink:href="https://example.org/">web</text:a> <text:a xlink:href="file:///etc/passwd">file</text:a></text:p>'
        '<text:p><draw:frame><draw:image xlink:href="Pictures/1.png"/><svg:title>A pier</svg:title></draw:frame></text:p>'
        '<text:p text:style-name="Figure">Figure 1: the pier</text:p>'
        "<text:p>Before<draw:frame><draw:text-box><text:p>In the box</text:p></draw:text-box></draw:frame></text:p>"
        "<text:p><draw:frame><draw:object><math:math><math:semantics><math:mi>x</math:mi><math:annotation>x over 2"
        "</math:annotation></math:semantics></math:math></draw:object></draw:frame></text:p>"
    )
    made = Engine().to_html(Page(document(body), url="x.odt"))
    tree = read(Engine(), document(body))
    assert texts(tree, "p")[0] == "a b cd web file"
    assert [(text(tree, node), (tree.attrs[node] or {})["href"]) for node in every(tree, "a")] == [
        ("web", "https://example.org/")
    ]
    assert '<figure><img alt="A pier"><figcaption>Figure 1: the pier</figcaption></figure>' in made
    assert '<code class="math">x over 2</code>' in made
    assert texts(tree, "p")[1:3] == ["Before", "In the box"]


FORMULA = "<math xmlns='http://www.w3.org/1998/Math/MathML'><mi>x</mi><mo>+</mo><mi>y</mi></math>"
CHART = (
    f"<office:document-content {SPACES}><office:body><office:chart><table:table><table:table-row><table:table-cell>"
    "<text:p>Pell</text:p></table:table-cell><table:table-cell><text:p>2.1</text:p></table:table-cell>"
    "</table:table-row></table:table></office:chart></office:body></office:document-content>"
)
EMBEDDED = (
    "<text:p>Before</text:p><text:p><draw:frame><draw:object xlink:href='./Object 1'/></draw:frame></text:p>"
    "<text:p>After</text:p>"
)


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE math PUBLIC "-//OpenOffice.org//DTD Modified W3C MathML 1.01//EN" "math.dtd">',
        '<!DOCTYPE math SYSTEM "file:///etc/passwd">',
        "",
    ],
)
def test_an_embedded_formula_is_read_and_the_document_type_it_names_is_not(declared: str) -> None:
    made = document(EMBEDDED, **{"Object 1/content.xml": f'<?xml version="1.0"?>{declared}{FORMULA}'})
    html = Engine().to_html(Page(made, url="x.odt"))
    assert '<p>Before</p>\n<p><code class="math">x + y</code></p>\n<p>After</p>' in html


def test_a_formula_stands_where_its_sentence_has_it() -> None:
    frame = f"<draw:frame><draw:object>{FORMULA}</draw:object></draw:frame>"
    tree = read(Engine(), document(f"<text:p>Let {frame} be even.</text:p>{frame}"))
    assert texts(tree, "p") == ["Let x + y be even.", "x + y"]


def test_the_table_behind_a_chart_is_read() -> None:
    tree = read(Engine(), document(EMBEDDED, **{"Object 1/content.xml": CHART}))
    assert table(tree) == [["Pell", "2.1"]]
    assert words(tree) == ["Before", "Pell", "2", "1", "After"]


@pytest.mark.parametrize(
    "damaged", ["<math", "<!DOCTYPE m [<!ENTITY e 'x'>]><m>&e;</m>", "<!DOCTYPE m [<!ATTLIST m a CDATA 'x'>]><m/>"]
)
def test_an_embedded_object_that_is_damaged_or_declares_entities_costs_nothing_but_itself(damaged: str) -> None:
    tree = read(Engine(), document(EMBEDDED, **{"Object 1/content.xml": damaged}))
    assert words(tree) == "Before An embedded object is damaged After".split()


def test_a_package_of_openoffice_2_is_read_although_its_manifest_names_a_document_type() -> None:
    manifest = (
        '<!DOCTYPE manifest:manifest PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "Manifest.dtd">'
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    )
    assert words(read(Engine(), document("<text:p>Kept</text:p>", **{"META-INF/manifest.xml": manifest}))) == ["Kept"]


def test_a_flat_document_is_read_like_a_zipped_one() -> None:
    flat = content("<text:h text:outline-level='2'>One</text:h><text:p>Two</text:p>").encode()
    tree = read(Engine(), flat, "notes.fodt")
    assert headings(tree) == [("h2", "One")]
    assert words(tree) == ["One", "Two"]


def flat_document(kind: str, body: str, before: str = "<?xml version='1.0' encoding='UTF-8'?>") -> str:
    """An OpenDocument file of plain XML."""
    inner = content("").partition("<office:body>")[0].partition("<office:document-content")[2]
    spaces = inner.partition(">")[0]
    return (
        f'{before}<office:document{spaces} office:mimetype="application/vnd.oasis.opendocument.{kind}">'
        f"<office:meta/><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>"
    )


DELETION = (
    "<text:tracked-changes><text:changed-region><text:deletion><text:p>SECRET</text:p></text:deletion>"
    "</text:changed-region></text:tracked-changes>"
)


@pytest.mark.parametrize("before", ["<?xml version='1.0'?>", "", "<?xml version='1.0'?>\n<!-- written by hand -->\n"])
@pytest.mark.parametrize("url", ["notes.fodt", "notes.xml", "https://example.org/notes", ""])
def test_a_deletion_of_a_flat_text_stays_deleted_whatever_the_file_is_called(before: str, url: str) -> None:
    flat = flat_document("text", DELETION + "<text:p>Kept<text:change text:change-id='a'/></text:p>", before)
    for page in (flat.encode(), flat):
        assert prunus.clean(Page(page, url=url), "text") == "Kept"


def test_a_flat_text_in_another_encoding_is_read() -> None:
    flat = flat_document("text", "<text:p>Mürwik</text:p>", "<?xml version='1.0' encoding='UTF-16'?>")
    assert prunus.clean(Page(flat.encode("utf-16"), url="notes.fodt"), "text") == "Mürwik"
    assert prunus.clean(Page(flat, url="notes.fodt"), "text") == "Mürwik", "text was decoded already"


def test_a_flat_presentation_is_refused_like_a_zipped_one() -> None:
    with pytest.raises(prunus.BadPage, match=r"^slides\.fodp: this is an OpenDocument presentation; save it as \.pdf$"):
        prunus.clean(Page(flat_document("presentation", "<text:p>x</text:p>").encode(), url="slides.fodp"))


ENCRYPTED = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
    'manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>'
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no OpenDocument text"),
        (b"words", "no OpenDocument text"),
        (document("<text:p/>")[:300], "damaged or cut off"),
        (packed({"content.xml": "<x/>"}), "no OpenDocument text"),
        (packed({"content.xml": "garbage", "META-INF/manifest.xml": ENCRYPTED}), "encrypted"),
        (b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>", "document type"),
        (document("<text:section>" * 200 + "</text:section>" * 200), "nested too deep"),
    ],
)
def test_bad_input_is_one_line(content: bytes, reason: str) -> None:
    assert reason in refused(Engine(), content, "notes.odt")


def test_a_row_that_repeats_to_the_edge_of_a_sheet_stays_small() -> None:
    endless = (
        '<table:table><table:table-row table:number-rows-repeated="1048576"><table:table-cell '
        'table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell></table:table-row></table:table>'
    )
    assert len(words(read(Engine(), document(endless)))) <= 2500


def test_a_document_that_is_damaged_is_read_or_refused() -> None:
    whole = document(
        "<text:p>a<text:s text:c='3'/></text:p><text:list><text:list-item><text:p>b</text:p></text:list-item></text:list>"
    )
    for broken in (*mutated(whole, 60), *mutated_parts(whole, 120)):
        answers_or_refuses(Engine(), broken)


@pytest.mark.full
def test_a_written_document_that_is_damaged_is_read_or_refused(report: bytes) -> None:
    for broken in (*mutated(report, 24), *mutated_parts(report, 80)):
        answers_or_refuses(Engine(), broken)


def test_a_paragraph_that_its_style_strikes_but_for_some_words() -> None:
    line = '<style:style style:name="{}" style:family="{}"><style:text-properties style:text-line-through-style="{}"/></style:style>'
    styles = "".join(
        line.format(*each)
        for each in (("Void", "paragraph", "solid"), ("Kept", "text", "none"), ("Cut", "text", "solid"))
    )
    body = (
        '<text:p text:style-name="Void">All <text:span text:style-name="Cut">of</text:span> this '
        '<text:span text:style-name="Kept">but that</text:span></text:p><text:p>And this.</text:p>'
    )
    html = Engine().to_html(Page(document(body, styles)))
    assert "<p><s>All of this</s> but that</p>" in html and "<p>And this.</p>" in html


def list_style(*levels: str, name: str = "L") -> str:
    made = "".join(
        f'<text:list-level-style-number text:level="{at}" {attributes}/>' for at, attributes in enumerate(levels, 1)
    )
    return f'<text:list-style style:name="{name}">{made}</text:list-style>'


def items(*words: str) -> str:
    return "".join(f"<text:list-item><text:p>{said}</text:p></text:list-item>" for said in words)


@pytest.mark.parametrize(
    ("attributes", "shown"),
    [
        ('style:num-format="1" style:num-suffix="."', ["x", "y"]),
        ('style:num-format="1" style:num-prefix="(" style:num-suffix=")"', ["x", "y"]),
        ('style:num-format="a" style:num-suffix=")"', ["a) x", "b) y"]),
        ('style:num-format="I" style:num-suffix="." text:start-value="4"', ["IV. x", "V. y"]),
        ('style:num-format="a" text:start-value="27"', ["aa x", "ab y"]),
        ('style:num-format="a" text:start-value="27" style:num-letter-sync="true"', ["aa x", "bb y"]),
        ('style:num-format="1" style:num-prefix="Article " style:num-suffix="."', ["Article 1. x", "Article 2. y"]),
        ('style:num-format="1" style:num-prefix="§ "', ["§ 1 x", "§ 2 y"]),
        ('style:num-format="一, 二, 三, ..."', ["一 x", "二 y"]),
        ('style:num-format=""', ["x", "y"]),
    ],
)
def test_a_label_that_a_list_does_not_show_by_itself_stands_before_the_item(attributes: str, shown: list[str]) -> None:
    body = f'<text:list text:style-name="L">{items("x", "y")}</text:list>'
    assert texts(read(Engine(), document(body, list_style(attributes))), "li") == shown


def test_labels_of_several_levels_go_on_and_start_anew_as_the_lists_say() -> None:
    styles = list_style(
        'style:num-format="1" style:num-prefix="Part "',
        'style:num-format="1" text:display-levels="2"',
    )

    def whole(inner: str, more: str = "") -> str:
        return f'<text:list text:style-name="L" {more}>{inner}</text:list>'

    inner = f"<text:list>{items('x')}</text:list>"
    first = f"<text:list-item><text:p>top</text:p>{inner}</text:list-item>"
    held = f"<text:list-item>{inner}</text:list-item>"
    header = "<text:list-header><text:p>no number</text:p></text:list-header>"
    set_to = '<text:list-item text:start-value="7"><text:p>top</text:p></text:list-item>'
    body = (
        whole(first + header + first, 'xml:id="one"')
        + whole(held, 'text:continue-numbering="true"')  # goes on below the latest item
        + whole(first)
        + whole(set_to + first, 'text:continue-list="one"')
        + whole(items("") + first, 'text:continue-list="one"')  # an empty item is counted
        + whole(held)  # nothing stands above it
    )
    tree = read(Engine(), document(f"<text:p>Start</text:p>{body}", styles))
    read_labels = [text(tree, node).split(" top")[0].split(" x")[0] for node in every(tree, "li")]
    assert read_labels == [
        "Part 1", "1.1", "Part 2", "2.1", "2.2", "Part 1", "1.1", "Part 7", "Part 8", "8.1", "Part 10", "10.1", "1.1",
    ]  # fmt: skip


def test_headings_have_the_numbers_of_the_outline() -> None:
    levels = "".join(
        f'<text:outline-level-style text:level="{at}" style:num-format="{kind}" text:display-levels="{at}"/>'
        for at, kind in ((1, "A"), (2, "1"), (3, ""))
    )
    outlined = f"<text:outline-style>{levels}</text:outline-style>"
    body = "".join(
        f'<text:h text:outline-level="{level}" {more}>x</text:h>'
        for level, more in (
            (1, ""), (2, ""), (2, ""), (1, 'text:is-list-header="true"'), (1, ""), (2, ""), (3, ""),
            (2, 'text:restart-numbering="true" text:start-value="5"'),
        )
    )  # fmt: skip
    tree = read(Engine(), document(body, outlined))
    assert [words for _, words in headings(tree)] == ["A x", "A.1 x", "A.2 x", "x", "B x", "B.1 x", "x", "B.5 x"]
