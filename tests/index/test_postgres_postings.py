"""Postings in PostgreSQL: BM25 is that of the file store at any moment, whatever has postings and whatever has not."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.index.test_postgres_writers import fresh, opened
from tests.index.test_store import DIMENSION, store_in, vector
from tests.index.test_store_contract import server  # noqa: F401

from prunus.index.nodes import IndexedDocument, Leaf, Parent, Search

pytestmark = pytest.mark.full

WORDS = [f"word{number}" for number in range(40)]
QUERY = "word1 word2 word3 word3 word39 heading unknown"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from prunus.index.store import _postings
    from prunus.index.store.postgres import near

    monkeypatch.setattr(near, "LARGE", 30)
    monkeypatch.setattr(_postings, "FEWEST", 10)
    monkeypatch.setattr(_postings, "WIDTH", 32)


@pytest.fixture
def store(server: str) -> Iterator[Any]:  # noqa: F811
    made = opened(server, embedder="tiny", dimension=DIMENSION, create=True)
    yield made
    made.close()


def text_of(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, weights=range(len(WORDS), 0, -1), k=draw.randint(1, 12)))


def drawn_document(draw: random.Random, id: str) -> tuple[IndexedDocument, list[Leaf], Any]:
    texts = [text_of(draw) for _ in range(draw.randint(1, 12))]
    above = (f"Heading {draw.choice(WORDS)}",)
    leaves = [Leaf(0, len(text), text, len(text.split()), above) for text in texts]
    return IndexedDocument(id, " ".join(texts)), leaves, np.stack([vector(draw.randrange(99)) for _ in texts])


def scores(store: Any, kind: str) -> dict[tuple[str, int, str], float]:
    """Return the scores by what both stores know of a node."""
    found = store.lexical(QUERY, kind)
    nodes = {node.id: (node.document, node.place, node.text) for node in store.get([*found])}
    assert len(nodes) == len(found)
    return {nodes[id]: score for id, score in found.items()}


def same(store: Any, beside: Any) -> None:
    for kind in ("leaves", "summaries"):
        assert scores(store, kind) == pytest.approx(scores(beside, kind), rel=1e-6), kind


def whole(store: Any) -> None:
    """Check the candidates of a question against all nodes."""
    found = store.candidates(Search(QUERY, vector(1), 8, 100, 2))
    if found is None:
        return
    view = store.view()
    order = {id: place for place, id in enumerate(view.ids.tolist())}
    places = [order[id] for id in found.ids.tolist()]
    assert places == sorted(places)
    size = np.bincount(view.document[: view.leaves])
    assert found.siblings.tolist() == size[view.document[places]].tolist()
    scores = store.lexical(QUERY)
    assert found.bm25 == pytest.approx([scores.get(id, 0.0) for id in found.ids.tolist()])
    assert found.leaves.bm25[0] == pytest.approx(sum(scores.values()) / view.leaves)
    best = [order[id] for id in sorted(scores, key=lambda id: -scores[id])[:4]]
    for place in best:
        near = [
            at for at in (place - 1, place + 1) if 0 <= at < view.leaves and view.document[at] == view.document[place]
        ]
        assert {*near} <= {*places}


def tree(draw: random.Random, store: Any) -> None:
    """Give a store a layer of parents, some of them without a summary."""
    leaves = store.view().ids[: store.view().leaves].tolist()
    groups = [tuple(leaves[at : at + 4]) for at in range(0, len(leaves), 4)]
    texts = [draw.choice(["", text_of(draw) + f" number{place}"]) for place in range(len(groups))]
    parents = [Parent(group, 1, text=text, tokens=5) for group, text in zip(groups, texts, strict=True)]
    means = np.stack([vector(draw.randrange(99)) for _ in groups])
    store.replace_tree(parents, means, means[[bool(text) for text in texts]])


def summaries(draw: random.Random, store: Any) -> None:
    rows = [(node, text_of(draw) + f" number{place}", 7) for place, (_, node) in enumerate(store.unsummarised()[:3])]
    store.put_summaries(rows, np.stack([vector(number) for number in range(len(rows))]) if rows else np.zeros((0, 4)))


def parts(store: Any) -> list[Any]:
    from prunus.index.store.postgres import postings

    with store._reading() as cursor:
        return postings.parts(cursor)


def noted(store: Any) -> int:
    with store._reading() as cursor:
        return int(cursor.execute("SELECT count(*) FROM posting_stale").fetchone()[0])


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_those_of_the_file_store_at_any_moment(store: Any, tmp_path: Path, seed: int) -> None:
    draw, beside = random.Random(seed), store_in(tmp_path)
    known: list[str] = []
    most = 0
    for step in range(40):
        what = draw.choice(["add", "add", "add", "replace", "delete", "tree", "summaries", "prepare", "prepare"])
        what = what if step > 8 else "add"
        if what == "prepare":
            store.prepare()
        for each in (store, beside):
            choice = random.Random(f"{seed} {step}")
            if what == "add" or not known:
                each.add(*drawn_document(choice, f"d{step}"))
            elif what == "replace":
                each.add(*drawn_document(choice, choice.choice(known)))
            elif what == "delete":
                each.delete(choice.choice(known))
            elif what == "tree":
                tree(choice, each)
            elif what == "summaries":
                summaries(choice, each)
        known = [document.id for document in beside.documents()]
        most = max(most, len(parts(store)))
        same(store, beside)
        whole(store)
    assert most >= 2, "otherwise nothing was tried"


def test_few_parts_cover_all_nodes_and_forget_those_that_are_gone(store: Any) -> None:
    draw = random.Random(1)
    for number in range(30):
        store.add(*drawn_document(draw, f"d{number}"))
        store.prepare()
    found = parts(store)
    nodes = store.view().ids.tolist()
    assert all(one.after <= two.first for one, two in itertools.pairwise(found))
    assert sum(part.after > node >= part.first for part in found for node in nodes) > len(nodes) - 10
    assert len(found) <= len(nodes) // 32 + 3 and all(part.after - part.first <= 32 for part in found)
    store.delete_many([f"d{number}" for number in range(20)])
    assert noted(store) > 10
    store.prepare()
    left = parts(store)
    assert len(left) < len(found) and noted(store) < 10 * len(left)
    store.prepare()
    assert parts(store) == left, "there is nothing to do"


def test_what_another_process_changes_while_postings_are_made_is_noted(
    store: Any, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    from prunus.index.store.postgres import postings

    draw, beside, replace = random.Random(2), store_in(tmp_path), postings._replace
    documents = [drawn_document(draw, f"d{number}") for number in range(12)]
    changed = drawn_document(draw, "d3")
    for each in (store, beside):
        each.add_many(documents)
        tree(random.Random(3), each)
    store.prepare()
    other = opened(server, store.place.partition(":")[2])

    def meanwhile(*arguments: Any) -> None:
        """Make them from a state that is old already."""
        for each in (other, beside):
            if "d5" in [document.id for document in each.documents()]:
                each.delete("d5")
                each.add(*changed)
                summaries(random.Random(4), each)
        replace(*arguments)

    monkeypatch.setattr(postings, "_replace", meanwhile)
    for each in (store, beside):
        each.add_many([drawn_document(random.Random(number), f"e{number}") for number in range(9)])
    same(store, beside)
    before = parts(store)
    store.prepare()
    assert parts(store) != before and noted(store)
    same(store, beside)
    other.close()


def test_a_user_who_may_not_read_postings_gets_the_same_scores(store: Any, server: str) -> None:  # noqa: F811
    """Rights on the tables may be older than the postings; a writer's deletions are noted all the same."""
    draw = random.Random(5)
    store.add_many([drawn_document(draw, f"d{number}") for number in range(12)])
    schema, role = store.place.partition(":")[2], fresh()
    with store._connected() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}")
    store.prepare()
    assert parts(store)
    other = opened(server.replace("postgres:@", f"{role}:@"), schema)
    assert not parts(other) and other.lexical(QUERY) == pytest.approx(store.lexical(QUERY))
    other.delete("d1")
    other.add(*drawn_document(draw, "d2"))
    assert other.lexical(QUERY) == pytest.approx(store.lexical(QUERY))
    found = [each.candidates(Search(QUERY, vector(1), 20, 100, 2)) for each in (store, other)]
    assert found[0].ids.tolist() == found[1].ids.tolist() and found[0].bm25 == pytest.approx(found[1].bm25)
    other.close()
