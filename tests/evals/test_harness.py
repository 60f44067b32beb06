"""The harness: a run that stops goes on, no model is asked the same thing twice, and nothing is dropped silently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus.core.errors import BadInput, OutsideFailed
from prunus_evals import harness, metrics, prompts, provenance, readers, studies, tasks
from prunus_evals.cli import main
from prunus_evals.errors import EvalError, MetricError, ReaderFailed, SystemFailed, UnknownName, Unreachable
from prunus_evals.metrics import Metric
from prunus_evals.records import Asker, Document, Outcome, Output, Question, Reading, Reply, Span, one_page
from prunus_evals.store import Store
from prunus_evals.studies import Choice, Study
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


def test_list_says_once_what_nearly_all_tasks_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRUNUS_DATA", raising=False)
    said = "missing for all but own:FILE: the evaluation data is missing: set PRUNUS_DATA"
    output = CliRunner().invoke(main, ["list"]).output
    assert said in output
    assert output.count("the evaluation data is missing") == 1


def test_list_says_in_json_what_everything_needs_whether_it_is_here_or_not() -> None:
    found = json.loads(CliRunner().invoke(main, ["list", "--json"]).output)
    needs = {kind: {entry["name"]: entry["needs"] for entry in entries} for kind, entries in found.items()}
    assert needs["tasks"]["nq"].startswith("page_qa/nq.jsonl.xz in the folder that PRUNUS_DATA names; source: ")
    assert needs["tasks"]["own:FILE"] == needs["systems"]["text_cut"] == ""
    assert "pip install trafilatura" in needs["systems"]["main_text"]
    assert metrics.INSTALL in needs["metrics"]["rouge_l"]
    assert "name a language model with --reader" in needs["studies"]["htmlrag:1"]
    for entry in (entry for entries in found.values() for entry in entries):
        assert entry["needs"] or not entry["missing"], entry["name"]


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


@pytest.mark.usefixtures("pages")
def test_what_other_code_measured_is_not_used_and_not_shown(
    tmp_path: Path, counter: TokenizerCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path, counter, Whole())
    monkeypatch.setattr(provenance, "code", lambda: "changed")
    again = Whole()
    told: list[bool] = []
    engines = harness.Engines(counter, [again])
    second = harness.run(PLAN, tmp_path, lambda state: told.append(state.changed), engines)
    assert again.asked == len(second) == 3
    assert all(told)
    assert {outcome.state for outcome in first} & {outcome.state for outcome in second} == set()
    with closing(Store(tmp_path)) as store:
        assert store.outcomes() == second


@pytest.mark.parametrize(
    ("variable", "value", "measured"), [("PRUNUS_SCORER", "bm25", 3), ("PRUNUS_LLM_KEY", "secret", 0)]
)
@pytest.mark.usefixtures("pages")
def test_a_setting_that_can_change_an_outcome_is_another_state(
    variable: str, value: str, measured: int, tmp_path: Path, counter: TokenizerCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, counter, Whole())
    monkeypatch.setenv(variable, value)
    again = Whole()
    run(tmp_path, counter, again)
    assert again.asked == measured


OTHER: dict[str, object] = {
    "aliases": {"1": ("one",)}, "labels": {"page": "wrong"}, "correct": 0, "tags": (1,), "gold": (Span("page", 0, 1),),
    "kind": "long", "gold_table": "<table>", "element_id": "7",
    "documents": one_page("<p>Another page."),
}  # fmt: skip
"""Other values of the fields of a question that hold no text, or no list of texts."""


@pytest.mark.parametrize("field", [field.name for field in fields(Question)])
def test_every_field_of_a_question_is_in_the_key(field: str) -> None:
    store, question = Store(None), asked("a", 1)
    other: object = OTHER.get(field, ("x",) if isinstance(getattr(question, field), tuple) else "x")
    changed = replace(question, **{field: other})
    assert store.key(question, "s", 1, "none", "", []) != store.key(changed, "s", 1, "none", "", [])


@pytest.mark.parametrize("field", [field.name for field in fields(Document)])
def test_every_field_of_a_document_is_in_the_key(field: str) -> None:
    store, question = Store(None), asked("a", 1)
    changed = replace(question, documents=(replace(question.documents[0], **{field: "x"}),))
    assert store.key(question, "s", 1, "none", "", []) != store.key(changed, "s", 1, "none", "", [])


def test_the_prompt_that_a_question_names_is_used() -> None:
    question = replace(asked("a", 1), prompt="several")
    assert readers.prompt_of(question) == prompts.template("several")
    assert readers.prompt_of(question, "long") == prompts.template("long")


@pytest.mark.usefixtures("pages")
def test_tables_say_what_is_behind_the_system_and_behind_the_reader(counter: TokenizerCounter) -> None:
    system = Whole()
    system.caveat = "tiny"  # type: ignore[attr-defined]
    found = run(None, counter, system, Parrot())
    assert found[0].caveat == "scripted, tiny"
    assert readers.CAVEATS[found[0].caveat].startswith("no model answered")
    said = studies.notes(Study("a:1", "a", paper_tasks=("nq",)), Choice(), found)
    assert any(line.startswith("Readers: parrot (no model answered") for line in said)
    assert any(line.startswith("whole works with a model: a model of less than a billion") for line in said)
    system.caveat = "scripted"  # type: ignore[attr-defined]
    assert run(None, counter, system, Parrot())[0].caveat == "scripted"


class Failing(Whole):
    """A system that fails at its second question."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def ask(self, question: str, budget: int) -> Reply:
        if self.asked == 1:
            raise self.error
        return super().ask(question, budget)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OutsideFailed("m at host: HTTP 500"), ReaderFailed, "whole: m at host: HTTP 500"),
        (OutsideFailed("m at host: no connection", sent=False), Unreachable, "whole: m at host: no connection"),
        (BadInput("a prompt that is too long"), SystemFailed, "whole: a prompt that is too long"),
        (RuntimeError("out of\nmemory"), SystemFailed, "whole failed at question a-2 of nq: RuntimeError: out of memory"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("pages")
def test_a_system_whose_model_fails_loses_nothing(
    error: Exception, kind: type[EvalError], said: str, tmp_path: Path, counter: TokenizerCounter
) -> None:
    with pytest.raises(kind) as raised:
        run(tmp_path, counter, Failing(error))
    assert str(raised.value) == said
    with closing(Store(tmp_path)) as store:
        assert [outcome.question for outcome in store.outcomes()] == ["a-1"]
        assert store.fact("starts")[-1]["end"] == f"failed: {said}"
    system = Whole()
    assert len(run(tmp_path, counter, system)) == 3
    assert system.asked == 2


def test_runs_that_share_a_folder_keep_each_others_notes(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as one, closing(Store(tmp_path)) as two:
        first = provenance.noted(one, {"tasks": ["a"]}, {"a": "dev"})
        with first, provenance.noted(two, {"tasks": ["b"]}, {"b": "all"}, add=True):
            provenance.note_left_out(one, "a", [])
            provenance.note_left_out(two, "b", [])
        about = one.about()
    assert [start["end"] for start in about["starts"]] == ["finished", "finished"]
    assert (about["plans"], about["halves"]) == ([{"tasks": ["a"]}, {"tasks": ["b"]}], {"a": "dev", "b": "all"})
    assert about["left_out"] == {"a": {}, "b": {}}


class Served(Parrot):
    """A reader whose server changes its model."""

    def __init__(self, reply: str) -> None:
        super().__init__()
        self.reply = reply

    def read(self, question: Question, evidence: str) -> Reading:
        return Reading(self.reply)


@pytest.mark.usefixtures("pages")
def test_the_answers_of_the_model_that_was_asked_last_are_shown(
    tmp_path: Path, counter: TokenizerCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for served in ("7B", "135M", "7B"):
        monkeypatch.setattr(readers, "identity", lambda spec, store, served=served: f"{spec} {served}")
        found = run(tmp_path, counter, Whole(), Served(served))
        with closing(Store(tmp_path)) as store:
            assert store.outcomes() == found
        assert {outcome.reading and outcome.reading.text for outcome in found} == {served}
