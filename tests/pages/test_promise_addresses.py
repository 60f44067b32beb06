"""No output holds an address with a scheme that is not allowed, however a page writes it.

Outputs are read again with other parsers, and every address is judged by a small reading of the URL standard.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import turbohtml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import prunus
from prunus.pages.clean import rules
from prunus.pages.clean.elements import scheme_of
from prunus.pages.clean.walk import clean_tree
from prunus.pages.links import links_of
from prunus.pages.write.style import CLEAN, LEAN, Style
from prunus.pages.write.whole import render_tree

ALLOWED = {"http", "https", "ftp", "mailto", "tel", "sms", "callto", "whatsapp", "fb-messenger", "cid"}

NO_ADDRESS = frozenset(
    "alt title value placeholder label lang datetime dir type checked open selected multiple size start reversed min"
    " max colspan rowspan scope srclang class".split()
)
"""Attributes of the output that hold words or numbers; every other one is taken for an address."""

JUNK = (
    "\t", "\n", "\r", "\f", "\v", "\x01", "\x08", "\x0e", "\x1b", "\x1c", "\x1d", "\x1e", "\x1f", " ", "\x7f", "\x85",
    "\xa0", "\u1680", "\u2000", "\u2003", "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
    "\ufeff", "\xad",
)  # fmt: skip

STYLES = (CLEAN, Style(full=True), Style(full=True, pretty=True), LEAN, Style(sections=False, emphasis=False))

PLACES = (
    '<a href="{}">w</a>', "<a href={}>w</a>", "<a xlink:href='{}' href='{}'>w</a>", '<a ping="{}" href=/x>w</a>',
    '<img alt=w src="{}">', '<img alt=w src="data:," data-src="{}">', '<img alt=w src="data:," data-original="{}">',
    '<img alt=w srcset="{} 2x" longdesc="{}" usemap="{}" lowsrc="{}" src=/x>', '<picture><source srcset="{}">w</picture>',
    '<video src="{}" poster="{}" title=w><source src="{}"><track src="{}" label=w></video>',
    '<audio src="{}" title=w></audio>', '<object data="{}" codebase="{}">w</object>', '<embed src="{}">',
    '<blockquote cite="{}">w</blockquote>', '<q cite="{}">w</q>', '<del cite="{}">w</del>', '<ins cite="{}">w</ins>',
    '<form action="{}"><button formaction="{}">w</button><input type=image alt=w src="{}" formaction="{}"></form>',
    '<body background="{}"><table background="{}"><tr><td background="{}">w</table>', '<html manifest="{}">w',
    '<iframe src="{}">w</iframe>', '<map><area href="{}" alt=w></map>', '<svg><a xlink:href="{}"><text>w</text></a></svg>',
    '<math href="{}" xlink:href="{}"><mi href="{}">w</mi></math>', '<math><a href="{}">w</a></math>',
    '<base href="{}"><a href="x">w</a>', '<meta http-equiv=refresh content="0;url={}">w', '<link rel=icon href="{}">w',
    '<menuitem icon="{}">w</menuitem>', '<x-y href="{}" src="{}" data="{}" action="{}">w</x-y>',
    '<table><tr><td colspan=2><a href="{}">w</a><img src="{}" alt=w></table>',
)  # fmt: skip
"""Markup that holds an address at each pair of braces."""

WORDS = (
    "<p>[w]({})", "<p>[w]<b></b>({})", "<p>![w]({})", "<p>&lt;{}>", "<p>[w]: {}<p>[w]", "<p>[w<br>w]: {}<p>[w w]",
    "<p>[w](w]: {}<p>[w](w]", "<ul><li>[w<br>w]: {}<li>[w w]</ul>", "<blockquote>[w<br>w<br>w]:<br>{}</blockquote>[w w w]",
    "<table><tr><td>[w]({})<td>|[w]: {}</table>", "<pre>```\n[w]({})</pre>", "<p><code>`</code>[w]({})<code>`</code>",
    '<img alt="w]({})" src=x>', '<a href=x>w]({})</a>', "<p>&lt;a href='{}'>w", "<title>[w]({})</title>[w]: {}",
)  # fmt: skip
"""Words of a page that Markdown could read as a link."""


def scheme(address: str) -> str:
    """Return an address's scheme as the URL standard's basic parser reads it; '' for a relative address."""
    address = address.lstrip("".join(map(chr, range(0x21))))
    address = "".join(letter for letter in address if letter not in "\t\n\r")
    found = ""
    for letter in address:
        if letter == ":":
            return found.lower()
        if not letter.isascii() or not (letter.isalpha() or (found and (letter.isdigit() or letter in "+-."))):
            return ""
        found += letter
    return ""


class Addresses(HTMLParser):
    """Collects every attribute value of HTML that may be an address, with the parser of the standard library."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name not in NO_ADDRESS]


