"""Internet-SAG (He and others, 2024): Tables 1 to 5, and whether a parser sees the need for a search.

Rows are systems by name. Any language model is an extractor by its prompt alone, ``tags:SPEC``: ``--reader SPEC`` adds
it, and it reads all sentences with their tags. Published rows stand in a table of their own: needles, tags and requests
of the paper are not published, so that no number of it is about our data.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import prunus
from prunus.core.settings import load_settings
from prunus.core.types import Message
from prunus.engines import one_engine
from prunus_evals import harness, readers, stats, studies, systems
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.judging import summary
from prunus_evals.judging.judge import ModelJudge
from prunus_evals.judging.session import Place
from prunus_evals.progress import Progress
from prunus_evals.records import Asker, Document, Outcome, Question, Reader, Reading, Reply, System
from prunus_evals.studies import Choice, Number, Row, Study, Table, _sag_published
from prunus_evals.studies._raptor_published import Published
from prunus_evals.studies.raptor import cited
from prunus_evals.systems._extract import Extractor
from prunus_evals.systems._prunus_answers import READ
from prunus_evals.tasks.sentences import ANNOTATIONS
from prunus_evals.tokens import Counter, llama2

WHOLE = 131_072
"""A budget that holds all pages of a question."""

LONG = "long"
"""The prompt of readers that answer from pages; the paper's asks for detailed answers, too."""

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
FOUR = {
    "Recall": "tags_micro_recall",
    "Precision": "tags_micro_precision",
    "F1": "tags_micro_f1",
    "EM, none answers": "tags_none",
}
PAGES_STAND_INS = ("crag",)
LABELS = {
    "prunus:sentences": "Prunus: sentences (no model)",
    "sentences:bm25:3": "BM25, 3 sentences",
    "sentences:all": "All sentences",
}
"""The extractors of every table, and their labels."""

EXT, EXT_SYSTEM = "Internet-SAG-Ext", "prunus:extract"
NAIVE = "whole:soup"
"""Plain text of all pages, one after another."""
VECTORS = "vectors:{}@tokens=512@overlap=128@beside=1"
"""VectorDB-RAG of section 5.1, by its embedder."""

OPTIONS = {"extractors": f"extractors by name, separated by semicolons; {';'.join(LABELS)} by default"}
PAGES_OPTIONS = {
    "extractor": f"system that extracts, {EXT_SYSTEM} by default; {EXT_SYSTEM}@llm=SPEC lets a model name tags",
    "embedder": "embedder of VectorDB-RAG, static by default (the paper: BGE-m3)",
}
Tell = Callable[[str], None]


# --- Tables 3 to 5: extraction -------------------------------------------------------------------


def extractors_of(choice: Choice) -> dict[str, str]:
    """Return the names of the extractors by label: those that the user names, then the readers by prompt alone."""
    chosen = choice.options.get("extractors", ";".join(LABELS)).split(";")
    named = {LABELS.get(name, name): name for name in map(str.strip, chosen) if name}
    return named | {f"{spec}, by prompt alone": f"tags:{spec}" for spec in choice.readers}


def extracted(
    study: Study, choice: Choice, folder: Path | None, progress: Tell, wanted: Sequence[str]
) -> list[Outcome]:
    """Run the extractors.

    :param wanted: names of metrics.
    :raises UnknownName: there is no such system, or it names no sentences.
    """
    made = [systems.make(name, llama2()) for name in extractors_of(choice).values()]
    for system in made:
        if not isinstance(system, Extractor):
            raise UnknownName(f"{system.name} names no sentences; extractors are: {', '.join(LABELS)}, tags:SPEC")
    return _measured(study, replace(choice, readers=()), made, (WHOLE,), folder, progress, wanted)


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
    wanted: Sequence[str],
    prompt: str = "",
) -> list[Outcome]:
    plan = studies.plan(study, choice, [system.name for system in made], budgets, metrics=tuple(wanted))
    plan = replace(plan, budgets=tuple(budgets), prompt=prompt)
    engines = harness.Engines(llama2(), list(made), {spec: readers.make(spec, prompt) for spec in plan.readers})
    tell = Progress(before=f"{study.name}, ", write=progress)
    return harness.run(plan, folder, tell, engines, add=True)


