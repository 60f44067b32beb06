"""The store in Lance: kills, overtaken writers, old versions, damage, object storage, and the command line."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.command import Cli, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need
from tests.index.library import SUBJECTS, page
from tests.index.test_store import DIMENSION, given_document, vector
from tests.s3_server import SECRET, Server, s3  # noqa: F401

import prunus
from prunus import BadInput, Index, OutsideFailed
from prunus.core.errors import PrunusError
from prunus.index.nodes import NodeSearch, Parent, read_note
from prunus.index.store.lance import engine as lance
from prunus.index.store.lance import rows, table

pytestmark = pytest.mark.full

QUESTION = "Where do passengers of the night train sleep?"


@pytest.fixture(autouse=True)
def _package() -> None:
    need("lance")


def store_in(folder: Path, **others: Any) -> lance.Engine:
    return lance.Engine(folder / "index", "tiny", DIMENSION, create=True, **others)


# --- writers -------------------------------------------------------------------------------------


def test_of_two_writers_the_slower_one_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = store_in(tmp_path), store_in(tmp_path)
    commit, turns = table.LanceTable.commit, []

    def slow(self: table.LanceTable, *arguments: Any) -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            other.add(*given_document("fast"))
        commit(self, *arguments)

    monkeypatch.setattr(table.LanceTable, "commit", slow)
    store.add(*given_document("slow"))
    assert len(turns) == 3, "the slow one twice"
    assert {document.id for document in other.documents()} == {"fast", "slow"} and other.view().leaves == 4


def test_a_writer_without_a_chance_is_told_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(*_: Any) -> None:
        raise table.Overtaken

    store = store_in(tmp_path, wait=0.3)
    monkeypatch.setattr(table.LanceTable, "commit", overtaken)
    with pytest.raises(OutsideFailed, match="have been writing for too long"):
        store.add(*given_document("a"))


WRITER = """
import sys
from tests.index.test_store import given_document
from prunus.index.store.lance import engine as lance
lance._COMMITS, lance._KEEP = 6, 0.0
store = lance.Engine(sys.argv[1])
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
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "index")], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0.0, 1.0))
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read()
        process.stdout.close()
        process.wait()
        acknowledged |= set(said.split("\n")[:-1])
        check(tmp_path / "index", acknowledged)
    assert acknowledged


def check(folder: Path, acknowledged: set[str]) -> None:
    """Every acknowledged document is there, whole, with its own vectors; nothing is there in part."""
    store = lance.Engine(folder)
    view = store.view()
    assert acknowledged <= set(view.names)
    for node, row in zip(store.get(view.ids.tolist()), view.row, strict=True):
        number, turn = node.document.split("-")
        assert np.array_equal(view.matrix[row], vector((int(number) * 10 + int(turn)) * 1000 + node.position))
    assert np.bincount(view.document, minlength=len(view.names)).tolist() == [2] * len(view.names)
    assert len(store.lexical("says")) == view.leaves and store.damage() == []


# --- old versions --------------------------------------------------------------------------------


def test_compaction_frees_space_and_changes_nothing_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_KEPT", timedelta(0))
    store = store_in(tmp_path)
    for turn in range(12):
        store.add(*given_document(str(turn % 3), 2, turn))
    before, known = store.size(), store.view()
    other = lance.Engine(tmp_path / "index")
    store.compact()
    assert store.size() < before / 2
    for opened in (other, lance.Engine(tmp_path / "index")):
        view = opened.view()
        assert view.version == known.version and np.array_equal(view.ids, known.ids)
        assert np.array_equal(view.matrix[view.row], known.matrix[known.row])
        assert len(opened.get(view.ids.tolist())) == 6 and opened.damage() == []


def test_a_reader_keeps_its_state_while_others_write_and_compact(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.add(*given_document("a"))
    version = store._table.latest()
    for turn in range(4):
        store.add(*given_document("a", 1, turn))
    store.compact()
    assert store._table.read(version, ["id"], rows.LEAF).num_rows == 2


def test_tables_are_compacted_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "_COMPACTED", 5)
    monkeypatch.setattr(table, "_KEPT", timedelta(0))
    store = store_in(tmp_path)
    sizes = []
    for turn in range(20):
        store.add(*given_document(str(turn % 2), 2, turn))
        sizes.append(len(list((tmp_path / "index" / "data").iterdir())))
    assert max(sizes) <= 8 and store.view().leaves == 4


