"""HtmlRAG's studies: the paper's rows and columns, cited numbers apart from ours, and names that exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prunus_evals import metrics, studies, systems, tasks
from prunus_evals.errors import EvalError
from prunus_evals.records import Outcome, Reading, Stage
from prunus_evals.studies import Choice, Number, Row, Table, conversion, htmlrag, htmlrag_costs
from prunus_evals.studies import _htmlrag_published as published

ALL = [*htmlrag.STUDIES, *htmlrag_costs.STUDIES, *conversion.STUDIES]
OPTIONS = {"bge": "minilm", "e5": "e5", "pruner": "/models/p", "large": "/models/large", "small": "/models/small"}
READERS = ("none", "openai:big")


def choice(study: studies.Study, stand_ins: bool, readers: tuple[str, ...] = READERS) -> Choice:
    return Choice(
        readers=readers,
        stand_ins=stand_ins,
        options={name: value for name, value in OPTIONS.items() if name in study.options},
    )


def outcomes(plan: studies.Plan, value: float = 0.5) -> list[Outcome]:
    """Return made-up outcomes of a plan: two pages, every metric the same."""
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
        for page in ("a", "b")
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
        assert "Stand-ins for the sets of the paper: table_qa (dev half: 2 questions, 2 pages)" in said
        if study.name != "htmlrag:cleaning" and study.name != "htmlrag:5":
            assert "scripted:yes" in said


def test_rows_that_cannot_be_run_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "missing", lambda name: "pip install it" if "minilm" in name else "")
    table = made("htmlrag:1", Choice(readers=("openai:big",), stand_ins=True, options={"bge": "minilm"}))[0]
    assert "minilm, in the place of BGE" not in [row.label for row in table.rows]
    said = " ".join(table.notes)
    assert "minilm, in the place of BGE (pip install it)" in said
    assert "E5-Mistral (no embedder: --set e5=)" in said
    assert "HtmlRAG (it needs a trained pruner, --set pruner=FOLDER)" in said


def test_figure_5_repeats_the_best_chunks_as_its_line() -> None:
    tables = made("htmlrag:figure5", Choice(stand_ins=True, budgets=(1024,)))
    assert tables[0].columns == ("64 words", "128 words", "256 words", "512 words")
    assert tables[0].rows[-1].label.endswith("(the red line)")
    assert len(set(tables[0].rows[-1].numbers)) == 1


def test_table_5_has_sets_in_rows_and_lengths_in_columns() -> None:
    tables = made("htmlrag:5", Choice(stand_ins=True, budgets=(256, 512)))
    assert [row.label for row in tables[0].rows] == [s.title for s in htmlrag.STAND_INS]
    assert {column.rpartition(", ")[2] for column in tables[0].columns} == {"128k", "8k", "4k"}
    assert tables[2].columns == ("256", "512")


def test_cleaning_counts_the_share_that_is_gone() -> None:
    table = made("htmlrag:cleaning", Choice(stand_ins=True))[0]
    assert table.rows[0].numbers[0] == Number(1000)
    assert table.rows[0].numbers[1] == Number(90)


def test_stages_are_rows() -> None:
    stages = (Stage("clean", 1000, 100, 0.5), Stage("prune", 100, 10, 0.1, 0.4))
    found = htmlrag_costs._stage_rows(
        "P", [Outcome("t", "s", page, "q", 1, {}, 10, 0.1, stages=stages) for page in ("a", "b")]
    )
    assert [row.label for row in found] == ["P: clean", "P: prune"]
    assert [number and number.value for number in found[1].numbers] == [100, 10, pytest.approx(0.1), 0.4]
    assert found[0].numbers[3] is None


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
