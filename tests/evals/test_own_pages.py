"""Your own pages and questions: the example of the documentation runs, and what is wrong in a file is one line."""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prunus_evals import tasks
from prunus_evals.cli import main
from prunus_evals.records import Question
from prunus_evals.report.numbers import cells_of
from prunus_evals.store import Store

REPOSITORY = Path(__file__).parents[2]
ANN = {"question": "Who is mayor?", "pages": ["town.html"], "answers": ["Ann Bo"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pages, without any data of the evaluation's own."""
    monkeypatch.delenv("PRUNUS_DATA", raising=False)
    (tmp_path / "more").mkdir()
    (tmp_path / "town.html").write_text("<h1>Town</h1><p>The mayor is <b>Ann</b> Bo.</p><p>It rains a lot.</p>")
    (tmp_path / "more" / "old.html").write_bytes('<meta charset="latin1"><p>The café is old.</p>'.encode("latin-1"))
    (tmp_path / "more" / "notes.md").write_text("# Notes\n\nThe *river* is Cam.\n")
    return tmp_path


def written(folder: Path, *rows: dict[str, Any] | str) -> str:
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return f"own:{path}"


def questions(task: str) -> list[Question]:
    return sorted((one for group in tasks.groups(task, "all") for one in group), key=lambda one: one.question)


def run(task: str, *more: str) -> Result:
    return CliRunner().invoke(main, ["run", "--task", task, "--systems", "text_cut", "--budgets", "50", *more])


def test_the_example_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (REPOSITORY / "docs" / "evaluation.md").read_text("utf-8").partition("## Measure on your own pages")[2]
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block
    commands = [shlex.split(line, comments=True) for line in block[1].splitlines() if "own:examples" in line]
    assert commands
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.delenv("PRUNUS_DATA", raising=False)
    for command in commands:
        assert command[:2] == ["prunus", "eval"]
        place = command.index("--out") + 1
        command[place] = str(tmp_path / "run")
        result = CliRunner().invoke(main, command[2:])
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / "run" / "report.html").is_file()
        assert "13 questions" in result.stdout


def test_pages_are_files_folders_and_what_a_search_gave(folder: Path) -> None:
    result = {"url": "https://x.example/", "title": "Cam", "snippet": "A river", "text": "The river is Cam."}
    task = written(
        folder,
        {"question": "1?", "pages": ["town.html", "more"]},
        {"question": "2?", "pages": [result, {"file": "town.html", "title": "Town"}, {"html": "<p>A"}], "id": 7},
    )
    first, second = questions(task)
    assert [one.id for one in first.documents] == ["town.html", "more/notes.md", "more/old.html"]
    assert [one.media_type for one in first.documents] == ["text/html", "text/markdown", "text/html"]
    assert "café" in first.documents[2].content
    assert second.id == "7"
    assert [one.id for one in second.documents] == ["https://x.example/", "town.html", "page 3"]
    assert [(one.title, one.snippet) for one in second.documents[:2]] == [("Cam", "A river"), ("Town", "")]
    assert [one.media_type for one in second.documents] == ["text/plain", "text/html", "text/html"]


def test_the_same_pages_are_one_page_however_they_are_listed(folder: Path) -> None:
    lists: list[list[Any]] = [
        ["town.html", "more/notes.md"],
        ["./more/notes.md", {"file": "town.html", "title": "Town", "snippet": "Ann"}],
        ["more/../town.html", "more/notes.md"],
    ]
    found = questions(written(folder, *({"question": str(n), "pages": one} for n, one in enumerate(lists))))
    assert len({one.page for one in found}) == 1
    assert [[page.id for page in one.documents] for one in found][:2] == [
        ["town.html", "more/notes.md"],
        ["more/notes.md", "town.html"],
    ]
    assert [one.documents[1].snippet for one in found] == ["", "Ann", ""]


def test_tables_tell_answers_that_stand_in_the_pages_from_others(folder: Path) -> None:
    task = written(
        folder,
        {**ANN, "question": "1?", "answers": [["Anna Bo", "Ann Bo"], "a lot"], "labels": {"topic": "people"}},
        {**ANN, "question": "2?", "answers": ["Eve"]},
        {**ANN, "question": "3: is Ann Bo the mayor?"},
        {"question": "4?", "pages": ["town.html"], "references": ["Ann is the mayor."]},
    )
    found = questions(task)
    assert [one.labels.get("answer in pages") for one in found] == ["yes", "no", "in the question", None]
    assert found[0].labels["topic"] == "people"
    assert found[0].spellings("Anna Bo") == ("Anna Bo", "Ann Bo")
    assert [one.kind for one in found] == ["short", "short", "short", "long"]
    assert len({one.page for one in found}) == 1
    result = run(task)
    assert result.exit_code == 0
    assert "4 questions, 1 page" in result.stdout


def test_evidence_is_what_a_person_reads(folder: Path) -> None:
    task = written(folder, {**ANN, "evidence": ["The mayor is Ann Bo."]})
    result = run(task, "--metrics", "gold_recall_4grams", "--json")
    assert json.loads(result.stdout)[task]["systems"]["text_cut"]["50"]["gold_recall_4grams"][0] == 1


def test_questions_without_answers_are_measured_by_their_cost_alone(folder: Path) -> None:
    task = written(folder, {"question": "Who?", "pages": ["town.html"]})
    result = run(task, "--reader", "scripted:Ann")
    assert result.exit_code == 0
    assert "tokens of evidence" in result.stdout
    assert "answer survives" not in result.stdout
    for metric in ("answer", "em_share", "rouge_l", "gold_recall_4grams", "quote_any", "accuracy", "ndcg"):
        result = run(task, "--reader", "scripted:Ann", "--metrics", metric)
        assert result.exit_code == 2
        assert f"{metric} applies to no question of {task}" in result.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: a line must be a JSON object, not a list"),
        ({"pages": ["town.html"]}, "line 2: the field 'question' is missing"),
        ({"question": " ", "pages": ["town.html"]}, "line 2: 'question' is empty"),
        ({"question": "?"}, "line 2: the field 'pages' is missing"),
        ({"question": "?", "pages": []}, "line 2: 'pages' is empty"),
        ({"question": "?", "pages": "town.html"}, "line 2: 'pages' must be a list, not a text"),
        ({"question": "?", "pages": [3]}, "line 2: 'pages' must be a list of paths and objects"),
        ({"question": "?", "pages": ["gone.html"]}, "gone.html: no such file"),
        ({"question": "?", "pages": ["town.html", "./town.html"]}, "line 2: the page town.html is named twice"),
        ({"question": "?", "pages": ["https://x.example/"]}, "save it with prunus fetch https://x.example/ -o pages"),
        ({"question": "?", "pages": [{"url": "https://x.example/"}]}, "page 1 needs one of 'file', 'html', 'text'"),
        ({"question": "?", "pages": [{"html": ""}]}, "line 2: page 1 is empty"),
        ({"question": "?", "pages": [{"file": "more"}]}, "line 2: more is a folder, not a file"),
        ({"question": "?", "pages": [{"htm": "<p>"}]}, "unknown field 'htm'; did you mean 'html'?"),
        ({"question": "?", "pages": ["paper.pdf"]}, "paper.pdf is no page"),
        ({"question": "?", "pages": ["binary.html"]}, "binary.html holds binary data"),
        ({**ANN, "answer": "Ann"}, "unknown field 'answer'; did you mean 'answers'?"),
        ({**ANN, "question": "x", "answers": "Ann"}, "line 2: 'answers' must be a list, not a text"),
        ({**ANN, "question": "x", "answers": [""]}, "line 2: 'answers' holds an empty text"),
        ({**ANN, "question": "x", "answers": [[]]}, "line 2: 'answers' holds an empty text"),
        ({**ANN, "question": "x", "answers": [3]}, "line 2: 'answers' must be a list of texts, and holds a number"),
        ({**ANN, "question": "x", "evidence": ["Eve is the mayor"]}, "stands in none of its pages"),
        ({**ANN, "question": "x", "labels": ["a"]}, "line 2: 'labels' must be an object"),
        ({**ANN, "question": "x", "labels": {"answer in pages": "a"}}, "is given by the task itself"),
        ({"question": "?", "pages": ["pipe"]}, "pipe is neither a file nor a folder"),
        (ANN, "line 2: the same question or 'id' as in line 1"),
    ],
)
def test_a_wrong_line_is_one_line_before_anything_is_run(folder: Path, line: dict[str, Any] | str, said: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7")
    (folder / "binary.html").write_bytes(b"\x89PNG" + bytes(300))
    result = run(written(folder, ANN, line), "--out", str(folder / "run"))
    assert result.exit_code == 2
    error = result.stderr.partition("Error: ")[2]
    assert said in error
    assert "questions.jsonl, line 2" in error
    assert error.count("\n") == 1
    assert not (folder / "run").exists()


def test_a_missing_file_is_one_line(folder: Path) -> None:
    for name, said in (
        ("own", "own needs a file of questions"),
        (f"own:{folder}/gone.jsonl", "gone.jsonl cannot be read: No such file"),
        (f"{folder}/questions.jsonl", f"is named own:{folder}/questions.jsonl"),
        (written(folder), "has no question"),
    ):
        result = run(name)
        assert result.exit_code == 2
        assert said in result.stderr


def test_the_list_names_the_task_without_data(folder: Path) -> None:
    entries = json.loads(CliRunner().invoke(main, ["list", "--json"]).output)["tasks"]
    assert [entry["missing"] for entry in entries if entry["name"] == "own:FILE"] == [""]
    assert [entry["name"] for entry in entries if ":" in entry["name"]] == ["own:FILE"]


def test_a_question_that_was_changed_replaces_the_old_one(folder: Path) -> None:
    out = folder / "run"
    kept = {**ANN, "question": "1?"}
    task = written(folder, kept, {**ANN, "question": "2?", "answers": ["Eve"]})
    run(task, "--out", str(out))
    written(folder, kept, {**ANN, "question": "2: who?"})
    result = run(task, "--out", str(out))
    assert "2 outcomes, 1 of them stored before" in result.stderr
    facts = json.loads((out / "report.json").read_text("utf-8"))["tasks"][task]
    assert facts["questions"] == 2
    assert facts["systems"]["text_cut"]["50"]["answer"][0] == 1


def _shown(out: Path, task: str) -> tuple[int, float | None]:
    """Return how many questions a report shows, and the mean of their answers."""
    CliRunner().invoke(main, ["report", str(out)])
    facts = json.loads((out / "report.json").read_text("utf-8"))["tasks"][task]
    return facts["questions"], facts["systems"]["text_cut"]["50"].get("answer", [None])[0]


def test_a_report_shows_what_the_last_run_asked_whatever_was_measured_before(folder: Path) -> None:
    out, wrong = folder / "run", {**ANN, "id": "a", "answers": ["Eve"]}
    right, other = {**ANN, "id": "a"}, {"id": "b", "question": "Rain?", "pages": ["town.html"], "answers": ["rains"]}
    for row, mean in ((right, 1.0), (wrong, 0.5), (right, 1.0)):
        task = written(folder, row, other)
        run(task, "--out", str(out))
        assert _shown(out, task) == (2, mean)
        with closing(Store(out)) as store:
            stored = store.question(task, "a")
            assert stored is not None and stored["answers"] == list(row["answers"])
    task = written(folder, {**ANN, "id": "a", "answers": [], "references": ["Ann Bo."]}, other)
    run(task, "--out", str(out))
    with closing(Store(out)) as store:
        assert ["answer" in outcome.scores for outcome in store.outcomes()].count(True) == 1
        cells = cells_of(store.outcomes())
    assert sum("answer" in outcome.scores for cell in cells.values() for outcome in cell.values()) == 1
