"""Reports of survival: means and paired intervals as a table and as one JSON line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from prunus_evals import metrics, stats
from prunus_evals.records import Outcome
from prunus_evals.split import Wanted

Values = dict[str, list[float]]


def row_of(outcome: Outcome) -> str:
    """Return the name of an outcome's row: its system, with its reader where one answered."""
    return outcome.system if outcome.reader == "none" else f"{outcome.system} > {outcome.reader}"


def value_of(outcome: Outcome, field: str) -> float | None:
    """Return a score or a cost of an outcome; None where it has none."""
    if field in ("tokens", "cpu_seconds", "seconds"):
        return float(getattr(outcome, field))
    return outcome.scores.get(field)


def values(outcomes: Sequence[Outcome], task: str, system: str, budget: int, field: str) -> Values:
    """Return the values of one field by page; questions where it is None are left out."""
    found: Values = {}
    for outcome in outcomes:
        if (outcome.task, row_of(outcome), outcome.budget) == (task, system, budget):
            value = value_of(outcome, field)
            if value is not None:
                found.setdefault(outcome.page, []).append(float(value))
    return found


def _unique(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items))


def cell(outcomes: Sequence[Outcome], task: str, system: str, budget: int, default: str) -> dict[str, object]:
    """Return all numbers of one system at one budget, each as mean, low and high.

    :param default: the row that others are compared with, by the first metric.
    """
    own = [o for o in outcomes if (o.task, row_of(o), o.budget) == (task, system, budget)]
    names = _unique([name for outcome in own for name in outcome.scores])
    result: dict[str, object] = {}
    for place, name in enumerate(names):
        found = values(outcomes, task, system, budget, name)
        result[name] = _numbers(stats.mean(found))
        base = values(outcomes, task, default, budget, name) if place == 0 and system != default else {}
        if base:
            result["default_minus_this"] = _numbers(stats.difference(base, found))
    for field in ("tokens", "cpu_seconds", "seconds"):
        mean = stats.mean(values(outcomes, task, system, budget, field), samples=1).mean
        result[field] = round(mean, 4)
    return result


def _numbers(estimate: stats.Estimate) -> list[float]:
    return [round(number, 4) for number in (estimate.mean, estimate.low, estimate.high)]


def summary(outcomes: Sequence[Outcome], half: Wanted, default: str) -> dict[str, object]:
    """Return the numbers of the table, ready for JSON."""
    tasks = _unique([outcome.task for outcome in outcomes])
    result: dict[str, object] = {"half": half, "default": default}
    for task in tasks:
        own = [outcome for outcome in outcomes if outcome.task == task]
        budgets = sorted({outcome.budget for outcome in own})
        result[task] = {
            "questions": len({outcome.question for outcome in own}),
            "pages": len({outcome.page for outcome in own}),
            "systems": {
                system: {str(b): cell(own, task, system, b, default) for b in budgets}
                for system in _unique([row_of(outcome) for outcome in own])
            },
        }
    return result


def _interval(numbers: Sequence[float], signed: bool = False) -> str:
    form = "{:+.3f} [{:+.3f} {:+.3f}]" if signed else "{:.3f} [{:.3f} {:.3f}]"
    return form.format(*numbers)


def _line(system: str, cells: Mapping[str, dict[str, list[float]]], field: str) -> str | None:
    shown = [
        _interval(cell[field], signed=field == "default_minus_this") if field in cell else "-"
        for cell in cells.values()
    ]
    if all(text == "-" for text in shown):
        return None
    return f"{system:28}" + "".join(f"{text:>22}" for text in shown)


def _titles(systems: Mapping[str, Mapping[str, Mapping[str, object]]]) -> dict[str, str]:
    """Return the titles of all numbers with intervals, by name."""
    names = _unique([name for cells in systems.values() for cell in cells.values() for name in cell])
    found: dict[str, str] = {}
    for name in names:
        if name in metrics.known():
            found[name] = metrics.known()[name].title
            if not found.get("default_minus_this") and "default_minus_this" in names:
                found["default_minus_this"] = f"default minus this system, {found[name]}"
    return found


def table(result: Mapping[str, object]) -> str:
    """Return a summary as text tables."""
    lines: list[str] = []
    for task, content in result.items():
        if not isinstance(content, dict):
            continue
        systems = content["systems"]
        head = f"{task}, {result['half']} half: {content['questions']} questions"
        lines += ["", f"{head}, {content['pages']} pages; 95 % intervals over pages"]
        budgets = list(next(iter(systems.values())))
        for field, title in _titles(systems).items():
            shown = [_line(name, cells, field) for name, cells in systems.items()]
            if any(shown):
                columns = "".join(f"{budget:>22}" for budget in budgets)
                lines += ["", title, f"{'':24}{columns}"]
                lines += [line for line in shown if line]
        lines += ["", "mean tokens used / CPU seconds per question"]
        for name, cells in systems.items():
            used = [f"{cell['tokens']:.0f} / {cell['cpu_seconds']:.3f}" for cell in cells.values()]
            lines.append(f"{name:28}" + "".join(f"{text:>22}" for text in used))
    return "\n".join(lines).lstrip("\n")


def json_line(result: Mapping[str, object]) -> str:
    """Return a summary as one line of JSON."""
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))
