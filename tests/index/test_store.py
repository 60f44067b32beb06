"""The file store: transactional, durable, bounded, one writer and many readers."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from prunus.core.errors import BadInput, OutsideFailed
from prunus.index.nodes import IndexedDocument, Leaf, Parent
from prunus.index.store.file import engine as room
from prunus.index.store.file.database import Database
from prunus.index.store.file.engine import Engine

DIMENSION = 4


def store_in(folder: Path, **others: object) -> Engine:
    return Engine(folder / "index", "tiny", DIMENSION, create=True, **others)  # type: ignore[arg-type]


def vector(seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return values / np.linalg.norm(values)


def given_document(id: str, leaves: int = 2, seed: int = 0) -> tuple[IndexedDocument, list[Leaf], np.ndarray]:
    texts = [f"{id} says sentence number {place}." for place in range(leaves)]
    text = " ".join(texts)
    found, start = [], 0
    for sentence in texts:
        found.append(Leaf(start, start + len(sentence), sentence, 6, ("Heading",)))
        start += len(sentence) + 1
    vectors = np.stack([vector(seed * 1000 + place) for place in range(leaves)]) if leaves else np.zeros((0, DIMENSION))
    return IndexedDocument(id, text, title=f"Title of {id}", language="en"), found, vectors.astype(np.float32)


def test_a_question_of_any_length_is_no_trouble(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.add(*given_document("a"))
    assert len(store.lexical("sentence " + " ".join(f"word{i}" for i in range(20_000)))) == 2


def test_the_matrix_stays_bounded_and_keeps_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_DEAD_ROWS", 8)
    store = store_in(tmp_path)
    old = None
    for turn in range(60):
        store.add(*given_document(f"d{turn % 4}", 3, turn))
        old = old or store.view()
    assert sum(path.stat().st_size for path in store.folder.glob("vectors.*")) <= 48 * DIMENSION * 4
    assert len(list(store.folder.glob("vectors.*"))) == 1
    view = store.view()
    wanted = np.concatenate([given_document("", 3, turn)[2] for turn in range(56, 60)])
    assert np.array_equal(view.matrix[view.row], wanted)
    assert np.array_equal(old.matrix[old.row], given_document("", 3, 0)[2])  # who read before still can
    store.compact()
    assert np.array_equal(store.view().matrix, wanted)


# --- bad input -----------------------------------------------------------------------------------


def test_a_folder_without_an_index_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no index"):
        Engine(tmp_path)
    with pytest.raises(BadInput, match="there is no index"):
        Engine(tmp_path / "missing")
    with pytest.raises(BadInput, match="needs an embedder"):
        Engine(tmp_path / "new", create=True)


def test_another_embedder_or_dimension_is_refused(tmp_path: Path) -> None:
    store_in(tmp_path)
    for embedder, dimension in (("other", DIMENSION), ("tiny", 5)):
        with pytest.raises(BadInput, match="its vectors are of tiny"):
            Engine(tmp_path / "index", embedder, dimension)


def test_another_layout_and_files_that_are_no_index_are_refused(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with sqlite3.connect(store.folder / "index.sqlite3") as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(BadInput, match="layout 99"):
        Engine(store.folder)
    for name, content in (("noise", b"no database at all" * 100), ("other", b"")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "index.sqlite3").write_bytes(content)
        with pytest.raises(BadInput, match="index"):
            Engine(folder)


def test_a_full_disk_leaves_the_index_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(tmp_path)
    store.add(*given_document("a"))

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutsideFailed, match="No space left"):
            store.add(*given_document("b"))
    assert [document.id for document in store.documents()] == ["a"]
    store.add(*given_document("c"))
    assert [document.id for document in Engine(store.folder).documents()] == ["a", "c"]


def test_a_damaged_matrix_is_named(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.add(*given_document("a"))
    next(store.folder.glob("vectors.*")).write_bytes(b"")
    with pytest.raises(BadInput, match="damaged"):
        Engine(store.folder).view()


def test_a_change_never_seals_damage_as_if_it_were_whole(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.add_many([given_document("a"), given_document("b")])
    with sqlite3.connect(store.folder / "index.sqlite3") as file:
        file.execute("DELETE FROM leaf_terms_docsize WHERE id = 1")
    file.close()
    with pytest.raises(BadInput, match="full text"):
        Engine(store.folder).add(*given_document("c"))
    again = Engine(store.folder)
    assert [document.id for document in again.documents()] == ["a", "b"]
    with pytest.raises(BadInput, match="full text"):
        again.lexical("says")


def test_an_index_on_a_disk_that_can_only_be_read_is_read_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_in(tmp_path)
    store.add(*given_document("a"))
    before = {path.name: path.read_bytes() for path in store.folder.iterdir()}
    connect = sqlite3.connect

    def without_writing(path: str, **others: object) -> sqlite3.Connection:
        """As on such a disk: SQLite cannot make the files that reading along with a writer needs."""
        if "immutable" not in str(path):
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return connect(path, **others)  # type: ignore[call-overload, no-any-return]

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        reading = Engine(store.folder)
        assert [document.id for document in reading.documents()] == ["a"]
        with pytest.raises(OutsideFailed, match="read-only"):
            reading.add(*given_document("b"))
        patch.setattr(sqlite3, "connect", without_writing)
        assert Engine(store.folder).document("a").text
        left = store.folder / "index.sqlite3-wal"
        left.write_bytes(b"of a writer that was killed")
        with pytest.raises(OutsideFailed, match="unable to open"):
            Engine(store.folder)
        left.unlink()
    assert len(store.lexical("says")) == 2
    assert {path.name for path in store.folder.iterdir()} == set(before)


# --- writers and readers -------------------------------------------------------------------------


def test_two_writers_wait_for_each_other_and_nothing_is_lost(tmp_path: Path) -> None:
    store_in(tmp_path)
    stores = [Engine(tmp_path / "index") for _ in range(3)]

    def work(number: int) -> None:
        for turn in range(10):
            stores[number].add(*given_document(f"{number}-{turn}", 2, number * 10 + turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(tmp_path / "index", {f"{number}-{turn}" for number in range(3) for turn in range(10)})


def test_a_writer_that_waits_too_long_says_who_is_in_the_way(tmp_path: Path) -> None:
    store = store_in(tmp_path, wait=0.1)
    with sqlite3.connect(store.folder / "index.sqlite3", isolation_level=None) as file:
        file.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutsideFailed, match="another process has been writing"):
            store.add(*given_document("a"))
        assert store.view().leaves == 0  # a reader does not wait
        file.execute("ROLLBACK")
    file.close()


def check(folder: Path, acknowledged: set[str]) -> None:
    """Every acknowledged document is there, whole, with its own vectors; nothing is there in part."""
    store = Engine(folder)
    view = store.view()
    assert acknowledged <= set(view.names)
    by_document: dict[str, int] = {}
    for node, row in zip(store.get(view.ids.tolist()), view.row, strict=True):
        if node.layer == 0:
            by_document[node.document] = by_document.get(node.document, 0) + 1
            number, turn = node.document.split("-")
            wanted = vector((int(number) * 10 + int(turn)) * 1000 + node.position)
            assert np.array_equal(view.matrix[row], wanted)
    assert all(by_document[name] == 2 for name in view.names)
    assert len(store.lexical("says")) == view.leaves


WRITER = """
import sys
from pathlib import Path
from tests.index.test_store import given_document
from prunus.index.store.file import engine as file
file._DEAD_ROWS = 8
store = file.Engine(sys.argv[1])
print("ready", flush=True)
for turn in range(100000):
    store.add(*given_document(f"{turn % 5}-{turn % 10}", 2, turn % 5 * 10 + turn % 10))
    print(f"{turn % 5}-{turn % 10}", flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_an_index_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """The writer adds, replaces and compacts without pause; each kill comes at another moment."""
    store_in(tmp_path)
    draw = random.Random(5)
    acknowledged: set[str] = set()
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "index")], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0.0, 0.12))
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read()
        process.stdout.close()
        process.wait()
        acknowledged |= set(said.split("\n")[:-1])
        check(tmp_path / "index", acknowledged)
    assert acknowledged


