"""Harness, report and gate use the same scorer, and report every number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus_evals import gate, harness, report, systems, tasks
from prunus_evals.cli import main
from prunus_evals.errors import BudgetBroken, DataMissing, EvalError, UnknownName
from prunus_evals.records import Asker, Document, Outcome, Question, Reply, one_page
from prunus_evals.tokens import TokenizerCounter


class Fixed:
    """A system that always keeps the same text."""

    def __init__(self, name: str, text: str, cpu: float | None = None) -> None:
        self.name = name
        self._reply = Reply(text, "text", cpu)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        return self

    def ask(self, question: str, budget: int) -> Reply:
        return self._reply


def question(page: str, answer: str = "Ann") -> Question:
    table = "<table class=wikitable><tr><td>Ann<td>12</table>"
    return Question(
        id=f"q-{page}-{answer}",
        task="table_qa",
        page=page,
        documents=one_page(f"<p>Bob</p>{table}"),
        question="Who?",
        answers=(answer,),
        gold_table=table,
    )


def run(
    pages: Sequence[Sequence[Question]], chosen: Sequence[Fixed], budgets: Sequence[int], counter: TokenizerCounter
) -> list[Outcome]:
    engines = harness.Engines(counter, [*chosen])
    return [outcome for page in pages for outcome in harness.run_page(page, engines, budgets)]


@pytest.fixture
def outcomes(counter: TokenizerCounter) -> list[Outcome]:
    pages = [[question("a")], [question("b"), question("b", "Bob")]]
    chosen = [Fixed(systems.DEFAULT, "Ann 12 Bob", 0.5), Fixed("other", "Ann, 12")]
    return run(pages, chosen, (8, 16), counter)


def test_scores(outcomes: list[Outcome]) -> None:
    assert len(outcomes) == 3 * 2 * 2
    first = outcomes[0]
    assert first.scores == {"answer": 1, "gold_whole": 1, "gold_share": 1}
    assert (first.tokens, first.cpu_seconds) == (4, 0.5)
    missed = [o for o in outcomes if not o.scores["answer"]]
    assert {(o.system, o.question) for o in missed} == {("other", "q-b-Bob")}


def test_a_broken_budget_is_an_error(counter: TokenizerCounter) -> None:
    with pytest.raises(BudgetBroken, match="4 tokens for a budget of 3"):
        run([[question("a")]], [Fixed("x", "Ann 12 Bob")], (3,), counter)


def test_element_survival(counter: TokenizerCounter) -> None:
    html = "<table><tr><td>Price<td tid=4>12 EUR</table>"
    asked = replace(question("a", "12"), documents=one_page(html), gold_table=None, element_id="4")
    kept = run([[asked]], [Fixed("x", "12 EUR"), Fixed("y", "12")], (9,), counter)
    assert [o.scores["gold_whole"] for o in kept] == [True, False]
    assert [o.scores["answer"] for o in kept] == [True, True]


def test_report(outcomes: list[Outcome]) -> None:
    result = report.summary(outcomes, "dev", systems.DEFAULT)
    text = report.table(result)
    assert "table_qa, dev half: 3 questions, 2 pages" in text
    assert "Δ" in text
    numbers = json.loads(report.json_line(result))["table_qa"]["systems"]
    assert numbers["other"]["8"]["answer"][0] == pytest.approx(2 / 3, abs=1e-4)
    assert numbers["other"]["8"]["default_minus_this"][0] == pytest.approx(1 / 3, abs=1e-4)
    assert "default_minus_this" not in numbers[systems.DEFAULT]["8"]


def test_report_without_the_default(outcomes: list[Outcome]) -> None:
    alone = [outcome for outcome in outcomes if outcome.system == "other"]
    assert "Δ +" not in report.table(report.summary(alone, "dev", systems.DEFAULT))


def test_gate_uses_the_reports_numbers(outcomes: list[Outcome]) -> None:
    measured = gate.survival_numbers(outcomes)
    numbers = report.summary(outcomes, "report", systems.DEFAULT)["table_qa"]
    assert isinstance(numbers, dict)
    shown = numbers["systems"]["other"]["8"]["answer"][0]
    assert measured["survival/table_qa/other/8/answer"] == shown


def test_gate_checks() -> None:
    floors = {"survival/t/s/512/answer": 0.7, "articles/c/survived": 0.995, "gone": 0.1}
    measured = {"survival/t/s/512/answer": 0.7, "articles/c/survived": 0.99, "new": 1.0}
    passed = {check.name: check.passed for check in gate.compare(measured, floors)}
    assert passed == {
        "survival/t/s/512/answer": True,
        "articles/c/survived": False,
        "gone": False,
        "new": False,
    }


def test_an_empty_gate_fails() -> None:
    assert not all(check.passed for check in gate.compare({}, {}))


def test_floors_go_round(tmp_path: Path) -> None:
    flat = {"survival/t/s:v/512/answer": 0.7, "articles/prunus:html/survived": 0.995}
    path = tmp_path / "floors.json"
    path.write_text(json.dumps(gate.nested(flat)))
    assert gate.load_floors(path) == flat
    path.write_text('{"half": "dev"}')
    with pytest.raises(EvalError):
        gate.load_floors(path)


def test_pinned_floors_can_be_read() -> None:
    assert all(0 <= floor <= 1 for floor in gate.load_floors().values())


def test_unfair_questions_are_left_out() -> None:
    asked = question("a")
    assert tasks.checked(asked) == asked
    assert tasks.checked(replace(asked, question="Was it Ann?")) is None
    assert tasks.checked(replace(asked, answers=("Carl",))) is None
    hidden = replace(asked, documents=one_page(f"<p>Ann<div hidden>{asked.gold_table}</div>"))
    assert tasks.checked(hidden) == replace(hidden, gold_table=None)


def test_task_names() -> None:
    assert {"nq", "table_qa", "websrc", "htmlrag", "needle"} <= {*tasks.names()}
    assert tasks.expand("table_qa, page_qa") == ["table_qa", "websrc", "nq"]
    with pytest.raises(UnknownName):
        tasks.expand("nothing")


def test_missing_data_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRUNUS_DATA", raising=False)
    with pytest.raises(DataMissing, match="PRUNUS_DATA"):
        tasks.load("nq", "dev")
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match="missing"):
        tasks.load("nq", "dev")
    result = CliRunner().invoke(main, ["run", "--task", "nq", "--systems", "text_cut"])
    assert result.exit_code == 2
    assert "is missing" in result.output


@pytest.mark.parametrize(
    "arguments",
    [["run", "--task", "nq", "--systems", "nobody"], ["run", "--task", "nq", "--budgets", "x"], ["run", "--half"]],
)
def test_bad_usage(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
