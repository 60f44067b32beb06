"""HtmlRAG's studies: the paper's rows and columns, cited numbers apart from ours, and names that exist."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from prunus_evals import harness, metrics, studies, systems, tasks
from prunus_evals.errors import DataMissing, EvalError
from prunus_evals.records import Outcome, Question, Reading, Stage, one_page
from prunus_evals.store import Store
from prunus_evals.studies import Choice, Number, Row, Table, conversion, htmlrag, htmlrag_costs
from prunus_evals.studies import _htmlrag_published as published
from prunus_evals.tokens import TokenizerCounter, llama2

ALL = [*htmlrag.STUDIES, *htmlrag_costs.STUDIES, *conversion.STUDIES]
OPTIONS = {"bge": "minilm", "e5": "e5", "pruner": "/models/p", "large": "/models/large", "small": "/models/small"}
READERS = ("none", "openai:big")


def choice(study: studies.Study, stand_ins: bool, readers: tuple[str, ...] = READERS) -> Choice:
    return Choice(
        readers=readers,
        stand_ins=stand_ins,
        options={name: value for name, value in OPTIONS.items() if name in study.options},
    )


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made from made-up outcomes: no model has to be here."""
    monkeypatch.setattr(systems, "missing", lambda name: "")


def outcomes(plan: studies.Plan, value: float = 0.5) -> list[Outcome]:
    """Return made-up outcomes of a plan: ten pages, every metric the same."""
    return [
        Outcome(
            task=task,
            system=system,
            page=page,
            question=f"{page}-1",
            budget=budget,
            scores=dict.fromkeys(plan.metrics, value),
            tokens=100 if system != "whole:html" else 1000,
            cpu_seconds=0.1,
            reader=reader,
            reading=None if reader == "none" else Reading("x", 3, 2, 0.5),
        )
        for task in plan.tasks
        for system in plan.systems
        for budget in plan.budgets
        for reader in plan.readers
        for page in "abcdefghij"
    ]


def made(name: str, chosen: Choice) -> list[Table]:
    study = studies.named(name)
    assert study.plans is not None
    assert study.tables is not None
    found = {key: outcomes(plan) for key, plan in study.plans(study, chosen).items()}
    return list(study.tables(study, chosen, found))


@pytest.mark.parametrize("stand_ins", [False, True])
@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_plans_name_only_what_exists(study: studies.Study, stand_ins: bool) -> None:
    for task in study.tasks(choice(study, stand_ins)):
        assert tasks.about(task)
    if study.plans is None:
        return
    for plan in study.plans(study, choice(study, stand_ins)).values():
        assert plan.metrics
        assert set(plan.metrics) <= set(metrics.known())
        assert all(systems.exists(name) for name in plan.systems)
        assert plan.systems


def test_every_row_of_the_paper_has_a_system() -> None:
    for lines in (
        htmlrag.short(Choice(options=OPTIONS)),
        htmlrag.whole(Choice()),
        htmlrag.ablation(Choice(options=OPTIONS)),
        htmlrag.sizes(Choice(options=OPTIONS)),
        list(conversion.LINES),
    ):
        for line in lines:
            assert line.why or systems.exists(line.system), line


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("htmlrag:1", ["BM25", "minilm, in the place of BGE", "HtmlRAG"], 10),
        ("htmlrag:2", ["Vanilla HTML", "Plain Text", "Markdown", "HtmlRAG w/o Prune"], 10),
        ("htmlrag:6", ["Vanilla HTML", "Plain Text", "Markdown", "HtmlRAG w/o Prune"], 10),
        ("htmlrag:3", ["HtmlRAG", "w/o Block Tree (DOM leaves)", "w/o Prune-Embed", "w/o Prune-Gen"], 10),
    ],
)
def test_tables_have_the_rows_and_columns_of_the_paper(
    monkeypatch: pytest.MonkeyPatch, name: str, rows: list[str], columns: int
) -> None:
    monkeypatch.setattr(systems, "missing", lambda name: "")
    table = made(name, choice(studies.named(name), stand_ins=False, readers=("openai:big",)))[0]
    labels = [row.label for row in table.rows if not row.cited]
    assert set(rows) <= set(labels)
    assert len(table.columns) == columns
    assert table.columns[:3] == ("ASQA Hit@1", "ASQA EM", "HotpotQA EM")
    assert all(len(row.numbers) == columns for row in table.rows if not row.cited)
    means = table.rows[0].numbers[:-1]  # made-up outcomes have no counts for the BLEU of all answers
    assert all(number == Number(50, 50, 50) for number in means)
    assert table.rows[0].numbers[-1] is None
    assert table.rows[1].numbers[0] == Number(50, 50, 50, (0, 0, 0))


