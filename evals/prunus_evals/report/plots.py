"""Which plots a task gets: budget curves, numbers in names (granularity), cost against quality, needles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from prunus.core.text.numbers import bounded_float
from prunus_evals.report import svg
from prunus_evals.report.numbers import in_order, largest, leading
from prunus_evals.report.text import label

_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?![\w.])|(?<=[=_:])\d{1,9}(?!\w)")
FAMILY = 3
"""Systems whose names differ in one number are drawn over it where there are so many."""


def plots(content: Mapping[str, Any]) -> list[str]:
    """Return the plots of a task as figures of HTML."""
    metrics = content["metrics"]
    if not metrics:
        return []
    found = [curve(content, metric) for metric in metrics] if len(content["budgets"]) > 1 else []
    for metric in leading(content):
        found += granularity(content, metric)
        found.append(cost(content, metric, "seconds", "seconds per question (wall time, logarithmic)"))
        found += needles(content, metric)
    return [figure for figure in found if figure]


def curve(content: Mapping[str, Any], metric: str) -> str:
    """Return a metric over budgets."""
    series = []
    for row in chosen(content, metric):
        cells = content["systems"][row]
        points = [
            svg.Point(budget, *cells[str(budget)][metric])
            for budget in content["budgets"]
            if metric in cells.get(str(budget), {})
        ]
        series.append(svg.Series(label(row, content["rows"]), points))
    title = content["metrics"][metric] + _shown(content, metric)
    return svg.lines(title, series, "budget in tokens", metric) if series else ""


def cost(content: Mapping[str, Any], metric: str, field: str, axis: str) -> str:
    """Return a metric over a cost, a point for each budget."""
    series = []
    for row in chosen(content, metric):
        points = [
            svg.Point(
                cell[field], cell[metric][0], note=f"{cell[metric][0]:.3f}, {cell[field]:g} {field}, budget {budget}"
            )
            for budget, cell in content["systems"][row].items()
            if metric in cell and cell[field] > 0
        ]
        if points:
            series.append(svg.Series(label(row, content["rows"]), points))
    title = f"{content['metrics'][metric]}: cost against quality" + _shown(content, metric)
    return svg.scatter(title, series, axis, metric) if series else ""


def granularity(content: Mapping[str, Any], metric: str) -> list[str]:
    """Return a plot for each family of systems whose names differ in one number alone, as a size of blocks."""
    families: dict[str, dict[float, str]] = {}
    for row in content["systems"]:
        for match in _NUMBER.finditer(row):
            value = bounded_float(match[0], 0.0)
            if value > 0:
                families.setdefault(f"{row[: match.start()]}N{row[match.end() :]}", {})[value] = row
    found = []
    for name, members in families.items():
        if len(members) < FAMILY:
            continue
        series = []
        for budget in content["budgets"]:
            cells = {value: content["systems"][row].get(str(budget), {}) for value, row in sorted(members.items())}
            points = [svg.Point(value, *cell[metric]) for value, cell in cells.items() if metric in cell]
            if points:
                series.append(svg.Series(f"{budget:,} tokens", points))
        if series:
            title = f"{content['metrics'][metric]} by the number N of {name}"
            found.append(svg.lines(title, series[: svg.MOST], "N", metric))
    return found


def needles(content: Mapping[str, Any], metric: str) -> list[str]:
    """Return a heat map of the length of the haystack and the depth of the needle for each row."""
    found = []
    for row, budgets in content["grid"].items():
        budget = largest(budgets)
        places = [place for place in budgets[budget] if metric in place]
        if not places:
            continue
        values = {(place["length"], place["depth"]): place[metric] for place in places}
        lengths = sorted({place["length"] for place in places}, key=in_order)
        depths = sorted({place["depth"] for place in places}, key=in_order)
        title = f"{content['metrics'][metric]}: {label(row, content['rows'])}, budget {budget}"
        found.append(svg.heat(title, values, lengths, depths, ("length", "depth")))
    return found


def chosen(content: Mapping[str, Any], metric: str) -> Sequence[str]:
    """Return the rows of a plot: all, or those that others are compared with, and the best at their largest budgets."""
    systems, rows = content["systems"], content["rows"]
    with_it = [row for row, cells in systems.items() if any(metric in cell for cell in cells.values())]
    if len(with_it) <= svg.MOST:
        return with_it

    def rank(row: str) -> tuple[bool, float]:
        return rows[row]["base"] != row, -systems[row][largest(systems[row])].get(metric, [0.0])[0]

    best = set(sorted(with_it, key=rank)[: svg.MOST])
    return [row for row in with_it if row in best]


def _shown(content: Mapping[str, Any], metric: str) -> str:
    with_it = sum(any(metric in cell for cell in cells.values()) for cells in content["systems"].values())
    return f" (the best {svg.MOST} of {with_it} rows)" if with_it > svg.MOST else ""
