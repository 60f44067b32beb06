"""``prunus batch INPUT... --do``: every page once, whatever stops the run, and one line for what cannot be used."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import PROGRAM, Cli, environment, lines_of, only_line
from tests.extras import need
from tests.web.archives import packed, page, record, write_archive

import prunus

pytestmark = pytest.mark.usefixtures("in_this_process")

FACTS = "Which year did bridge number 3 open?"


def rows(folder: Path, pages: int, name: str = "pages.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps({"id": n, "html": page(n).decode()}) + "\n" for n in range(pages)), "utf-8")
    return path


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records in the order of the inputs."""
    return [
        json.loads(line)
        for path in sorted(folder.glob("part-*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def test_every_page_of_every_input_gives_what_the_library_gives(cli: Cli, folder: Path) -> None:
    rows(folder, 5)
    (folder / "a.html").write_bytes(page(7))
    done = cli(
        "batch", "pages.jsonl", "examples/site", "a.html", "-o", "out", "--do", "clean", "--format", "text",
        "--part", "2", "--json", "--workers", "1",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    found = records(folder / "out")
    site = sorted((folder / "examples" / "site").glob("*.html"))
    texts = [page(n).decode() for n in range(5)] + [path.read_text("utf-8") for path in site] + [page(7).decode()]
    assert [row["output"] for row in found] == [prunus.clean(text, "text") for text in texts]
    assert [(row["source"], row["record"], row["id"]) for row in found[:2]] == [
        ("pages.jsonl", 1, "0"),
        ("pages.jsonl", 2, "1"),
    ]
    assert found[5]["url"] == str(Path("examples/site") / site[0].name)
    [told] = lines_of(done)
    assert (told["pages"], told["done"], told["failed"], told["parts"]) == (
        len(texts),
        len(texts),
        0,
        3 + -(-len(site) // 2) + 1,
    )


def test_one_process_and_three_write_the_same_files(cli: Cli, folder: Path) -> None:
    rows(folder, 24)
    for workers in ("1", "3"):
        done = cli(
            "batch", "pages.jsonl", "-o", workers, "--do", "prune", "-q", FACTS, "--budget", "40", "--part", "5",
            "--workers", workers, "--quiet",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
    assert files(folder / "1") == files(folder / "3") and len(files(folder / "1")) == 5
    [row] = [row for row in records(folder / "1") if row["id"] == "3"]
    assert row["tokens"] <= 40 and "1803" in row["output"] and row["question"] == FACTS


def test_a_second_run_skips_what_is_done_and_takes_new_inputs(cli: Cli, folder: Path) -> None:
    rows(folder, 6)
    choices = ("-o", "out", "--do", "clean", "--part", "2", "--workers", "1")
    assert cli("batch", "pages.jsonl", *choices, "--quiet").exit_code == 0
    before = files(folder / "out")
    (folder / "out" / "_batch" / "00000-00001.json").unlink()  # as if the run had been killed before it was noted
    (folder / "out" / "part-00000-00001.jsonl").write_text("half of a l")
    rows(folder, 3, "more.jsonl")
    done = cli("batch", "pages.jsonl", "more.jsonl", *choices, "--json")
    [told] = lines_of(done)
    assert (told["pages"], told["before"]["pages"], told["before"]["parts"]) == (2 + 3, 4, 2)
    after = files(folder / "out")
    assert {name: after[name] for name in before} == before and len(after) == len(before) + 2


def test_another_batch_into_the_same_folder_is_refused(cli: Cli, folder: Path) -> None:
    rows(folder, 2)
    start = ("batch", "pages.jsonl", "-o", "out", "--workers", "1")
    assert cli(*start, "--do", "clean", "--quiet").exit_code == 0
    for choices, reason in (
        (
            ("--do", "clean", "--format", "text"),
            "an earlier run wrote this folder with format 'html', and this one has 'text'",
        ),
        (("--do", "prune", "-q", "x"), "with do 'clean', and this one has 'prune'"),
        (("--do", "clean", "--part", "7"), "with rows 500, and this one has 7"),
        *([(("--do", "clean", "--to", "parquet"), "with form 'jsonl'")] if find_spec("pyarrow") else []),
    ):
        done = cli(*start, *choices)
        assert done.exit_code == 2 and reason in only_line(done)
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("x")
    done = cli("batch", "pages.jsonl", "-o", "full", "--do", "clean")
    assert done.exit_code == 2 and "full: this is not the output of a batch of pages; give another -o" in only_line(
        done
    )
    done = cli("batch", "examples/site", "-o", "examples/site/out", "--do", "clean")
    assert done.exit_code == 2 and "within the input" in only_line(done)


def test_an_input_that_has_changed_is_told_and_the_rest_goes_on(cli: Cli, folder: Path) -> None:
    rows(folder, 3)
    rows(folder, 3, "other.jsonl")
    start = ("batch", "pages.jsonl", "other.jsonl", "-o", "out", "--do", "clean", "--workers", "1", "--part", "2")
    assert cli(*start, "--quiet").exit_code == 0
    rows(folder, 4)
    (folder / "out" / "_batch" / "00001-00000.json").unlink()
    done = cli(*start, "--json")
    assert done.exit_code == 5 and lines_of(done)[0]["pages"] == 2
    assert "pages.jsonl: has changed since an earlier run" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("gone.warc.gz", "--do", "clean"), "gone.warc.gz: no such file or folder"),
        (("pages.jsonl", "--do", "burn"), "burn"),
        (("examples/site", "--do", "prune"), "prune needs a question; give -q"),
        (("pages.jsonl", "--do", "prune", "-q", "x", "--scorer", "nobody"), "nobody"),
        (("pages.jsonl", "--do", "clean", "--on", "mars"), "--on mars: the work runs on this machine, or on ray"),
        (("pages.jsonl", "--do", "ask", "-q", "x", "--main"), "--main is for --do clean"),
        (("pages.jsonl", "pages.jsonl"), "several inputs need --do"),
        (("pages.jsonl", "--part", "7"), "--part is for pages, and needs --do"),
        (("pages.jsonl", "-q", "x"), "--question is for pages, and needs --do"),
    ],
)
def test_what_cannot_be_done_is_one_line(cli: Cli, folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    rows(folder, 1)
    done = cli("batch", *arguments, "-o", "out")
    assert done.exit_code == 2 and reason in done.stderr and "Traceback" not in done.stderr
    assert not list(folder.glob("out/part-*"))


def test_bad_inputs_are_a_line_each_and_the_rest_is_done(cli: Cli, folder: Path) -> None:
    need("fastwarc")
    parquet, arrow = need("pyarrow.parquet"), need("pyarrow")
    crawl = folder / "crawl"
    crawl.mkdir()
    whole = write_archive(crawl / "a.warc.gz", 6).read_bytes()
    (crawl / "b-cut.warc.gz").write_bytes(
        packed([record(n, page(n) + os.urandom(200).hex().encode()) for n in range(3)])[:-200]
    )
    (crawl / "c-no-archive.warc.gz").write_bytes(b"nothing" * 100)
    parquet.write_table(arrow.table({"html": [page(1).decode()], "id": [1]}), crawl / "d.parquet")
    parquet.write_table(arrow.table({"body_html": ["x"]}), crawl / "e-changed.parquet")
    parquet.write_table(arrow.table({"html": arrow.array([], arrow.string())}), crawl / "f-empty.parquet")
    (crawl / "g.jsonl").write_text('{"text": "Trams run daily."}\n{broken\n{"colour": 1}\n')
    (crawl / "h-empty.html").write_bytes(b"")
    done = cli("batch", "crawl", "-o", "out", "--do", "clean", "--workers", "1", "--json")
    assert done.exit_code == 5 and "Traceback" not in done.stderr
    [told] = lines_of(done)
    assert told["done"] == 6 + 2 + 1 + 1
    assert told["failed_by_kind"] == {"page": 3, "source": 2}
    assert [Path(name).name for name in told["inputs_failed"]] == ["e-changed.parquet"]
    assert "no column called html" in told["inputs_failed"]["crawl/e-changed.parquet"]
    assert len(whole) > 0 and sum(row["status"] == "done" for row in records(folder / "out")) == told["done"]
    again = cli("batch", "crawl", "-o", "out", "--do", "clean", "--workers", "1", "--json")
    assert again.exit_code == 5 and lines_of(again)[0]["pages"] == 0


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_read_when_it_is_allowed(cli: Cli, folder: Path) -> None:
    secret = rows(folder, 2)
    rows(folder, 2, "open.jsonl")
    secret.chmod(0)
    done = cli("batch", "pages.jsonl", "open.jsonl", "-o", "out", "--do", "clean", "--workers", "1")
    assert done.exit_code == 5 and "pages.jsonl: cannot be read (Permission denied)" in done.stderr
    secret.chmod(0o600)
    assert cli("batch", "pages.jsonl", "open.jsonl", "-o", "out", "--do", "clean", "--workers", "1").exit_code == 0
    assert len(records(folder / "out")) == 4


def test_a_folder_that_cannot_be_written_is_one_line(cli: Cli, folder: Path) -> None:
    rows(folder, 1)
    (folder / "file").write_text("x")
    done = cli("batch", "pages.jsonl", "-o", "file/out", "--do", "clean")
    assert done.exit_code == 2 and "file/out: cannot be written (Not a directory)" in only_line(done)


def test_failed_pages_run_again_when_asked(cli: Cli, folder: Path) -> None:
    (folder / "list.jsonl").write_text(
        json.dumps({"path": "late.html"}) + "\n" + json.dumps({"text": "x"}) + "\n", "utf-8"
    )
    start = ("batch", "list.jsonl", "-o", "out", "--do", "clean", "--workers", "1", "--quiet")
    assert cli(*start).exit_code == 5
    (folder / "late.html").write_bytes(page(1))
    assert cli(*start).exit_code == 5
    assert cli(*start, "--retry-failed").exit_code == 0
    assert [row["status"] for row in records(folder / "out")] == ["done", "done"]


def test_parquet_holds_the_same_as_json_lines(cli: Cli, folder: Path) -> None:
    parquet = need("pyarrow.parquet")
    rows(folder, 5)
    for form in ("jsonl", "parquet"):
        done = cli(
            "batch", "pages.jsonl", "-o", form, "--do", "ask", "-q", FACTS, "--to", form, "--part", "3", "--workers",
            "1", "--quiet",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
    table = parquet.read_table(folder / "parquet")
    columns = dict.fromkeys(table.schema.names)
    assert table.to_pylist() == [columns | row for row in records(folder / "jsonl")]
    assert table.num_rows == 5 and "1803" in table.column("output")[3].as_py()


def test_a_dry_run_tells_parts_and_time_and_writes_nothing(cli: Cli, folder: Path) -> None:
    need("fastwarc")
    write_archive(folder / "a.warc.gz", 40)
    rows(folder, 10)
    done = cli(
        "batch", "a.warc.gz", "pages.jsonl", "gone", "-o", "out", "--do", "clean", "--part", "20", "--dry-run",
        "--json", "--workers", "2",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    [told] = lines_of(done)
    assert [row["parts"] for row in told["sources"]] == [2, 1] and abs(told["pages"] - 50) <= 4
    assert told["sample"] == 30 and told["seconds_a_page"] > 0 and told["seconds"] >= 0
    assert list(told["failures"]) == ["gone"] and not (folder / "out").exists()
    plain = cli("batch", "pages.jsonl", "-o", "out", "--do", "clean", "--dry-run", "--workers", "2")
    assert (
        "pages.jsonl: jsonl, about 10 pages in 1 part" in plain.stdout and "ms a page in a sample of 10" in plain.stdout
    )


@pytest.mark.slow
def test_ctrl_c_leaves_whole_parts_and_the_next_run_goes_on(folder: Path) -> None:
    rows(folder, 200)
    command = [*PROGRAM, "batch", "pages.jsonl", "-o", "out", "--do", "clean", "--part", "2", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(), text=True)
    _wait_for_parts(folder / "out", 3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert (
        process.returncode == 130
        and "interrupted; whole in out: " in told
        and "run the same command again to go on" in told
    )
    assert "Traceback" not in told
    before = files(folder / "out")
    assert subprocess.run(command, env=environment(), capture_output=True, timeout=600).returncode == 0
    after = files(folder / "out")
    assert {name: after[name] for name in before} == before
    assert [row["id"] for row in records(folder / "out")] == [str(number) for number in range(200)]


def _wait_for_parts(out: Path, number: int) -> None:
    end = time.monotonic() + 300
    while len(list(out.glob("part-*"))) < number:
        assert time.monotonic() < end
        time.sleep(0.02)


KILLS = int(os.environ.get("KILLS", "4"))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the workers in /proc")
def test_kills_at_random_moments_lose_and_double_nothing(folder: Path) -> None:
    """Kill the whole run, or one worker, at random moments; what is there at the end is what an undisturbed run writes."""
    from tests.batch.kills import kill_at_random

    need("fastwarc")
    write_archive(folder / "a.warc.gz", 150)
    rows(folder, 150)
    (folder / "site").mkdir()
    for number in range(60):
        (folder / "site" / f"{number:02}.html").write_bytes(page(number))
    inputs = ["a.warc.gz", "pages.jsonl", "site"]
    choices = ["--do", "clean", "--part", "3", "--workers", "2", "--quiet"]
    subprocess.run([*PROGRAM, "batch", *inputs, "-o", "calm", *choices], env=environment(), check=True, timeout=900)
    killed = kill_at_random([*PROGRAM, "batch", *inputs, "-o", "out", *choices], folder / "out", KILLS)
    assert killed >= max(1, KILLS // 2)  # a fast machine may be done before the last
    assert files(folder / "out") == files(folder / "calm")
    assert not list((folder / "out" / "_batch").glob("*.tmp"))
    shutil.rmtree(folder / "calm")