@pytest.mark.parametrize("study", [study for study in ALL if study.plans], ids=lambda study: study.name)
@pytest.mark.parametrize("stand_ins", [False, True])
def test_cited_numbers_are_shown_as_they_were_published(study: studies.Study, stand_ins: bool) -> None:
    """Made-up outcomes of 50 % change nothing in a cited row, and no cited row has an interval."""
    cited = [row for table in made(study.name, choice(study, stand_ins)) for row in table.rows if row.cited]
    known = {
        Row(row.label, row.numbers)
        for numbers in (
            published.TABLE_1, published.TABLE_2, published.TABLE_3, published.TABLE_5, published.TABLE_6,
            published.TABLE_7, published.CLEANING,
        )
        for row in published.rows(numbers, "")
        if row.numbers
    }  # fmt: skip
    shown = {Row(row.label, row.numbers) for row in cited}
    if study.name not in ("conversion", "htmlrag:figure5"):
        assert shown
    assert all(number is None or number.low is None for row in cited for number in row.numbers)
    assert all(any(row.label == k.label and row.numbers == k.numbers for k in _plain(known)) for row in shown)


def _plain(rows: set[Row]) -> set[Row]:
    return {Row(row.label, row.numbers) for row in rows}


@pytest.mark.parametrize("study", [study for study in ALL if study.plans], ids=lambda study: study.name)
def test_every_table_says_what_it_shows(study: studies.Study) -> None:
    for table in made(study.name, choice(study, stand_ins=True, readers=("scripted:yes",))):
        if any(row.cited for row in table.rows):
            continue
        said = " ".join(table.notes)
        assert "Stand-ins for the sets of the paper: table_qa (dev half: 10 questions, 10 pages)" in said
        if study.name != "htmlrag:cleaning" and study.name != "htmlrag:5":
            assert "scripted:yes" in said


def test_rows_without_a_model_are_named_and_a_named_model_that_is_not_here_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = Choice(readers=("openai:big",), stand_ins=True, options={"bge": "minilm"})
    said = " ".join(made("htmlrag:1", chosen)[0].notes)
    assert "E5-Mistral (no embedder: --set e5=)" in said
    assert "HtmlRAG (it needs a trained pruner, --set pruner=FOLDER)" in said
    monkeypatch.setattr(systems, "missing", lambda name: "pip install it" if "minilm" in name else "")
    with pytest.raises(DataMissing, match="minilm, in the place of BGE, chunks:headings:minilm: pip install it"):
        made("htmlrag:1", chosen)


def test_figure_5_shows_every_baseline_as_a_line_and_marks_none_as_best() -> None:
    tables = made("htmlrag:figure5", Choice(stand_ins=True, budgets=(1024,)))
    assert tables[0].columns == ("64 words", "128 words", "256 words", "512 words")
    lines = [row for row in tables[0].rows if row.label.startswith("chunks, ")]
    assert [row.label for row in lines] == ["chunks, BM25", "chunks, static vectors"]
    assert all(len(set(row.numbers)) == 1 for row in lines)
    assert not [row for row in tables[0].rows if "best" in row.label]
    assert any("none is marked as best" in note for note in tables[0].notes)


def test_tables_about_html_have_no_sets_of_plain_text() -> None:
    for name in (
        "htmlrag:2",
        "htmlrag:3",
        "htmlrag:5",
        "htmlrag:6",
        "htmlrag:figure5",
        "htmlrag:cleaning",
        "conversion",
    ):
        assert studies.named(name).stand_ins == ("table_qa", "nq", "websrc"), name
    for name in ("htmlrag:4", "htmlrag:tokens"):
        assert studies.named(name).stand_ins == ("many_pages:table_qa",)
    table = made("htmlrag:1", Choice(readers=("openai:big",), stand_ins=True))[0]
    assert "hotpot EM" in table.columns
    assert any(
        note.startswith("hotpot:answer and musique hold paragraphs of plain text, no HTML") for note in table.notes
    )
    assert "no HTML" not in " ".join(made("htmlrag:5", Choice(stand_ins=True))[0].notes)


def test_table_5_has_sets_in_rows_and_lengths_in_columns() -> None:
    tables = made("htmlrag:5", Choice(stand_ins=True, budgets=(256, 512)))
    assert [row.label for row in tables[0].rows] == ["table_qa", "nq", "websrc"]
    assert {column.rpartition(", ")[2] for column in tables[0].columns} == {"128k", "8k", "4k"}
    assert tables[2].columns == ("256", "512")


