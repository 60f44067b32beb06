"""Kept blocks marked in the page's source: nothing else changes, and the parser builds the same tree."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracle
from tests.strategies import articles, broken_documents, worded_documents

import prunus
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.mark import mark, text_for_file
from prunus.pages.clean.parse import source_text
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree

MARK = re.compile(r' data-prunus(?:-block|-score)?="[^"]*"')


def arrays(tree: Tree) -> tuple[Any, ...]:
    return tree.tag, tree.parent, tree.end, tree.text, tree.attrs, tree.title, tree.lang


def blocks_of(page: str | bytes, max_words: int = 8, charset: str = "") -> Blocks:
    return cut([clean_tree(page, charset=charset)], max_words)


def marked(page: str | bytes, *kept: int, max_words: int = 8) -> str:
    return mark(blocks_of(page, max_words), kept)


def check(blocks: Blocks, kept: list[int]) -> str:
    """Mark, and check that nothing but marks is new, and that nothing changes for a reader."""
    tree = blocks.trees[0]
    source = source_text(*tree._markup)
    found = mark(blocks, kept, scores=[index / 3 for index in range(len(blocks))])
    assert MARK.sub("", found) == source
    assert arrays(clean_tree(found)) == arrays(tree)
    styled = mark(blocks, kept, scores=[index / 3 for index in range(len(blocks))], style=True)
    assert re.sub("<style>.data-prunus=kept.*?</style>", "", styled, count=1) == found
    assert arrays(clean_tree(styled)) == arrays(tree)
    return found


# --- what is marked ------------------------------------------------------------------------------


def test_a_kept_element_is_marked_in_its_start_tag() -> None:
    page = "<h1 class=a>Pier</h1>\n<P\nID='b'>The ferry leaves at noon.</P><p>Charts are sold in the small shop.</p>"
    assert marked(page, 1) == page.replace("<P\n", '<P data-prunus="kept"\n')


def test_kept_words_mark_the_element_that_they_stand_in() -> None:
    page = "<div>Some words here <p>and others there</p> and more</div>"
    assert marked(page, 0, max_words=3) == page.replace("<div", '<div data-prunus="kept-text"')


def test_part_of_a_long_paragraph_marks_the_paragraph_as_holding_kept_text() -> None:
    page = "<p>One sentence stands here. Another one stands <b>right</b> there. A third one ends it all."
    blocks = blocks_of(page, 5)
    assert len(blocks) > 2
    assert mark(blocks, [1]) == page.replace("<p", '<p data-prunus="kept-text"')


def test_what_the_parser_made_up_is_marked_in_what_it_holds() -> None:
    page = "<table><tr><td>1<td>2</table>"
    blocks = blocks_of(page, 100)
    assert mark(blocks, range(len(blocks))) == page.replace("<table", '<table data-prunus="kept"')
    assert "kept" not in mark(blocks_of("bare words alone"), [0])


def test_numbers_and_scores_are_written_on_request() -> None:
    page = "<p>The ferry leaves.<p>Charts are sold."
    found = mark(blocks_of(page, 3), [1], scores=[0.25, 1.23456])
    assert found.endswith('<p data-prunus="kept" data-prunus-block="1" data-prunus-score="1.235">Charts are sold.')


def test_a_mark_of_the_page_itself_does_not_win() -> None:
    found = marked("<p data-prunus=no>The ferry leaves at noon.", 0)
    assert oracle.parse(found).find_all("p")[0].attrs["data-prunus"] == "kept"


def test_bold_text_that_the_parser_copies_is_marked_around_it() -> None:
    """<b> goes on in the second paragraph: its one start tag made two elements."""
    page = "<p><b>The ferry leaves at noon.<p>Charts are sold in the small shop."
    assert marked(page, 1) == page.replace("<p>Charts", '<p data-prunus="kept">Charts')


# --- any source ----------------------------------------------------------------------------------

SOURCES = {
    "windows-1252": ("<p>Größe — 5 €<p>noch mehr Wörter".encode("cp1252"), ""),
    "named by the transport": ("<p>ферма у реки<p>другие слова".encode("koi8-r"), "koi8-r"),
    "named by the page": ("<meta charset=shift_jis><p>水位<p>港の記録".encode("shift_jis"), ""),
    "UTF-16 with a mark": ("<p>水位 \U0001f600<p>港の記録".encode("utf-16"), ""),
    "UTF-8 with a mark": (b"\xef\xbb\xbf<p>caf\xc3\xa9<p>words", ""),
    "UTF-8 with a stray byte": ("<p>é é é é é é<p>".encode() + b"wor\xe4ds", ""),
    "an unknown charset": ("<p>é<p>words".encode(), "klingon"),
    "line ends of all kinds": ("<div>\r\n<p>one\r<p>two\n\r\n<p>three", ""),
    "letters beyond the basic plane": ("<p>\U0001f600\U00020000 <i>a</i><p>\U0001f9ea b", ""),
    "null bytes": ("<p>a\0b<p\0>c<p>d", ""),
    "surrogates": ("<p>\ud83d\ude00 \ud800<p>x", ""),
    "a page that begins with a mark": ("\ufeff<p>x<p>y", ""),
    "an old image tag": ("<image src=a alt=one><image src=b alt=two><p>x", ""),
    "slashes": ("<p/class=a>x<br/><img/src=a alt=b><p/>y", ""),
    "four nested bolds": ("<p><b><b><b><b>one<p>two<p>three", ""),
    "misnested links": ("<a href=x><p>one</a>two<div>three", ""),
    "misplaced table content": ("<table>one<b>two<tr><td>three</b></table>four", ""),
    "a second body": ("<body><p>one<body class=a><html lang=en><p>two", ""),
    "code": ("<pre>\n\n  one\n<b>  two</b></pre><textarea>\nx</textarea>", ""),
    "letters in foreign elements": ("<math><mi>x</mi></math><svg><text>n</text></svg><p>words", ""),
}


@pytest.mark.parametrize("name", SOURCES)
def test_any_source_stays_as_it_is_but_for_the_marks(name: str) -> None:
    page, charset = SOURCES[name]
    for max_words in (1, 50):
        blocks = blocks_of(page, max_words, charset)
        for kept in (list(range(len(blocks))), [len(blocks) - 1], [0]):
            check(blocks, kept)


@pytest.mark.parametrize("name", [name for name, (page, _) in SOURCES.items() if isinstance(page, bytes)])
def test_a_file_of_marked_source_is_read_as_utf8(name: str) -> None:
    page, charset = SOURCES[name]
    blocks = blocks_of(page, 2, charset)
    written = text_for_file(blocks.trees[0], mark(blocks, range(len(blocks)))).encode()
    assert clean_tree(written).canonical == blocks.trees[0].canonical


def test_a_page_in_utf8_gets_no_byte_order_mark() -> None:
    blocks = blocks_of("<meta charset=utf-8><p>café".encode())
    assert text_for_file(blocks.trees[0], mark(blocks, [0])) == '<meta charset=utf-8><p data-prunus="kept">café'


seeds = st.integers(0, 2**20 - 1)
sizes = st.sampled_from((1, 3, 8, 40))


def chosen(blocks: Blocks, seed: int) -> list[int]:
    return [index for index in range(len(blocks)) if seed >> (index % 20) & 1]


@given(st.one_of(worded_documents.map(lambda made: made.html), articles(), broken_documents()), sizes, seeds)
def test_marking_changes_nothing_else(html: str, size: int, seed: int) -> None:
    blocks = blocks_of(html, size)
    check(blocks, chosen(blocks, seed))


@given(worded_documents, sizes, seeds)
def test_marked_elements_show_only_kept_words(made: Any, size: int, seed: int) -> None:
    blocks = blocks_of(made.html, size)
    kept = chosen(blocks, seed)
    found = oracle.parse(mark(blocks, kept))
    said = "".join("".join(blocks.texts[index].split()) for index in kept)
    for element in found.find_all():
        if element.attrs.get("data-prunus") == "kept" and not oracle.is_in_hidden(element):
            for word in oracle.words_in(element):
                assert word in said or not re.search(r"w\d", word)  # a closed list holds choices that do not show


@pytest.mark.data
def test_real_pages_stay_as_they_are_but_for_the_marks(pages: list[str]) -> None:
    for html in pages:
        for page in (html, html.replace("\n", "\r\n").encode()):
            context = prunus.prune(page, "When did it begin, and how many were there?", 600)
            blocks = cut([clean_tree(page)], context.max_words)
            if len(blocks) == len(context.blocks):
                found = check(blocks, [block.index for block in context.kept])
                assert found.count('data-prunus="kept') >= 1


# --- the faces -----------------------------------------------------------------------------------


def test_a_context_marks_each_of_its_documents() -> None:
    pages = ["<p>The ferry leaves at noon.<p>Nothing else.", b"<h2>Ferry</h2><p>The ferry leaves at ten."]
    context = prunus.prune(pages, "When does the ferry leave?", 60)
    for number, page in enumerate(pages):
        found = context.mark(number, details=True)
        assert MARK.sub("", found) == (page if isinstance(page, str) else page.decode())
        held = {int(n) for numbers in re.findall(r'data-prunus-block="([^"]*)"', found) for n in numbers.split()}
        assert held == {block.index for block in context.kept if block.document == number}


def test_a_document_that_is_not_there_is_named() -> None:
    with pytest.raises(prunus.BadInput, match="no document has the number 1"):
        prunus.prune("<p>words", "words?").mark(1)


def test_only_data_attributes_can_be_put_in() -> None:
    with pytest.raises(prunus.BadInput, match="onclick"):
        mark(blocks_of("<p>words"), [0], attribute="onclick")
