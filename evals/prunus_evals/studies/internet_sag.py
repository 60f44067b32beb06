"""Internet-SAG (He and others, 2024): Tables 1 to 5, and whether a parser sees the need for a search.

An extractor without a model is a system that names tags. Any language model is an extractor by its prompt alone: name
it with ``--reader SPEC``, and it reads all sentences with their tags.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import prunus
from prunus.core.settings import load_settings
from prunus.core.types import Message
from prunus.engines import Maker
from prunus_evals import harness, readers, studies, systems
from prunus_evals.judging.session import Place
from prunus_evals.progress import Progress
from prunus_evals.records import Outcome, Question, Reader, Reading, System
from prunus_evals.studies import Choice, Number, Row, Study, Table, _sag_published
from prunus_evals.studies._baselines import Nothing, VectorDB
from prunus_evals.studies._extractors import EXTRACTORS, TAGGED, Extractor, PageExtractor
from prunus_evals.studies._raptor_published import Published
from prunus_evals.studies.raptor import beside, cited
from prunus_evals.tokens import Counter, llama2

WHOLE = 131_072
"""A budget that holds all pages of a question."""

LONG = "long"
"""The prompt of readers that answer from pages; the paper's asks for detailed answers, too."""
PAGES = "sag-pages"
"""Folder of these answers within that of the run: a judge compares all answers of a folder, and it has one prompt."""

F1 = "tags_f1"
NEEDLES = {
    "Base": "needle:base",
    "Reasoning": "needle:reasoning",
    "Multi-Ans": "needle:multi_answer",
    "Multi-Q": "needle:multi_question",
}
OPEN_SOURCE = {"Reasoning": "twowiki:tags", "Multi-Ans": "mtqa", "Multi-Q": "mti"}
OPEN_STAND_INS = ("hotpot:tags",)
REAL_WORLD = "request_log"
REAL_STAND_IN = "hotpot:pages"
FOUR = {"Recall": "tags_recall", "Precision": "tags_precision", "F1": F1, "EM": "tags_exact"}
PAGES_STAND_INS = ("crag",)
NAIVE = "whole:soup"
"""Plain text of all pages, one after another."""

OPTIONS = {"extractors": f"extractors without a model, separated by semicolons; {';'.join(EXTRACTORS)} by default"}
PAGES_OPTIONS = {
    "extractor": "sentences (default), or the spec of a language model that names tags",
    "embedder": "embedder of VectorDB-RAG, static by default (the paper: BGE-m3)",
}
Tell = Callable[[str], None]


def extractors_of(choice: Choice, counter: Counter) -> list[Extractor]:
    """Return the extractors that need no model.

    :raises UnknownName: there is no such extractor.
    """
    specs = choice.options.get("extractors", ";".join(EXTRACTORS)).split(";")
    return [Extractor(spec.strip(), counter) for spec in specs if spec.strip()]


# --- Tables 3 to 5: extraction -------------------------------------------------------------------