def test_cleaning_counts_the_share_that_is_gone() -> None:
    table = made("htmlrag:cleaning", Choice(stand_ins=True))[0]
    assert table.rows[0].numbers[0] == Number(1000)
    assert table.rows[0].numbers[1] == Number(90)


def staged(*stages: Stage, page: str = "a", reading: Reading | None = None) -> Outcome:
    system = f"{systems.DEFAULT}@costs=yes"
    return Outcome("t", system, page, page, 1, {}, 10, 0.1, reader="r", reading=reading, stages=stages)


def test_stages_are_rows_by_their_names_whatever_other_questions_went_through() -> None:
    clean, prune = Stage("clean", 1000, 100, 0.5), Stage("prune", 100, 10, 0.1, 0.4)
    window = Stage("first stage, for the window", 100, 50, 0.3)
    found = htmlrag_costs._stage_rows("P", [staged(clean, prune), staged(clean, window, prune, page="b")])
    assert [row.label for row in found] == ["P: clean", "P: prune", "P: first stage, for the window"]
    assert [number and number.value for number in found[1].numbers] == [100, 10, pytest.approx(0.1), 0.4]
    assert [number and number.value for number in found[2].numbers] == [100, 50, 0.3, None]
    assert found[0].numbers[3] is None


def test_costs_are_those_of_the_named_stages() -> None:
    stages = (
        Stage("clean", 1000, 100, 0.5), Stage("cut into blocks", 90, 90, 0.25),
        Stage("first stage, for the window", 90, 50, 0.25), Stage("second stage", 40, 10, 1.0), Stage("choose and write", 10, 9, 0),
    )  # fmt: skip
    row = htmlrag_costs._cost_row("P", [staged(*stages)], "no model")
    assert [number and number.value for number in row.numbers] == [None, None, 90, 9, 2000]
    row = htmlrag_costs._cost_row("P", [staged(*stages)], "no model", only="second stage")
    assert [number and number.value for number in row.numbers] == [None, None, 40, 10, 1000]


def test_tokens_that_a_server_did_not_count_are_unknown_not_zero() -> None:
    counted = [staged(page=page, reading=Reading("x", 30, 2, 0.5)) for page in "ab"]
    assert [n and n.value for n in htmlrag_costs._chat_row("r", counted).numbers] == [None, None, 30, 2, 500]
    unknown = [*counted, staged(page="c", reading=Reading("x", 0, 0, 0.5))]
    assert [n and n.value for n in htmlrag_costs._chat_row("r", unknown).numbers] == [None, None, None, None, 500]


def test_a_study_of_twenty_pages_a_question_notes_what_was_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counter: TokenizerCounter
) -> None:
    pages = [
        [Question(f"q{n}", "table_qa", f"p{n}", one_page(f"<p>Ann is number {n}"), "Who?", ("Ann",))] for n in range(60)
    ]
    monkeypatch.setattr(studies, "missing", lambda study, choice: [])
    groups = tasks.groups
    monkeypatch.setattr(
        tasks,
        "groups",
        lambda name, *rest, **named: iter(pages) if name == "table_qa" else groups(name, *rest, **named),
    )
    monkeypatch.setattr(harness, "llama2", lambda: counter)
    study, chosen = studies.named("htmlrag:tokens"), Choice(stand_ins=True, half="report")
    table = studies.run(study, chosen, tmp_path)[0]
    assert [row.label for row in table.rows][:2] == ["Prune-Embed, to 8K: clean", "Prune-Embed, to 8K: cut into blocks"]
    with closing(Store(tmp_path, make=False)) as store:
        about = store.about()
    assert [plan["budgets"] for plan in about["plans"]] == [[8192], [4096]]
    assert about["plans"][0]["tasks"] == ["many_pages:table_qa"]
    assert [start["end"] for start in about["starts"]] == ["finished", "finished"]
    assert about["halves"] == {"many_pages:table_qa": "report"}


def test_two_rows_are_compared_by_question_not_by_order() -> None:
    def row(system: str, scores: dict[str, float]) -> list[Outcome]:
        return [
            Outcome("t", system, f"page {page}", f"{question} of {page}", 1, {"answer": value}, 10, 0.1)
            for page in range(10)
            for question, value in scores.items()
        ]

    found = [*row("first", {"a": 0, "b": 1, "c": 0.5}), *row("second", {"c": 1, "b": 1, "x": 0})]
    number = studies.mean(found, "answer", {"system": "first"}, system="second")
    assert number is not None
    assert number.value == pytest.approx(2 / 3)
    assert number.against == (0.25, 0.25, 0.25)  # c and b; a and x are alone
    assert number.unpaired == 20
    assert "| 0.667 [0.368 0.873] + |" in studies.markdown(Table("t", ("c",), (Row("second", (number,)),)))
    (note,) = studies.explained(Table("t", ("c",), (Row("second", (number,)),))).notes
    assert note.startswith("Up to 20 questions of a number stand in one row alone")