def extraction_tables(
    study: Study,
    choice: Choice,
    columns: Sequence[tuple[str, str, str]],
    published: Published,
    outcomes: Sequence[Outcome],
    said: Sequence[str],
) -> list[Table]:
    """Return a table of extraction, and the paper's.

    :param columns: titles, tasks and metrics.
    """
    fields = [(title, {"metric": metric, "task": task}) for title, task, metric in columns]
    rows = [(label, {"system": name}) for label, name in extractors_of(choice).items()]
    own = Table(study.title, tuple(title for title, _ in fields), studies.grid(outcomes, rows, fields))
    notes = (*_extraction_notes(study, choice, outcomes), *said)
    return [replace(own, notes=notes), apart(study.title, published, 3)]


def apart(title: str, published: Published, digits: int) -> Table:
    """Return the paper's table."""
    return replace(cited(title, published, digits), notes=("Other data than ours: no row can be compared with ours.",))


def _data_note(study: Study, choice: Choice, outcomes: Sequence[Outcome]) -> str:
    return studies.notes(study, choice, outcomes)[0]


def _extraction_notes(study: Study, choice: Choice, outcomes: Sequence[Outcome]) -> list[str]:
    """Return what a table of extraction says of itself: data, models, and replies that name nothing."""
    lines = [_data_note(study, choice, outcomes), "Scored are the tags that an extractor names.", studies.INTERVALS]
    if choice.readers:
        lines.append("By prompt alone: all sentences with their tags in one prompt, that of the file tags.txt.")
    told = (_model_note(label, name, outcomes) for label, name in extractors_of(choice).items())
    return [*lines, *filter(None, told)]


def _model_note(label: str, system: str, outcomes: Sequence[Outcome]) -> str:
    """Return what must be said of the model of a row, and of the replies that it did not give; '' for nothing."""
    own = [outcome for outcome in outcomes if outcome.system == system]
    nonsense, refused = (sum(outcome.facts.get(fact, 0) for outcome in own) for fact in ("nonsense", "refused"))
    caveat = getattr(systems.make(system, llama2()), "caveat", "")
    told = [readers.CAVEATS.get(caveat, caveat)] if caveat else []
    if nonsense:
        told.append(f"{nonsense} of {len(own)} questions got no reply that names tags or None, and count as wrong")
    if refused:
        told.append(f"{refused} of them because the prompt was longer than the model's window")
    return f"{label}: {'; '.join(told)}." if told else ""


NONE_NOTE = (
    "Means over questions. Where no sentence answers, only an extractor that finds none is right; a reply that names "
    "neither tags nor None is wrong."
)