def extracted(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> list[Outcome]:
    """Run the extractors, and the readers over all sentences with their tags."""
    counter = llama2()
    made = extractors_of(choice, counter)
    found = _measured(study, replace(choice, readers=()), made, (WHOLE,), folder, progress)
    if choice.readers:
        found += _measured(study, choice, [Extractor(TAGGED, counter)], (_room(choice),), folder, progress)
    return found


def _room(choice: Choice) -> int:
    """Return the tokens that a reader gets: all, unless the user says otherwise."""
    return max(choice.budgets, default=WHOLE)


def _measured(
    study: Study,
    choice: Choice,
    made: Sequence[System],
    budgets: Sequence[int],
    folder: Path | None,
    progress: Tell,
    wanted: Sequence[str] = tuple(FOUR.values()),
    prompt: str = "",
) -> list[Outcome]:
    plan = studies.plan(study, choice, [system.name for system in made], budgets, metrics=tuple(wanted))
    plan = replace(plan, budgets=tuple(budgets), prompt=prompt)
    engines = harness.Engines(llama2(), list(made), {spec: readers.make(spec, prompt) for spec in plan.readers})
    tell = Progress(before=f"{study.name}, ", write=progress)
    return harness.run(plan, folder, tell, engines, add=True)


def rows_of(choice: Choice) -> list[tuple[str, dict[str, object]]]:
    """Return labels, and the fields of the outcomes of each row: extractors without a model, then readers."""
    specs = choice.options.get("extractors", ";".join(EXTRACTORS)).split(";")
    rows: list[tuple[str, dict[str, object]]] = []
    for spec in filter(None, (spec.strip() for spec in specs)):
        rows.append((LABELS.get(spec, spec), {"system": f"extract:{spec}", "reader": harness.NO_READER}))
    for reader in choice.readers:
        rows.append((f"{reader}, by prompt alone", {"system": f"extract:{TAGGED}", "reader": reader}))
    return rows


LABELS = {"sentences": "Prunus: sentences (no model)", "bm25:3": "BM25, 3 sentences", "everything": "All sentences"}


def extraction_tables(
    study: Study,
    choice: Choice,
    columns: Sequence[tuple[str, str, str]],
    published: Published,
    outcomes: Sequence[Outcome],
) -> list[Table]:
    """Return a table of extraction: our rows, then the cited ones; on stand-ins the cited table stands apart.

    :param columns: titles, tasks and metrics.
    """
    fields = [(title, {"metric": metric, "task": task}) for title, task, metric in columns]
    own = Table(study.title, tuple(title for title, _ in fields), studies.grid(outcomes, rows_of(choice), fields))
    said = [*studies.notes(study, choice, outcomes), NONE_NOTE]
    if choice.stand_ins and study.stand_ins != study.paper_tasks:
        return [replace(own, notes=tuple(said)), cited(study.title, published, digits=3)]
    return [beside(own, published, said)]


NONE_NOTE = (
    "Means over questions. Where no sentence answers, only an extractor that finds none is right; a reply that names "
    "neither tags nor None is wrong."
)


def _run_needles(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    columns = [(title, task, F1) for title, task in NEEDLES.items()]
    outcomes = extracted(study, choice, folder, progress)
    own, *rest = extraction_tables(study, choice, columns, _sag_published.TABLE_3, outcomes)
    own = replace(own, notes=(*own.notes, "The paper's needles are not published; those of the room are its own."))
    tables = [own, *rest]
    said = studies.notes(study, choice, outcomes)
    return [*tables, *(map_of(label, fields, outcomes, said) for label, fields in rows_of(choice))]


def map_of(label: str, fields: Mapping[str, object], outcomes: Sequence[Outcome], said: tuple[str, ...]) -> Table:
    """Return the F1 of one row over all needles by length of the text (rows, tokens) and depth (columns, percent)."""
    own = [o for o in outcomes if all(getattr(o, name) == value for name, value in fields.items())]
    lengths, depths = (sorted({int(o.labels[name]) for o in own if name in o.labels}) for name in ("length", "depth"))
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for one in own:
        cells.setdefault((one.labels.get("length", ""), one.labels.get("depth", "")), []).append(one)
    rows = []
    for length in lengths:
        found = (studies.mean(cells.get((str(length), str(depth)), []), F1) for depth in depths)
        rows.append(Row(f"{length} tokens", tuple(number and Number(number.value) for number in found)))
    title = f"Internet-SAG, needles by length and depth: {label}, F1 of all needles"
    return Table(title, tuple(f"{depth} %" for depth in depths), tuple(rows), said)


def _run_open_source(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    names = {task: task for task in OPEN_STAND_INS} if choice.stand_ins else OPEN_SOURCE
    columns = [(title, task, F1) for title, task in names.items()]
    outcomes = extracted(study, choice, folder, progress)
    return extraction_tables(study, choice, columns, _sag_published.TABLE_4, outcomes)


def _run_real_world(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    (task,) = study.tasks(choice)
    columns = [(title, task, metric) for title, metric in FOUR.items()]
    outcomes = extracted(study, choice, folder, progress)
    return extraction_tables(study, choice, columns, _sag_published.TABLE_5, outcomes)


# --- Tables 1 and 2: whole pages -----------------------------------------------------------------


def page_systems(choice: Choice, counter: Counter) -> dict[str, System]:
    """Return the paper's three systems, by their names in the paper."""
    extractor = choice.options.get("extractor", "sentences")
    return {
        "Internet-SAG-Ext": PageExtractor(extractor, counter),
        "Internet-SAG-Naive": systems.make(NAIVE, counter),
        "VectorDB-RAG": VectorDB(choice.options.get("embedder", "static"), counter),
    }


def _run_tokens(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    made = page_systems(choice, llama2())
    budget = _room(choice) if choice.readers else WHOLE
    place = folder / PAGES if folder else None
    outcomes = _measured(study, choice, [*made.values()], (budget,), place, progress, ("answer",), LONG)
    said = [*studies.notes(study, choice, outcomes), *_systems_notes(choice, budget)]
    said.append("Evidence is counted by the Llama-2 tokenizer; prompts as the reader's server counts them.")
    own = token_table(study.title, {label: system.name for label, system in made.items()}, outcomes)
    if choice.stand_ins:
        return [replace(own, notes=tuple(said)), cited(study.title, _sag_published.TABLE_2, digits=2)]
    return [beside(own, _sag_published.TABLE_2, said)]


def _systems_notes(choice: Choice, budget: int) -> list[str]:
    extractor = choice.options.get("extractor", "sentences (no model)")
    embedder = choice.options.get("embedder", "static")
    return [
        f"Internet-SAG-Ext extracts with {extractor}; VectorDB-RAG embeds with {embedder}. "
        f"The evidence of a question is cut at {budget} tokens."
    ]


# --- Table 1: judged answers ---------------------------------------------------------------------

VERDICTS = {"WIN": "win", "TIE": "tie", "LOSE": "lose", "P-BIA": "biased", "unreadable": "unreadable"}
EXT = "Internet-SAG-Ext"


def _run_judged(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    made = page_systems(choice, llama2())
    budget, spec = _room(choice), choice.options["judge"]
    with TemporaryDirectory(ignore_cleanup_errors=True) as spare:
        place = (folder or Path(spare)) / PAGES
        outcomes = _measured(study, choice, [*made.values()], (budget,), place, progress, ("answer",), LONG)
        verdicts = {
            label: Place(place, (made[EXT].name, system.name)).model(spec)
            for label, system in made.items()
            if label != EXT
        }
    caveat = readers.caveat(spec, not spec.startswith("scripted:"))
    said = [*studies.notes(study, choice, outcomes), *_systems_notes(choice, budget)]
    said.append(f"Judge: {spec}" + (f" ({readers.CAVEATS[caveat]})" if caveat else "") + "; both orders of each pair.")
    own = judged_table(study, choice, verdicts, budget)
    if choice.stand_ins:
        return [replace(own, notes=tuple(said)), cited(study.title, _sag_published.TABLE_1, digits=0)]
    return [beside(own, _sag_published.TABLE_1, said)]


def judged_table(study: Study, choice: Choice, verdicts: Mapping[str, Mapping[str, Any]], budget: int) -> Table:
    """Return Table 1: what a judge said of Internet-SAG-Ext against each baseline, in pairs of answers.

    :param verdicts: summaries of a judge (:func:`prunus_evals.judging.summary.of_pairs`) by baseline.
    """
    rows = []
    for label, summary in verdicts.items():
        for reader in choice.readers:
            groups = [
                group
                for group in summary["groups"]
                if group["reader"] == reader and group["budget"] == budget and group["task"] in study.tasks(choice)
            ]
            counts = [Number(sum(group[verdict] for group in groups)) for verdict in VERDICTS.values()]
            rows.append(Row(f"{label}, {reader}", tuple(counts)))
    return Table(study.title, tuple(VERDICTS), tuple(rows), digits=0)


def token_table(title: str, names: dict[str, str], outcomes: Sequence[Outcome]) -> Table:
    """Return Table 2: tokens that a generating model reads, as sums over all questions.

    :param names: names of systems by label.
    """
    asked = list(dict.fromkeys(outcome.reader for outcome in outcomes if outcome.reading is not None))
    columns = ["tokens of evidence, M", "per question", *(f"tokens of prompts, M, {reader}" for reader in asked)]
    rows = []
    for label, name in names.items():
        own = [outcome for outcome in outcomes if outcome.system == name]
        evidence = {(outcome.task, outcome.question): outcome.tokens for outcome in own}
        mean = studies.mean(own, "tokens", reader=own[0].reader) if own else None
        numbers: list[Number | None] = [Number(sum(evidence.values()) / 1e6) if own else None, mean]
        for reader in asked:
            read = [o.reading.prompt_tokens for o in own if o.reader == reader and o.reading is not None]
            numbers.append(Number(sum(read) / 1e6))
        rows.append(Row(label, tuple(numbers)))
    return Table(title, tuple(columns), tuple(rows), digits=4)


# --- the parser: the need for a search -----------------------------------------------------------

SEARCH_NEED = "search_need"
RULES = "planner:rules"


class PlannerReader:
    """The planner of Prunus that needs no model, in the place of a reader: it says whether a request needs a search."""

    name = RULES
    real = True

    def read(self, question: Question, evidence: str) -> Reading:
        """Return ``search`` or ``no search``."""
        start = time.perf_counter()
        planner = Maker(load_settings(), prunus.Options(planner="rules")).make("planner")
        plan = asyncio.run(planner.plan([Message("user", question.question)], datetime.now(UTC)))
        text = question.choices[0 if plan.needs_search else 1]
        return Reading(text, seconds=time.perf_counter() - start)


def _run_parser(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    plan = studies.plan(study, choice, ["nothing"], (1,), metrics=("accuracy", "readable"))
    plan = replace(plan, budgets=(1,), readers=(RULES, *choice.readers))
    made: dict[str, Reader | None] = {RULES: PlannerReader()}
    made |= {spec: readers.make(spec) for spec in choice.readers}
    engines = harness.Engines(llama2(), [Nothing()], made)
    outcomes = harness.run(plan, folder, None, engines, add=True)
    rows = [("Prunus: rules (no model)", {"reader": RULES})]
    rows += [(f"{reader}, by prompt alone", {"reader": reader}) for reader in choice.readers]
    columns = [(title, {"metric": metric}) for title, metric in (("Accuracy", "accuracy"), ("readable", "readable"))]
    said = (*studies.notes(study, choice, outcomes), "The paper prints no table of its parser.")
    return [Table(study.title, tuple(title for title, _ in columns), studies.grid(outcomes, rows, columns), said)]


STUDIES = (
    Study(
        "sag:parser",
        "Internet-SAG, the parser: whether a request needs a search",
        (SEARCH_NEED,),
        reader=True,
        run=_run_parser,
    ),
    Study(
        "sag:1",
        "Internet-SAG, Table 1: answers judged in pairs",
        (REAL_WORLD,),
        PAGES_STAND_INS,
        reader=True,
        options={**PAGES_OPTIONS, "judge": "spec of the language model that judges"},
        needs=("judge",),
        run=_run_judged,
    ),
    Study(
        "sag:2",
        "Internet-SAG, Table 2: tokens that the generating model reads",
        (REAL_WORLD,),
        PAGES_STAND_INS,
        answers=True,
        options=PAGES_OPTIONS,
        run=_run_tokens,
    ),
    Study(
        "sag:3",
        "Internet-SAG, Table 3: F1 of extraction, needles in a haystack",
        tuple(NEEDLES.values()),
        tuple(NEEDLES.values()),
        answers=True,
        options=OPTIONS,
        run=_run_needles,
    ),
    Study(
        "sag:4",
        "Internet-SAG, Table 4: F1 of extraction, open sets",
        tuple(OPEN_SOURCE.values()),
        OPEN_STAND_INS,
        answers=True,
        options=OPTIONS,
        run=_run_open_source,
    ),
    Study(
        "sag:5",
        "Internet-SAG, Table 5: extraction on real requests",
        (REAL_WORLD,),
        (REAL_STAND_IN,),
        answers=True,
        options=OPTIONS,
        run=_run_real_world,
    ),
)