def test_a_table_of_few_pages_has_neither_intervals_nor_marks_and_says_why() -> None:
    chosen = Choice(stand_ins=True, budgets=(1024,))
    study = studies.named("conversion")
    assert study.plans is not None and study.tables is not None
    few = {
        key: [replace(one, scores=dict.fromkeys(one.scores, float(one.system == "prunus:trees:text")))
              for one in outcomes(plan) if one.page < "j"]
        for key, plan in study.plans(study, chosen).items()
    }  # fmt: skip
    table = study.tables(study, chosen, few)[0]
    assert {studies.cell(number, 0) for row in table.rows for number in row.numbers} == {"0.000", "100.000"}
    assert "Fewer than 10 pages give neither." in " ".join(table.notes)
    assert "No intervals and no marks: they need 10 pages." in studies.explained(table).notes
    assert studies.INTERVALS not in studies.explained(table).notes
    alone = replace(table, notes=(studies.ALONE,))
    assert studies.explained(alone).notes == ("No intervals: they need 10 pages.",)
    assert "(dev half: 1 question, 1 page)" in studies.notes(study, chosen, next(iter(few.values()))[:1])[0]


def test_every_caveat_is_told_once_with_whom_it_concerns() -> None:
    def outcome(system: str, reader: str, **caveats: str) -> Outcome:
        return Outcome("table_qa", system, "p", "q", 1, {}, 10, 0.1, reader=reader, caveats=caveats)

    study = studies.named("htmlrag:5")
    found = [outcome("a", "big"), outcome("a", "x", x="scripted"), outcome("llm", "x", x="scripted", llm="tiny"),
             outcome("llm", "big", llm="tiny"), outcome("a", "x", x="scripted")]  # fmt: skip
    said = studies.notes(study, Choice(stand_ins=True), found)
    assert said[1].startswith("Readers: big; x (no model answered")
    assert [line for line in said if "llm" in line] == [said[2]]
    assert said[2].startswith("llm works with a model: a model of less than a billion parameters")


def test_a_folder_of_weights_is_counted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    parameters, storage = htmlrag_costs.weights(f"generative:{tmp_path}")
    assert parameters == 12 / 1e6
    assert storage == pytest.approx((8 + len(header) + 48) / 1e9)
    assert htmlrag_costs.weights("nothing") == (None, None)


def test_a_study_says_in_one_line_what_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    for name, chosen, words in (
        ("htmlrag:1", Choice(stand_ins=True), "name a language model with --reader"),
        ("htmlrag:7", Choice(stand_ins=True), "--set large="),
        ("htmlrag:5", Choice(stand_ins=True), "table_qa/questions.jsonl.xz is not in"),
        ("htmlrag:5", Choice(), "is not in"),
        (
            "htmlrag:5",
            Choice(options={"colour": "red"}),
            "no choice colour; it takes: embedder, bge, e5, pruner, longllmlingua, jina",
        ),
    ):
        with pytest.raises(EvalError, match=words) as raised:
            studies.run(studies.named(name), chosen)
        assert "\n" not in str(raised.value)


def test_questions_of_many_pages_have_stages_that_hand_on_what_the_next_one_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(number: int) -> Question:
        rows = "".join(f"<tr><td>City {n}<td>{n * number}" for n in range(30))
        page = f"<p>Ann has {number} apples.</p><table><tr><th>City<th>Size{rows}</table>"
        return Question(str(number), "nq", str(number), one_page(page), f"How many apples has Ann {number}?", ("3",))

    groups = tasks.groups
    known = [[asked(number)] for number in range(3, 12)]
    monkeypatch.setattr(tasks, "groups", lambda name, half, *rest, **named: iter(known))
    monkeypatch.setattr(tasks, "TOGETHER", 4)
    found = [question for (question,) in groups("many_pages:nq", "all")]
    assert [len(question.documents) for question in found] == [4, 4]  # the ninth page has no others
    assert len({document.id for document in found[0].documents}) == 4
    system = systems.make("prunus:bm25>static:html@coarse=200@costs=yes", llama2())
    reply = system.prepare(found[0].documents).ask(found[0].question, 100)
    names = [stage.name for stage in reply.stages]
    assert names == ["clean", "cut into blocks", "first stage", "second stage", "choose and write"]
    for before, after in pairwise(reply.stages):
        assert before.tokens_out == after.tokens_in
    assert reply.stages[2].tokens_out <= 200 and reply.stages[-1].tokens_out <= 100
