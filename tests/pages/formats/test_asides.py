"""What a document holds beside what it shows: speaker notes, comments, hidden sheets and slides."""

from __future__ import annotations

import io
import zipfile

import pytest
from tests.pages.formats import test_docx, test_ods, test_odt, test_pptx, test_xlsx
from tests.pages.formats.documents import read
from tests.pages.formats.pdfs import Sheet, note, pdf
from tests.pages.formats.test_rtf import rtf

import prunus
from prunus.core.types import Page
from prunus.pages.asides import without_asides
from prunus.pages.formats.docx.engine import Engine as Docx
from prunus.pages.formats.ods import Engine as Ods
from prunus.pages.formats.odt.engine import Engine as Odt
from prunus.pages.formats.pdf.engine import Engine as Pdf
from prunus.pages.formats.pptx.engine import Engine as Pptx
from prunus.pages.formats.rtf.engine import Engine as Rtf
from prunus.pages.formats.xlsx import Engine as Xlsx
from prunus.pages.place import place_in_document

ANNOTATION = (
    "<office:annotation><dc:creator>Ann Moor</dc:creator><dc:date>2024-05-01</dc:date>"
    "<text:p>Is this right?</text:p></office:annotation>"
)


def word() -> bytes:
    body = test_docx.paragraph(
        test_docx.run("The pier is 90 m long."), "<w:r><w:commentReference w:id='4'/></w:r>"
    ) + test_docx.paragraph(test_docx.run("The lock is new."))
    said = test_docx.paragraph(test_docx.run("Is this right?"))
    return test_docx.document(
        body, comments=f"<w:comments SPACES><w:comment w:id='4' w:author='Ann Moor'>{said}</w:comment></w:comments>"
    )


