"""Studies: one for each table and figure of the papers, in the paper's frame; one file a paper.

A file has a tuple ``STUDIES`` of :class:`Study`. A study names plans of the harness (:mod:`.harness`) and turns their
outcomes into tables whose rows and columns are the paper's. Published rows stand beside ours and are marked as cited;
they are never mixed in.

A study can run on two kinds of data: the paper's own sets, and, where these are not here, stand-ins from the data
folder. A table names its tasks and says when they are stand-ins.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from prunus_evals import data, harness, metrics, readers, stats, tasks
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.harness import Plan
from prunus_evals.progress import Progress
from prunus_evals.records import Outcome
from prunus_evals.split import Wanted

COSTS = ("tokens", "cpu_seconds", "seconds")
INTERVALS = (
    "Brackets: 95 % interval over pages, of shares Wilson's, else a bootstrap. + and - mark what is ahead of the first "
    "row, or behind it, by the paired differences of all cells of the table together (Holm, 5 %). Fewer than "
    f"{stats.FEWEST} pages give neither."
)
NO_INTERVALS = f"No intervals and no marks: they need {stats.FEWEST} pages."
ALONE = f"Brackets: 95 % interval over pages (shares: Wilson's); fewer than {stats.FEWEST} have none."
"""The same for tables whose rows are not compared."""

NONE_ALONE = f"No intervals: they need {stats.FEWEST} pages."


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user chooses for a study.

    :param readers: specs of readers; none: evidence alone.
    :param stand_ins: run on stand-ins from the data folder instead of the paper's sets.
    :param half: half of each task; None takes each task's own.
    :param limit: pages of every task at most.
    :param questions: questions of a page at most.
    :param budgets: budgets in tokens; none: those of the paper.
    :param options: choices of one study, by name.
    """

    readers: tuple[str, ...] = ()
    stand_ins: bool = False
    half: Wanted | None = None
    limit: int | None = None
    questions: int | None = None
    budgets: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a table, with its 95 % interval where it was measured here.

    :param against: this number minus that of the first row, over the questions of both: mean, low and high.
    :param unpaired: questions that only one of the two rows has, so that ``against`` leaves them out.
    """

    value: float
    low: float | None = None
    high: float | None = None
    against: tuple[float, float, float] | None = None
    unpaired: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    :param cited: where the numbers were published; '' for numbers that were measured here.
    :param numbers: None where the row has no number in a column.
    :param measured: what was measured, as system, tasks, metrics and budgets: rows with the same hold the same numbers.
    """

    label: str
    numbers: tuple[Number | None, ...]
    cited: str = ""
    measured: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the frame of a paper.

    :param notes: what a reader of the table must know: halves, readers, stand-ins, what is missing.
    :param digits: decimals of its numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    digits: int = 3


@dataclass(frozen=True, slots=True)
class Study:
    """One table or figure of a paper.

    :param name: paper and table, as ``htmlrag:5``.
    :param paper_tasks: the tasks of the paper.
    :param stand_ins: tasks of the data folder that take their place.
    :param plans: what is run, by name.
    :param tables: turns the outcomes of each plan into tables.
    :param reader: whether the study measures answers alone, so that it needs a reader.
    :param answers: whether it measures evidence without a reader, and answers where one is named.
    :param options: what ``--set`` takes, by name, with one line on each.
    :param needs: the options that it cannot do without.
    :param budgets: the paper's budgets, which a suite keeps unless it is a trial; none: the study takes those of the
        suite.
    :param run: for a study that the harness does not fit: does all itself, instead of ``plans`` and ``tables``.
    """

    name: str
    title: str
    paper_tasks: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    plans: Callable[[Study, Choice], Mapping[str, Plan]] | None = None
    tables: Callable[[Study, Choice, Mapping[str, Sequence[Outcome]]], Sequence[Table]] | None = None
    reader: bool = False
    answers: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    budgets: tuple[int, ...] = ()
    run: Callable[[Study, Choice, Path | None, Callable[[str], None]], Sequence[Table]] | None = None

    @property
    def paper(self) -> str:
        """The paper, or the comparison, that the study belongs to."""
        return self.name.partition(":")[0]

    def tasks(self, choice: Choice) -> tuple[str, ...]:
        """Return the tasks of a choice."""
        return self.stand_ins if choice.stand_ins else self.paper_tasks

    def lacks(self, choice: Choice) -> str:
        """Return which choice a study cannot do without; '' where nothing is lacking."""
        if self.reader and not choice.readers:
            return "it measures answers: name a language model with --reader"
        if not choice.stand_ins and not self.paper_tasks and self.stand_ins:
            return "the data of the paper is not published: take --stand-ins"
        return "; ".join(
            f"it needs --set {name}=, {self.options[name]}" for name in self.needs if name not in choice.options
        )


