"""Chunks: every word is in exactly one chunk, in order and under the cap, and structure is respected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import Made, worded_documents

from prunus.core.errors import BadInput
from prunus.core.ports import TokenCounter
from prunus.index.chunk import Chunk, chunk_text, chunk_tree
from prunus.models.tokens import approx, smollm2
from prunus.pages.clean.walk import clean_tree

COUNTERS = {"approx": approx.Engine(), "smollm2": smollm2.Engine()}

texts = st.text(
    alphabet=st.sampled_from("ab.!? \n\t,数据。ไทย\u0301é😀$3-"),
    max_size=300,
) | st.builds(
    " ".join, st.lists(st.sampled_from(["word", "Dr.", "It ended.", "3.14", "数据库。", "x" * 90]), max_size=60)
)


def check(chunks: list[Chunk], text: str, counter: TokenCounter, cap: int) -> None:
    place = 0
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text.strip() == chunk.text != ""
        assert not text[place : chunk.start].strip()  # only white space lies between chunks
        assert chunk.tokens == tokens_of(counter, chunk.text) <= cap
        place = chunk.end
    assert not text[place:].strip()


def tokens_of(counter: TokenCounter, text: str) -> int:
    return int(counter.count([text])[0])


@pytest.mark.parametrize("name", COUNTERS)
@given(text=texts, size=st.integers(1, 30))
def test_every_word_is_in_one_chunk_in_order_and_no_chunk_is_over_the_cap(name: str, text: str, size: int) -> None:
    counter = COUNTERS[name]
    check(chunk_text(text, counter, size, 32), text, counter, 32)


@given(made=worded_documents, size=st.integers(4, 60))
def test_a_page_loses_no_word_to_its_structure(made: Made, size: int) -> None:
    tree = clean_tree(made.html)
    counter = COUNTERS["approx"]
    chunks = chunk_tree(tree, counter, size, 64)
    check(chunks, tree.canonical, counter, 64)


def test_sentences_stay_whole_and_the_one_that_does_not_fit_moves_to_the_next_chunk() -> None:
    text = "One two three four. Five six seven eight. Nine ten."
    assert [chunk.text for chunk in chunk_text(text, COUNTERS["approx"], 9, 20)] == [
        "One two three four.",
        "Five six seven eight.",
        "Nine ten.",
    ]


@pytest.mark.parametrize("text", ["数据" * 3000, "x" * 5000, "word " * 4000, "ก" * 3000, "😀" * 800, "e\u0301" * 900])
def test_text_without_stops_is_cut_at_the_cap_and_chunks_are_not_needlessly_small(text: str) -> None:
    counter = COUNTERS["smollm2"]
    chunks = chunk_text(text, counter)
    check(chunks, text, counter, 200)
    assert len(chunks) <= 3 * tokens_of(counter, text) / 100 + 1


def test_numbers_and_addresses_are_not_cut() -> None:
    text = "It costs $3.14 today. See https://example.com/a.b for more! Was it v1.2?"
    assert "".join(chunk.text for chunk in chunk_text(text, COUNTERS["approx"], 8, 40)).count("$3.14") == 1
    joined = [chunk.text for chunk in chunk_text(text, COUNTERS["approx"], 8, 40)]
    assert any("https://example.com/a.b" in sentence for sentence in joined)


def test_nothing_gives_no_chunk() -> None:
    assert chunk_text("", COUNTERS["approx"]) == []
    assert chunk_text(" \n\t ", COUNTERS["approx"]) == []
    assert chunk_tree(clean_tree("<html></html>"), COUNTERS["approx"]) == []


@pytest.mark.parametrize(("size", "cap"), [(0, 0), (-5, 10), (50, 20), (2, 3)])
def test_sizes_that_make_no_sense_are_refused(size: int, cap: int) -> None:
    with pytest.raises(BadInput, match="chunks of"):
        chunk_text("a", COUNTERS["approx"], size, cap)


LIST = "<ul>" + "".join(f"<li>Item {i} is here. It is small.</li>" for i in range(6)) + "</ul>"
CODE = "<pre>def f():\n    return 1.\n\n\nprint(f())\n</pre>"
TABLE = "<table><tr><th>City<th>People" + "".join(f"<tr><td>City {i}<td>{i}000" for i in range(9)) + "</table>"
PROSE = "<p>" + "A plain sentence of some words. " * 12


@pytest.mark.parametrize(
    ("markup", "first", "last"), [(LIST, "Item 0", "small."), (CODE, "def", "print(f())"), (TABLE, "City\t", "8000")]
)
def test_a_list_a_table_a_code_block_stays_whole_when_it_fits(markup: str, first: str, last: str) -> None:
    tree = clean_tree(f"<body>{PROSE}{markup}{PROSE}")
    inside = [chunk for chunk in chunk_tree(tree, COUNTERS["approx"], 40, 120) if first in chunk.text]
    assert len(inside) == 1
    assert last in inside[0].text


def test_a_large_table_is_cut_between_rows_and_each_part_knows_its_header() -> None:
    rows = "".join(f"<tr><td>City number {i}<td>{i}000 people. Yes." for i in range(60))
    tree = clean_tree(
        f"<h1>Cities</h1><table><caption>Sizes</caption><thead><tr><th>City<th>People</thead>{rows}</table>"
    )
    chunks = chunk_tree(tree, COUNTERS["approx"], 60, 100)
    assert len(chunks) > 5
    for chunk in chunks[1:]:
        assert chunk.text.startswith("City number")
        assert chunk.text.endswith("Yes.")
        assert chunk.above == ("Cities", "Sizes City People")


def test_headings_are_breadcrumbs_begin_a_chunk_and_never_end_one() -> None:
    body = "".join(f"<h2>Part {i}</h2>{PROSE}" for i in range(3))
    chunks = chunk_tree(clean_tree(f"<h1>Book</h1>{body}"), COUNTERS["approx"], 50, 100)
    starts = [chunk for chunk in chunks if "Part" in chunk.text]
    assert [chunk.text.split("\n")[-2] for chunk in starts] == ["Part 0", "Part 1", "Part 2"]
    for chunk in chunks:
        assert not chunk.text.endswith(("Part 0", "Part 1", "Part 2"))
    assert chunks[-1].above == ("Book", "Part 2")


def test_deep_nesting_costs_no_more_than_its_text() -> None:
    tree = clean_tree("<ul><li>a " * 400)
    counter = COUNTERS["approx"]
    check(chunk_tree(tree, counter, 20, 40), tree.canonical, counter, 40)
