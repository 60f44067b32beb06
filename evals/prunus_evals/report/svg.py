"""Plots as inline SVG: lines with intervals, points, and a heat map. Colours are classes of the page's style sheet.

Each function returns a ``figure`` of HTML. Marks have tooltips (``title``); nothing needs a script.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prunus_evals.report.safe import safe

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 12, 40
COLOURS = 8
MOST = 16
"""Series of one plot; more cannot be told apart."""

STEPS = 10
"""Shades of a heat map."""


@dataclass(frozen=True, slots=True)
class Point:
    """A measured value; ``low`` and ``high`` are the ends of its interval, where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one row, in the order in which a line joins them."""

    name: str
    points: Sequence[Point]


def lines(title: str, series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Return a plot of lines over a logarithmic axis, with a whisker for each interval.

    The values of ``x`` are the ticks: budgets, sizes of blocks.
    """
    ticks = sorted({point.x for one in series for point in one.points})
    return _plot(title, series, (x_label, y_label), [(tick, f"{tick:g}") for tick in ticks])


def scatter(title: str, series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Return a plot of points over a logarithmic axis, those of one series joined."""
    found = [point.x for one in series for point in one.points]
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    ticks = [factor * 10.0**power for power in range(low, high + 1) for factor in (1, 2, 5)]
    inside = [tick for tick in ticks if min(found) / 2.5 <= tick <= max(found) * 2.5]
    return _plot(title, series, (x_label, y_label), [(tick, f"{tick:g}") for tick in inside])


def _plot(title: str, series: Sequence[Series], labels: tuple[str, str], ticks: Sequence[tuple[float, str]]) -> str:
    every = [point for one in series for point in one.points]
    across = _Log(min([point.x for point in every] + [ticks[0][0]]), max([point.x for point in every] + [ticks[-1][0]]))
    up = _Up([edge for point in every for edge in (point.y, point.low, point.high) if edge is not None])
    parts = [_frame(title)]
    for value in up.ticks:
        y = up.at(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    last = -100.0
    for value, text in ticks:
        x = across.at(value)
        if x - last < 6 * len(text) + 8:  # labels would touch
            continue
        last = x
        parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{text}</text>')
    parts.append(
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{safe(labels[0])}'
        f'</text><text class="axis" transform="translate(11 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{safe(labels[1])}</text>'
    )
    for number, one in enumerate(series):
        parts.append(_series(number, one, across, up, len(series)))
    return _figure(title, "".join([*parts, "</svg>"]), _legend(series))


def _series(number: int, one: Series, across: _Log, up: _Up, of: int) -> str:
    """Draw a line with its marks; whiskers of neighbours stand beside each other."""
    aside = (number - (of - 1) / 2) * min(3.0, 18 / max(1, of))
    places = [(across.at(point.x) + aside, up.at(point.y)) for point in one.points]
    parts = [f'<g class="c{number % COLOURS}{" second" if number >= COLOURS else ""}">']
    parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
    for (x, y), point in zip(places, one.points, strict=True):
        if point.low is not None and point.high is not None:
            ends = up.at(point.low), up.at(point.high)
            parts.append(f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>')
        tip = safe(f"{one.name}: {point.note or f'{point.y:.3f}'}")
        parts.append(f"<g>{_mark(number, x, y)}<title>{tip}</title></g>")
    return "".join([*parts, "</g>"])


def _mark(number: int, x: float, y: float) -> str:
    """Return the mark of a series: its form tells series of similar colours apart."""
    if number % 4 == 0:
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'
    if number % 4 == 1:
        return f'<rect class="mark" x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4"/>'
    corners = [(0, -4.4), (4.2, 3.2), (-4.2, 3.2)] if number % 4 == 2 else [(0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0)]
    return f'<polygon class="mark" points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)}"/>'


def heat(
    title: str, values: Mapping[tuple[str, str], float], x: Sequence[str], y: Sequence[str], labels: tuple[str, str]
) -> str:
    """Return a heat map of values between 0 and 1 by column and row; a place without a value stays empty."""
    left, top = 62, 8
    width = (WIDTH - left - RIGHT) / max(1, len(x))
    height = min(34.0, (HEIGHT - top - BOTTOM) / max(1, len(y)))
    bottom = top + height * len(y)
    parts = [_frame(title, bottom + BOTTOM)]
    for row, name in enumerate(y):
        middle = top + height * (row + 0.5)
        parts.append(f'<text class="tick" x="{left - 6}" y="{middle + 4:.1f}" text-anchor="end">{safe(name)}</text>')
        for column, other in enumerate(x):
            value = values.get((other, name))
            if value is None:
                continue
            shade = min(STEPS - 1, max(0, int(value * STEPS)))
            place = left + width * column
            parts.append(
                f'<g><rect class="s{shade}" x="{place:.1f}" y="{top + height * row:.1f}" width="{width - 1:.1f}" '
                f'height="{height - 1:.1f}"/><text class="cell s{shade}" x="{place + width / 2:.1f}" '
                f'y="{middle + 4:.1f}" text-anchor="middle">{value:.2f}</text>'
                f"<title>{safe(f'{labels[0]} {other}, {labels[1]} {name}: {value:.4f}')}</title></g>"
            )
    for column, other in enumerate(x):
        place = left + width * (column + 0.5)
        parts.append(
            f'<text class="tick" x="{place:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{safe(other)}</text>'
        )
    parts.append(
        f'<text class="axis" x="{(left + WIDTH - RIGHT) / 2}" y="{bottom + BOTTOM - 6:.1f}" text-anchor="middle">'
        f'{safe(labels[0])}</text><text class="axis" transform="translate(11 {(top + bottom) / 2:.1f}) rotate(-90)" '
        f'text-anchor="middle">{safe(labels[1])}</text>'
    )
    return _figure(title, "".join([*parts, "</svg>"]), "")


class _Log:
    """Places on the logarithmic axis from left to right."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = math.log(low), math.log(high)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        inner = WIDTH - LEFT - RIGHT - 40
        span = self._high - self._low
        return LEFT + 20 + (inner * (math.log(value) - self._low) / span if span else inner / 2)


class _Up:
    """Places on the axis from bottom to top, which holds all values and ends at round numbers."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        if low == high:  # one height says nothing without its place between none and all
            low, high = min(0.0, low), max(1.0, high)
        rough = max(high - low, 1e-3) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        self._low, self._high = math.floor(low / step) * step, math.ceil(high / step) * step
        count = round((self._high - self._low) / step)
        self.ticks = [round(self._low + step * number, 10) for number in range(count + 1)]

    def at(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self._low) / ((self._high - self._low) or 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _frame(title: str, height: float = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{safe(title)}">'


def _legend(series: Sequence[Series]) -> str:
    items = []
    for number, one in enumerate(series):
        second = " second" if number >= COLOURS else ""
        swatch = f'<svg viewBox="0 0 22 12" class="swatch" aria-hidden="true"><g class="c{number % COLOURS}{second}">'
        swatch += f'<polyline points="1,6 21,6"/>{_mark(number, 11, 6)}</g></svg>'
        items.append(f"<li>{swatch}{safe(one.name)}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _figure(title: str, drawing: str, legend: str) -> str:
    return f"<figure><figcaption>{safe(title)}</figcaption>{drawing}{legend}</figure>\n"
