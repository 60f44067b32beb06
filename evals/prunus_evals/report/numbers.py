"""The numbers of a run: means with intervals, paired differences, costs, stages and groups, ready for JSON.

Everything that shows numbers shows these: the text tables, Markdown, the page and ``report.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prunus.core.text.numbers import bounded_float
from prunus_evals import metrics, stats, systems
from prunus_evals.readers import joined
from prunus_evals.records import Outcome, Reading
from prunus_evals.split import Wanted

Values = dict[str, list[float]]
"""Numbers of a page's questions, by page."""

Cell = Mapping[str, Outcome]
"""The outcomes of one task, row and budget, by question."""

Cells = Mapping[tuple[str, str, int], Cell]
"""All outcomes, by task, row and budget."""

COSTS = ("tokens", "cpu_seconds", "seconds")
READING = ("prompt_tokens", "completion_tokens", "seconds")
GROUPS = 24
"""Values that a label may have at most, so that tables show its groups apart."""

OTHERS = frozenset((*COSTS, "questions", "differences", "default_minus_this", "reader", "stages", "without_model"))
"""What a cell holds beside its metrics."""


def row_of(outcome: Outcome) -> str:
    """Return the name of an outcome's row: its system, with its reader and a chosen prompt where one answered."""
    if outcome.reader == "none":
        return outcome.system
    prompt = f", prompt {outcome.prompt_name}" if outcome.prompt_name else ""
    return f"{outcome.system} > {outcome.reader}{prompt}"


def value_of(outcome: Outcome, field: str) -> float | None:
    """Return a score or a cost of an outcome; None where it has none."""
    return float(getattr(outcome, field)) if field in COSTS else outcome.scores.get(field)


def cells_of(outcomes: Iterable[Outcome]) -> dict[tuple[str, str, int], dict[str, Outcome]]:
    """Return outcomes by task, row and budget.

    A question that was measured twice, as with other metrics, counts as it was measured last, with the scores of both.
    """
    found: dict[tuple[str, str, int], dict[str, Outcome]] = {}
    for outcome in outcomes:
        cell = found.setdefault((outcome.task, row_of(outcome), outcome.budget), {})
        older = cell.get(outcome.question)
        if older is not None and _same(older, outcome):
            outcome = replace(
                outcome, scores={**older.scores, **outcome.scores}, counts={**older.counts, **outcome.counts}
            )
        cell[outcome.question] = outcome
    return found


def _same(one: Outcome, other: Outcome) -> bool:
    """Return whether two outcomes have the same evidence and the same answer, so that only their metrics differ."""
    return (one.evidence, one.prompt, one.reading) == (other.evidence, other.prompt, other.reading)


HELD = (
    "CPU and wall seconds leave out vectors, scores and trees that the run had made already, for another system, "
    "budget or question; with @costs=yes they are whole."
)
"""What stands where seconds are shown of systems that hold them (:func:`.systems.holds`)."""


def held(content: Mapping[str, Any]) -> str:
    """Return :data:`HELD` where a row of a task is of such a system; else ''."""
    return HELD if any(systems.holds(facts["system"]) for facts in content["rows"].values()) else ""


def without_repeats(cells: Cells) -> dict[tuple[str, str, int], Cell]:
    """Return cells in which rows of readers have no metric of the evidence that the same system has without a reader.

    The evidence is the same, so that each of its numbers stands once in a table.
    """
    evidence = {name for name, metric in metrics.known().items() if metric.of == "evidence"}
    found: dict[tuple[str, str, int], Cell] = {}
    for (task, row, budget), cell in cells.items():
        same = cells.get((task, next(iter(cell.values())).system, budget), cell)
        found[task, row, budget] = cell if same is cell else _without(cell, same, evidence)
    return found


def _without(cell: Cell, same: Cell, names: Container[str]) -> Cell:
    """Return a cell without these metrics where another cell has them, of the same question."""
    known = {question: outcome.scores.keys() for question, outcome in same.items()}
    return {
        question: replace(
            outcome,
            scores={
                name: score
                for name, score in outcome.scores.items()
                if name not in names or name not in known.get(question, ())
            },
        )
        for question, outcome in cell.items()
    }


def values(cell: Cell, field: str, questions: Iterable[str] | None = None) -> Values:
    """Return the values of one field by page; questions where it is None are left out.

    :param questions: only these.
    """
    found: Values = {}
    for question in sorted(cell if questions is None else questions):
        value = value_of(cell[question], field)
        if value is not None:
            found.setdefault(cell[question].page, []).append(value)
    return found


