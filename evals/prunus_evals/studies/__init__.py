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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from prunus_evals import data, harness, stats, tasks
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.harness import Plan
from prunus_evals.records import Outcome
from prunus_evals.split import Wanted


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
    """A number of a table, with its 95 % interval where it was measured here."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    :param cited: where the numbers were published; '' for numbers that were measured here.
    :param numbers: None where the row has no number in a column.
    """

    label: str
    numbers: tuple[Number | None, ...]
    cited: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the frame of a paper.

    :param notes: what a reader of the table must know: halves, readers, stand-ins, what is missing.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Study:
    """One table or figure of a paper.

    :param name: paper and table, as ``htmlrag:5``.
    :param paper_tasks: the tasks of the paper.
    :param stand_ins: tasks of the data folder that take their place.
    :param plans: what is run, by name.
    :param tables: turns the outcomes of each plan into tables.
    :param reader: whether the study measures answers, so that it needs a reader.
    :param run: for a study that the harness does not fit: does all itself, instead of ``plans`` and ``tables``.
    """

    name: str
    title: str
    paper_tasks: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    plans: Callable[[Choice], Mapping[str, Plan]] | None = None
    tables: Callable[[Choice, Mapping[str, Sequence[Outcome]]], Sequence[Table]] | None = None
    reader: bool = False
    run: Callable[[Choice, Path | None, Callable[[str], None]], Sequence[Table]] | None = None

    def tasks(self, choice: Choice) -> tuple[str, ...]:
        """Return the tasks of a choice."""
        return self.stand_ins if choice.stand_ins else self.paper_tasks


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
        raise UnknownName(f"unknown study {name}; the studies are: {', '.join(known())}")
    return known()[name]


def run(
    study: Study, choice: Choice, folder: Path | None = None, progress: Callable[[str], None] = lambda text: None
) -> list[Table]:
    """Run a study, and return its tables.

    :param folder: where the runs are kept, each in a folder of its own; the study goes on where it was stopped.
    :raises EvalError: the study needs a reader that the choice lacks, its data is not here, or a run failed.
    """
    if study.reader and not choice.readers:
        raise EvalError(f"{study.name} measures answers: name a language model with --reader")
    if study.run is not None:
        return list(study.run(choice, folder, progress))
    if study.plans is None or study.tables is None:
        raise EvalError(f"{study.name} has no plans")
    found: dict[str, Sequence[Outcome]] = {}
    for name, plan in study.plans(choice).items():
        place = folder / study.name.replace(":", "-") / name if folder else None

        def tell(state: harness.Progress, name: str = name) -> None:
            progress(f"{study.name}, {name}, {state.task}: {state.pages} pages, {state.outcomes} outcomes")

        found[name] = harness.run(plan, place, tell)
    return list(study.tables(choice, found))


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


def mean(outcomes: Sequence[Outcome], metric: str, **wanted: object) -> Number | None:
    """Return the mean of a metric over the outcomes whose fields have these values; None where there is none.

    :param wanted: fields of :class:`.records.Outcome`, as ``task="nq", budget=512``.
    """
    values: dict[str, list[float]] = {}
    for outcome in outcomes:
        if metric in outcome.scores and all(getattr(outcome, name) == value for name, value in wanted.items()):
            values.setdefault(outcome.page, []).append(outcome.scores[metric])
    if not values:
        return None
    estimate = stats.mean(values)
    return Number(estimate.mean, estimate.low, estimate.high)


def missing(study: Study, choice: Choice) -> list[str]:
    """Return what a study lacks here, one line each."""
    lines = ["a reader: name a language model with --reader"] if study.reader and not choice.readers else []
    for name in study.tasks(choice):
        about = tasks.about(name.partition(":")[0])
        gone = data.missing_files(about.files, about.source)
        lines += [f"{name}: {gone}"] if gone else []
    return lines


def text(table: Table) -> str:
    """Return a table as plain text; cited rows are marked, intervals stand in brackets."""
    width = max([len(row.label) for row in table.rows] + [20]) + 2
    lines = [table.title, f"{'':{width}}" + "".join(f"{column:>24}" for column in table.columns)]
    for row in table.rows:
        mark = " (cited)" if row.cited else ""
        lines.append(f"{row.label + mark:{width + len(mark)}}" + "".join(f"{_cell(n):>24}" for n in row.numbers))
    return "\n".join([*lines, *table.notes])


def _cell(number: Number | None) -> str:
    if number is None:
        return "-"
    if number.low is None or number.high is None:
        return f"{number.value:.3f}"
    return f"{number.value:.3f} [{number.low:.3f} {number.high:.3f}]"
