"""Suites: every study on two pages, resumed, with pages of Markdown; nothing that fails is dropped silently."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus_evals import studies, suites
from prunus_evals.cli import main
from prunus_evals.errors import DataMissing, MetricError, ReaderFailed, Unreachable
from prunus_evals.records import Outcome
from prunus_evals.studies import Choice, Number, Row, Study, Table

TABLE = Table("A table", ("one", "two"), (Row("ours", (Number(1, 0, 2, (0.5, 0.1, 0.9)), None)),), ("a note",), 1)


def rows(path: Path, *values: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def two_pages(tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two pages for each stand-in that is no special set of a study."""
    folder = tmp_path / "data"
    pages = [page, page.replace("Springfield", "Shelbyville")]
    hosts = ["Springfield", "Shelbyville"]
    question = "Who was the host of the first games?"
    common = {"core": True, "in_visible_text": True, "in_gold_table": True, "answer_in_question": False}
    keys = ["page-0", "page-1"]
    rows(
        folder / "table_qa/questions.jsonl.xz",
        *(
            {"id": key, "page": key, "question": question, "answers": [host], "table_index": 0, **common}
            for key, host in zip(keys, hosts, strict=True)
        ),
    )
    rows(folder / "table_qa/pages.jsonl.xz", *({"page": k, "html": h} for k, h in zip(keys, pages, strict=True)))
    rows(
        folder / "page_qa/nq.jsonl.xz",
        *(
            {"doc_id": key, "html": html, "qas": [{"question": question, "answer": host}]}
            for key, html, host in zip(keys, pages, hosts, strict=True)
        ),
    )
    rows(
        folder / "page_qa/websrc.jsonl.xz",
        *(
            {
                "domain": "d", "site": "s", "page": key, "id": key, "in_visible_text": True, "question": question,
                "answer": host, "element_id": "1", "html": html.replace("<h1>", '<h1 tid="1">'),
            }
            for key, html, host in zip(keys, pages, hosts, strict=True)
        ),
    )  # fmt: skip
    gold = [{"title": "Games", "sentences": ["The host was Springfield."]}]
    rows(
        folder / "extract/hotpot.jsonl.xz",
        *(
            {"id": key, "question": question, "answer": "Springfield", "gold": gold, "supporting_facts": [[0]],
             "distractors": [{"title": "Mascots", "sentences": ["An otter."]}]}
            for key in keys
        ),
    )  # fmt: skip
    rows(
        folder / "extract/musique.jsonl.xz",
        *(
            {"id": key, "question": question, "answer": "Springfield",
             "paragraphs": [{"title": "Games", "text": "The host was Springfield."}]}
            for key in keys
        ),
    )  # fmt: skip
    monkeypatch.setenv("PRUNUS_DATA", str(folder))
    return tmp_path


def test_every_study_that_can_run_here_belongs_to_a_suite() -> None:
    for study in studies.known().values():
        assert any(suite.belongs(study) for suite in suites.SUITES.values()), study.name


def test_a_study_that_fails_is_told_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def own(study: Study, choice: Choice, folder: Path | None, progress: object) -> list[Table]:
        calls.append(study.name)
        if study.name == "b:1" and len(calls) == 2:
            raise DataMissing("b is not here")
        return [TABLE]

    made = {name: Study(name, "a title", run=own) for name in ("a:1", "b:1")}
    monkeypatch.setattr(studies, "known", lambda: made)
    said: list[str] = []
    first = suites.run("offline", Choice(), tmp_path, said.append)
    assert [one.failed for one in first] == ["", "b is not here"]
    assert any("b is not here" in line for line in said)
    assert [one.tables for one in suites.run("offline", Choice(), tmp_path)] == [(TABLE,), (TABLE,)]
    page = suites.page("b", "offline", first[1:], "prunus eval run --suite offline")
    assert "Not run: b is not here." in page


def test_a_page_shows_a_measurement_once(tmp_path: Path) -> None:
    one, two, three = (
        Row(label, (Number(value),), measured=label) for label, value in {"base": 1.0, "tree": 2.0, "new": 3.0}.items()
    )
    tables = {"b:1": (one, two), "b:2": (one, two, three), "b:3": (one, two)}
    done = [suites.Done(name, name, (Table(f"of {name}", ("em",), rows),), 1.0) for name, rows in tables.items()]
    page = suites.page("b", "offline", done, "prunus eval run --suite offline")
    assert [page.count(f"| {label} |") for label in ("base", "tree", "new")] == [2, 1, 1]  # new is compared with base
    assert "`b:1` has above: tree." in page and "`b:1` has above: base, tree." in page


