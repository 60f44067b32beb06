"""Postings in LanceDB: they say what the rows say, whatever changes; old indexes, killed writers, and damage.

Small bounds stand for large numbers.
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.index.test_lance_index import begun, filled
from tests.index.test_store import given_document, vector

from prunus.core.errors import BadInput
from prunus.index.nodes import Growth, Parent, Search
from prunus.index.store._words import terms_of
from prunus.index.store.lance import engine as lance
from prunus.index.store.lance import postings, rows, tables, words

pytestmark = pytest.mark.full

QUERIES = ("sentence number 3", "topic1 topic4 says", "about 40 heading", "nothing of this", "it's '' about")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    need("lancedb")
    for name, value in {"LOOSE": 30, "FEWEST": 5, "WIDTH": 64, "_STEP": 2}.items():
        monkeypatch.setattr(postings, name, value)
    monkeypatch.setattr(lance, "_MANY", 0)


def record_of(store: lance.Engine) -> tables.Record:
    record = store._tables.record()
    assert record is not None
    return record


def scores_are_those_of_a_scan(store: lance.Engine, from_postings: bool = True) -> None:
    snapshot = tables.Snapshot(store._tables, record_of(store))
    for kind, layer in (("leaves", "leaves"), ("parents", "summaries")):
        known = store._statistics(snapshot, kind)
        assert (known.posted is not None) == from_postings
        for query in QUERIES:
            terms = terms_of(query, known.languages)
            ids, scores = words.scanned(snapshot, kind, terms, known.count, known.average)
            expected = dict(zip(ids.tolist(), scores.tolist(), strict=True))
            assert store.lexical(query, layer) == pytest.approx(expected, rel=1e-9)
    found = store.candidates(Search(QUERIES[0], vector(3004), 5, 2000, 2, summaries=True))
    if found is not None:
        exact = {**store.lexical(QUERIES[0]), **store.lexical(QUERIES[0], "summaries")}
        assert found.bm25 == pytest.approx([exact.get(int(id), 0.0) for id in found.ids])
        assert [node.id for node in store.get(found.ids.tolist())] == found.ids.tolist()


def parts_of(store: lance.Engine, kind: str) -> list[tuple[int, int]]:
    snapshot = tables.Snapshot(store._tables, record_of(store))
    return [(row["first"], row["end"]) for row in postings._parts(snapshot, kind)]


def grown(store: lance.Engine) -> Growth:
    """A growth with a new parent, a changed one and a deleted one."""
    view, edges = store.view(), store.edges()
    first, _, third = list(edges)[:3]
    means = view.matrix[[0, 1]]
    return Growth((Parent((), 1),), {-1: edges[third]}, (third,), (first,), ("",), means, view.version)


def test_a_large_index_gets_postings_in_parts_and_answers_from_them(tmp_path: Path) -> None:
    store = filled(tmp_path, 30, exact_nodes=50)
    assert record_of(store).posted and record_of(store).layout == 2
    bounds = parts_of(store, "leaves")
    assert len(bounds) >= 4 and all(0 < end - first <= 64 for first, end in bounds)
    assert all(end <= first for (_, end), (first, _) in pairwise(bounds))
    scores_are_those_of_a_scan(store)
    assert store.candidates(Search("topic3 sentence", vector(3004), 5, 2000, 2)) is not None
    assert store.damage() == []


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_a_scan_whatever_changes(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    store = filled(tmp_path, 20, exact_nodes=50)

    def add(turn: int) -> None:
        store.add_many([given_document(f"{draw.randrange(40)} topic{draw.randrange(7)}", draw.randrange(1, 12), turn)
                        for _ in range(draw.randrange(1, 5))])  # fmt: skip

    def delete(turn: int) -> None:
        names = [document.id for document in store.documents()]
        store.delete_many(draw.sample(names, min(len(names) // 4, draw.randrange(1, 4))))

    def summarise(turn: int) -> None:
        ids = draw.sample([*store.edges()], min(len(store.edges()), draw.randrange(1, 9)))
        vectors = np.stack([vector(9_000_000 + id) for id in ids])
        store.put_summaries([(id, f"about topic{id % 7} number {turn}", 5) for id in ids], vectors)

    def replace(turn: int) -> None:
        leaf = store.view().ids[: store.view().leaves].tolist()
        size = draw.randrange(2, 9)
        parents = [Parent(tuple(leaf[at : at + size]), 1, text=f"about {at} says", tokens=3)
                   for at in range(0, len(leaf), size)]  # fmt: skip
        means = np.stack([vector(8_000_000 + at) for at in range(len(parents))])
        store.replace_tree(parents, means, means)

    def grow(turn: int) -> None:
        assert store.grow(grown(store))

    ways = [add, add, delete, summarise, summarise, replace, grow, lambda turn: store.compact()]
    replace(0)
    for turn in range(16):
        draw.choice(ways if len(store.edges()) > 3 else [add, replace])(turn)
        scores_are_those_of_a_scan(store)
    scores_are_those_of_a_scan(lance.Engine(tmp_path / "index", exact_nodes=50))
    assert store.damage() == []


def test_deleted_and_rewritten_nodes_are_noted_until_their_part_is_made_anew(tmp_path: Path) -> None:
    store = filled(tmp_path, 30, exact_nodes=50)
    parents = sorted(store.edges())
    store.replace_tree([Parent((id,), 1, text="about one", tokens=2) for id in range(1, 61)], *2 * [vectors(60)])
    parents = sorted(store.edges())
    bounds = parts_of(store, "parents")
    assert bounds[0][0] == parents[0] and bounds[-1][1] == parents[-1] + 1
    store.put_summaries([(id, "other words", 2) for id in parents[:3]], vectors(3))
    snapshot = tables.Snapshot(store._tables, record_of(store))
    assert postings._stale(snapshot, "parents").tolist() == parents[:3]
    scores_are_those_of_a_scan(store)
    assert {*store.lexical("other", "summaries")} == {*parents[:3]}
    store.put_summaries([(id, "other words", 2) for id in parents[:50]], vectors(50))
    snapshot = tables.Snapshot(store._tables, record_of(store))
    assert not len(postings._stale(snapshot, "parents"))
    scores_are_those_of_a_scan(store)
    assert {*store.lexical("other", "summaries")} == {*parents[:50]}


def vectors(count: int) -> Any:
    return np.stack([vector(6_000_000 + place) for place in range(count)])


def test_an_index_without_postings_answers_and_gets_them_with_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(postings, "LOOSE", 10_000)
        filled(tmp_path, 30, exact_nodes=50)
    assert not (tmp_path / "index" / "postings.lance").exists(), "as older versions made it"
    store = lance.Engine(tmp_path / "index", exact_nodes=50)
    before = store.lexical("sentence topic3")
    scores_are_those_of_a_scan(store, from_postings=False)
    assert record_of(store).layout == 1 and len(before) == 300
    store.add(*given_document("later", 1, 5))
    assert record_of(store).posted and record_of(store).layout == 2 and parts_of(store, "leaves")
    scores_are_those_of_a_scan(store)


def test_compaction_makes_postings_and_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(postings, "LOOSE", 10_000)
        store = filled(tmp_path, 30, exact_nodes=50)
    store.compact()
    bounds = parts_of(store, "leaves")
    assert bounds
    monkeypatch.setattr(lance, "_KEEP", 0.0)
    store.compact()
    assert parts_of(store, "leaves") == bounds
    scores_are_those_of_a_scan(store)
    assert store.damage() == []


def test_a_change_by_an_older_version_that_does_not_note_it_makes_postings_count_no_more(tmp_path: Path) -> None:
    """Such a process had opened the index before it got postings: it writes no tokens of ours, and no stale nodes."""
    store = filled(tmp_path, 30, exact_nodes=50)
    change = begun(store)
    change.posted = False
    rows.drop_documents(change, ["3 topic3"])
    record = tables.replace(
        record_of(store),
        number=change.record.number + 1,
        version=change.record.version + 1,
        versions={**change.record.versions, **change._tips},
        counts={**change.record.counts, **change.counts},
        seals={**change.record.seals, **change.seals},
        token="0123",
    )
    store._tables.commit(record)
    scores_are_those_of_a_scan(store, from_postings=False)
    assert len(store.lexical("sentence")) == 290
    store.add(*given_document("later", 1, 5))
    scores_are_those_of_a_scan(store)
    assert store.damage() == []


def test_an_index_of_a_later_layout_is_one_line_for_those_who_have_it_open_too(tmp_path: Path) -> None:
    store = filled(tmp_path, 3)
    record = record_of(store)
    store._tables.commit(tables.replace(record, number=record.number + 1, layout=3))
    for ask in (lambda: store.lexical("topic3"), lambda: lance.Engine(tmp_path / "index")):
        with pytest.raises(BadInput, match="an index of layout 3, and this version reads 2"):
            ask()


def test_a_killed_maker_of_postings_leaves_nothing_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(postings, "LOOSE", 10_000)
        store = filled(tmp_path, 30, exact_nodes=50)
    killed = begun(store)
    assert postings.extend(killed), "there is more to make"
    assert killed.counts["postings"] and not record_of(store).posted
    store.delete("3 topic3")  # makes its own postings
    with pytest.raises(tables.Lost):
        killed.commit()
    scores_are_those_of_a_scan(store)
    store.add_many([given_document(f"new{id}", 10, 100 + id) for id in range(2)])
    stopped = begun(store)
    rows.drop_documents(stopped, ["4 topic4"])
    stopped._note_gone()  # and never commits
    assert store.delete("5 topic5")
    scores_are_those_of_a_scan(store)
    assert store.damage() == [] and len(store.lexical("sentence")) == 300


def changed_by_another_program(store: lance.Engine, name: str, change: Any) -> None:
    """Change a table, and name its new version in the record."""
    table = store._tables.latest(name)
    change(table)
    record = record_of(store)
    versions = {**record.versions, name: int(table.version)}
    record = tables.replace(record, number=record.number + 1, version=record.version + 1, versions=versions)
    store._tables.commit(record)


@pytest.mark.parametrize(
    ("name", "change", "asked"),
    [
        ("postings", lambda table: table.update(where="term = 'topic3'", values={"nodes": b"\0\1\0\2"}), True),
        ("postings", lambda table: table.update(where="term = 'topic3'", values={"first": 9999}), True),
        ("postings", lambda table: table.delete("term = 'topic3'"), False),
        ("parts", lambda table: table.delete("first = 1"), True),
        ("parts", lambda table: table.update(where="first = 1", values={"words": bytes(256)}), True),
        ("stale", lambda table: table.delete("seal >= 0"), True),
        ("stale", lambda table: table.update(where="seal >= 0", values={"ids": bytes(8)}), True),
    ],
)
def test_damaged_postings_are_found(tmp_path: Path, name: str, change: Any, asked: bool) -> None:
    store = filled(tmp_path, 30, exact_nodes=50)
    store.delete("4 topic4")
    assert store.damage() == []
    changed_by_another_program(store, name, change)
    assert store.damage()
    assert all("damaged (" in line and "\n" not in line for line in store.damage())
    if asked:
        with pytest.raises(BadInput, match="damaged"):
            store.lexical("topic3")


def test_a_missing_row_of_a_loose_node_is_found_by_a_question(tmp_path: Path) -> None:
    store = filled(tmp_path, 30, exact_nodes=50)
    store.add(*given_document("later", 2, 5))
    last = int(store.view().ids[: store.view().leaves].max())
    changed_by_another_program(store, "leaves", lambda table: table.delete(f"id = {last}"))
    with pytest.raises(BadInput, match="rows of the table leaves are missing"):
        store.lexical("sentence")


def test_leaves_are_found_where_the_rows_of_a_table_are_in_another_order(tmp_path: Path) -> None:
    store = filled(tmp_path, 12, exact_nodes=50)
    search = Search("topic3", vector(3004), 5, 2000, 2)
    before, texts = store.candidates(search), store.get([30, 4, 9999, 17])

    def turned(table: Any) -> None:
        whole = table.to_arrow()
        table.delete("id >= 0")
        table.add(whole.take(list(reversed(range(whole.num_rows)))))

    changed_by_another_program(store, "leaves", turned)
    after = store.candidates(search)
    assert before is not None and after is not None
    assert {*before.ids.tolist()} <= {*after.ids.tolist()}
    assert store.get([30, 4, 9999, 17]) == texts and [node.id for node in texts] == [30, 4, 17]
