"""``prunus batch``: each job runs once, also when the run is stopped and resumed."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.cli.command import SITE, Cli, environment, lines_of, only_line

import prunus
from prunus.batch import jobs, read
from prunus.batch.rows import START
from prunus.batch.sources import jobs_source
from prunus.cli import main
from prunus.core.settings import Settings

PROGRAM = [
    sys.executable, "-c",
    "from prunus.cli import main as m; m.COMMANDS.setdefault('batch', ''); m.main()",
]  # fmt: skip
PAGE = "<h1>Bridge</h1><p>The bridge opened in 1932.<p>Trams run daily from the harbour to the lighthouse."


pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.COMMANDS, "batch", "Do many jobs, and go on where a run was stopped.")


def job(name: str | int, **more: Any) -> dict[str, Any]:
    return {"id": name, "command": "clean", "html": f"{PAGE}<p>Job {name}.", **more}


def write(folder: Path, *jobs: dict[str, Any] | str) -> Path:
    path = folder / "jobs.jsonl"
    path.write_text("".join((job if isinstance(job, str) else json.dumps(job)) + "\n" for job in jobs), "utf-8")
    return path


def records(folder: Path) -> dict[Any, dict[str, Any]]:
    """Return the records by id; no id may occur twice."""
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text("utf-8").splitlines()]
    assert max(Counter(json.dumps([row["id"], row.get("digest")]) for row in found).values()) == 1
    return {row["id"]: row for row in found}


def test_each_command_gives_what_the_library_gives(cli: Cli, folder: Path) -> None:
    faq = "examples/site/faq.html"
    (folder / "page.html").write_text(PAGE, "utf-8")
    write(
        folder,
        job("c", format="markdown"),
        job("plain", links=False),
        {
            "id": 7,
            "command": "prune",
            "page": faq,
            "question": "When is a value final?",
            "budget": 200,
            "scorer": "bm25",
        },
        {"id": "a", "command": "ask", "pages": ["page.html", faq], "question": "When did the bridge open?"},
    )
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--json")
    assert done.exit_code == 0
    assert {name: lines_of(done)[0][name] for name in ("done", "failed", "skipped")} == {
        "done": 4,
        "failed": 0,
        "skipped": 0,
    }
    found = records(folder)
    assert list(found) == ["c", "plain", 7, "a"]
    assert found["c"]["output"] == prunus.clean(f"{PAGE}<p>Job c.", "markdown")
    expected = prunus.prune(SITE / "faq.html", "When is a value final?", 200, options=prunus.Options(scorer="bm25"))
    assert (found[7]["output"], found[7]["tokens"]) == (expected.output, expected.tokens)
    assert "1932" in found["a"]["text"] and found["a"]["citations"][0]["found"] is True


BAD_LINES = {
    "{broken": "not valid JSON",
    "[1]": "a job is one JSON object",
    '{"command": "clean", "html": "x"}': "a job needs an id",
    '{"id": true, "command": "clean", "html": "x"}': "a job needs an id",
    '{"id": 1, "command": "burn", "html": "x"}': "'burn'.*clean, prune, ask",
    '{"id": 2, "command": "clean", "html": "x", "colour": 1}': "unknown key 'colour'",
    '{"id": 3, "command": "clean"}': "one of: page, pages",
    '{"id": 4, "command": "clean", "pages": []}': "pages is not a list",
    '{"id": 5, "command": "clean", "pages": ["a", "b"]}': "clean takes one page",
    '{"id": 6, "command": "prune", "html": "x"}': "prune needs a question",
    '{"id": 7, "command": "prune", "html": "x", "question": "q", "budget": 0}': "budget is 0",
    '{"id": 8, "command": "prune", "html": "x", "question": "q", "format": "pdf"}': "unknown format 'pdf'",
    '{"id": 9, "command": "prune", "html": "x", "question": "q", "links": 1}': "links is 1; it must be true or false",
    '{"id": 10, "command": "prune", "html": "x", "question": "q", "units": "x"}': "units is 'x'",
    '{"id": 11, "command": "clean", "html": "x", "scorer": "bm25"}': "clean takes no 'scorer'",
    "[" * 100_000: "nested too deep|not valid JSON",
}


def test_what_is_no_job_is_an_error_of_its_line_and_no_stop(cli: Cli, folder: Path) -> None:
    import re

    write(folder, *BAD_LINES, "", job("good"))
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl")
    assert done.exit_code == 5
    assert f"{len(BAD_LINES)} of {len(BAD_LINES) + 1} jobs failed" in done.stderr
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text("utf-8").splitlines()]
    assert [row["line"] for row in found] == [*range(1, len(BAD_LINES) + 1), len(BAD_LINES) + 2]
    for row, reason in zip(found, BAD_LINES.values(), strict=False):
        assert row["error"].startswith(f"line {row['line']}: ") and re.search(reason, row["error"])
    assert "output" in found[-1]


def test_an_id_that_was_there_before_is_an_error_of_the_later_line(cli: Cli, folder: Path) -> None:
    write(folder, job("a"), job(1), job("1"), job("a", format="text"))
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet").exit_code == 5
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text("utf-8").splitlines()]
    assert [("error" in row, row["id"]) for row in found] == [(False, "a"), (False, 1), (False, "1"), (True, "a")]
    assert found[3]["error"].startswith("line 4: ") and "line 1" in found[3]["error"]


def test_jobs_that_fail_fail_alone_with_their_code(cli: Cli, folder: Path) -> None:
    write(
        folder,
        {"id": "gone", "command": "clean", "page": "nowhere.html"},
        {"id": "nothing", "command": "ask", "html": PAGE, "question": "photosynthesis enzymes?"},
        job("empty", html="<p hidden>x"),
        {"id": "engine", "command": "prune", "html": PAGE, "question": "q", "scorer": "nobody"},
        job("good"),
    )
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet").exit_code == 5
    found = records(folder)
    assert [found[name].get("code", 0) for name in ("gone", "nothing", "empty", "engine", "good")] == [2, 4, 2, 2, 0]
    assert found["gone"]["error"] == "nowhere.html: no such file"


def test_a_second_run_does_only_what_is_left(cli: Cli, folder: Path) -> None:
    write(folder, job("a"), "{broken", job("b", page="x"))
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet").exit_code == 5
    before = (folder / "out.jsonl").read_bytes()
    write(folder, job("a"), "{broken", job("b", page="x"), job("c"))
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--json")
    assert {**lines_of(done)[0], "seconds": 0} == {
        "done": 1, "nothing_found": 0, "failed": 0, "skipped": 3, "failed_before": 2, "output": "out.jsonl",
        "seconds": 0,
    }  # fmt: skip
    assert done.exit_code == 5  # the records of two failed jobs are in the file
    after = (folder / "out.jsonl").read_bytes()
    assert after.startswith(before) and after.count(b"\n") == 4


def test_failures_are_tried_again_on_demand(cli: Cli, folder: Path) -> None:
    write(folder, job("a"), {"id": "late", "command": "clean", "page": "late.html"})
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet").exit_code == 5
    (folder / "late.html").write_text(PAGE, "utf-8")
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--retry-failed")
    assert done.exit_code == 0 and "1 job done, 0 failed, 1 skipped" in done.stderr
    assert set(records(folder)) == {"a", "late"} and "output" in records(folder)["late"]
    assert sorted(path.name for path in folder.iterdir()) == ["examples", "jobs.jsonl", "late.html", "out.jsonl"]


@pytest.mark.parametrize("torn", ['{"id": "b", "li', "{", '{"id": "b", "line": 2}'])
def test_a_last_line_that_was_cut_off_is_done_again(cli: Cli, folder: Path, torn: str) -> None:
    write(folder, job("a"), job("b"))
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet").exit_code == 0
    whole = (folder / "out.jsonl").read_text("utf-8")
    (folder / "out.jsonl").write_text(whole.splitlines()[0] + "\n" + torn, "utf-8")
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl")
    assert done.exit_code == 0 and "the last line was cut off" in done.stderr
    assert (folder / "out.jsonl").read_text("utf-8") == whole


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("my notes", "not the output of a batch"),
        ("my notes\n", "not the output of a batch"),
        ('{"id": 1}\nnotes\n', "line 2 is not a record"),
    ],
)
def test_a_file_of_something_else_is_never_written_to(cli: Cli, folder: Path, content: str, reason: str) -> None:
    write(folder, job("a"))
    (folder / "out.jsonl").write_text(content, "utf-8")
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl")
    assert done.exit_code == 2 and reason in only_line(done)
    assert (folder / "out.jsonl").read_text("utf-8") == content


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("nowhere.jsonl", "-o", "out.jsonl"), "nowhere.jsonl: no such file"),
        (("jobs.jsonl", "-o", "jobs.jsonl"), "overwrite the jobs"),
        (("jobs.jsonl", "-o", "-"), "-o needs a file"),
        (("jobs.jsonl", "-o", "."), "not a file"),
        (("jobs.jsonl", "-o", "jobs.jsonl/x"), "cannot be written"),
        (("jobs.jsonl",), "-o"),
        (("jobs.jsonl", "-o", "out.jsonl", "--workers", "0"), "workers"),
    ],
)
def test_what_cannot_be_meant_is_one_line(cli: Cli, folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    write(folder, job("a"))
    done = cli("batch", *arguments)
    assert done.exit_code == 2 and reason in only_line(done)


def test_jobs_from_standard_input_and_from_a_packed_file(cli: Cli, folder: Path) -> None:
    assert cli("batch", "-", "-o", "out.jsonl", "--quiet", input=json.dumps(job("a"))).exit_code == 0
    assert list(records(folder)) == ["a"]
    (folder / "jobs.jsonl.gz").write_bytes(gzip.compress(json.dumps(job("b")).encode()))
    assert cli("batch", "jobs.jsonl.gz", "-o", "out.jsonl", "--quiet").exit_code == 0
    assert list(records(folder)) == ["a", "b"]


def test_a_line_that_is_too_long_is_an_error_and_the_next_is_read(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MAX_LINE", 1 << 20)
    write(folder, job("long", html="x" * (3 << 20)), job("good"))
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet").exit_code == 5
    assert records(folder)[None]["error"] == "line 1: longer than 1 MiB" and "output" in records(folder)["good"]


def test_a_bug_is_that_jobs_alone_and_shows_its_traceback(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(page: Any, *_: Any) -> str:
        if "Job a." in page.content:
            raise ZeroDivisionError("a\nb")
        return "ok"

    monkeypatch.setattr(jobs, "clean", broken)
    write(folder, job("a"), job("b"))
    done = cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--quiet")
    assert done.exit_code == 1 and "Traceback" in done.stderr
    assert records(folder)["a"]["error"] == "a bug: ZeroDivisionError: a b" and records(folder)["b"]["output"] == "ok"


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [*PROGRAM, "batch", "jobs.jsonl", "-o", "out.jsonl", *more]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())


def wait_for(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_records(folder: Path) -> int:
    path = folder / "out.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def write_jobs(folder: Path, number: int) -> None:
    write(
        folder,
        *[job(n, html=PAGE + f"<p>Job {n}." + "<p>The tide came in over the flats." * 400) for n in range(number)],
    )


def check_records(folder: Path, number: int) -> None:
    found = records(folder)
    assert sorted(found) == list(range(number))
    assert all(f"Job {n}." in record["output"] for n, record in found.items())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_at_any_moment_nothing_is_lost_or_doubled(folder: Path, workers: str) -> None:
    number = 500
    write_jobs(folder, number)
    for target in (20, 90):
        with start(folder, "--workers", workers) as process:
            wait_for(lambda least=target: count_records(folder) >= least)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            below = children.read_text().split() if children.exists() else []
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
        assert target <= count_records(folder) < number
        wait_for(lambda gone=below: not any(Path(f"/proc/{pid}").exists() for pid in gone))
    acknowledged = (folder / "out.jsonl").read_bytes()
    acknowledged = acknowledged[: acknowledged.rfind(b"\n") + 1]
    with (folder / "out.jsonl").open("ab") as file:
        file.write(b'{"id": 499, "line": 500, "comm')
    with start(folder, "--workers", workers) as process:
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert b"cut off" in stderr and b" skipped; " in stderr
    assert (folder / "out.jsonl").read_bytes().startswith(acknowledged)
    check_records(folder, number)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_loses_nothing_and_says_how_to_go_on(folder: Path, workers: str) -> None:
    write_jobs(folder, 500)
    with start(folder, "--workers", workers) as process:
        wait_for(lambda: count_records(folder) >= 20)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    [line] = stderr.decode().splitlines()
    assert "interrupted" in line and "to go on" in line
    with start(folder, "--quiet") as process:
        assert process.wait(120) == 0
    check_records(folder, 500)


@pytest.mark.slow
def test_a_job_that_kills_its_process_is_recorded_and_the_others_are_done(folder: Path) -> None:
    (folder / "killer.py").write_text(
        "import os\nclass Killer:\n    name = 'killer'\n    def score(self, query, blocks):\n        os._exit(9)\n",
        "utf-8",
    )
    kill = {"command": "prune", "question": "When?", "scorer": "killer.py:Killer"}
    write(folder, *[job(n, **(kill if n == 2 else {})) for n in range(6)])
    with start(folder, "--workers", "2", "--quiet") as process:
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 5, stderr
    found = records(folder)
    assert sorted(found) == list(range(6))
    assert [n for n, record in found.items() if "error" in record] == [2]
    assert found[2] == {"id": 2, "line": 3, "error": "the process died at this job, in 2 tries", "code": 3}


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_two_runs_do_not_write_one_file(cli: Cli, folder: Path) -> None:
    import fcntl

    write(folder, job("a"))
    with (folder / "out.jsonl").open("ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        done = cli("batch", "jobs.jsonl", "-o", "out.jsonl")
    assert done.exit_code == 2 and "another run is writing" in only_line(done)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line(cli: Cli, folder: Path) -> None:
    write(folder, job("a"))
    (folder / "out.jsonl").symlink_to("/dev/full")
    done: Result = cli("batch", "jobs.jsonl", "-o", "out.jsonl")
    assert done.exit_code in (2, 3) and "out.jsonl" in only_line(done)


def test_memory_does_not_grow_with_the_number_of_jobs(folder: Path) -> None:
    import tracemalloc

    write(folder, *[job(n, html="x" * 10_000) for n in range(1500)])
    reader = read.Reader(jobs_source("jobs.jsonl"), Settings())
    tracemalloc.start()
    for _ in reader.rows(START):
        pass
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_a_job_that_finds_nothing_relevant_is_no_failure(cli: Cli, folder: Path) -> None:
    write(folder, {"id": 1, "command": "ask", "html": PAGE, "question": "photosynthesis enzymes?"}, job("good"))
    for _ in range(2):  # nor in a later run
        assert cli("batch", "jobs.jsonl", "-o", "out.jsonl").exit_code == 0
    assert records(folder)[1]["code"] == 4
    done = cli("batch", "jobs.jsonl", "-o", "other.jsonl", "--json")
    assert [lines_of(done)[0][count] for count in ("done", "nothing_found", "failed")] == [2, 1, 0]


def test_a_question_under_its_older_name_is_read(cli: Cli, folder: Path) -> None:
    write(folder, {"id": 1, "command": "prune", "html": PAGE, "query": "When did the bridge open?"})
    assert cli("batch", "jobs.jsonl", "-o", "out.jsonl").exit_code == 0
    assert records(folder)[1]["question"] == "When did the bridge open?"


def test_a_folder_without_an_action_is_one_line_that_names_the_option(cli: Cli, folder: Path) -> None:
    done = cli("batch", str(folder), "-o", str(folder / "out"))
    assert done.exit_code == 2
    assert "--do" in done.stderr and "Errno" not in done.stderr