def test_a_suite_in_its_folder_shows_the_data_as_they_are_now(two_pages: Path) -> None:
    command = ["run", "--suite", "offline", "--study", "htmlrag:3", *SOME[2:], "--out", str(two_pages / "run")]
    first, again = (CliRunner().invoke(main, [*command, "--json"]) for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    assert json.loads(again.stdout)[0]["tables"] == json.loads(first.stdout)[0]["tables"]  # from the same outcomes
    for path in (two_pages / "data").glob("*/*.xz"):
        path.write_bytes(lzma.compress(b"NOT JSON"))
    broken = CliRunner().invoke(main, command)
    assert broken.exit_code == 1
    assert "htmlrag:3 was not run" in broken.stderr


@pytest.mark.parametrize(
    ("error", "first", "runs", "code"),
    [
        (ReaderFailed("m: the prompt was refused"), "m: the prompt was refused", "abc", 1),
        (MetricError("em: no words"), "em: no words", "abc", 1),
        (KeyError("a bug"), "KeyError: 'a bug'", "abc", 1),
        (Unreachable("m: the server is gone"), "m: the server is gone", "ab", 3),
    ],
)
def test_only_a_model_that_cannot_be_reached_stops_a_suite(
    error: Exception, first: str, runs: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def own(study: Study, choice: Choice, folder: Path | None, progress: object) -> list[Table]:
        calls.append(study.name)
        if study.name == "b":
            raise error
        return [TABLE]

    made = {name: Study(name, "a title", answers=True, run=own) for name in "abc"}
    monkeypatch.setattr(studies, "known", lambda: made)
    command = ["run", "--suite", "smoke", "--reader", "scripted:x", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, command)
    assert ("".join(calls), result.exit_code) == (runs, code)
    assert "A table" in result.stdout
    said = result.stderr.splitlines()
    assert f"prunus eval: b was not run: {first}" in said
    assert ("prunus eval: c was not run: it was not begun, since the model of b could not be reached" in said) == (
        code == 3
    )
    missed = 4 - len(runs)
    kept = f"what was measured is kept in {tmp_path}: run the same command again to go on"
    assert said[-1] == f"prunus eval: {missed} of 3 studies were not run; {kept}"


def test_a_suite_goes_on_after_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def own(study: Study, choice: Choice, folder: Path | None, progress: object) -> list[Table]:
        calls.append(study.name)
        if calls == ["a", "b"]:
            raise KeyboardInterrupt
        return [TABLE]

    monkeypatch.setattr(studies, "known", lambda: {name: Study(name, "a title", run=own) for name in "ab"})
    command = ["run", "--suite", "offline", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 130
    assert f"interrupted; what was measured is kept in {tmp_path}: run the same command again" in result.stderr
    assert CliRunner().invoke(main, command).exit_code == 0
    assert calls == ["a", "b", "a", "b"]


def test_markdown_shows_intervals_marks_and_cited_rows() -> None:
    cited = Row("theirs", (Number(3), Number(4)), cited="Somebody, Table 1")
    text = studies.markdown(Table("T", ("a", "b"), (*TABLE.rows, cited), ("a note",), 1))
    assert "| ours | 1.0 [0.0 2.0] + | - |" in text
    assert "| *theirs, cited* | *3.0* | *4.0* |" in text
    assert "Cited: Somebody, Table 1." in text
    assert "theirs (cited)" in studies.text(Table("T", ("a", "b"), (cited,)))


def test_differences_are_paired_with_the_first_row() -> None:
    found = [
        Outcome("t", system, page, page, 1, {"m": value}, 1, 0.1)
        for system, values in {"first": (0, 1) * 5, "second": (1, 1) * 5}.items()
        for page, value in zip("abcdefghij", values, strict=True)
    ]
    first, second = studies.grid(
        found, [("F", {"system": "first"}), ("S", {"system": "second"})], [("M", {"metric": "m"})], scale=100
    )
    assert first.numbers[0] is not None
    assert first.numbers[0].against is None
    assert second.numbers[0] is not None
    assert second.numbers[0].value == 100
    assert second.numbers[0].against == (50, 20, 80)


SOME = ("--study", "htmlrag:3,htmlrag:4,htmlrag:cleaning,conversion", "--half", "all", "--budgets", "64")


def test_the_offline_suite_runs_end_to_end(two_pages: Path) -> None:
    out, pages = two_pages / "run", two_pages / "pages"
    command = ["run", "--suite", "offline", *SOME, "--out", str(out), "--markdown", str(pages), "--quiet"]
    result = CliRunner().invoke(main, command)
    done = json.loads(result.output.strip().splitlines()[-1]) if result.exit_code == 0 else result.stderr
    failed = {line.split()[2] for line in result.stderr.splitlines() if "was not run" in line}
    assert failed == {"htmlrag:4"}, done  # it needs twenty pages
    text = (pages / "htmlrag.md").read_text()
    assert f"prunus eval run --suite offline {' '.join(SOME)}" in text
    assert "table_qa (all half: 2 questions, 2 pages)" in text
    assert (pages / "conversion.md").is_file()
    assert "has 2 pages, not 20" in text


def test_the_smoke_suite_answers_with_a_scripted_reader(two_pages: Path) -> None:
    command = [
        "run",
        "--suite",
        "smoke",
        "--study",
        "htmlrag:1,htmlrag:2",
        "--half",
        "all",
        "--limit",
        "1",
        "--budgets",
        "64",
    ]
    result = CliRunner().invoke(main, [*command, "--reader", "scripted:Springfield", "--json"])
    assert result.exit_code == 0, result.output
    done = json.loads(result.stdout.strip().splitlines()[-1])
    assert [one["study"] for one in done] == ["htmlrag:1", "htmlrag:2"]
    said = " ".join(done[0]["tables"][0]["notes"])
    assert "scripted:Springfield (no model answered" in said


def test_a_suite_refuses_what_its_studies_decide(two_pages: Path) -> None:
    for more, words in (
        (["--systems", "text_cut"], "--systems is for --task"),
        (["--set", "colour=red"], "no study of the suite offline has a choice colour"),
        (["--study", "nothing"], "unknown study nothing"),
    ):
        result = CliRunner().invoke(main, ["run", "--suite", "offline", *more])
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())
    result = CliRunner().invoke(main, ["run", "--suite", "nothing"])
    assert "unknown suite nothing" in result.output


def test_a_study_whose_data_is_not_here_is_told_and_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        "here": Study("here", "a title", answers=True, run=lambda *_: [TABLE]),
        "gone": Study("gone", "a title", ("rgb",), answers=True, run=lambda *_: [TABLE]),
        "model": Study("model", "a title", options={"large": "a model"}, needs=("large",), run=lambda *_: [TABLE]),
    }
    monkeypatch.setattr(studies, "known", lambda: made)
    monkeypatch.setattr(studies.data, "missing_files", lambda files, source: "rgb.json is not here")
    command = ["run", "--suite", "smoke", "--reader", "scripted:x"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0
    said = result.stderr.splitlines()
    assert "prunus eval: gone was not run: rgb: rgb.json is not here" in said
    assert "prunus eval: model was not run: it needs --set large=, a model" in said
    assert said[-1] == "prunus eval: 2 of 3 studies were not run; what they lack is not here"
    assert CliRunner().invoke(main, [*command, "--study", "here,gone"]).exit_code == 1
    del made["here"]
    assert CliRunner().invoke(main, command).exit_code == 1


def test_in_a_trial_small_budgets_win_and_the_reader_judges() -> None:
    smoke, offline = suites.named("smoke"), suites.named("offline")
    readers = Choice(readers=("scripted:a", "scripted:b"))
    layers, ways, judged = (studies.named(name) for name in ("raptor:8", "raptor:figure-3", "sag:1"))
    assert suites.chosen(smoke, layers, readers).budgets == suites.chosen(smoke, ways, readers).budgets == (1024,)
    assert suites.chosen(offline, layers, Choice()).budgets == (2000,)
    assert suites.chosen(smoke, judged, readers).options == {"judge": "scripted:a"}
    assert suites.chosen(smoke, judged, Choice(readers=("scripted:a",), options={"judge": "j"})).options == {
        "judge": "j"
    }
