"""Evidence from an index: leaves become parts of their pages, and sentences of summaries are traced to leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import Made, worded_documents

from prunus.api.index import Index
from prunus.evidence.blocks import Blocks, kept_part
from prunus.evidence.render import Rendering, render_blocks
from prunus.index.chunk import chunk_tree
from prunus.index.evidence import block_of, packed, tree_of
from prunus.index.nodes import IndexedDocument
from prunus.models.tokens import approx
from prunus.pages.clean.walk import clean_tree
from prunus.pages.write.selection import MARK
from prunus.pages.xpath import xpath_of

COUNTER = approx.Engine()

TABLE = "<h1>Fares</h1><p>Paid in coins.</p><table><tr><th>Zone<th>Coins<th>Note" + "".join(
    f"<tr><td>zone {n}<td>{n}<td>" for n in range(40)
)


@given(made=worded_documents, size=st.integers(8, 60))
def test_a_leaf_as_a_block_shows_exactly_its_words(made: Made, size: int) -> None:
    tree = clean_tree(made.html)
    for chunk in chunk_tree(tree, COUNTER, size, max(size, 16)):
        block = block_of(tree, 0, chunk.start, chunk.end)
        blocks = Blocks([tree], [block], 64)
        assert blocks.texts[0].split() == chunk.text.split()
        shown = clean_tree(render_blocks(blocks, [0], Rendering("html")) or "<p>").canonical.replace(MARK, "")
        assert "".join(chunk.text.split()) in "".join(shown.split()) or not shown.strip()
        assert tree.end[block.node] >= block.hi


def test_a_leaf_that_cuts_a_long_sentence_is_marked_where_it_cuts() -> None:
    long = " ".join(f"word{n}" for n in range(400))
    tree = clean_tree(f"<p>It opened in 1932. It holds {long}.<p>Trams run daily.")
    shown = []
    for chunk in chunk_tree(tree, COUNTER, 20, 60):
        block = block_of(tree, 0, chunk.start, chunk.end)
        shown.append(render_blocks(Blocks([tree], [block], 64), [0], Rendering("text")).strip())
    assert len(shown) > 4 and all(MARK in text for text in shown if "word" in text)
    assert shown[0].startswith("It opened") and shown[-1].endswith("daily.")
    assert shown[1].startswith(MARK) and shown[1].endswith(MARK)


def test_an_element_that_ends_after_the_leaf_is_not_kept_whole() -> None:
    tree = clean_tree(TABLE)
    [first, *_] = chunk_tree(tree, COUNTER, 40)
    block = block_of(tree, 0, first.start, first.end)
    mask = kept_part(Blocks([tree], [block], 64), [0], 0).mask
    assert mask[tree.tag.index("table")] == 2


def test_a_page_that_is_kept_gives_the_tree_that_was_indexed() -> None:
    for markup, charset in ((TABLE, ""), ("<p>caf\xe9 na\xefve".encode("latin-1"), "latin-1"), ("<p>\ud800 x", "")):
        tree = clean_tree(markup, charset=charset)
        document = IndexedDocument("a", tree.canonical, digest="d", source=packed(*tree._markup))
        again = tree_of(document)
        assert again.canonical == tree.canonical and again.tag == tree.tag
        assert xpath_of(again, len(again) - 1) == xpath_of(tree, len(tree) - 1)


@pytest.mark.parametrize("source", [b"", b"no zip", packed("<p>other words")])
def test_without_its_page_a_document_is_its_text(source: bytes) -> None:
    tree = tree_of(IndexedDocument("a", "  two\n\nlines", source=source))
    assert tree.canonical == "  two\n\nlines" and xpath_of(tree, 2) == ""


def test_rows_come_back_under_the_header_of_their_table(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index")
    index.add({"fares": TABLE})
    found = index.retrieve("How many coins is zone 37?", 150)
    assert found.tokens <= 150
    assert "<th>Zone<th>Coins<th>Note" in found.html and "<td>zone 37<td>37<td>" in found.html
    assert "zone 1<" not in found.html
    assert "|zone 37|37|" in found.markdown


def test_rows_come_back_under_the_title_of_their_group(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index")
    groups = "".join(
        f"<tr><td colspan=2><b>{day} fares</b>" + "".join(f"<tr><td>zone {n}<td>{n + add}" for n in range(80))
        for day, add in (("Weekday", 100), ("Sunday", 500))
    )
    index.add({"fares": f"<h1>Fares</h1><table><tr><th>Zone<th>Coins{groups}</table>"})
    found = index.retrieve("How many coins is zone 77 on Sunday?", 150)
    assert "<td>zone 77<td>577" in found.html
    assert found.html.index("Sunday fares") < found.html.index("zone 77<td>577")


def test_an_answer_from_a_row_cites_the_row(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index")
    index.add({"fares": TABLE})
    [first, *_] = index.ask("How many coins is zone 37?").citations
    assert first.quote == "zone 37\t37" and first.found and first.xpath.endswith("/tr[39]")
    assert (
        first.document == "fares"
        and index.store.document("fares").text[first.span.start : first.span.end] == first.quote
    )


def test_a_page_that_was_indexed_with_another_text_says_so() -> None:
    page = packed("<p>10<sup>9</sup> boats")
    older = tree_of(IndexedDocument("a", "109 boats", source=page))
    assert older.canonical == "109 boats"
    assert "prunus index rebuild" in older.warnings[0]
    assert not tree_of(IndexedDocument("a", "10⁹ boats", source=page)).warnings
    assert not tree_of(IndexedDocument("a", "109 boats")).warnings