# --- a model of it -------------------------------------------------------------------------------


class Model(RuleBasedStateMachine):
    """Any order of changes leaves what a dictionary would hold."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.store = store_in(Path(self.folder.name))
        self.known: dict[str, tuple[int, int]] = {}

    @rule(id=st.sampled_from("abcd"), leaves=st.integers(0, 3), seed=st.integers(0, 9))
    def add(self, id: str, leaves: int, seed: int) -> None:
        self.store.add(*given_document(id, leaves, seed))
        self.known.pop(id, None)
        self.known[id] = (leaves, seed)

    @rule(id=st.sampled_from("abcd"))
    def delete(self, id: str) -> None:
        assert self.store.delete(id) == (self.known.pop(id, None) is not None)

    @rule()
    def compact(self) -> None:
        self.store.compact()

    @precondition(lambda self: any(leaves for leaves, _ in self.known.values()))
    @rule()
    def grow(self) -> None:
        leaf = self.store.view().ids[: self.store.view().leaves].tolist()
        half = len(leaf) // 2
        groups = [part for part in (leaf[:half], leaf[half:]) if part]
        parents = [Parent(tuple(group), 1, text="a summary", tokens=2) for group in groups]
        vectors = np.stack([vector(seed) for seed in range(len(groups))])
        self.store.replace_tree(parents, vectors, vectors)

    @invariant()
    def holds_the_same(self) -> None:
        view = Engine(self.store.folder).view()
        assert list(view.names) == list(self.known)
        parts = [given_document(id, leaves, seed)[2] for id, (leaves, seed) in self.known.items() if leaves]
        wanted = np.concatenate(parts) if parts else np.zeros((0, DIMENSION))
        assert np.array_equal(view.matrix[view.row[: view.leaves]], wanted)
        edges = self.store.edges()
        assert {child for children in edges.values() for child in children} <= set(view.ids.tolist())
        assert set(edges) == set(view.ids[view.leaves :].tolist())

    def teardown(self) -> None:
        self.folder.cleanup()


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=15, stateful_step_count=10, deadline=None)


class Between:
    """A connection; after the first look through it, another process makes the index."""

    def __init__(self, file: sqlite3.Connection, database: Database) -> None:
        self.file, self.database, self.looks = file, database, 0

    def execute(self, statement: str) -> sqlite3.Cursor:
        found = self.file.execute(statement)
        rows = found.fetchall()
        if not self.looks:
            self.database.create({})
        self.looks += 1
        return self.file.execute("VALUES (?)", rows[0])


def test_an_index_that_another_process_makes_just_now_is_one(tmp_path: Path) -> None:
    database = Database(tmp_path, 5)
    with closing(sqlite3.connect(database.path, isolation_level=None)) as file:
        database._check(cast("sqlite3.Connection", Between(file, database)))
        database._check(file)
