"""A large index is searched without reading all its nodes; small bounds stand for large numbers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extras import need
from tests.index.library import COUNTER, EMBEDDER, built

from prunus.core.errors import BadInput
from prunus.index.nodes import Candidates, IndexedDocument, Leaf, NodeSearch, Searching
from prunus.index.retrieve import Retriever
from prunus.index.store.file import large
from prunus.index.store.file.arrays import read_arrays, write_arrays
from prunus.index.store.file.engine import Engine as Store
from prunus.index.store.file.postings import Lexicon, Postings

WORDS = (
    "tide moon harbour bread dough oven train night station bees comb glass sand 3.14 l'eau straße 東京都 naïve".split()
)


def document(number: int, chunks: int = 6) -> tuple[IndexedDocument, list[Leaf], Any]:
    draw = np.random.default_rng(number)
    texts = [" ".join(draw.choice(WORDS, draw.integers(3, 30))) + f" of{number}" for _ in range(chunks)]
    leaves = [Leaf(place, place + 1, text, 2 * len(text.split()), ("the tide",)) for place, text in enumerate(texts)]
    return IndexedDocument(f"d{number}", "\n".join(texts), language="en"), leaves, EMBEDDER.embed(texts)


def filled(folder: Path, documents: int = 30, first: int = 0, **how: Any) -> Store:
    store = Store(folder, EMBEDDER.identity, EMBEDDER.dimension, create=True, **{"exact_nodes": 20, **how})
    store.add_many([document(number) for number in range(first, first + documents)])
    return store


def wanted(query: str, count: int = 20, **how: Any) -> NodeSearch:
    return NodeSearch(query, EMBEDDER.embed([query], "query")[0], count, 400, 12, **how)


def found_by(store: Store, query: str, count: int = 20, **how: Any) -> Candidates:
    found = store.candidates(wanted(query, count, **how))
    assert found is not None
    return found


def same_as_the_exact_way(store: Store, query: str) -> None:
    fast, exact = Retriever(store, EMBEDDER, COUNTER), Retriever(store, EMBEDDER, COUNTER, exact=True)
    first, second = fast.hybrid(query, 200), exact.hybrid(query, 200)
    assert [node.id for node in first.nodes] == [node.id for node in second.nodes]
    assert np.allclose(first.scores, second.scores, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=30), st.sampled_from(WORDS))
def test_postings_score_as_sqlite_does(texts: list[list[str]], word: str) -> None:
    import sqlite3

    file = sqlite3.connect(":memory:")
    file.execute("CREATE VIRTUAL TABLE t USING fts5 (text, above, tokenize = 'unicode61 remove_diacritics 0')")
    postings = Postings("x")
    for number, words in enumerate(texts):
        file.execute("INSERT INTO t (rowid, text, above) VALUES (?, ?, ?)", (number, " ".join(words), "tide"))
        postings.add(" ".join(words), "tide")
    scores, matched = Lexicon(postings.arrays(), "x").scores([word])
    known = dict(file.execute("SELECT rowid, -bm25(t, 1.0, 0.5) FROM t WHERE t MATCH ?", (f'"{word}"',)))
    file.close()
    assert {*matched.tolist()} == {*known}
    assert scores[[*known]] == pytest.approx([*known.values()], rel=1e-5)


def test_a_small_index_is_scored_as_a_whole(tmp_path: Path) -> None:
    store = filled(tmp_path / "i", exact_nodes=10_000)
    assert isinstance(store, Searching)
    assert store.candidates(wanted("the tide")) is None
    assert {path.suffix for path in store.folder.iterdir()} <= {".sqlite3", ".f32", ".sqlite3-wal", ".sqlite3-shm"}


@pytest.mark.parametrize("with_codes", [False, True])
def test_scores_of_candidates_are_those_of_the_exact_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_codes: bool
) -> None:
    if with_codes:
        need("faiss")
    else:
        monkeypatch.setattr(large, "_faiss", lambda: None)
    store = filled(tmp_path / "i", 200)
    for query in ("the tide of 3.14", "bread and glass of7", "straße naïve"):
        found = found_by(store, query)
        view, lexical = store.view(), store.lexical(query)
        places = [view.ids.tolist().index(id) for id in found.ids.tolist()]
        assert places == sorted(places)
        cosines = view.similarities(EMBEDDER.embed([query], "query")[0])
        assert np.allclose(found.cosine, cosines[places], atol=1e-5)
        assert np.allclose(found.bm25, [lexical.get(id, 0.0) for id in found.ids.tolist()], rtol=1e-4, atol=1e-5)
        every = np.asarray([lexical.get(id, 0.0) for id in view.ids.tolist()])
        assert found.leaves.cosine == pytest.approx((cosines.mean(), cosines.std()), abs=1e-4)
        assert found.leaves.bm25 == pytest.approx((every.mean(), every.std()), rel=1e-3)
        best = view.ids[np.argsort(-cosines, kind="stable")[:10]].tolist()
        assert len({*best} & {*found.ids.tolist()}) >= 9
        top = sorted(lexical, key=lambda id: -lexical[id])[:3]
        assert {*top} <= {*found.ids.tolist()}


def test_the_large_way_retrieves_what_the_exact_way_does(tmp_path: Path) -> None:
    store = filled(tmp_path / "i")
    for query in ("the tide of 3.14", "bread of7", "moon harbour station", "nothing known"):
        same_as_the_exact_way(store, query)


def test_summaries_of_a_large_index_are_found_for_broad_questions(tmp_path: Path) -> None:
    made = built(tmp_path)
    store = Store(made.store.folder, exact_nodes=5)  # type: ignore[attr-defined]
    fast, exact = Retriever(store, EMBEDDER, COUNTER), Retriever(store, EMBEDDER, COUNTER, exact=True)
    first = fast.hybrid("What is this about?", 600, broad=True)
    assert any(node.layer for node in first.nodes)
    assert [n.id for n in first.nodes] == [n.id for n in exact.hybrid("What is this about?", 600, broad=True).nodes]


def test_documents_can_be_chosen_in_a_large_index(tmp_path: Path) -> None:
    store = filled(tmp_path / "i")
    found = Retriever(store, EMBEDDER, COUNTER).hybrid("the tide", 200, documents=["d3", "d8"])
    assert {node.document for node in found.nodes} == {"d3", "d8"}
    with pytest.raises(BadInput, match="no document 'x'"):
        store.candidates(wanted("the tide", documents=("x",)))


def test_added_and_removed_documents_count_at_once_without_a_new_file(tmp_path: Path) -> None:
    store = filled(tmp_path / "i")
    found_by(store, "the tide")
    made = (store.folder / large.SEARCH).read_bytes()
    store.add_many([document(number) for number in (900, 901)])
    other = Store(store.folder, exact_nodes=20)  # another process reads the added rows alone
    for reader in (store, other):
        assert "d900" in {node.document for node in store.get(found_by(reader, "of900", 5).ids.tolist())}
    store.delete_many(["d3", "d900"])
    for reader in (store, other):
        gone = {node.document for node in reader.get(found_by(reader, "of3 of900", 500).ids.tolist())}
        assert not gone & {"d3", "d900"}
        assert "d901" in gone
    assert (store.folder / large.SEARCH).read_bytes() == made


def test_a_file_that_is_too_old_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_FEWEST", 10)
    store = filled(tmp_path / "i")
    found_by(store, "the tide")
    made = (store.folder / large.SEARCH).read_bytes()
    store.add_many([document(number) for number in range(100, 110)])
    same_as_the_exact_way(store, "the tide of105")
    assert (store.folder / large.SEARCH).read_bytes() != made


def test_deleted_files_are_made_again_and_files_of_another_index_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "_FEWEST", 2)
    store, other = filled(tmp_path / "i"), filled(tmp_path / "other", first=500)
    for one in (store, other):
        found_by(one, "the tide")
    for name in ("nodes.bin", "search.bin"):
        shutil.copy(other.folder / name, store.folder / name)
        same_as_the_exact_way(Store(store.folder, exact_nodes=20), "glass of9")
        (store.folder / name).unlink()
        same_as_the_exact_way(Store(store.folder, exact_nodes=20), "glass of9")


def test_a_missing_row_of_a_large_index_is_noticed(tmp_path: Path) -> None:
    import sqlite3

    store = filled(tmp_path / "i")
    found_by(store, "the tide")
    with sqlite3.connect(store.folder / "index.sqlite3") as file:
        file.execute("DELETE FROM nodes WHERE id = 5")
    file.close()
    with pytest.raises(BadInput, match="damaged"):
        store.get([4, 5])


def test_arrays_come_back_as_they_were_written(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    arrays = {"a": draw.integers(0, 9, (3, 50_000)), "none": np.zeros(0, np.uint8), "f": draw.random(7).astype("f4")}
    write_arrays(tmp_path / "x.bin", {"version": 3}, arrays)
    state, found = read_arrays(tmp_path / "x.bin")
    assert state == {"version": 3}
    for name, array in arrays.items():
        assert np.array_equal(found[name], array)
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


def test_a_file_that_a_killed_writer_left_is_removed_by_a_later_one(tmp_path: Path) -> None:
    old, young = tmp_path / "x.bin.1.new", tmp_path / "x.bin.2.new"
    for left in (old, young):
        left.write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    write_arrays(tmp_path / "x.bin", {}, {"a": np.arange(3)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "x.bin.2.new"]  # a writer may be at the young