def estimate(cell: Cell, field: str) -> stats.Estimate:
    """Return the mean of a field with its interval; of a metric over all answers together, its number for all."""
    combine = _combine(field)
    if combine is None:
        return stats.mean(values(cell, field))
    return stats.combined(_counts(cell, field, sorted(cell)), combine)


def _combine(field: str) -> Callable[[Sequence[float]], float] | None:
    metric = metrics.known().get(field)
    return None if metric is None else metric.combine


def _counts(cell: Cell, field: str, questions: Iterable[str]) -> dict[str, list[Sequence[float]]]:
    """Return what a metric over all answers together adds up, by page."""
    found: dict[str, list[Sequence[float]]] = {}
    for question in questions:
        if field in cell[question].counts:
            found.setdefault(cell[question].page, []).append(cell[question].counts[field])
    return found


def difference(first: Cell, second: Cell, field: str) -> stats.Estimate | None:
    """Return the mean of ``first`` minus ``second`` over the questions that both have, paired; None without any."""
    both = [
        question
        for question in first.keys() & second.keys()
        if value_of(first[question], field) is not None and value_of(second[question], field) is not None
    ]
    if not both:
        return None
    combine = _combine(field)
    if combine is None:
        return stats.difference(values(first, field, both), values(second, field, both))
    both.sort()
    return stats.combined_difference(_counts(first, field, both), _counts(second, field, both), combine)


def cell(outcomes: Sequence[Outcome], task: str, system: str, budget: int, default: str) -> dict[str, Any]:
    """Return all numbers of one system at one budget, each as mean, low and high.

    :param default: the row that others are compared with.
    """
    cells = cells_of(outcomes)
    return _cell(cells[task, system, budget], cells.get((task, default, budget)) if system != default else None)


def _cell(own: Cell, base: Cell | None) -> dict[str, Any]:
    names = _unique(name for outcome in own.values() for name in outcome.scores)
    if clash := OTHERS.intersection(names):
        raise ValueError(f"a metric may not be called {min(clash)}")
    result: dict[str, Any] = {}
    counts: dict[str, int] = {"all": len(own)}
    differences: dict[str, list[float | None]] = {}
    for name in names:
        result[name] = estimate(own, name).numbers()
        counts[name] = sum(map(len, values(own, name).values()))
        minus = None if base is None else difference(base, own, name)
        if minus is not None:
            differences[name] = minus.numbers()
    result["questions"] = counts
    if differences:
        result["differences"] = differences
        result["default_minus_this"] = next(iter(differences.values()))
    for field in COSTS:
        result[field] = _mean(getattr(outcome, field) for outcome in own.values())
    readings = [outcome.reading for outcome in own.values() if outcome.reading is not None]
    if readings:
        result["reader"] = _read(readings)
        if empty := sum(not reading.text.strip() for reading in readings):
            result["reader"]["empty"] = empty
    if without := sum(bool(outcome.facts.get("without_model")) for outcome in own.values()):
        result["without_model"] = without
    stages = _stages(own)
    return {**result, "stages": stages} if stages else result


def _read(readings: Sequence[Reading]) -> dict[str, float | None]:
    """Return the mean tokens and seconds of a reader; tokens are None where its server did not count those of one."""
    counted = all(reading.counted for reading in readings)
    return {
        name: _mean(getattr(reading, name) for reading in readings) if counted or name == "seconds" else None
        for name in READING
    }


def _stages(own: Cell) -> list[dict[str, Any]]:
    """Return what each stage cost, as means over the questions that went through it."""
    found = []
    for name in _unique(stage.name for outcome in own.values() for stage in outcome.stages):
        same = [stage for outcome in own.values() for stage in outcome.stages if stage.name == name]
        skipped = [stage.skipped for stage in same if stage.skipped is not None]
        numbers: dict[str, Any] = {field: _mean(getattr(stage, field) for stage in same)
                                   for field in ("tokens_in", "tokens_out", "seconds")}  # fmt: skip
        found.append({"name": name, **numbers, "skipped": _mean(skipped) if skipped else None, "questions": len(same)})
    return found


def _mean(found: Iterable[float]) -> float:
    numbers = [float(number) for number in found]
    return round(sum(numbers) / len(numbers), 4)


