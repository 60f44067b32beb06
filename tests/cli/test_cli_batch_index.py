"""``--do index``: the pages of a batch in an index, as ``prunus index add`` puts them there, whatever stops the run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Cli, lines_of, only_line
from tests.extras import need
from tests.web.archives import page, write_archive

from prunus.api.index import Index
from prunus.batch.into_index import IndexOutput, Skim
from prunus.batch.output import Counts
from prunus.batch.run import Batch
from prunus.batch.work import Task, Work
from prunus.core.settings import Settings

SETTINGS = Settings()

pytestmark = pytest.mark.usefixtures("in_this_process")


def begun(inputs: list[str], folder: Path, rows: int = 3) -> tuple[Batch, IndexOutput]:
    index = Index.open(folder, settings=SETTINGS)
    batch = Batch(inputs, Task("index", cutting=index.cutting()), SETTINGS, rows=rows)
    batch.skim = Skim(index.known(), SETTINGS)
    batch.find()
    return batch, IndexOutput(index)


def run(inputs: list[str], folder: Path) -> Counts:
    """Do what is left, in this process."""
    batch, output = begun(inputs, folder)
    work, counts = Work(batch.task, SETTINGS), Counts()
    for part in batch.parts():
        counts.add(output.write(part, [work.record(row) for row in part.rows]))
    output.finish()
    return counts


def stored(folder: Path) -> dict[str, Any]:
    """Return what an index holds, without the numbers that depend on the order of adding."""
    store = Index.open(folder, create=False, settings=SETTINGS).store
    view = store.view()
    leaves = sorted(
        (node.document, node.position, node.text, view.matrix[row].tobytes())
        for node, row in zip(store.get(view.ids[: view.leaves].tolist()), view.row[: view.leaves].tolist(), strict=True)
    )
    return {"leaves": leaves, "documents": sorted((d.id, d.digest, d.title, d.url) for d in store.documents())}


def rows(folder: Path, pages: int) -> str:
    path = folder / "pages.jsonl"
    path.write_text("".join(json.dumps({"id": n, "html": page(n).decode()}) + "\n" for n in range(pages)), "utf-8")
    return str(path)


def test_a_batch_stores_what_index_add_stores(cli: Cli, folder: Path) -> None:
    assert cli("index", "add", "calm", "examples/site", "--quiet").exit_code == 0
    done = cli("batch", "examples/site", "-o", "out", "--do", "index", "--workers", "1", "--part", "5", "--json")
    assert done.exit_code == 0, done.stderr
    assert stored(folder / "out") == stored(folder / "calm")
    [told] = lines_of(done)
    assert (told["done"], told["chunks"]) == (
        len(stored(folder / "out")["documents"]),
        len(stored(folder / "out")["leaves"]),
    )
    asked = cli("ask", "What does one Pell 2 cost?", "--index", "out", "--json")
    assert asked.exit_code == 0 and "€289" in asked.stdout


def test_what_the_index_has_is_skipped_and_what_has_changed_is_replaced(cli: Cli, folder: Path) -> None:
    rows(folder, 6)
    start = ("batch", "pages.jsonl", "-o", "out", "--do", "index", "--workers", "1", "--part", "2", "--json")
    assert lines_of(cli(*start))[0]["done"] == 6
    lines = (folder / "pages.jsonl").read_text("utf-8").splitlines()
    lines[2] = json.dumps({"id": 2, "html": page(77).decode()})
    (folder / "pages.jsonl").write_text("\n".join([*lines, json.dumps({"id": 3, "html": "<p>Another."}), "{broken"]))
    done = cli(*start)
    [told] = lines_of(done)
    assert (told["done"], told["unchanged"], told["repeated"], told["failed_by_kind"]) == (1, 5, 1, {"page": 1})
    assert done.exit_code == 5 and "pages.jsonl: line 8: not valid JSON" in next(iter(told["failures"].values()))
    index = Index.open(folder / "out", create=False)
    assert "1877" in index.store.document("2").text and "1803" in index.store.document("3").text


def test_a_page_is_named_by_its_address_or_its_path_or_its_id(folder: Path) -> None:
    (folder / "a.html").write_bytes(page(1))
    lines = [
        {"url": "https://example.org/x", "id": "7", "text": "Trams run daily."},
        {"path": str(folder / "a.html"), "id": "8"},
        {"id": 9, "text": "Ferries, too."},
    ]
    (folder / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run([str(folder / "b.jsonl")], folder / "out").done == 3
    assert set(Index.open(folder / "out").known()) == {"https://example.org/x", str(folder / "a.html"), "9"}
    assert run([str(folder / "b.jsonl")], folder / "out").skipped == {"unchanged": 3}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads of other tests
def test_kills_lose_no_document_that_was_acknowledged(folder: Path) -> None:
    need("fastwarc")
    inputs = [str(write_archive(folder / "a.warc.gz", 30)), rows(folder, 30)]
    run(inputs, folder / "calm")
    chance, kills, rounds = random.Random(5), 0, 0
    while kills < 6:
        rounds += 1
        assert rounds < 60
        receipt = folder / "receipt"
        receipt.write_text("")
        child = os.fork()
        if not child:
            try:
                batch, output = begun(inputs, folder / "out")
                work = Work(batch.task, SETTINGS)
                with receipt.open("a") as acknowledged:
                    for part in batch.parts():
                        output.write(part, [work.record(row) for row in part.rows])
                        acknowledged.writelines(f"{row.url or row.id}\n" for row in part.rows)
                        acknowledged.flush()
                output.finish()
            finally:
                os._exit(0)
        wanted, end = chance.randrange(6), time.monotonic() + 300
        while len(receipt.read_text().splitlines()) < wanted and not os.waitid(
            os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT
        ):
            assert time.monotonic() < end
            time.sleep(0.001)
        time.sleep(chance.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        kills += killed
        said = [line for line in receipt.read_text().splitlines(keepends=True) if line.endswith("\n")]
        if said:
            assert {line.rstrip("\n") for line in said} <= set(Index.open(folder / "out").known())
        if not killed:  # it was done before: the next one begins anew
            assert stored(folder / "out") == stored(folder / "calm")
            shutil.rmtree(folder / "out")
    run(inputs, folder / "out")
    assert stored(folder / "out") == stored(folder / "calm")
    assert Index.open(folder / "out").store.damage() == []


def test_actors_of_ray_prepare_and_the_driver_stores(folder: Path) -> None:
    """Called by hand, without Ray: what Ray adds is only where and when they are called."""
    from prunus.batch.on_ray import _Cut, _Do, _lean

    inputs = [rows(folder, 7)]
    run(inputs, folder / "calm")
    batch, output = begun(inputs, folder / "out")
    do = _Do(_lean(batch), "", "")
    for table in _Cut(batch)({"sources": [[0]]}):
        output.write(*do(table)["message"][0].content)
    output.finish()
    assert stored(folder / "out") == stored(folder / "calm")
    do._done.close()


@pytest.mark.parametrize("choice", [("--main",), ("-q", "x"), ("--to", "parquet"), ("--retry-failed",)])
def test_options_of_other_actions_are_refused(cli: Cli, folder: Path, choice: tuple[str, ...]) -> None:
    rows(folder, 1)
    done = cli("batch", "pages.jsonl", "-o", "out", "--do", "index", *choice)
    assert done.exit_code == 2 and f"{choice[0]} is not for --do index" in only_line(done)


def test_another_embedder_than_that_of_the_index_is_one_line(cli: Cli, folder: Path) -> None:
    need("wordllama")
    rows(folder, 1)
    start = ("batch", "pages.jsonl", "-o", "out", "--do", "index", "--workers", "1", "--quiet")
    assert cli(*start).exit_code == 0
    done = cli(*start, "--embedder", "wordllama")
    assert done.exit_code == 2 and "was built with the embedder" in only_line(done)


def test_a_dry_run_makes_no_index(cli: Cli, folder: Path) -> None:
    rows(folder, 20)
    done = cli("batch", "pages.jsonl", "-o", "out", "--do", "index", "--dry-run", "--json", "--workers", "1")
    assert done.exit_code == 0 and lines_of(done)[0]["sample"] == 20 and not (folder / "out").exists()


@pytest.mark.parametrize("name", ["memory://x", "s3://bucket/handbook"])
def test_an_address_is_no_folder_of_an_index(cli: Cli, folder: Path, name: str) -> None:
    done = cli("batch", str(folder), "-o", name, "--do", "index")
    assert done.exit_code == 2 and "lance:" in only_line(done)
    assert not Path(name.partition("/")[0]).exists()


@pytest.mark.parametrize(
    "start",
    [
        ("batch", "none", "-o", "out", "--do", "index"),
        ("index", "add", "out", "none"),
        ("index", "sync", "out", "none"),
    ],
)
def test_an_input_that_is_missing_leaves_no_empty_index(cli: Cli, folder: Path, start: tuple[str, ...]) -> None:
    done = cli(*start)
    assert done.exit_code == 2 and "none" in only_line(done) and not (folder / "out").exists()


def test_a_place_to_work_that_is_none_leaves_no_empty_index(cli: Cli, folder: Path) -> None:
    rows(folder, 1)
    for place in ("mars", "ray:"):
        done = cli("batch", "pages.jsonl", "-o", "out", "--do", "index", "--on", place)
        assert done.exit_code == 2 and f"--on {place}" in only_line(done) and not (folder / "out").exists()
