"""The approximate index: it finds nearly what exact search finds, and measures its recall."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.index.library import COUNTER, EMBEDDER, SUBJECTS, built, source

from prunus.core.errors import BadInput, MissingExtra
from prunus.index.approximate import Approximate
from prunus.index.nodes import View
from prunus.index.retrieve import Retriever


def view_of(count: int, dimension: int = 32) -> View:
    vectors = np.random.default_rng(0).normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    place = np.arange(count)
    row = np.where(place % 10 == 9, -1, place)  # every tenth has no embedding
    zero = np.zeros(count, np.int64)
    return View(place, zero, zero, place, zero + 9, row, place, vectors, ["d"], ["en"], 1)


@pytest.mark.full
def test_it_finds_nearly_all_that_exact_search_finds_and_says_so() -> None:
    need("faiss")
    view = view_of(3000)
    near = Approximate(view)
    asked = view.matrix[::300]
    assert 0.9 <= near.recall(asked, 10) <= 1.0
    places, scores = near.nearest(asked[0], 10)
    assert places[0] == 0
    assert scores[0] == pytest.approx(1.0, abs=1e-5)
    assert np.allclose(scores, view.similarities(asked[0])[places], atol=1e-5)
    assert not np.isin(places, np.flatnonzero(view.row < 0)).any()


@pytest.mark.full
def test_scores_are_exact_where_found_and_low_elsewhere() -> None:
    need("faiss")
    view = view_of(500)
    found, exact = Approximate(view).similarities(view.matrix[0], 50), view.similarities(view.matrix[0])
    best = np.argsort(-found)[:40]
    assert np.allclose(found[best], exact[best], atol=1e-5)
    assert (found[view.row < 0] == -2.0).all()
    assert found[view.row >= 0].min() >= exact[best].min() - 0.2


@pytest.mark.full
def test_an_empty_index_and_odd_settings_are_no_trouble() -> None:
    need("faiss")
    empty = Approximate(view_of(0))
    assert len(empty.nearest(np.ones(32, np.float32), 5)[0]) == 0
    assert len(empty.similarities(np.ones(32, np.float32))) == 0
    assert empty.recall([np.ones(32, np.float32)]) == 1.0
    for odd in ({"links": 1}, {"effort": 0}, {"threads": 0}):
        with pytest.raises(BadInput, match="at least"):
            Approximate(view_of(3), **odd)


@pytest.mark.full
def test_retrieval_through_it_answers_as_exact_retrieval_and_follows_the_index(tmp_path: Path) -> None:
    need("faiss")
    found = built(tmp_path)
    exact, near = Retriever(found.store, EMBEDDER, COUNTER), Retriever(found.store, EMBEDDER, COUNTER, near=Approximate)
    for text in SUBJECTS.values():
        assert near.collapsed(text, 200).text == exact.collapsed(text, 200).text
        assert near.hybrid(text, 200).text == exact.hybrid(text, 200).text
    found.store.delete("bees")
    found.add([source("bees", 1)])
    assert {node.document for node in near.collapsed(SUBJECTS["bees"], 60).nodes} == {"bees"}


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def refused(name: str, *others: Any, **more: Any) -> Any:
        if name in ("faiss", "psycopg"):
            raise ImportError(f"No module named {name!r}")
        return plain(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", refused)
    with pytest.raises(MissingExtra, match=r"pip install 'prunus\[faiss\]'"):
        Approximate(view_of(3))
    from prunus.index.store.postgres import engine as postgres

    with pytest.raises(MissingExtra, match=r"pip install 'prunus\[postgres\]'"):
        postgres.Engine("postgresql://nobody@nowhere/none")
