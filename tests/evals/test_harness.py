"""The harness: a run that stops goes on, no model is asked the same thing twice, and nothing is dropped silently."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus_evals import harness, metrics, tasks
from prunus_evals.cli import main
from prunus_evals.errors import EvalError, MetricError, ReaderFailed, UnknownName
from prunus_evals.metrics import Metric
from prunus_evals.records import Asker, Document, Outcome, Output, Question, Reading, Reply, one_page
from prunus_evals.store import Store
from prunus_evals.tokens import TokenizerCounter

PLAN = harness.Plan(tasks=("nq",), systems=("whole",), budgets=(50,))


class Whole:
    """Keeps the whole page, and counts how often it was asked."""

    name = "whole"

    def __init__(self) -> None:
        self.prepared = self.asked = 0

    def prepare(self, documents: Sequence[Document]) -> Asker:
        self.prepared += 1
        self._text = documents[0].content
        return self

    def ask(self, question: str, budget: int) -> Reply:
        self.asked += 1
        return Reply(self._text, "html")


class Parrot:
    """A reader that repeats the evidence, and fails at some questions."""

    name = "parrot"
    real = False

    def __init__(self, fails_at: str = "") -> None:
        self.fails_at = fails_at

    def read(self, question: Question, evidence: str) -> Reading:
        if question.id == self.fails_at:
            raise ReaderFailed("parrot: the server is gone")
        return Reading(evidence, 7, 3, 0.5)


def asked(page: str, number: int) -> Question:
    text = f"<p>Ann has {number} apples, Bob has none on page {page}."
    return Question(f"{page}-{number}", "nq", page, one_page(text), "How many?", (str(number),))


PAGES = [[asked("a", 1), asked("a", 2)], [asked("b", 3)]]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "groups", lambda *_, **__: iter(PAGES))


def run(folder: Path | None, counter: TokenizerCounter, system: Whole, reader: Parrot | None = None) -> list[Outcome]:
    readers = {"parrot": reader} if reader else {}
    return harness.run(PLAN, folder, engines=harness.Engines(counter, [system], readers))


@pytest.mark.usefixtures("pages")
def test_a_run_is_not_measured_twice(tmp_path: Path, counter: TokenizerCounter) -> None:
    first = run(tmp_path, counter, Whole())
    again = Whole()
    assert run(tmp_path, counter, again) == first
    assert again.asked == 0
    assert [outcome.scores["answer"] for outcome in first] == [1, 1, 1]


@pytest.mark.usefixtures("pages")
def test_a_reader_that_fails_loses_nothing(tmp_path: Path, counter: TokenizerCounter) -> None:
    with pytest.raises(ReaderFailed, match="the server is gone"):
        run(tmp_path, counter, Whole(), Parrot(fails_at="a-2"))
    store = Store(tmp_path)
    assert [outcome.question for outcome in store.outcomes()] == ["a-1"]
    store.close()
    system = Whole()
    found = run(tmp_path, counter, system, Parrot())
    assert [outcome.question for outcome in found] == ["a-1", "a-2", "b-3"]
    assert system.asked == 2
    assert found[0].reading == Reading("<p>Ann has 1 apples, Bob has none on page a.", 7, 3, 0.5)


def test_a_changed_page_is_measured_again(counter: TokenizerCounter) -> None:
    store = Store(None)
    chosen = metrics.named(["answer"])
    keys = {store.key(asked(page, 1), "whole", 50, "none", "", chosen) for page in "ab"}
    keys |= {store.key(asked("a", 1), "whole", 50, reader, "", chosen) for reader in ("none", "parrot")}
    keys |= {store.key(asked("a", 1), "whole", 51, "none", "", chosen)}
    assert len(keys) == 4


@pytest.mark.usefixtures("pages")
def test_a_metric_that_cannot_be_computed_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, counter: TokenizerCounter
) -> None:
    def broken(question: Question, output: Output) -> float:
        raise MetricError("no words")

    monkeypatch.setitem(metrics.known(), "answer", Metric("answer", "evidence", "broken", broken))
    with pytest.raises(MetricError, match="answer of nq, question a-1: no words"):
        run(None, counter, Whole())


def test_names_are_checked_before_anything_runs() -> None:
    for plan in (
        harness.Plan(tasks=("nothing",), systems=("text_cut",)),
        harness.Plan(tasks=("nq",), systems=("nothing",)),
        harness.Plan(tasks=("nq",), systems=("text_cut",), metrics=("nothing",)),
        harness.Plan(tasks=("nq",), systems=("text_cut",), readers=("nothing:at-all",)),
        harness.Plan(tasks=("nq",), systems=("text_cut",), readers=("scripted:x",), prompt="nothing"),
    ):
        with pytest.raises(UnknownName, match="nothing"):
            harness.run(plan)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_text("not a database, but long enough to be looked at " * 30)
    with pytest.raises(EvalError, match="cannot be opened"):
        Store(tmp_path)


def test_list_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    result = CliRunner().invoke(main, ["list"])
    assert result.exit_code == 0
    assert "page_qa/nq.jsonl.xz is not in" in result.output
    assert '"metrics": [' in CliRunner().invoke(main, ["list", "--json"]).output


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    for options, said in (
        ("--task tableqa", "did you mean 'table_qa'?"),
        ("--task qasper:tst", "did you mean 'test'?"),
        ("--task nq --metrics answr", "did you mean 'answer'?"),
        ("--task nq --systems prunus:hybrd:html", "did you mean 'prunus:hybrid:html'?"),
        ("--task nq --systems prnus", "did you mean 'prunus'?"),
        ("--task nq --reader scripted:x --prompt shrt", "did you mean 'short'?"),
        ("--suite offlin", "did you mean 'offline'?"),
    ):
        assert said in CliRunner().invoke(main, ["run", *options.split()]).stderr
    assert "did you mean 'htmlrag:5'?" in CliRunner().invoke(main, ["study", "htmlrag:55"]).stderr


def test_errors_of_a_run_are_one_line() -> None:
    for arguments in (["--task", "x"], ["--task", "nq", "--metrics", "x"], ["--task", "nq", "--budgets", "many"]):
        result = CliRunner().invoke(main, ["run", *arguments])
        assert result.exit_code == 2
        assert "Traceback" not in result.output