# --- large indexes -------------------------------------------------------------------------------


def filled(folder: Path, documents: int, **others: Any) -> lance.Engine:
    """An index of documents with 10 leaves each, and a summary of every two documents."""
    store = store_in(folder, **others)
    store.add_many([given_document(f"{id} topic{id % 7}", 10, id) for id in range(documents)])
    leaf = store.view().ids.tolist()
    parents = [Parent(tuple(leaf[at : at + 20]), 1, text=f"about {at}", tokens=2) for at in range(0, len(leaf), 20)]
    means = np.stack([vector(7_000_000 + at) for at in range(len(parents))])
    store.replace_tree(parents, means, means)
    return store


def test_what_a_search_finds_has_the_scores_of_the_whole_view(tmp_path: Path) -> None:
    store = filled(tmp_path, 12, exact_nodes=50)
    view, wanted = store.view(), vector(3004)
    search = NodeSearch("topic3 sentence about 20", wanted, 5, 2000, 2, summaries=True)
    found = store.candidates(search)
    assert found is not None and 10 < len(found.ids) < len(view.ids)
    at = {int(id): index for index, id in enumerate(view.ids)}
    places = [at[int(id)] for id in found.ids]
    assert places == sorted(places), "in the order of the view"
    assert found.cosine == pytest.approx(view.similarities(wanted)[places], abs=1e-6)
    words = {**store.lexical(search.query), **store.lexical(search.query, "summaries")}
    assert ((found.bm25 > 0) == [int(id) in words for id in found.ids]).all()
    best = view.ids[np.argsort(-view.similarities(wanted)[: view.leaves])[:5]]
    assert {*best.tolist()} <= {*found.ids.tolist()}
    leaf = found.layer == 0
    assert set(found.siblings[leaf]) == {10} and set(found.siblings[~leaf]) == {0}
    cosines = view.similarities(wanted)[: view.leaves]
    assert found.leaves.cosine == pytest.approx((cosines.mean(), cosines.std()), abs=1e-6)


def test_a_search_in_some_documents_finds_all_their_nodes_and_no_others(tmp_path: Path) -> None:
    store = filled(tmp_path, 12, exact_nodes=50)
    found = store.candidates(NodeSearch("topic3", vector(3004), 5, 2000, 2, documents=("3 topic3", "4 topic4")))
    assert found is not None
    assert {node.document for node in store.get(found.ids.tolist())} == {"3 topic3", "4 topic4"}
    assert len(found.ids) >= 10
    with pytest.raises(BadInput, match="there is no document 'x'"):
        store.candidates(NodeSearch("topic3", vector(3004), 5, 2000, 2, documents=("x",)))
    assert lance.Engine(tmp_path / "index").candidates(NodeSearch("topic3", vector(3004), 5, 2000, 2)) is None


def test_a_large_index_has_indexes_of_lance_and_finds_with_them_what_was_added_later_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance, "_INDEXED", 1000)
    store = filled(tmp_path, 130, exact_nodes=500)
    store.prepare()
    assert {"own_idx", "own_words_idx"} <= {index.name for index in store._table.latest().describe_indices()}
    store.add(*given_document("later topic9", 3, 999))
    view, hits = store.view(), 0
    for seed in range(20):
        wanted = vector(seed * 1000)
        found = store.candidates(NodeSearch("topic9", wanted, 20, 2000, 2))
        assert found is not None
        best = view.ids[np.argsort(-view.similarities(wanted)[: view.leaves])[:20]]
        hits += len({*best.tolist()} & {*found.ids.tolist()})
        assert {node.id for node in store.get(found.ids.tolist()) if node.document == "later topic9"}
    assert hits >= 0.9 * 20 * 20
    assert len(store.lexical("topic3 topic9")) == 193 and store.damage() == []


# --- damage and wrong places ---------------------------------------------------------------------


