"""Pages of any number of blocks: texts and records are made when they are asked for, and say the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import oracle
from tests.strategies import Made, worded_documents

import prunus
from prunus import embedded
from prunus.embed import static
from prunus.html import blocks as blocks_module
from prunus.html import clean as clean_module
from prunus.html import cut as cut_module
from prunus.html.blocks import cut
from prunus.html.clean import clean_tree
from prunus.html.render import Rendering, render_blocks
from prunus.registry import make_engine
from prunus.score import embedding

PAGE = "".join(
    f"<h2>Pier {n}</h2><ul><li>depth {n} metres<li>light</ul>words <p>the ferry leaves at {n}" for n in range(9)
)
QUESTION = "When does the ferry leave pier 7?"


def test_texts_that_are_not_kept_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = cut([clean_tree(PAGE)], 3).texts
    monkeypatch.setattr(blocks_module, "_KEPT_TEXTS", 0)
    lazy = cut([clean_tree(PAGE)], 3).texts
    assert not isinstance(lazy, list)
    assert list(lazy) == list(kept)
    assert [lazy[index] for index in range(-len(kept), len(kept))] == [*kept, *kept]
    assert lazy[2:7] == list(kept[2:7])
    with pytest.raises(IndexError):
        lazy[len(kept)]


def test_similarities_without_kept_vectors_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = embedding.Engine(make_engine("embedder", "static"))
    blocks = cut([clean_tree(PAGE)], 3)
    kept = engine.score(QUESTION, blocks)
    assert any("vectors" in key for key in blocks.cache)
    for name, value in (("KEPT_BYTES", 0), ("BYTES_A_LETTER", 0), ("CHUNK", 4)):
        monkeypatch.setattr(embedding, name, value)
    fresh = cut([clean_tree(PAGE)], 3)
    assert np.allclose(engine.score(QUESTION, fresh), kept, atol=1e-6)
    assert not any("vectors" in key for key in fresh.cache)


def test_encoding_in_batches_gives_every_text_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the ferry", "", "leaves at noon " * 40, "\ud800", "水位"] * 7
    counter = make_engine("tokenizer", "llama2")
    counts, vectors = counter.count(texts), make_engine("embedder", "static").embed(texts)
    for letters, size in ((1, 4096), (200_000, 3), (90, 2)):
        monkeypatch.setattr(embedded, "_BATCH_LETTERS", letters)
        monkeypatch.setattr(embedded, "_BATCH_TEXTS", size)
        assert counter.count(texts).tolist() == counts.tolist()
        assert np.array_equal(make_engine("embedder", "static").embed(texts), vectors)


def test_records_are_a_sequence_like_any_other() -> None:
    context = prunus.prune(PAGE, QUESTION, 60, options=prunus.Options(max_words=4))
    records = list(context.blocks)
    assert len(records) == len(context.blocks) > 9
    assert context.blocks == records
    assert context.blocks[-1] == records[-1]
    assert context.blocks[3:5] == records[3:5]
    assert context.kept == [record for record in records if record.kept]
    assert context.blocks != records[:-1]
    with pytest.raises(IndexError):
        context.blocks[len(records)]
    assert str(len(records)) in repr(context.blocks)


# --- small neighbours share a block where they are far too many -----------------------------------

under_another_setting = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@under_another_setting
@given(made=worded_documents, max_words=st.integers(1, 60))
def test_shared_blocks_hold_every_word_once_and_are_no_larger(
    monkeypatch: pytest.MonkeyPatch, made: Made, max_words: int
) -> None:
    monkeypatch.setattr(cut_module, "CROWDED", 10**9)
    apart = cut([clean_tree(made.html)], max_words)
    monkeypatch.setattr(cut_module, "CROWDED", 0)
    shared = cut([clean_tree(made.html)], max_words)
    assert len(shared) <= len(apart)
    assert "".join("".join(text.split()) for text in shared.texts) == "".join(made.words)
    spans = [shared.span(index) for index in range(len(shared))]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    everything = render_blocks(shared, range(len(shared)), Rendering())
    assert oracle.words(everything) == made.words
    largest = max((block.words for block in apart.blocks), default=0)
    assert all(block.words <= max(max_words, largest) for block in shared.blocks)


@pytest.mark.parametrize("budget", [48, 60, 100, 300, 3000])
def test_rows_that_share_a_block_keep_the_header_of_their_table(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(cut_module, "CROWDED", 0)
    rows = "".join(f"<tr><td>Vessel {n} of the fleet<td>built in {1900 + n}" for n in range(90))
    documents = prunus.read(f"<p>words<table><thead><tr><th>Ship<th>Year<tbody>{rows}</table>")
    assert len(documents.blocks(48)) < 90
    options = prunus.Options(max_words=48)  # below 100 tokens no block of 48 words fits, and the best one is cut
    context = prunus.prune(documents, "When was Vessel 77 built?", budget, options=options)
    assert context.tokens <= budget
    assert "<th>Ship<th>Year" in context.html
    assert "Vessel 77 of the fleet" in context.html
    assert any("tr" in block.path for block in context.blocks)


def test_a_million_paragraphs_of_one_word_are_few_blocks() -> None:
    documents = prunus.read(b"<p>one" * 160_000)
    blocks = documents.blocks(48)
    assert len(blocks) <= 160_000 // 48 + 1
    assert {block.words for block in blocks.blocks[:-1]} == {48}


def test_the_dom_of_a_page_is_let_go() -> None:
    """White space that waits at a page's end holds a node, and with it the whole DOM."""
    walk = clean_module._Walk(False)
    walk.run(clean_module.parse("<p>words <a href=/x>a link</a> "))
    assert walk.spacer is None


# --- in parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 7, 10**6])
def test_vectors_that_are_gathered_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    engine = static.Engine()
    texts = ["the ferry leaves", "", "pier", "a longer text about the harbour and its light", "ferry " * 40]
    whole = engine.embed(texts)
    monkeypatch.setattr(static, "_TOKENS", tokens)
    assert np.array_equal(engine.embed(texts), whole)
    assert engine.pool([]).shape == (0, 256)
