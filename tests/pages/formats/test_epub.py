"""Electronic books, packed by hand."""

from __future__ import annotations

import pytest
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
from prunus.pages.formats.epub.engine import Engine

CONTAINER = """<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">
<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""

PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The book of tides</dc:title><dc:creator>A. Ito</dc:creator>
<dc:language>en-GB</dc:language><dc:date>2024-05-01</dc:date></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="two" href="text/chapter%202.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/chapter1.xhtml" media-type="application/xhtml+xml"/>
<item id="css" href="book.css" media-type="text/css"/>
<item id="away" href="http://127.0.0.1:9/x.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="nav"/><itemref idref="one"/><itemref idref="two"/><itemref idref="away"/><itemref idref="gone"/></spine>
</package>"""

ONE = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN"
"http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd"><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script/></head>
<body><a id="top"/><h1>The&nbsp;harbour</h1><p>It opened in <b>1932</b>.<i/> It never closed.</p>
<ul><li>pier<ul><li>north end</li><li>south end</li></ul></li><li>lock</li></ul>
<table><tr><th rowspan="2">Station</th><th colspan="2">Depth</th></tr><tr><th>low</th><th>high</th></tr>
<tr><td>Pell</td><td/><td>7.9</td></tr></table><img src="../images/pier.jpg" alt="A pier at low tide"/>
<p>See <a href="chapter%202.xhtml#x">the next chapter</a> and <a href="https://example.org/">the web</a>.</p></body></html>"""

TWO = """<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body epub:type="bodymatter">
<h1>The sea</h1><p>A &lt; B &amp; C<![CDATA[ <raw> ]]></p><aside epub:type="footnote"><p>A note.</p></aside></body></html>"""


def book(**changed: str | None) -> bytes:
    """A book of two chapters; parts can be changed or left out."""
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": PACKAGE,
        "OEBPS/nav.xhtml": "<html><body><nav><ol><li><a href='x'>Contents</a></li></ol></nav></body></html>",
        "OEBPS/text/chapter1.xhtml": ONE,
        "OEBPS/text/chapter 2.xhtml": TWO,
        "OEBPS/unlisted.xhtml": "<html><body>unlisted</body></html>",
        **changed,
    }
    return packed({name: part for name, part in parts.items() if part is not None})


DRAWN = """<svg:svg xmlns:svg="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><svg:style>text {fill: red}</svg:style>
<svg:image href="page.jpg"/><svg:g><svg:text x="1" y="2">The <svg:tspan>har</svg:tspan>bour<svg:tspan x="1" dy="1em">of Pell</svg:tspan></svg:text><svg:path d="M0 0"/>
<svg:text x="1" y="4">never closed.</svg:text></svg:g></svg:svg>"""


@pytest.mark.parametrize("prefix", ["svg:", ""])
@pytest.mark.parametrize("whole", [True, False])
def test_the_words_of_a_page_that_is_drawn_are_read(prefix: str, whole: bool) -> None:
    drawn = DRAWN.replace("svg:", prefix).replace("xmlns:=", "xmlns=")
    kind = 'href="text/chapter1.xhtml" media-type='
    package = PACKAGE.replace(f'{kind}"application/xhtml+xml"', f'{kind}"image/svg+xml"') if whole else PACKAGE
    page = f'<?xml version="1.0"?>{drawn}' if whole else f"<html><body><div>{drawn}</div></body></html>"
    tree = read(Engine(), book(**{"OEBPS/text/chapter1.xhtml": page, "OEBPS/book.opf": package}))
    assert texts(tree, "p")[:2] == ["The harbour of Pell", "never closed."]
    assert not every(tree, "img")


def test_chapters_come_in_the_order_of_the_spine_with_their_own_markup() -> None:
    tree = read(Engine(), book())
    assert headings(tree) == [("h1", "The harbour"), ("h1", "The sea")]
    assert outline(tree, every(tree, "ul")[0]) == ["pier", ["north end", "south end"], "lock"]
    assert table(tree) == [["#Station 1x2", "#Depth 2x1"], ["#low", "#high"], ["Pell", "", "7.9"]]
    assert (tree.title, tree.lang) == ("The book of tides", "en-GB")
    assert texts(tree, "b") == ["1932"]
    assert len(every(tree, "section")) == 2


def test_every_word_of_a_book_comes_once_and_in_order() -> None:
    expected = """The harbour It opened in 1932 It never closed pier north end south end lock Station Depth low high Pell 7 9
    A pier at low tide See the next chapter and the web The sea A B C raw A note"""
    assert words(read(Engine(), book())) == expected.split()


def test_links_inside_the_book_are_removed_and_web_links_stay() -> None:
    tree = read(Engine(), book())
    found = [(text(tree, node), (tree.attrs[node] or {})["href"]) for node in every(tree, "a")]
    assert found == [("the web", "https://example.org/")]
    assert tree.attrs[every(tree, "img")[0]] == {"alt": "A pier at low tide"}


def encryption(target: str, method: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
        f'<enc:EncryptedData><enc:EncryptionMethod Algorithm="{method}"/><enc:CipherData>'
        f'<enc:CipherReference URI="{target}"/></enc:CipherData></enc:EncryptedData></encryption>'
    )


def test_a_protected_book_is_refused_and_obscured_fonts_are_no_obstacle() -> None:
    locked = encryption("OEBPS/text/chapter1.xhtml", "http://www.w3.org/2001/04/xmlenc#aes256-cbc")
    assert "copy-protected" in refused(Engine(), book(**{"META-INF/encryption.xml": locked}))
    font = encryption("OEBPS/font.otf", "http://www.idpf.org/2008/embedding")
    assert headings(read(Engine(), book(**{"META-INF/encryption.xml": font})))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no EPUB"),
        (b"<html></html>", "no EPUB"),
        (packed({"word/document.xml": "<x/>"}), "no EPUB"),
        (book()[:700], "damaged or cut off"),
        (book(**{"OEBPS/book.opf": None}), "lacks its part"),
        (book(**{"OEBPS/book.opf": "<package/>"}), "no chapters"),
        (book(**{"OEBPS/book.opf": "<package"}), "no valid XML"),
    ],
)
def test_bad_input_is_one_line(content: bytes, reason: str) -> None:
    assert reason in refused(Engine(), content, "book.epub")


def test_an_entity_of_a_chapter_is_never_fetched() -> None:
    evil = ONE.replace(
        "<!DOCTYPE html PUBLIC", '<!DOCTYPE html [<!ENTITY e SYSTEM "file:///etc/passwd">] PUBLIC'
    ).replace("1932", "&e;")
    made = words(read(Engine(), book(**{"OEBPS/text/chapter1.xhtml": evil})))
    assert "root" not in made
    assert "harbour" in made


def test_a_book_that_is_damaged_is_read_or_refused() -> None:
    for broken in (*mutated(book(), 60), *mutated_parts(book(), 120)):
        answers_or_refuses(Engine(), broken)


def styled(css: str | None, *links: str) -> str:
    """The text of a book of two chapters that link style sheets."""
    chapters = {
        f"OEBPS/text/{name}.xhtml": f"<html><head>{link}</head><body><p class='gone'>secret {name}</p>"
        "<p>Fee <span class='cut'>500</span> 600</p></body></html>"
        for name, link in zip(("chapter1", "chapter 2"), links, strict=True)
    }
    return prunus.clean(
        Page(book(**chapters, **{"OEBPS/a b.css": css, "OEBPS/other.css": ".other{color:red}"})), "markdown"
    )


LINK = '<link href="../a%20b.css" type="text/css" rel="stylesheet" {}/>'
CSS = ".gone{display:none} .cut{text-decoration:line-through}"


def test_linked_style_sheets_hide_and_strike_words() -> None:
    shown = styled(CSS, LINK.format(""), LINK.format(""))
    assert "secret" not in shown and shown.count("Fee ~~500~~ 600") == 2


@pytest.mark.parametrize(
    ("css", "first", "second"),
    [
        (CSS, LINK.format(""), ""),
        (CSS, LINK.format(""), '<link rel="stylesheet" href="../other.css"/>'),
        (CSS, LINK.format('media="print"'), LINK.format('media="print"')),
        (CSS, *[LINK.format("").replace('"stylesheet"', '"alternate stylesheet"')] * 2),
        (CSS + " " * 100_000, LINK.format(""), LINK.format("")),
        (None, LINK.format(""), LINK.format("")),
    ],
)
def test_words_stay_where_a_style_sheet_does_not_apply_to_all_chapters(
    css: str | None, first: str, second: str
) -> None:
    shown = styled(css, first, second)
    assert shown.count("secret") == 2 and shown.count("Fee 500 600") == 2
