"""Pages with very many blocks: texts and records are built on access, and are the same."""

from __future__ import annotations

import numpy as np
import pytest

import prunus
from prunus.core.registry import make_engine
from prunus.evidence.blocks import cut
from prunus.evidence.score import embedding
from prunus.models import encoding as embedded
from prunus.models.embed import _mean, static
from prunus.pages.clean import walk as clean_module
from prunus.pages.clean.walk import clean_tree

PAGE = "".join(
    f"<h2>Pier {n}</h2><ul><li>depth {n} metres<li>light</ul>words <p>the ferry leaves at {n}" for n in range(9)
)
QUESTION = "When does the ferry leave pier 7?"


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
    counter = make_engine("tokenizer", "smollm2")
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
    monkeypatch.setattr(_mean, "_PIECES", tokens)
    assert np.array_equal(engine.embed(texts), whole)
    assert _mean.mean_vectors(static.static_model()[0].rows, 256, []).shape == (0, 256)
