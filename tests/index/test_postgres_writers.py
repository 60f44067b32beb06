"""Several processes write one index in PostgreSQL at once, and a large index is searched by candidates."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest
from tests.index.library import COUNTER
from tests.index.test_store import DIMENSION, given_document, vector
from tests.index.test_store_contract import server  # noqa: F401

from prunus.core.errors import BadInput
from prunus.index.nodes import IndexedDocument, Leaf, NodeSearch, Parent, version_of
from prunus.index.retrieve import Retriever

pytestmark = pytest.mark.full

WRITER = textwrap.dedent("""
    import sys
    from prunus.index.store.postgres.engine import Engine
    from tests.index.test_store import given_document

    address, schema, name, count = sys.argv[1:]
    store = Engine(address, "tiny", 4, create=True, schema=schema)
    for number in range(int(count)):
        batch = [given_document(f"{name} {number} {part}", 3, number) for part in range(2)]
        batch.append(given_document(f"both {number}", 2, number))
        store.add_many(batch)
        print(number, flush=True)
    store.close()
    """)


def writer(address: str, schema: str, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, address, schema, name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def opened(address: str, schema: str = "", **others: Any) -> Any:
    from prunus.index.store.postgres.engine import Engine

    return Engine(address, schema=schema or fresh(), **others)


def fresh() -> str:
    return f"test_{random.Random().randrange(10**12)}"


def whole(store: Any) -> list[str]:
    """Check that every document has all its leaves, once; return the ids of the documents."""
    ids = [document.id for document in store.documents()]
    view = store.view()
    leaves = [f"{node.document}/{node.position}" for node in store.get(view.ids.tolist())]
    wanted = [f"{id}/{place}" for id in ids for place in range(2 if id.startswith("both") else 3)]
    assert sorted(leaves) == sorted(wanted) and len(set(ids)) == len(ids)
    assert store.damage() == []
    return ids


def test_two_processes_add_at_once_and_nothing_is_lost_or_doubled(server: str) -> None:  # noqa: F811
    schema = fresh()
    writers = [writer(server, schema, name, 15) for name in ("a", "b")]  # both may make the index
    for process in writers:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    store = opened(server, schema)
    own = {f"{name} {number} {part}" for name in "ab" for number in range(15) for part in range(2)}
    assert {*whole(store)} == own | {f"both {number}" for number in range(15)}
    store.close()


def test_a_writer_that_is_killed_leaves_a_whole_state_and_the_other_goes_on(server: str) -> None:  # noqa: F811
    schema = fresh()
    killed, other = writer(server, schema, "killed", 10_000), writer(server, schema, "other", 30)
    assert killed.stdout is not None
    acknowledged = [int(killed.stdout.readline()) for _ in range(5)]
    time.sleep(random.Random().uniform(0, 0.02))  # anywhere in the middle of a change
    killed.send_signal(signal.SIGKILL)
    rest, _ = killed.communicate(timeout=60)
    acknowledged += [int(line) for line in rest.splitlines()]
    _, errors = other.communicate(timeout=120)
    assert other.returncode == 0, errors
    store = opened(server, schema)
    ids = {*whole(store)}
    assert {f"other {number} {part}" for number in range(30) for part in range(2)} <= ids
    assert {f"killed {number} {part}" for number in acknowledged for part in range(2)} <= ids
    parts = [id for id in ids if id.startswith("killed")]
    assert len(parts) in (2 * len(acknowledged), 2 * len(acknowledged) + 2)  # a batch is there or is not
    store.close()


class Drawn:
    """An embedder whose vectors are drawn by the letters of a text."""

    identity, dimension = "drawn", 16

    def embed(self, texts: Any, kind: str = "document") -> Any:
        found = np.stack([np.random.default_rng([*text.encode()]).normal(size=self.dimension) for text in texts])
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def large(address: str, documents: int = 60, leaves: int = 40) -> Any:
    """Return an index of made texts with a layer of summaries."""
    draw = random.Random(5)
    words = [f"word{number}" for number in range(300)]
    store = opened(address, embedder=Drawn.identity, dimension=Drawn.dimension, create=True)
    batch = []
    for number in range(documents):
        texts = [" ".join(draw.choices(words, k=draw.randint(5, 30))) for _ in range(leaves)]
        found = [Leaf(0, len(text), text, len(text.split()), (f"Heading {number}",)) for text in texts]
        batch.append((IndexedDocument(f"d{number}", " ".join(texts), language="en"), found, Drawn().embed(texts)))
    store.add_many(batch)
    ids = store.view().ids.tolist()
    texts = [f"summary of {words[number]} and {words[-number]}" for number in range(len(ids) // 8)]
    parents = [Parent(tuple(ids[8 * at : 8 * at + 8]), 1, text=text, tokens=5) for at, text in enumerate(texts)]
    own = Drawn().embed(texts)
    store.replace_tree(parents, own, own)
    store.prepare()
    return store


def test_a_large_index_finds_what_a_scan_finds(server: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from prunus.index.store.postgres import search

    monkeypatch.setattr(search, "LARGE", 1000)
    store = large(server)
    view, embedder = store.view(), Drawn()
    query = "What is word7 about, word8 and word9 under heading 3?"
    asked = embedder.embed([query])[0]
    cosines = dict(zip(view.ids.tolist(), view.similarities(asked).tolist(), strict=True))
    words = store.lexical(query) | store.lexical(query, "summaries")
    found = store.candidates(NodeSearch(query, asked, 100, 2000, 12, summaries=True))
    ids = found.ids.tolist()
    assert found.cosine == pytest.approx([cosines[id] for id in ids], abs=1e-5)
    assert found.bm25 == pytest.approx([words.get(id, 0.0) for id in ids], abs=1e-9)
    leaves = view.ids[: view.leaves].tolist()
    assert {*sorted(leaves, key=lambda id: -words.get(id, 0.0))[:10]} <= {*ids}
    nearest = {*sorted(leaves, key=lambda id: -cosines[id])[:100]}
    assert len(nearest & {*ids}) >= 95
    assert version_of(store) == view.version
    scores = [words.get(id, 0.0) for id in leaves]
    assert found.leaves.bm25 == pytest.approx((np.mean(scores), np.std(scores)), rel=0.3)
    exact_cosines = [cosines[id] for id in leaves]
    assert found.leaves.cosine == pytest.approx((np.mean(exact_cosines), np.std(exact_cosines)), abs=0.02)
    places = {id: place for place, id in enumerate(view.ids.tolist())}
    assert [places[id] for id in ids] == sorted(places[id] for id in ids)  # in the order of the view
    assert set(found.siblings[found.layer == 0].tolist()) == {40} and (found.layer == 1).sum() >= 100
    for only in ((), ("d3", "d4")):
        ranked = [
            Retriever(store, embedder, COUNTER, exact=exact).hybrid(query, 800, documents=only, broad=False).nodes
            for exact in (True, False)
        ]
        first, second = ({node.id for node in nodes} for nodes in ranked)
        assert first and len(first & second) >= 0.9 * len(first), only
        assert not only or {node.document for node in ranked[1]} <= {*only}
    with pytest.raises(BadInput, match="there is no document 'x'"):
        store.candidates(NodeSearch(query, asked, 100, 2000, 12, documents=("x",)))
    store.close()


def test_an_index_gets_its_vectors_indexed_when_it_becomes_large(
    server: str, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    from prunus.index.store.postgres import search

    def indexes() -> int:
        with store._connected() as connection:
            query = "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE '%_near_%'"
            return int(connection.execute(query).fetchone()[0])

    monkeypatch.setattr(search, "LARGE", 12)
    store = opened(server, embedder="tiny", dimension=DIMENSION, create=True)
    wanted = NodeSearch("says", vector(1), 5, 100, 1)
    store.add(*given_document("a", 11))
    store.prepare()
    assert store.candidates(wanted) is None and not indexes()
    store.add(*given_document("b", 1))
    store.prepare()
    assert indexes() == 2 and len(store.candidates(wanted).ids) >= 5
    store.add(*given_document("c", 3, seed=7))
    store.prepare()
    nearest = store.candidates(NodeSearch("nothing", vector(7000), 1, 100, 1)).ids.tolist()
    assert any(node.document == "c" for node in store.get(nearest)), "later vectors are in the index, too"
    store.delete("a")
    assert store.candidates(wanted) is None, "it is small again"
    store.close()


def test_a_pgvector_without_half_precision_searches_exactly(
    server: str, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    import psycopg

    from prunus.index.store.postgres import search

    monkeypatch.setattr(search, "LARGE", 12)
    address = server.replace("/postgres?", "/older?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE older")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("ALTER TYPE halfvec RENAME TO unknown_to_older_versions")
    store = opened(address, embedder="tiny", dimension=DIMENSION, create=True)
    store.add_many([given_document("a", 30, 1), given_document("b", 30, 2)])
    store.prepare()
    view = store.view()
    found = store.candidates(NodeSearch("nothing", vector(2003), 5, 100, 1))
    best = view.ids[np.argsort(-view.similarities(vector(2003)))[:5]].tolist()
    assert {*best} <= {*found.ids.tolist()}
    store.close()