def everything(store: lance.Engine) -> object:
    """What an answer shows."""
    return [store.document(id) for id in ("a", "b")], store.get(range(1, 7))


def test_a_damaged_file_gives_what_was_there_or_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_KEPT", timedelta(0))
    store = store_in(tmp_path)
    store.add_many([given_document("a"), given_document("b", 3, 1)])
    leaf = store.view().ids.tolist()
    store.replace_tree([Parent(tuple(leaf), 1, text="a sum", tokens=2)], vector(1)[None], vector(2)[None])
    store.put_notes({"built": "x"})
    store.compact()
    whole, draw, lines = everything(store), random.Random(1), 0
    files = sorted(
        path for path in (tmp_path / "index").rglob("*") if path.is_file() and "_transactions" not in path.parts
    )
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        for turn in range(3):
            broken = bytearray(content)
            if turn:
                broken[draw.randrange(len(broken))] ^= 1 << draw.randrange(8)
            path.write_bytes(broken[: len(broken) if turn else len(broken) // 2])
            said = ""
            try:
                assert everything(lance.Engine(tmp_path / "index")) == whole, path
            except PrunusError as error:
                said = str(error)
            assert "\n" not in said and (not said or said.startswith(store.location)), said
            lines += bool(said)
        path.write_bytes(content)
    assert lines > 3 and everything(lance.Engine(tmp_path / "index")) == whole


def test_a_text_that_another_program_changed_is_found(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.add_many([given_document("a"), given_document("b")])
    store._table.latest().update({"text": "'other'"}, where="key = 'document a' or id = 3 and kind = 'node'")
    assert store.document("b").text and store.get([1, 2])
    with pytest.raises(BadInput, match=r"damaged \(document a\).*add it again"):
        store.document("a")
    with pytest.raises(BadInput, match="the text of node 3"):
        store.get([3])
    assert len(store.damage()) == 2


@pytest.mark.parametrize("record", ["[]", "{", "[" * 100_000, '{"n": ' + "9" * 5_000 + "}"])
@pytest.mark.parametrize("kind", ["about", "document", "note"])
def test_records_of_a_stranger_are_one_line(tmp_path: Path, kind: str, record: str) -> None:
    store = store_in(tmp_path)
    store.add_many([given_document("a")])
    store.put_notes({"built": "{}"})
    store._table.latest().update({"record": f"'{record}'"}, where=f"kind = '{kind}'")

    def use() -> None:
        again = lance.Engine(tmp_path / "index")
        again.documents()
        read_note(again, "built")

    with pytest.raises(BadInput, match="damaged") as caught:
        use()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dimension", [-1, 0, 10**12, '"3"'])
def test_a_dimension_that_the_vectors_do_not_have_is_one_line(tmp_path: Path, dimension: object) -> None:
    store_in(tmp_path)._table.latest().update(
        {"record": f"replace(record, '\"dimension\": {DIMENSION}', '\"dimension\": {dimension}')"},
        where="kind = 'about'",
    )
    with pytest.raises(BadInput, match="damaged"):
        lance.Engine(tmp_path / "index")


def test_wrong_places_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.txt").write_text("x", "utf-8")
    for place, reason in (
        ("other", "other files"),
        ("other/file.txt", "not a folder"),
        ("other/file.txt/x", "not a folder"),
    ):
        with pytest.raises((BadInput, OutsideFailed), match=reason) as caught:
            lance.Engine(tmp_path / place, "tiny", DIMENSION, create=True)
        assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["file.txt"]
    (tmp_path / "older" / "commits.lance").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"older layout.*build it again"):
        lance.Engine(tmp_path / "older")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="another user's folder can be written to")
def test_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    for path in [tmp_path / "index", *(tmp_path / "index").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert lance.Engine(tmp_path / "index").view().leaves == 0
    with pytest.raises(OutsideFailed, match="no permission"):
        store.add(*given_document("a"))


# --- object storage ------------------------------------------------------------------------------


@pytest.fixture
def bucket(s3: Server, monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: F811
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return s3.bucket(f"bucket-{random.Random().randrange(10**12)}")


def test_an_index_on_object_storage_is_built_changed_and_asked(bucket: str, tmp_path: Path) -> None:
    place = f"lance:s3://{bucket}/team/handbook"
    with pytest.raises(BadInput, match="there is no index"):
        Index.open(place, create=False)
    index = Index.open(place)
    index.add({subject: page(subject) for subject in SUBJECTS})
    assert index.location == place and index.add({"bees": page("bees")}).unchanged == ["bees"]
    beside = Index.open(tmp_path / "file")
    beside.add({subject: page(subject) for subject in SUBJECTS})
    again = Index.open(Path(place), create=False)
    for way in ("hybrid", "collapsed", "traversal", "flat"):
        found = [[(node.document, node.text) for node in opened.retrieved(QUESTION, 300, prunus.Retrieval(way)).nodes]
                 for opened in (again, beside)]  # fmt: skip
        assert found[0] == found[1] and found[0], way
    assert again.remove("trains") == ["trains"] and again.info()["documents"] == len(SUBJECTS) - 1
    index.store.compact()
    assert again.store.damage() == [] and again.store.size() > 0


def test_writers_on_object_storage_lose_nothing(bucket: str) -> None:
    stores = [lance.Engine(f"s3://{bucket}/x", "tiny", DIMENSION, create=True) for _ in range(2)]
    threads = [
        threading.Thread(target=store.add, args=given_document(f"{name} {turn}"))
        for name, store in enumerate(stores) for turn in range(4)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores[0].documents()) == 8 and stores[1].view().leaves == 16


def test_object_storage_that_fails_is_one_line_in_time_without_a_secret(
    bucket: str, s3: Server, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    with pytest.raises(OutsideFailed, match="no such bucket"):
        lance.Engine("s3://no-such-bucket/x", "tiny", DIMENSION, create=True)
    with pytest.raises(BadInput, match="write the address as"):
        lance.Engine(f"s3://{bucket}/x?key={SECRET}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    began = time.monotonic()
    with pytest.raises(OutsideFailed, match="does not answer") as caught:
        lance.Engine(f"s3://{bucket}/x", "tiny", DIMENSION, create=True, wait=3.0)
    assert time.monotonic() - began < 20
    assert SECRET not in str(caught.value) + repr(caught.value.__cause__) and "\n" not in str(caught.value)


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def documents(folder: Path) -> Iterator[Path]:
    (folder / "docs").mkdir()
    for subject in SUBJECTS:
        (folder / "docs" / f"{subject}.html").write_text(page(subject), "utf-8")
    return folder / "docs"


def test_commands_keep_indexes_in_the_place_of_the_settings(cli: Cli, folder: Path, documents: Path) -> None:  # noqa: F811
    (folder / "prunus.toml").write_text(f'store = "lance:{folder}/lake"\n', "utf-8")
    results = [cli("index", "add", "handbook", "docs")]
    assert results[0].exit_code == 0 and "5 added" in results[0].stderr, results[0].stderr
    (documents / "bees.html").unlink()
    results.append(cli("index", "sync", "handbook", "docs", "--json"))
    assert len(json.loads(results[-1].stdout)["removed"]) == 1
    results.append(cli("index", "info", f"lance:{folder}/lake/handbook", "--json"))
    assert json.loads(results[-1].stdout)["documents"] == 4 and not (folder / "handbook").exists()
    results.append(cli("ask", QUESTION, "--index", "handbook", "--json"))
    assert json.loads(results[-1].stdout)["citations"][0]["found"]
    results.append(cli("index", "retrieve", "handbook", "-q", QUESTION))
    results.append(cli("index", "verify", "handbook", "--json"))
    results.append(cli("doctor", "--json"))
    findings = json.loads(results[-1].stdout)["engines"]
    assert [engine["state"] for engine in findings if engine["kind"] == "store" and engine["in_force"]] == ["made"]
    assert all(result.exit_code == 0 for result in results), [result.stderr for result in results if result.exit_code]
    for arguments in (("index", "info", "none"), ("index", "info", "a/b"), ("index", "rebuild", "handbook"),
                      ("index", "add", "handbook", "docs", "--preset", "raptor")):  # fmt: skip
        result = cli(*arguments)
        assert result.exit_code == 2 and only_line(result), arguments
