"""`prunus eval run` as a user meets it: it goes on after Ctrl-C and after a kill, and says how; other plans are refused."""

from __future__ import annotations

import json
import lzma
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import prunus
from prunus.core.errors import OutsideFailed
from prunus_evals import harness, readers, store
from prunus_evals.cli import main
from prunus_evals.errors import ReaderFailed
from prunus_evals.progress import Progress, duration, line
from prunus_evals.records import Question, Reading
from prunus_evals.store import Store

RUN = ("run", "--task", "nq", "--half", "all", "--systems", "text_cut,clean_cut:lean", "--budgets", "20,40")
PAGES = 6


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with six small pages of two questions each; one of them is unfair."""
    folder = tmp_path / "data"
    write_pages(folder, PAGES)
    monkeypatch.setenv("PRUNUS_DATA", str(folder))
    return folder


def write_pages(folder: Path, pages: int) -> None:
    (folder / "page_qa").mkdir(parents=True)
    with lzma.open(folder / "page_qa" / "nq.jsonl.xz", "wt", encoding="utf-8") as file:
        for number in range(pages):
            html = (
                f"<h1>Town {number}</h1><p>The mayor is Ann{number}.</p>"
                + "<p>Words of no use.</p>" * 9
                + f"<p>The river is Bo{number}.</p>"
            )
            asked = [
                {"question": "Who is mayor?", "answer": f"Ann{number}"},
                {"question": "Which river?", "answer": f"Bo{number}"},
            ]
            if not number:
                asked.append({"question": "Is Ann0 mayor?", "answer": "Ann0"})
            file.write(json.dumps({"doc_id": f"town-{number}", "html": html, "qas": asked}) + "\n")


def run(*more: str) -> Result:
    return CliRunner().invoke(main, [*RUN, *more])


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return found


def stored(folder: Path) -> list[Any]:
    with closing(Store(folder, make=False)) as opened:
        return opened.outcomes()


def about(folder: Path) -> dict[str, Any]:
    with closing(Store(folder, make=False)) as opened:
        return opened.about()


@pytest.mark.usefixtures("data")
def test_a_named_metric_with_nothing_to_score_is_an_error(tmp_path: Path) -> None:
    before = run("--metrics", "answer,em_share", "--out", str(tmp_path / "run"))
    assert before.exit_code == 2
    assert "em_share scores answers, and nothing answers: name a language model with --reader" in before.stderr
    assert not (tmp_path / "run").exists()
    after = run("--metrics", "answer,gold_whole")
    assert after.exit_code == 2
    assert "gold_whole applies to nothing that was measured" in after.stderr
    assert "answer survives" in after.stdout


@pytest.mark.usefixtures("data")
def test_empty_replies_are_counted_wherever_numbers_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers.ModelReader, "read", lambda *_: Reading(" "))
    result = run("--reader", "scripted:x", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "empty replies" in result.stdout
    assert "12 of 12" in result.stdout
    (warning,) = [line for line in report_of(tmp_path)["warnings"] if "empty" in line and "text_cut" in line]
    assert "24 of 24 replies of text_cut > scripted:x are empty" in warning


@pytest.mark.usefixtures("data")
def test_a_run_leaves_its_report_and_what_it_was_run_with(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run("--out", str(out))
    assert result.exit_code == 0
    assert "nq: 6 of 6 pages, 48 outcomes" in result.stderr
    assert f"report: {out / 'report.html'}" in result.stderr
    assert "nq, both halves: 12 questions, 6 pages, 1 left out" in result.stdout
    facts = json.loads((out / "report.json").read_text("utf-8"))
    assert facts["tasks"]["nq"]["left_out"] == {"its answer is hidden, or in the question": 1}
    assert facts["run"]["plans"][0]["systems"] == ["text_cut", "clean_cut:lean"]
    (start,) = facts["run"]["starts"]
    assert start["end"] == "finished" and start["at"] <= start["until"]
    assert {"python", "prunus", "numpy"} <= start["versions"].keys()
    shown = json.loads(result.stdout.splitlines()[-1])["nq"]["systems"]
    assert shown == facts["tasks"]["nq"]["systems"]


@pytest.mark.usefixtures("data")
def test_ctrl_c_keeps_everything_and_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    real, calls = harness._measured, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(harness, "_measured", interrupted)
    result = run("--out", str(out))
    assert result.exit_code == 130
    assert f"interrupted; 19 outcomes are kept in {out}: run the same command again to go on" in result.stderr
    assert "Traceback" not in result.stderr
    assert len(stored(out)) == 19
    assert about(out)["starts"][-1]["end"] == "interrupted"
    report = CliRunner().invoke(main, ["report", str(out), "--json"]).output
    assert "The last start did not finish (interrupted)" in report
    again = run("--out", str(out))
    assert again.exit_code == 0
    assert "48 outcomes, 19 of them stored before" in again.stderr
    assert len(calls) == 20 + 48 - 19
    assert [start["end"] for start in about(out)["starts"]] == ["interrupted", "finished"]
    assert len({(o.question, o.system, o.budget) for o in stored(out)}) == len(stored(out)) == 48


@pytest.mark.usefixtures("data")
def test_ctrl_c_without_a_folder_says_that_nothing_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(harness, "_measured", interrupted)
    result = run()
    assert result.exit_code == 130
    assert "nothing was kept, for want of --out" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="this system has no signal of Ctrl-C for one process")
def test_ctrl_c_in_a_shell_is_one_line_and_exit_code_130(tmp_path: Path) -> None:
    write_pages(tmp_path / "data", 150)
    out = tmp_path / "run"
    command = [sys.executable, "-c", "from prunus.cli.main import main; main()", "eval", *RUN, "--out", str(out)]
    path = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path, "PRUNUS_DATA": str(tmp_path / "data")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and len(stored(out) if (out / "run.sqlite").is_file() else ()) < 30:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said and not shown
    kept_outcomes = stored(out)
    kept = f"{len(kept_outcomes)} outcomes are kept in {out}: run the same command again to go on"
    assert said.splitlines()[-1] == f"prunus eval: interrupted; {kept}"
    assert 30 <= len(kept_outcomes) < 1200
    assert about(out)["starts"][-1]["end"] == "interrupted"
    again = subprocess.run([*command, "--quiet"], env=environment, capture_output=True, check=True)
    assert stored(out)[: len(kept_outcomes)] == kept_outcomes
    assert len(stored(out)) == 1200, again


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_run_opens_cleanly_and_goes_on(tmp_path: Path) -> None:
    write_pages(tmp_path / "data", 400)
    out = tmp_path / "run"
    command = [sys.executable, "-c", "from prunus_evals.cli import main; main()", *RUN, "--out", str(out)]
    path = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path, "PRUNUS_DATA": str(tmp_path / "data")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and len(stored(out) if (out / "run.sqlite").is_file() else ()) < 30:
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    kept = stored(out)
    assert 30 <= len(kept) < 3200
    assert about(out)["starts"][-1]["end"] == "killed"
    assert CliRunner().invoke(main, ["report", str(out)]).exit_code == 0
    process = subprocess.run([*command, "--json"], env=environment, capture_output=True, check=True)
    assert stored(out)[: len(kept)] == kept
    assert len(stored(out)) == 3200
    assert [start["end"] for start in about(out)["starts"]] == ["killed", "finished"]


@pytest.mark.usefixtures("data")
def test_another_plan_in_the_same_folder_is_refused_or_added_knowingly(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run("--limit", "2", "--out", str(out)).exit_code == 0
    refused = run("--out", str(out))
    assert refused.exit_code == 2
    assert "(limit: 2 there, none here)" in " ".join(refused.stderr.split())
    assert "--add" in refused.stderr
    assert len(stored(out)) == 16
    added = run("--out", str(out), "--add")
    assert added.exit_code == 0
    assert "16 of them stored before" in added.stderr
    assert len(about(out)["plans"]) == 2
    assert run("--limit", "2", "--out", str(out)).exit_code == 0  # a plan that it holds goes on
    assert "2 plans were run into this folder" in (out / "report.html").read_text("utf-8")
    assert run("--half", "dev", "--out", str(out), "--add").exit_code == 0
    assert about(out)["halves"] == {"nq": "all"}


COMMANDS = ("report {0}", "compare {0} {0}", "judge {0} --between text_cut,clean_cut:lean --judge scripted:A", "")
UNUSABLE = [(command, state) for command in COMMANDS for state in ("locked", "damaged")]
UNUSABLE += [(command, "read-only") for command in COMMANDS[2:]]  # the others only read


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("command", "state"), UNUSABLE)
def test_a_run_whose_file_cannot_be_used_is_one_line(
    command: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    measured = [*RUN, "--reader", "scripted:Ann0", "--out", str(out), "--quiet"]
    assert CliRunner().invoke(main, measured).exit_code == 0
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    arguments = command.format(out).split() or measured
    with closing(sqlite3.connect(out / "run.sqlite", isolation_level=None)) as other:
        if state == "locked":
            other.execute("pragma locking_mode = exclusive")
            other.execute("begin exclusive")
        elif state == "damaged":
            other.execute("pragma writable_schema = on")
            other.execute("update sqlite_schema set rootpage = 9999 where name = 'outcomes'")
        else:
            connect = sqlite3.connect  # who has all rights can write to every file
            readable = f"file:{out / 'run.sqlite'}?mode=ro"
            monkeypatch.setattr(sqlite3, "connect", lambda _, **more: connect(readable, uri=True, **more))
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    said = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1 and "cannot be" in said[0]


@pytest.mark.usefixtures("data")
def test_a_report_changes_nothing_in_the_file_of_a_run_that_another_process_writes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    run("--out", str(out))
    before = (out / "run.sqlite").read_bytes()
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with closing(sqlite3.connect(out / "run.sqlite", isolation_level=None)) as other:
        other.execute("begin immediate")
        result = CliRunner().invoke(main, ["report", str(out)])
    assert result.exit_code == 0, result.output
    assert (out / "run.sqlite").read_bytes() == before


@pytest.mark.usefixtures("data")
def test_answers_to_another_prompt_are_rows_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run("--reader", "scripted:Ann1", "--prompt", "short", "--out", str(out)).exit_code == 0
    assert run("--reader", "scripted:Ann1", "--prompt", "long", "--out", str(out), "--add").exit_code == 0
    facts = json.loads((out / "report.json").read_text("utf-8"))["tasks"]["nq"]
    assert list(facts["systems"]) == [
        f"{system} > scripted:Ann1, prompt {prompt}"
        for prompt in ("short", "long")
        for system in ("text_cut", "clean_cut:lean")
    ]
    assert (
        facts["rows"]["clean_cut:lean > scripted:Ann1, prompt long"]["base"] == "text_cut > scripted:Ann1, prompt long"
    )


@pytest.mark.usefixtures("data")
def test_a_reader_that_fails_is_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying:
        name, real, calls = "dying", True, 0

        def read(self, question: Question, evidence: str) -> Reading:
            self.calls += 1
            if self.calls == 3:
                raise ReaderFailed("dying: the server is gone")
            return Reading("Ann")

    monkeypatch.setattr(readers, "make", lambda spec, prompt="": Dying())
    out = tmp_path / "run"
    result = run("--reader", "dying", "--out", str(out))
    assert result.exit_code == 3
    progress, line = result.stderr.splitlines()[-2:]
    kept = f"2 outcomes are kept in {out}: run the same command again to go on"
    assert line == f"prunus eval: dying: the server is gone; {kept}"
    assert progress.startswith("nq: 0 of 6 pages, 2 outcomes") and progress.endswith("stopped")
    assert len(stored(out)) == 2
    assert about(out)["starts"][-1]["end"].startswith("failed: dying: the server is gone")


@pytest.mark.usefixtures("data")
def test_a_model_inside_a_system_that_fails_is_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
    out, system = tmp_path / "run", "prunus:ask@llm=http://127.0.0.1:9/v1#m"
    monkeypatch.setattr(prunus, "ask", _unreachable)
    result = CliRunner().invoke(
        main, ["run", "--task", "nq", "--half", "all", "--systems", f"text_cut,{system}", "--out", str(out)]
    )
    assert result.exit_code == 3, result.stderr
    kept = f"8 outcomes are kept in {out}: run the same command again to go on"
    assert result.stderr.splitlines()[-1] == f"prunus eval: {system}: m at 127.0.0.1:9: no connection; {kept}"
    assert len(stored(out)) == 8
    assert about(out)["starts"][-1]["end"] == f"failed: {system}: m at 127.0.0.1:9: no connection"


def _unreachable(*_: Any, **__: Any) -> Any:
    raise OutsideFailed("m at 127.0.0.1:9: no connection", sent=False)


@pytest.mark.usefixtures("data")
def test_rows_are_the_outcomes_line_by_line(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    result = run("--rows", str(rows), "--quiet", "--reader", "scripted:Ann1")
    assert (result.exit_code, result.stderr) == (0, "")
    found = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    assert len(found) == 48
    assert found[0]["reading"]["text"] == "Ann1" and found[0]["caveat"] == "scripted"
    assert "text_cut > scripted:Ann1 (scripted)" in result.stdout
    assert run("--rows", str(tmp_path / "gone" / "rows.jsonl")).exit_code == 2


@pytest.mark.usefixtures("data")
def test_json_prints_json_alone() -> None:
    result = run("--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["nq"]["questions"] == 12


@pytest.mark.parametrize("arguments", [(), ("--task", "nq", "--suite", "offline")])
def test_either_tasks_or_a_suite_must_be_named(arguments: Sequence[str]) -> None:
    result = CliRunner().invoke(main, ["run", *arguments])
    assert result.exit_code == 2
    assert "--suite" in result.stderr


@pytest.mark.parametrize("budgets", ["0", "512,-1", "many", "", "512,,1024", "1.5"])
def test_budgets_are_whole_numbers_above_0(budgets: str) -> None:
    result = CliRunner().invoke(main, ["run", "--task", "nq", "--budgets", budgets])
    assert result.exit_code == 2
    assert "--budgets must be whole numbers above 0" in " ".join(result.stderr.split())


def test_progress_tells_rate_and_time_left_of_what_is_measured_now() -> None:
    state = harness.Progress("nq", 2, 3, pages=30, total=120, outcomes=700, reused=100)
    assert line(state, 60, 600) == (
        "nq (2 of 3): 30 of 120 pages, 700 outcomes, 100 of them stored before, 10.0 a second, 3 min 00 s left"
    )
    state.reused, state.changed = 0, True
    assert "measured again, since code, packages or settings have changed" in line(state, 60, 700)
    assert [duration(seconds) for seconds in (4.6, 59.6, 3700)] == ["5 s", "1 min 00 s", "1 h 01 min"]


def test_progress_on_a_terminal_is_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    for terminal in (True, False):
        shown = Progress(terminal)
        for pages in (0, 1, 2):
            shown(harness.Progress("nq", 1, 1, pages=pages, total=2, outcomes=pages))
    err = capsys.readouterr().err
    assert err.startswith("\rnq: 0 of 2 pages")
    assert err.count("\r") == 2 and err.count("2 of 2 pages") == 2


def test_progress_of_a_study_has_its_name_and_few_lines() -> None:
    found: list[str] = []
    shown = Progress(before="htmlrag:5, ", write=found.append)
    for pages in range(101):
        shown(harness.Progress("nq", 1, 1, pages=pages, total=100, outcomes=pages))
    assert found[0] == "htmlrag:5, nq: 0 of 100 pages, 0 outcomes"
    assert found[-1].startswith("htmlrag:5, nq: 100 of 100 pages, 100 outcomes")
    assert len(found) == 2


@pytest.mark.usefixtures("data")
def test_progress_tells_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        name, real, caveat = "slow", True, ""

        def read(self, question: Question, evidence: str) -> Reading:
            time.sleep(0.4 if question.id.endswith("0") else 0)
            return Reading("Ann")

    monkeypatch.setattr(readers, "make", lambda spec, prompt="": Slow())
    monkeypatch.setattr(harness, "PATIENCE", 0.15)
    said = run("--reader", "slow", "--limit", "1", "--budgets", "20").stderr.splitlines()
    waiting = [text for text in said if text.endswith(" so far")]
    assert waiting and all(text.startswith("nq: question ") and ", slow: " in text for text in waiting)
    assert said[-1].startswith("nq: 1 of 1 page,")


@pytest.mark.usefixtures("data")
def test_an_answer_whose_model_is_dead_is_not_stored_as_that_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
    out, system = tmp_path / "run", "prunus:ask@llm=http://127.0.0.1:9/v1#m"
    result = CliRunner().invoke(
        main, ["run", "--task", "nq", "--half", "all", "--systems", system, "--budgets", "200", "--out", str(out)]
    )
    assert result.exit_code == 3, result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"prunus eval: {system}: ")
    assert stored(out) == []


@pytest.mark.usefixtures("data")
def test_answers_made_without_the_model_are_counted(tmp_path: Path) -> None:
    out, system = tmp_path / "run", "prunus:ask@llm=scripted:-"
    result = CliRunner().invoke(
        main, ["run", "--task", "nq", "--half", "all", "--systems", system, "--budgets", "200", "--out", str(out)]
    )
    assert result.exit_code == 0, result.stderr
    assert "answered without the model inside" in result.stdout
    asked = len(stored(out))
    assert f"{asked} of {asked}" in result.stdout
    said = CliRunner().invoke(main, ["report", str(out)])
    assert f"{asked} of {asked} answers of {system} were made without its model" in said.output + (
        out / "report.html"
    ).read_text("utf-8")