@cache
def known() -> dict[str, Study]:
    """Return all studies by name."""
    found: dict[str, Study] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name[0] != "_"):
        for study in getattr(importlib.import_module(f"{__name__}.{module}"), "STUDIES", ()):
            if study.name in found:
                raise ValueError(f"two studies are called {study.name}")
            found[study.name] = study
    return found


def named(name: str) -> Study:
    """Return a study.

    :raises UnknownName: there is no such study.
    """
    if name not in known():
        raise UnknownName.among("study", name, known())
    return known()[name]


def run(
    study: Study, choice: Choice, folder: Path | None = None, progress: Callable[[str], None] = lambda text: None
) -> list[Table]:
    """Run a study, and return its tables.

    :param folder: where outcomes are kept, so that the study goes on where it was stopped. Studies may share a folder:
        what one has measured, another does not measure again.
    :raises EvalError: the study needs a reader that the choice lacks, knows no such option, its data is not here, a
        system or a model that is named lacks something (nothing is measured then), or a run failed.
    """
    unknown = [name for name in choice.options if name not in study.options]
    if unknown:
        known = f"it takes: {', '.join(study.options)}" if study.options else "it takes none"
        raise EvalError(f"{study.name} has no choice {unknown[0]}; {known}")
    if choice.stand_ins and not study.stand_ins and study.run is None:
        raise EvalError(f"{study.name} has no stand-ins")
    lacking = missing(study, choice)
    if lacking:
        raise EvalError(f"{study.name} cannot run: {lacking[0]}")
    for spec in choice.readers:
        readers.make(spec)  # a wrong spec is refused before anything is measured
    if study.run is not None:
        return [explained(table) for table in study.run(study, choice, folder, progress)]
    if study.plans is None or study.tables is None:
        raise EvalError(f"{study.name} has no plans")
    found: dict[str, Sequence[Outcome]] = {}
    plans = study.plans(study, choice)
    made = {name: harness.engines_of(plan) for name, plan in plans.items()}  # all of them, before anything is measured
    for name, plan in plans.items():
        tell = Progress(before=f"{study.name}, {name}, ", write=progress)
        found[name] = harness.run(plan, folder, tell, made[name], add=True)
    return [explained(table) for table in study.tables(study, choice, found)]


def plan(study: Study, choice: Choice, systems: Sequence[str], budgets: Sequence[int], **rest: Any) -> Plan:
    """Return the plan of a study for systems: its tasks, and what the user chose.

    :param rest: other fields of the plan, as ``metrics``.
    """
    return Plan(
        tasks=study.tasks(choice),
        systems=tuple(systems),
        half=choice.half,
        limit=choice.limit,
        questions=choice.questions,
        budgets=tuple(choice.budgets or budgets),
        readers=choice.readers or (harness.NO_READER,),
        **rest,
    )


def mean(
    outcomes: Sequence[Outcome],
    metric: str,
    base: Mapping[str, object] | None = None,
    scale: float = 1.0,
    **wanted: object,
) -> Number | None:
    """Return the mean of a metric over the outcomes whose fields have these values; None where there is none.

    A metric over all answers together, as BLEU, has no paired difference.

    :param metric: a score, or a field of an outcome that is a number, as ``tokens``.
    :param base: fields of the outcomes that these are compared with, question by question.
    :param scale: 100 for tables in percent.
    :param wanted: fields of :class:`.records.Outcome`, as ``task="nq", budget=512``.
    """
    own = _having(outcomes, wanted)
    known_metric = metrics.known().get(metric)
    if known_metric is not None and known_metric.combine is not None:
        counts: dict[str, list[Sequence[float]]] = {}
        for outcome in own.values():
            if metric in outcome.counts:
                counts.setdefault(outcome.page, []).append(outcome.counts[metric])
        return times(_number(stats.combined(counts, known_metric.combine)), scale) if counts else None
    values = _values(own, metric)
    found = times(number(by_page(values.values())), scale)
    if found is None or base is None or base == wanted:
        return found
    others = _values(_having(outcomes, base), metric)
    pairs = [(page, value - others[key][1]) for key, (page, value) in values.items() if key in others]
    minus = times(_number(stats.mean_difference(by_page(pairs))), scale) if pairs else None
    against = None if minus is None or minus.low is None or minus.high is None else (minus.value, minus.low, minus.high)
    return replace(found, against=against, unpaired=len(values.keys() ^ others.keys()) if others else 0)


