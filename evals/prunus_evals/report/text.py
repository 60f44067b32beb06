"""The tables of a run as plain text, and its numbers as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from prunus_evals.report.numbers import held, leading
from prunus_evals.report.safe import readable
from prunus_evals.stats import NONE_BELOW, counted, shown


def label(name: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return the name of a row with what must be said of its models."""
    caveat = rows[name]["caveat"]
    return readable(f"{name} ({caveat})" if caveat else name)


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
        if not isinstance(content, dict):
            continue
        lines += ["", f"{headline(task, content)}; 95 % intervals over pages, {NONE_BELOW}"]
        for metric, title in content["metrics"].items():
            lines += _block(content, title, partial(_score, metric=metric))
        for metric in leading(content):
            title = f"default minus this system, {content['metrics'][metric]}"
            lines += _block(content, title, partial(_minus, metric=metric))
        lines += _block(content, "mean tokens used / CPU seconds per question", _used)
        lines += filter(None, [held(content)])
        lines += _block(
            content,
            "reader: mean tokens read / written / seconds per question; – where nothing counted",
            _read,
        )
        lines += _block(content, "empty replies", _empty)
        lines += _block(content, "answered without the model inside, whose reply was of no use", _without)
    return "\n".join(lines).lstrip("\n")


def _block(content: Mapping[str, Any], title: str, show: Callable[[Mapping[str, Any]], str]) -> list[str]:
    """Return a table of one number of every cell; nothing where no cell has it."""
    budgets, rows = content["budgets"], content["rows"]
    names = {row: label(row, rows) for row in content["systems"]}
    width = max([28, *(len(name) + 2 for name in names.values())])
    lines = []
    for row, cells in content["systems"].items():
        texts = [show(cells[str(budget)]) if str(budget) in cells else "-" for budget in budgets]
        if set(texts) != {"-"}:
            lines.append(f"{names[row]:{width}}" + "".join(f"{text:>26}" for text in texts))
    head = f"{'':{width}}" + "".join(f"{budget:>26}" for budget in budgets)
    return ["", title, head, *lines] if lines else []


def _score(cell: Mapping[str, Any], metric: str) -> str:
    return shown(cell[metric]) if metric in cell else "-"


def _minus(cell: Mapping[str, Any], metric: str) -> str:
    numbers = cell.get("differences", {}).get(metric)
    return shown(numbers, signed=True) if numbers else "-"


def _used(cell: Mapping[str, Any]) -> str:
    return f"{cell['tokens']:.0f} / {cell['cpu_seconds']:.3f}"


def _read(cell: Mapping[str, Any]) -> str:
    if "reader" not in cell:
        return "-"
    read = cell["reader"]
    return f"{tokens(read['prompt_tokens'])} / {tokens(read['completion_tokens'])} / {read['seconds']:.2f}"


def _empty(cell: Mapping[str, Any]) -> str:
    read = cell.get("reader", {})
    return f"{read['empty']} of {cell['questions']['all']}" if "empty" in read else "-"


def _without(cell: Mapping[str, Any]) -> str:
    return f"{cell['without_model']} of {cell['questions']['all']}" if "without_model" in cell else "-"


def tokens(number: float | None) -> str:
    """Return a number of tokens; ``–`` where nobody counted them."""
    return "–" if number is None else f"{number:,.0f}"


def json_line(result: Mapping[str, object]) -> str:
    """Return a summary as one line of JSON."""
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))