def with_parts(content: bytes, parts: dict[str, str]) -> bytes:
    """Add parts to a package; a part that it has is replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as package, zipfile.ZipFile(buffer, "w") as made:
        held = {name: package.read(name).decode() for name in package.namelist()}
        for name, text in {**held, **parts}.items():
            made.writestr(name, text)
    return buffer.getvalue()


def workbook() -> bytes:
    parts = {
        "xl/worksheets/_rels/sheet1.xml.rels": '<Relationships><Relationship Id="c" Type="x/comments" Target="../comments1.xml"/>'
        '<Relationship Id="t" Type="x/threadedComment" Target="../threads1.xml"/></Relationships>',
        "xl/comments1.xml": "<comments><authors><author>Ann Moor</author></authors><commentList>"
        '<comment ref="A2" authorId="0"><text><r><t>Is this </t></r><r><t>right?</t></r></text></comment>'
        '<comment ref="B2" authorId="0"><text><t>[Threaded comment] repeated</t></text></comment></commentList></comments>',
        "xl/threads1.xml": '<ThreadedComments><threadedComment ref="B2"><text>Since when?</text></threadedComment></ThreadedComments>',
    }
    sheets = test_xlsx.workbook({"Tides": test_xlsx.PORTS, "Old": test_xlsx.PORTS}, {"Old": "hidden"})
    return with_parts(sheets, parts)


def document_with_comment(kind: str) -> bytes | str:
    if kind == "docx":
        return word()
    if kind == "odt":
        return test_odt.document(
            f"<text:p>The pier{ANNOTATION} is 90 m long.</text:p><text:p>The lock is new.</text:p>"
        )
    if kind == "rtf":
        said = r"{\*\atnid AM}{\*\atnauthor Ann Moor}{\*\annotation Is this right?}"
        return rtf(r"The pier is 90 m long." + said + r"\par The lock is new.\par")
    sheet = Sheet().text(50, 100, "The pier is 90 m long.").text(50, 400, "The lock is new.")
    sheet.notes = ["12 0 R"]
    return pdf(sheet, objects=(note("Text", 320, 328, 340, 344, "/Contents (Is this right?) /T (Ann Moor)"),))


ENGINES = {"docx": Docx, "odt": Odt, "rtf": Rtf, "pdf": Pdf}


@pytest.mark.parametrize("kind", ENGINES)
def test_a_comment_says_what_it_is_in_every_form_and_can_be_left_out(kind: str) -> None:
    content = document_with_comment(kind)
    tree = read(ENGINES[kind](), content)
    assert "Comment by Ann Moor: Is this right?" in tree.canonical
    place = place_in_document(tree, tree.node_at(tree.canonical.index("Is this right")))
    assert place == ("page 1, comment" if kind == "pdf" else "comment")
    assert "comment" not in place_in_document(tree, tree.node_at(tree.canonical.index("The pier")))
    page = Page(content, url=f"x.{kind}")
    assert (
        "<aside><p><data value=aside-comment>Comment by Ann Moor:</data>"
        in prunus.clean(page).replace("<data value=page-1>", "")
        or kind == "pdf"
    )
    for form in ("markdown", "text"):
        assert "Comment by Ann Moor: Is this right?" in prunus.clean(page, form)  # type: ignore[arg-type]
        shown = prunus.clean(page, form, shown_only=True)  # type: ignore[arg-type]
        assert "right" not in shown and "The pier is 90 m long." in shown and "The lock is new." in shown


def test_comments_of_cells_name_the_cell_and_threads_are_said_once() -> None:
    tree = read(Xlsx(), workbook())
    assert "Comment on B2: Since when?\nComment on A2 by Ann Moor: Is this right?" in tree.canonical
    assert "repeated" not in tree.canonical
    assert place_in_document(tree, tree.node_at(tree.canonical.index("Since"))) == "sheet Tides, comment"


def test_a_hidden_sheet_says_so_above_its_rows_and_in_its_place() -> None:
    hidden = test_ods.sheet("Old", test_ods.row("Port", "Depth"), test_ods.row("Inner", "2"), style="off")
    shown = test_ods.sheet("New", test_ods.row("Port", "Depth"), test_ods.row("Outer", "3"))
    for engine, content in ((Ods(), test_ods.spreadsheet(shown + hidden, test_ods.STYLES)), (Xlsx(), workbook())):
        tree = read(engine, content)
        assert "Hidden sheet: Old\n" in tree.canonical
        inner = tree.canonical.rindex("Inner")
        assert place_in_document(tree, tree.node_at(inner)) == "hidden sheet Old, row 2"
        page = Page(content, url="x.ods" if isinstance(engine, Ods) else "x.xlsx")
        assert "Old" not in prunus.clean(page, "text", shown_only=True)


def test_notes_comments_and_hidden_slides_say_so() -> None:
    spaces, kind = f'xmlns:p="{test_pptx.P}"', test_pptx.R
    deck = test_pptx.presentation(
        "|" + test_pptx.shape("Tides"), 'show="0"|' + test_pptx.shape("Old tides"), "|" + test_pptx.shape("Locks")
    )
    links = zipfile.ZipFile(io.BytesIO(deck)).read("ppt/_rels/presentation.xml.rels").decode()
    authors = f'<Relationship Id="a" Type="{kind}/commentAuthors" Target="authors.xml"/></Relationships>'
    content = with_parts(
        deck,
        {
            "ppt/_rels/presentation.xml.rels": links.replace("</Relationships>", authors),
            "ppt/authors.xml": f'<p:cmAuthorLst {spaces}><p:cmAuthor id="1" name="Ann Moor"/></p:cmAuthorLst>',
            "ppt/slides/_rels/slide0.xml.rels": f'<Relationships xmlns="{test_pptx.RELS}"><Relationship Id="c" '
            f'Type="{kind}/comments" Target="../comments/one.xml"/></Relationships>',
            "ppt/comments/one.xml": f'<p:cmLst {spaces}><p:cm authorId="1"><p:text>Is this right?</p:text></p:cm></p:cmLst>',
        },
    )
    tree = read(Pptx(), content)
    assert tree.canonical.split("\n") == [
        "Tides", "Comment by Ann Moor: Is this right?", "Hidden slide", "Old tides", "Locks",
    ]  # fmt: skip
    at = [place_in_document(tree, tree.node_at(tree.canonical.index(word))) for word in ("Is this", "Old", "Locks")]
    assert at == ["slide 1, comment", "hidden slide 2", "slide 3"]
    assert prunus.clean(Page(content, url="x.pptx"), "text", shown_only=True) == "Tides\nLocks"


def test_only_marked_asides_are_left_out_with_what_is_nested_in_them() -> None:
    markup = '<aside><p>kept</p></aside>a<aside><p><data value="aside-hidden">Hidden slide</data></p>{}b</aside>c'
    assert without_asides(markup.format("<aside>x</aside>")) == "<aside><p>kept</p></aside>ac"
    assert without_asides(markup.format("<aside>")).startswith("<aside><p>kept</p></aside>a"), "what is open ends there"


def test_a_quote_of_a_comment_says_that_it_is_one() -> None:
    answer = prunus.ask("Who asked whether the pier is right?", Page(word(), url="x.docx"))
    assert all("comment" in one.place for one in answer.citations if "Is this right" in one.quote)
    without = prunus.ask(
        "Is this right?", Page(word(), url="x.docx"), settings=prunus.Settings(shown_only=True, min_confidence=0)
    )
    assert not any("right" in one.quote for one in without.citations)