def number(values: Mapping[str, Sequence[float]]) -> Number | None:
    """Return the mean of values by page, with its interval; None without values."""
    return _number(stats.mean(values)) if values else None


def by_page(values: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """Return values, each with its page, by page."""
    found: dict[str, list[float]] = {}
    for page, value in values:
        found.setdefault(page, []).append(float(value))
    return found


def _number(estimate: stats.Estimate) -> Number:
    return Number(estimate.mean, estimate.low, estimate.high)


def times(found: Number | None, by: float) -> Number | None:
    """Return a number and its interval in another unit, as percent."""
    if found is None:
        return None
    low, high = (None if end is None else by * end for end in (found.low, found.high))
    return Number(by * found.value, low, high)


Key = tuple[str, str]
"""A task and a question: what two rows are paired by."""


def _values(own: Mapping[Key, Outcome], metric: str) -> dict[Key, tuple[str, float]]:
    """Return the page and the value of each question that has one."""
    found = {}
    for key, outcome in own.items():
        value = outcome.scores.get(metric) if metric not in COSTS else getattr(outcome, metric)
        if value is not None:
            found[key] = outcome.page, float(value)
    return found


def _having(outcomes: Sequence[Outcome], wanted: Mapping[str, object]) -> dict[Key, Outcome]:
    """Return the outcomes whose fields have these values; a question that was measured twice counts as it was last."""
    return {
        (o.task, o.question): o for o in outcomes if all(getattr(o, name) == value for name, value in wanted.items())
    }


def grid(
    outcomes: Sequence[Outcome],
    rows: Sequence[tuple[str, Mapping[str, object]]],
    columns: Sequence[tuple[str, Mapping[str, object]]],
    scale: float = 1.0,
    compare: bool = True,
) -> tuple[Row, ...]:
    """Return the rows of a table of means.

    :param rows: labels, and the fields of the outcomes of each row, as ``("BM25", {"system": "chunks_bm25"})``.
    :param columns: titles, and ``metric`` with the fields of the outcomes of each column, as ``("NQ EM", {"metric":
        "em_share", "task": "nq"})``. Metrics are no titles: several columns may show one.
    :param compare: compare each row with the first, question by question.
    """
    found: list[list[Number | None]] = [[] for _ in rows]
    for _, column in columns:
        rest = {name: value for name, value in column.items() if name != "metric"}
        own = [o for o in outcomes if all(getattr(o, name) == value for name, value in rest.items())]
        base = rows[0][1] if compare else None
        for (_, fields), numbers in zip(rows, found, strict=True):
            numbers.append(mean(own, str(column["metric"]), base, scale, **fields))
    of_columns = [sorted(column.items()) for _, column in columns]
    return tuple(
        Row(label, tuple(numbers), measured=repr((sorted(fields.items()), of_columns)))
        for (label, fields), numbers in zip(rows, found, strict=True)
    )


def notes(study: Study, choice: Choice, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return what every table says of itself: tasks, halves, questions, readers and stand-ins."""
    parts: list[str] = []
    for task in study.tasks(choice):
        own = [outcome for outcome in outcomes if outcome.task == task.partition(":")[0] or outcome.task == task]
        questions, pages = len({outcome.question for outcome in own}), len({outcome.page for outcome in own})
        half = choice.half or tasks.about(task).half
        parts.append(f"{task} ({half} half: {stats.counted(questions, 'question')}, {stats.counted(pages, 'page')})")
    lines = [f"{'Stand-ins for the sets of the paper' if choice.stand_ins else 'Sets'}: {', '.join(parts)}."]
    used = dict.fromkeys(outcome.reader for outcome in outcomes if outcome.reader != harness.NO_READER)
    caveats = {name: said for outcome in outcomes for name, said in outcome.caveats.items()}
    behind = {name: readers.CAVEATS.get(said, said) for name, said in caveats.items()}
    named = "; ".join(spec + (f" ({behind[spec]})" if spec in behind else "") for spec in used)
    lines.append(f"Readers: {named}." if used else "No reader: the evidence is scored.")
    lines += [f"{name} works with a model: {said}." for name, said in behind.items() if name not in used]
    without = Counter(outcome.system for outcome in outcomes if outcome.facts.get("without_model"))
    lines += [
        f"{name}: {count} answers were made without its model, whose reply was of no use."
        for name, count in without.items()
    ]
    lines.append(INTERVALS)
    return tuple(lines)


def explained(table: Table) -> Table:
    """Return a table that says why it has no intervals, and how many questions its paired differences leave out."""
    numbers = [number for row in table.rows for number in row.numbers if number]
    said = table.notes
    if not any(number.low is not None for number in numbers):
        said = tuple({INTERVALS: NO_INTERVALS, ALONE: NONE_ALONE}.get(line, line) for line in said)
    left_out = max((number.unpaired for number in numbers), default=0)
    if left_out:
        said += (f"Up to {left_out} questions of a number stand in one row alone: its paired difference lacks them.",)
    return replace(table, notes=said)


def missing(study: Study, choice: Choice) -> list[str]:
    """Return what a study lacks here, one line each."""
    lines = [study.lacks(choice)] if study.lacks(choice) else []
    return [*lines, *(f"{name}: {gone}" for name, gone in missing_tasks(study, choice).items())]


def missing_tasks(study: Study, choice: Choice) -> dict[str, str]:
    """Return the tasks of a study whose data is not here, and what is missing of each."""
    found: dict[str, str] = {}
    for name in study.tasks(choice):
        about = tasks.about(name.partition(":")[0])
        gone = data.missing_files(about.files, about.source)
        if gone:
            found[name] = gone
    return found


def text(table: Table) -> str:
    """Return a table as plain text; cited rows are marked, intervals stand in brackets."""
    labels = [row.label + (" (cited)" if row.cited else "") for row in table.rows]
    cells = _cells(table)
    first = max(map(len, labels), default=0) + 2
    widths = [max([len(column), *(len(row[place]) for row in cells)]) + 2 for place, column in enumerate(table.columns)]
    lines = [table.title, " " * first + "".join(f"{c:>{w}}" for c, w in zip(table.columns, widths, strict=True))]
    for label, row in zip(labels, cells, strict=True):
        lines.append(f"{label:{first}}" + "".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)))
    sources = dict.fromkeys(f"Cited: {row.cited}." for row in table.rows if row.cited)
    return "\n".join([*lines, *table.notes, *sources])


def markdown(table: Table) -> str:
    """Return a table as Markdown, under a heading; cited rows are in italics. Without rows only its notes are left."""
    lines = [f"### {table.title}", ""]
    if table.rows:
        lines.append(f"| | {' | '.join(map(_escaped, table.columns))} |")
        lines.append("|---" * (len(table.columns) + 1) + "|")
    for row, cells in zip(table.rows, _cells(table), strict=True):
        label = f"*{_escaped(row.label)}, cited*" if row.cited else _escaped(row.label)
        lines.append(f"| {label} | {' | '.join(f'*{c}*' if row.cited and c != '-' else c for c in cells)} |")
    sources = dict.fromkeys(f"Cited: {row.cited}." for row in table.rows if row.cited)
    lines += [""] if table.rows else []
    return "\n".join([*lines, *(f"{_escaped(line)}  " for line in [*table.notes, *sources])])


def _escaped(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")


def _cells(table: Table) -> list[list[str]]:
    """Return the words of each row's cells."""
    numbers = [number for row in table.rows for number in row.numbers]
    marks = iter(stats.marks([number.against if number else None for number in numbers]))
    return [[cell(number, next(marks), table.digits) for number in row.numbers] for row in table.rows]


def cell(number: Number | None, mark: int, digits: int = 3) -> str:
    """Return a number with its interval, and 1 as ``+`` and -1 as ``-`` behind it; ``-`` for none."""
    if number is None:
        return "-"
    return stats.shown((number.value, number.low, number.high), digits) + ("", " +", " -")[mark]
