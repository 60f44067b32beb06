"""Expanded, replaced and selected blocks keep their words, spans and paths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests import oracle
from tests.strategies import Made, worded_documents

from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.documents import Documents
from prunus.evidence.refine import expand, subset
from prunus.evidence.render import Rendering, render_blocks
from prunus.pages.clean.walk import clean_tree

sizes = st.tuples(st.integers(4, 200), st.integers(1, 40))


def blocks_of(*pages: str, max_words: int) -> Blocks:
    return cut([clean_tree(page) for page in pages], max_words)


@given(worded_documents, sizes)
def test_expanded_blocks_hold_every_word_once_and_in_order(made: Made, size: tuple[int, int]) -> None:
    found = expand(blocks_of(made.html, max_words=size[0]), size[1]).blocks
    said = "".join("".join(text.split()) for text in found.texts)
    assert oracle.without_marks(said) == oracle.without_marks("".join(made.words))


@given(worded_documents, sizes)
def test_every_expanded_block_lies_in_its_parent(made: Made, size: tuple[int, int]) -> None:
    found = expand(blocks_of(made.html, max_words=size[0]), size[1])
    assert sorted(set(found.parents)) == list(range(len(found.coarse)))
    assert list(found.parents) == sorted(found.parents)
    for index, parent in enumerate(found.parents):
        (start, end), (low, high) = found.blocks.span(index), found.coarse.span(parent)
        assert low <= start <= end <= high or not found.blocks.texts[index]


@given(worded_documents, sizes)
def test_what_a_block_requires_each_of_its_parts_requires(made: Made, size: tuple[int, int]) -> None:
    found = expand(blocks_of(made.html, max_words=size[0]), size[1])
    parts: dict[int, set[int]] = {}
    for index, parent in enumerate(found.parents):
        parts.setdefault(parent, set()).add(index)
    for index, block in enumerate(found.blocks.blocks):
        assert index not in block.requires
        for needed in found.coarse.blocks[found.parents[index]].requires:
            assert parts[needed] <= set(block.requires)


@given(worded_documents, st.integers(1, 40), st.data())
def test_some_blocks_alone_keep_paths_texts_and_places(made: Made, size: int, data: st.DataObject) -> None:
    whole = blocks_of(made.html, "<p>Another page.", max_words=size)
    places = sorted(data.draw(st.sets(st.integers(0, len(whole) - 1), min_size=1)))
    part = subset(whole, places)
    assert [part.path(index) for index in range(len(part))] == [whole.path(place) for place in places]
    assert [part.span(index) for index in range(len(part))] == [whole.span(place) for place in places]
    assert list(part.texts) == [whole.texts[place] for place in places]
    assert render_blocks(part, range(len(part)), Rendering()) == render_blocks(whole, places, Rendering())


def test_paths_of_runs_are_not_numbered_again() -> None:
    whole = blocks_of("<div>one one<p>two two</p>three three<p>four four</p>five five</div>", max_words=2)
    paths = [whole.path(index) for index in range(len(whole))]
    assert [path.rsplit("/", 1)[1] for path in paths] == ["text1", "p1", "text2", "p2", "text3"]
    assert [subset(whole, [2, 4]).path(index) for index in range(2)] == [paths[2], paths[4]]


def test_a_table_in_one_block_is_expanded_to_rows_that_need_their_header() -> None:
    rows = "".join(f"<tr><td>pier {number}<td>{number} m" for number in range(8))
    found = expand(blocks_of(f"<table><tr><th>Name<th>Depth{rows}</table><p>{'x ' * 60}", max_words=50), 6)
    headers = [index for index, text in enumerate(found.blocks.texts) if text.startswith("Name")]
    assert len(headers) == 1
    assert all(block.requires == (headers[0],) for block in found.blocks.blocks[headers[0] + 1 : headers[0] + 9])


def test_a_section_that_is_cut_open_keeps_its_smaller_sections_together() -> None:
    inner = "".join(f"<h3>Pier {number}</h3><p>It is five metres deep here.</p>" for number in range(4))
    found = expand(blocks_of(f"<h2>Harbour</h2>{inner}<h2>Other</h2><p>{'x ' * 60}", max_words=50), 10)
    assert " ".join(found.blocks.texts[1].split()) == "Pier 1 It is five metres deep here."


def test_documents_expand_once() -> None:
    documents = Documents([clean_tree("<p>one two three</p><p>four five six</p>")])
    assert documents.expanded(8, 3) is documents.expanded(8, 3)


def test_documents_that_are_asked_for_many_granularities_hold_the_last_few() -> None:
    documents = Documents([clean_tree("<p>one two three</p><p>four five six</p>")])
    first = documents.blocks(20)
    assert documents.blocks(20) is first
    for words in range(21, 80):
        again = documents.blocks(words)
        documents.expanded(200, words)
    assert documents.blocks(words) is again and documents.blocks(20) is not first
    assert len(documents._cuts) <= 4 and len(documents._expanded) <= 4
