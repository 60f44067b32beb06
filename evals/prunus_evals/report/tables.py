"""The tables of a run, and their three forms: plain text, Markdown and HTML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from prunus_evals.report.numbers import held, largest, leading
from prunus_evals.stats import NONE_BELOW, apart, counted, shown

Cell = Mapping[str, Any]
"""The numbers of one row at one budget; see :mod:`.numbers`."""

# control characters, marks that turn text round, and lone surrogates, which no file in UTF-8 can hold
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def readable(text: object) -> str:
    """Return a text with U+FFFD for each character that is not shown, or does harm."""
    return _UNFIT.sub("\ufffd", str(text))


def safe(text: object) -> str:
    """Return a text for HTML, between tags or in an attribute."""
    return html.escape(readable(text))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a task.

    :param rows: label and cells of each row.
    """

    title: str
    head: list[str]
    rows: list[tuple[str, list[str]]]
    note: str = ""


def tables(content: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of a task: metrics, costs, readers, stages and groups."""
    bases = ", ".join(dict.fromkeys(facts["base"] for facts in content["rows"].values()))
    ahead = (
        f"Mean [95 % interval over pages; {NONE_BELOW}]; Δ: how far {bases} is ahead of the row, over the same "
        "questions; * where the interval excludes 0."
    )
    for metric, title in content["metrics"].items():
        yield from _by_budget(content, title, partial(_score, content, metric), ahead)
    spent = "CPU seconds and seconds of wall time a question include the preparation of its page."
    costs = "tokens of evidence / CPU seconds / seconds"
    yield from _by_budget(content, costs, _costs, f"{spent} {held(content)}".strip())
    yield from _by_budget(content, "reader: tokens read / written / seconds; – where nothing counted", _read)
    yield from _by_budget(content, "empty replies", _empty)
    yield from _by_budget(content, "answered without the model inside, whose reply was of no use", _without)
    yield from _stages(content)
    yield from _groups(content)


def _by_budget(content: Mapping[str, Any], title: str, show: Callable[[Cell], str], note: str = "") -> Iterator[Table]:
    """Yield a table of one number of every cell; nothing where no cell has it."""
    budgets = content["budgets"]
    rows = []
    for row, cells in content["systems"].items():
        texts = [show(cells[str(budget)]) if str(budget) in cells else "" for budget in budgets]
        if any(texts):
            rows.append((label(row, content["rows"]), [text or "–" for text in texts]))
    if rows:
        yield Table(title, [f"{budget:,} tokens" for budget in budgets], rows, note)


def _score(content: Mapping[str, Any], metric: str, cell: Cell) -> str:
    if metric not in cell:
        return ""
    parts = [shown(cell[metric])]
    if minus := cell.get("differences", {}).get(metric):
        parts.append(f"Δ {shown(minus, signed=True)}" + " *" * bool(apart(*minus[1:])))
    if cell["questions"][metric] != content["questions"]:
        parts.append(f"({cell['questions'][metric]} of {content['questions']} questions)")
    return " ".join(parts)


def _costs(cell: Cell) -> str:
    return f"{cell['tokens']:,.0f} / {cell['cpu_seconds']:.3f} / {cell['seconds']:.3f}"


def _read(cell: Cell) -> str:
    read = cell.get("reader")
    tokens = ("–" if read[name] is None else f"{read[name]:,.0f}" for name in _READ) if read else ()
    return f"{' / '.join(tokens)} / {read['seconds']:.2f}" if read else ""


_READ = ("prompt_tokens", "completion_tokens")


def _empty(cell: Cell) -> str:
    read = cell.get("reader", {})
    return f"{read['empty']} of {cell['questions']['all']}" if "empty" in read else ""


def _without(cell: Cell) -> str:
    return f"{cell['without_model']} of {cell['questions']['all']}" if "without_model" in cell else ""


def _stages(content: Mapping[str, Any]) -> Iterator[Table]:
    """Yield what each stage cost at the largest budget of each row."""
    rows = []
    for row, cells in content["systems"].items():
        budget = largest(cells)
        for stage in cells[budget].get("stages", ()):
            tokens = [f"{stage['tokens_in']:,.0f}", f"{stage['tokens_out']:,.0f}", f"{stage['seconds']:.4f}"]
            skipped = "–" if stage["skipped"] is None else f"{stage['skipped']:.3f}"
            rows.append((f"{label(row, content['rows'])}, {int(budget):,}: {stage['name']}", [*tokens, skipped]))
    if rows:
        head = ["tokens in", "tokens out", "seconds", "nodes not scored"]
        yield Table("costs by stage", head, rows, "Means a question, at the largest budget.")


def _groups(content: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the first metric of evidence, and of answers, by the values of each label, at the largest budget."""
    budget = str(max(content["budgets"]))
    for (name, groups), metric in product(content["groups"].items(), leading(content)):
        sizes = [max(cell["questions"] for row in group.values() for cell in row.values()) for group in groups.values()]
        rows = []
        for row in content["systems"]:
            cells = [group.get(row, {}).get(budget, {}) for group in groups.values()]
            if any(metric in cell for cell in cells):
                texts = [shown(cell[metric]) if metric in cell else "–" for cell in cells]
                rows.append((label(row, content["rows"]), texts))
        if rows:
            title = f"{content['metrics'][metric]}, by {name}, {int(budget):,} tokens"
            head = [f"{value} ({counted(size, 'question')})" for value, size in zip(groups, sizes, strict=True)]
            yield Table(title, head, rows, "The other metrics and budgets are in report.json.")


def label(name: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return the name of a row with what must be said of its models."""
    caveat = rows[name]["caveat"]
    return f"{name} ({caveat})" if caveat else name


def half_of(wanted: str) -> str:
    """Return which half a table shows."""
    return "both halves" if wanted == "all" else f"{wanted} half"


def headline(task: str, content: Mapping[str, Any]) -> str:
    """Return what every table of a task says: its half, and its numbers of questions and pages."""
    unasked = sum((content.get("left_out") or {}).values())
    left_out = f", {unasked} left out" if unasked else ""
    size = f"{counted(content['questions'], 'question')}, {counted(content['pages'], 'page')}"
    return f"{task}, {half_of(content['half'])}: {size}{left_out}"


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as text tables."""
    lines: list[str] = []
    for task, content in result.items():
        if isinstance(content, dict):
            lines += ["", headline(task, content)]
            for one in tables(content):
                lines += ["", readable(one.title), *_aligned(one), *filter(None, [one.note])]
    return "\n".join(lines).lstrip("\n")


def _aligned(one: Table) -> list[str]:
    rows = [("", one.head), *one.rows]
    first = max(28, *(len(readable(name)) + 2 for name, _ in rows))
    widths = [max(10, *(len(readable(cells[place])) + 2 for _, cells in rows)) for place in range(len(one.head))]
    return [
        f"{readable(name):{first}}"
        + "".join(f"{readable(cell):>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, cells in rows
    ]


def markdown(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables of all tasks in Markdown, to paste into documents."""
    parts: list[str] = []
    for task, content in tasks.items():
        for one in tables(content):
            parts += [f"{headline(task, content)}. {one.title[:1].upper()}{one.title[1:]}", ""]
            parts += [_line(["system", *one.head]), "| --- |" + " --- |" * len(one.head)]
            parts += [_line([name, *cells]) for name, cells in one.rows]
            parts += ["", *([one.note, ""] if one.note else [])]
    return "\n".join(parts).strip() + "\n"


def _line(cells: list[str]) -> str:
    shown = (readable(cell).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(shown)} |"


def as_html(one: Table, about: str) -> str:
    """Return a table as HTML.

    :param about: what stands behind the title in its caption.
    """
    columns = "".join(f'<th scope="col">{safe(name)}</th>' for name in ["", *one.head])
    rows = "".join(
        f'<tr><th scope="row">{safe(name)}</th>' + "".join(f"<td>{safe(cell)}</td>" for cell in cells) + "</tr>\n"
        for name, cells in one.rows
    )
    caption = f"{safe(one.title[:1].upper() + one.title[1:])} <small>{safe(about)}</small>"
    return (
        f'<div class="wide"><table>\n<caption>{caption}</caption>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n'
        f'{rows}</tbody>\n</table></div>\n<p class="small">{safe(one.note)}</p>\n'
    )


def json_line(result: Mapping[str, object]) -> str:
    """Return a summary as one line of JSON."""
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))