def addresses(markup: str) -> list[str]:
    """Return the addresses of HTML as two parsers read them."""
    reader = Addresses()
    reader.feed(markup)
    reader.close()
    for node in turbohtml.parse(markup).descendants:
        if isinstance(node, turbohtml.Element):
            reader.found += [str(value) for name, value in node.attrs.items() if name not in NO_ADDRESS]
    return reader.found


def as_html(markdown: str) -> str:
    """Return Markdown as HTML, with no address refused."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    reader.validateLink = lambda url: True  # type: ignore[method-assign]
    return str(reader.render(markdown))


def written(page: str) -> Iterator[str]:
    """Yield every address of a page's outputs."""
    tree = clean_tree(page)
    for style in STYLES:
        yield from addresses(render_tree(tree, "html", style))
        yield from addresses(as_html(render_tree(tree, "markdown", style)))
    for url in ("", "https://example.org/a/b", "pages/a.html"):
        tree.url = url
        yield from (link.target for link in links_of(tree))


@st.composite
def hostile_addresses(draw: st.DrawFn) -> str:
    """An address with a forbidden scheme, and white space, controls, letter case and references mixed in."""
    junk = st.lists(st.sampled_from(JUNK), max_size=3).map("".join)
    name = draw(st.sampled_from(("javascript", "data", "vbscript", "blob", "file", "x-evil", "view-source")))
    inside = draw(st.dictionaries(st.integers(0, len(name)), junk, max_size=2))
    letters = [inside.get(place, "") + letter for place, letter in enumerate(name)]
    text = draw(junk) + "".join(letters) + inside.get(len(name), "") + ":" + draw(junk) + "alert(1)" + draw(junk)
    if draw(st.booleans()):
        text = text.swapcase()
    return text


def in_markup(draw: st.DrawFn, address: str) -> str:
    """Write an address for an attribute or for text: some letters as references."""
    referred = draw(st.sets(st.integers(0, len(address) - 1), max_size=6))
    shapes = st.sampled_from(("&#{};", "&#x{:x};", "&#00{};"))
    return "".join(
        draw(shapes).format(ord(letter)) if place in referred or letter in "\"'<>&" else letter
        for place, letter in enumerate(address)
    )


@st.composite
def hostile_pages(draw: st.DrawFn) -> str:
    parts = []
    for place in draw(st.lists(st.sampled_from(PLACES + WORDS), min_size=1, max_size=3)):
        address = in_markup(draw, draw(hostile_addresses()))
        parts.append(place.replace("{}", address))
    return "".join(parts)


@given(hostile_pages())
@example('<a href="&#xa0;javascript:alert(1)">w</a>')
@example('<a href="\x01\u3000java\tscript:alert(1)">w</a>')
def test_no_output_holds_a_scheme_that_is_not_allowed(page: str) -> None:
    for address in written(page):
        assert scheme(address) in ALLOWED | {""}, address


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES + WORDS)
def test_white_space_before_a_script_makes_no_link_of_it(place: str) -> None:
    for space in ("", *JUNK):
        for name in ("javascript:alert(1)", "data:text/html,x"):
            for address in written(place.replace("{}", space + name)):
                assert scheme(address) in ALLOWED | {""}, address