def _run_needles(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    columns = [(title, task, F1) for title, task in NEEDLES.items()]
    outcomes = extracted(study, choice, folder, progress, (F1,))
    said = [NONE_NOTE, "The paper's needles are not published; those here are our own."]
    tables = extraction_tables(study, choice, columns, _sag_published.TABLE_3, outcomes, said)
    data = _data_note(study, choice, outcomes)
    for label, name in extractors_of(choice).items():
        notes = (data, "Means without intervals: cells hold few questions.", _model_note(label, name, outcomes))
        tables.append(map_of(label, name, outcomes, tuple(filter(None, notes))))
    return tables


def map_of(label: str, system: str, outcomes: Sequence[Outcome], said: tuple[str, ...]) -> Table:
    """Return the F1 of one row over all needles by length of the text (rows, tokens) and depth (columns, percent)."""
    own = [outcome for outcome in outcomes if outcome.system == system]
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
    outcomes = extracted(study, choice, folder, progress, (F1,))
    said = [NONE_NOTE]
    if not choice.stand_ins:
        said.append("Tags of Multi-Ans and Multi-Q: of your files; the paper's, by a model, are not published.")
    return extraction_tables(study, choice, columns, _sag_published.TABLE_4, outcomes, said)


def _run_real_world(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    (task,) = study.tasks(choice)
    columns = [(title, task, metric) for title, metric in FOUR.items()]
    outcomes = extracted(study, choice, folder, progress, tuple(FOUR.values()))
    return extraction_tables(study, choice, columns, _sag_published.TABLE_5, outcomes, truth_of(task, outcomes))


def truth_of(task: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return how many questions each column of Table 5 counts.

    :raises EvalError: no question has tags that people gave.
    """
    answered = {outcome.question for outcome in outcomes if FOUR["F1"] in outcome.counts}
    none = {outcome.question for outcome in outcomes if FOUR["EM, none answers"] in outcome.scores}
    left = {outcome.question for outcome in outcomes} - answered - none
    if not answered and not none:
        raise EvalError(f"{task}: nobody gave tags for these questions; write them into {ANNOTATIONS}")
    some, no = (stats.counted(len(questions), "question") for questions in (answered, none))
    lines = [
        f"Recall, precision and F1: all tags of the {some} that some sentence answers, counted "
        "together; rows are not compared in these. "
        f"EM: the share of the {no} that no sentence answers for which none was named. "
        "A reply that names neither tags nor None counts as one wrong tag."
    ]
    if left:
        lines.append(f"In no number, as people gave no tags: {stats.counted(len(left), 'question')}.")
    return lines


# --- Tables 1 and 2: whole pages -----------------------------------------------------------------


def page_systems(choice: Choice, counter: Counter) -> dict[str, System]:
    """Return the paper's three systems, by their names in the paper."""
    return {
        EXT: systems.make(choice.options.get("extractor", EXT_SYSTEM), counter),
        "Internet-SAG-Naive": systems.make(NAIVE, counter),
        "VectorDB-RAG": systems.make(VECTORS.format(choice.options.get("embedder", "static")), counter),
    }


PAGES_NOTE = (
    "The paper's 463 requests are not published, and a request log holds sentences; the stand-in has whole pages, and "
    "too few questions for a score."
)


def _run_tokens(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    made = page_systems(choice, llama2())
    budget = _room(choice) if choice.readers else WHOLE
    prompt = LONG if choice.readers else ""
    outcomes = _measured(study, choice, [*made.values()], (budget,), folder, progress, ("answer",), prompt)
    said = [*studies.notes(study, choice, outcomes), *_systems_notes(choice, budget)]
    said.append(
        "Evidence is counted by the Llama-2 tokenizer; prompts as the reader's server counts them, - where it counts "
        "none. M: millions, summed over all questions."
    )
    if "@llm=" in choice.options.get("extractor", ""):
        said.append("The tokens that the extractor's own model reads are not counted, as in the paper.")
    own = token_table(study.title, {label: system.name for label, system in made.items()}, outcomes)
    return [replace(own, notes=tuple(said)), apart(study.title, _sag_published.TABLE_2, 2)]


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
            numbers.append(Number(sum(read) / 1e6) if read and all(read) else None)
        rows.append(Row(label, tuple(numbers)))
    return Table(title, tuple(columns), tuple(rows), digits=4)


def _systems_notes(choice: Choice, budget: int) -> list[str]:
    extractor = choice.options.get("extractor", EXT_SYSTEM)
    model = "" if "@llm=" in extractor else " (no model)"
    embedder = choice.options.get("embedder", "static")
    lines = [
        f"{EXT}: {extractor}{model}; Internet-SAG-Naive: {NAIVE}; VectorDB-RAG: {VECTORS.format(embedder)}. "
        f"The evidence of a question is cut at {budget} tokens."
    ]
    if extractor.startswith(EXT_SYSTEM):
        lines.append(f"{EXT_SYSTEM} reads {READ} tokens of a question's pages at most.")
    if choice.readers:
        lines.append(f"Readers answer with the prompt of the file {LONG}.txt.")
    return [*lines, PAGES_NOTE]


# --- Table 1: judged answers ---------------------------------------------------------------------

VERDICTS = {"WIN": "win", "TIE": "tie", "LOSE": "lose", "P-BIA": "biased", "unreadable": "unreadable"}


def _run_judged(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    made = page_systems(choice, llama2())
    budget, judge = _room(choice), ModelJudge(choice.options["judge"])
    with TemporaryDirectory(ignore_cleanup_errors=True) as spare:
        place = folder or Path(spare)
        outcomes = _measured(study, choice, [*made.values()], (budget,), place, progress, ("answer",), LONG)
        verdicts = {
            label: Place(place, (made[EXT].name, system.name), outcomes=outcomes).model(judge.name, made=judge)
            for label, system in made.items()
            if label != EXT
        }
    caveat = readers.caveat(judge.name, judge.real)
    said = [line for line in studies.notes(study, choice, outcomes) if line != studies.INTERVALS]
    said += _systems_notes(choice, budget)
    said.append(
        f"Judge: {judge.name}"
        + (f" ({readers.CAVEATS[caveat]})" if caveat else "")
        + (", a reader that judges its own answers" if judge.name in choice.readers else "")
        + "; both orders of each pair. "
        f"Columns: pairs in which {EXT} wins, ties or loses against the row, those on which the orders contradict each "
        "other (P-BIA), and those that the judge gave no readable verdict on."
    )
    said += [f"{label}: {line}." for label, found in verdicts.items() for line in summary.unread(found)]
    said += [f"{label}, {line}" for label, found in verdicts.items() for line in _differences(found)]
    own = judged_table(choice, verdicts)
    return [replace(own, title=study.title, notes=tuple(said)), apart(study.title, _sag_published.TABLE_1, 0)]


def judged_table(choice: Choice, verdicts: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return Table 1: what a judge said of Internet-SAG-Ext against each baseline, in pairs of answers.

    :param verdicts: summaries of a judge (:func:`prunus_evals.judging.summary.of_pairs`) by baseline.
    """
    rows = []
    for label, found in verdicts.items():
        for reader in choice.readers:
            groups = [group for group in found["groups"] if group["reader"] == reader]
            counts = [Number(sum(group[verdict] for group in groups)) for verdict in VERDICTS.values()]
            rows.append(Row(f"{label}, {reader}", tuple(counts)))
    return Table("", tuple(VERDICTS), tuple(rows), digits=0)


def _differences(found: Mapping[str, Any]) -> list[str]:
    """Return the share of wins minus that of losses for each reader, with its interval."""
    return [
        f"{group['reader']}: share of wins minus losses {stats.shown(group['win_minus_lose'], signed=True)} "
        f"of {stats.counted(group['pairs'], 'pair')}; "
        + (stats.NONE_BELOW if None in group["win_minus_lose"] else "brackets: 95 %, bootstrap over pages")
        + "."
        for group in found["groups"]
    ]


# --- the parser: the need for a search -----------------------------------------------------------

SEARCH_NEED = "search_need"
RULES = "planner:rules"


@dataclass(frozen=True, slots=True)
class Nothing:
    """No evidence: for questions that a reader answers from their words alone."""

    name: str = "nothing"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Read nothing."""
        return self

    def ask(self, question: str, budget: int) -> Reply:
        """Return no evidence."""
        return Reply("", "text")


class PlannerReader:
    """The planner of Prunus that needs no model, in the place of a reader: it says whether a request needs a search."""

    name = RULES
    real = True
    caveat = ""

    def read(self, question: Question, evidence: str) -> Reading:
        """Return ``search`` or ``no search``."""
        start = time.perf_counter()
        planner = one_engine("planner", load_settings(), prunus.Options(planner="rules"))
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
        "Internet-SAG, Table 1: answers of Internet-SAG-Ext against those of each row, judged in pairs",
        stand_ins=PAGES_STAND_INS,
        reader=True,
        options={**PAGES_OPTIONS, "judge": "spec of the language model that judges"},
        needs=("judge",),
        run=_run_judged,
    ),
    Study(
        "sag:2",
        "Internet-SAG, Table 2: tokens that the generating model reads",
        stand_ins=PAGES_STAND_INS,
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