def summary(
    outcomes: Sequence[Outcome],
    halves: Wanted | Mapping[str, Wanted],
    default: str,
    left_out: Mapping[str, Mapping[str, int]] = {},
) -> dict[str, Any]:
    """Return all numbers of a run by task, ready for JSON.

    :param halves: the half of every task, or of each.
    :param default: the system that others are compared with, where a task has it; else its first system.
    :param left_out: how many questions of each task were left out, by reason.
    """
    cells = without_repeats(cells_of(outcomes))
    result: dict[str, Any] = {"default": default}
    if isinstance(halves, str):
        result["half"] = halves
    for task in _unique(task for task, _, _ in cells):
        wanted = halves if isinstance(halves, str) else halves[task]
        own = {key: cell for key, cell in cells.items() if key[0] == task}
        result[task] = _task(task, own, wanted, default) | {"left_out": left_out.get(task)}
    return result


def _task(task: str, cells: Cells, half: Wanted, default: str) -> dict[str, Any]:
    rows = _rows(cells, default)
    budgets = sorted({budget for _, _, budget in cells})
    everything = {question: outcome.page for cell in cells.values() for question, outcome in cell.items()}

    def numbers(row: str, budget: int) -> dict[str, Any]:
        base = rows[row]["base"]
        return _cell(cells[task, row, budget], cells.get((task, base, budget)) if base != row else None)

    systems = {
        row: {str(budget): numbers(row, budget) for budget in budgets if (task, row, budget) in cells} for row in rows
    }
    return {
        "half": half,
        "questions": len(everything),
        "pages": len(set(everything.values())),
        "budgets": budgets,
        "metrics": _titles(systems),
        "rows": rows,
        "systems": systems,
        "groups": _groups(cells),
    }


def _rows(cells: Cells, default: str) -> dict[str, dict[str, str]]:
    """Return the system, the reader, its prompt, the caveat and the base of each row.

    Rows are compared with the default system, or with the first one where it was not run, with the same reader and
    prompt.
    """
    found: dict[str, dict[str, str]] = {}
    for (_, row, _), cell in cells.items():
        outcome = next(iter(cell.values()))
        own = {"system": outcome.system, "reader": outcome.reader, "prompt": outcome.prompt_name}
        known = found.setdefault(row, {**own, "caveat": "", "base": ""})
        known["caveat"] = joined([known["caveat"], *(outcome.caveat for outcome in cell.values())])
    for facts in found.values():
        asked = facts["reader"], facts["prompt"]
        same = [row for row, other in found.items() if (other["reader"], other["prompt"]) == asked]
        facts["base"] = next((row for row in same if found[row]["system"] == default), same[0])
    return found


def _titles(systems: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return the titles of the metrics of a task, in the order of the first cell that has each."""
    names = _unique(name for budgets in systems.values() for cell in budgets.values() for name in scored(cell))
    known = metrics.known()
    return {name: known[name].title if name in known else name for name in names}


def _groups(cells: Cells) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Return the means of every metric by label, value, row and budget."""
    labels: dict[str, set[str]] = {}
    for cell in cells.values():
        for outcome in cell.values():
            for name, value in outcome.labels.items():
                labels.setdefault(name, set()).add(value)
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for name, known in labels.items():
        if not 1 < len(known) <= GROUPS:
            continue
        found[name] = {value: {} for value in sorted(known, key=in_order)}
        for (_, row, budget), cell in cells.items():
            for value, rows in found[name].items():
                own = {question: outcome for question, outcome in cell.items() if outcome.labels.get(name) == value}
                if own:
                    rows.setdefault(row, {})[str(budget)] = _means(own)
    return found


def _means(own: Cell) -> dict[str, Any]:
    names = _unique(name for outcome in own.values() for name in outcome.scores)
    return {**{name: estimate(own, name).numbers() for name in names}, "questions": len(own)}


def in_order(value: str) -> tuple[float, str]:
    """Return the sort key of a label's value: numbers by their size, then words."""
    return bounded_float(value, float("inf"), least=float("-inf")), value


def scored(cell: Mapping[str, Any]) -> list[str]:
    """Return the metrics that a cell of the summary has."""
    return [name for name in cell if name not in OTHERS]


def leading(content: Mapping[str, Any]) -> list[str]:
    """Return the metrics that stand first in some row of a task: of the evidence, and of answers."""
    every = [scored(cell) for cells in content["systems"].values() for cell in cells.values()]
    return _unique(names[0] for names in every if names)


def largest(row: Mapping[str, Any]) -> str:
    """Return the largest budget of a row, as its key."""
    return max(row, key=in_order)


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