DOCUMENTS = {
    "a.md": "[w]({}) ![w]({}) [w]\n\n[w]: {}\n\n<{}> <a href='{}'>w</a>",
    "a.json": '{"w": "{}", "url": "{}"}',
    "a.xml": "<rss><channel><title>w</title><item><title>w</title><link>{}</link></item></channel></rss>",
    "a.tex": "\\begin{document}\\href{{}}{w} \\url{{}} \\includegraphics{{}}\\end{document}",
    "a.rtf": '{\\rtf1 {\\field{\\*\\fldinst HYPERLINK "{}"}{\\fldrslt w}}}',
    "a.eml": "Subject: w\nContent-Type: text/html; charset=utf-8\n\n<a href='{}'>w</a>",
    "a.ipynb": '{"cells": [{"cell_type": "markdown", "source": "[w]({})"}],  "nbformat": 4, "nbformat_minor": 5}',
    "a.csv": "w,link\nw,{}\n",
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("address", ["javascript:alert(1)", "\xa0javascript:x", "\u2003data:x", "&#160;javascript:x"])
def test_no_document_of_another_format_brings_one_in(name: str, address: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(DOCUMENTS[name].replace("{}", address), "utf-8")
    for output in (prunus.clean(path), as_html(prunus.clean(path, "markdown"))):
        assert "w" in output
        for found in addresses(output):
            assert scheme(found) in ALLOWED | {""}, found


def test_no_attribute_with_an_address_is_kept_but_those_that_are_checked() -> None:
    kept = {name for names in rules.KEPT_ATTRIBUTES.values() for name in names}
    assert kept - NO_ADDRESS == rules.URL_ATTRIBUTES


@pytest.mark.parametrize(
    "address",
    [
        "http://a.org/x?y=1&z=%20#f", "HTTPS://a.org/", "//a.org/x", "/x", "x", "?x", "./javascript:x", "x/data:y", "#x",
        "mailto:a@b.org", "tel:+49", "sms:1", "ftp://a.org", "whatsapp://send?text=x", "javascript", "1data:x", "é:x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("markup", ['<a href="{}">w</a>', '<img src="{}" alt=w>', '<q cite="{}">w</q>'])
def test_an_allowed_address_stays_as_it_is(address: str, markup: str) -> None:
    page = markup.replace("{}", html.escape(address))
    for style in (CLEAN, Style(full=True)):
        output = prunus.clean(page, style=style)
        assert address in addresses(output)
        assert prunus.clean(output, style=style) == output


@pytest.mark.parametrize("address", ["localhost:80/x", "about:blank", "ttps://a.org", "file:///etc/passwd", "#", " # "])
def test_the_words_of_a_link_that_leads_nowhere_stay(address: str) -> None:
    assert prunus.clean(f'<p>a <a href="{address}">word</a></p>') == "<p>a word"


def test_a_lazy_picture_takes_the_first_address_that_is_allowed() -> None:
    page = '<img alt=w src="data:," data-src="javascript:x" data-lazy-src="data:x" data-original="/p.png">'
    assert prunus.clean(page) == "<img src=/p.png alt=w>"
    assert prunus.clean(page.replace("/p.png", "data:y")) == "<img alt=w>"


def test_a_label_over_several_lines_makes_no_link_in_markdown() -> None:
    output = prunus.clean("<p>[a<br>b]: javascript:x</p><p>See [a b].</p>", "markdown")
    assert output == "\\[a\nb]: javascript:x\n\nSee [a b]."


@given(st.text(st.sampled_from("javscriptJ:\t\n\r\x00\x1f +-.1\xa0/#?é"), max_size=12))
@example("\x00\x1f j\ta\n:")
def test_the_scheme_is_read_as_the_standard_reads_it(address: str) -> None:
    assert scheme_of(address) == scheme(address)
