"""The tables of a run in Markdown, to paste into documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prunus_evals.report.numbers import held
from prunus_evals.report.safe import readable
from prunus_evals.report.text import headline, label
from prunus_evals.stats import NONE_BELOW, shown


def markdown(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table for each task and metric: means with intervals, and what the base is ahead of each row."""
    parts: list[str] = []
    for task, content in tasks.items():
        for metric, title in content["metrics"].items():
            parts += [
                "",
                f"{headline(task, content)}. {title[:1].upper()}{title[1:]};"
                + (" in brackets 95 % over pages," if _intervals(content, metric) else ""),
                _base(content),
                "",
            ]
            parts += ["| system | " + " | ".join(f"{budget:,}" for budget in content["budgets"]) + " |"]
            parts.append("| --- |" + " --- |" * len(content["budgets"]))
            for row, cells in content["systems"].items():
                texts = [_cell(cells.get(str(budget), {}), metric) for budget in content["budgets"]]
                if any(texts):
                    parts.append(f"| {_safe(label(row, content['rows']))} | " + " | ".join(texts) + " |")
        parts += ["", "Tokens / CPU seconds a question:", "", *_costs(content)]
        parts += ["", note] if (note := held(content)) else []
    return "\n".join(parts).strip() + "\n"


def _intervals(content: Mapping[str, Any], metric: str) -> bool:
    """Return whether a number of a metric has an interval."""
    cells = (cell for cells in content["systems"].values() for cell in cells.values() if metric in cell)
    return any(None not in cell[metric] for cell in cells)


def _base(content: Mapping[str, Any]) -> str:
    bases = dict.fromkeys(facts["base"] for facts in content["rows"].values())
    return f"{NONE_BELOW}, and after Δ how far {', '.join(f'`{_safe(base)}`' for base in bases)} is ahead, paired."


def _cell(cell: Mapping[str, Any], metric: str) -> str:
    if metric not in cell:
        return ""
    own = shown(cell[metric])
    minus = cell.get("differences", {}).get(metric)
    missing = cell["questions"]["all"] - cell["questions"][metric]
    count = f" (of {cell['questions'][metric]} questions)" if missing else ""
    return f"{own}{count}" + (f" Δ {shown(minus, signed=True)}" if minus else "")


def _costs(content: Mapping[str, Any]) -> list[str]:
    lines = ["| system | " + " | ".join(f"{budget:,}" for budget in content["budgets"]) + " |"]
    lines.append("| --- |" + " --- |" * len(content["budgets"]))
    for row, cells in content["systems"].items():
        texts = [
            f"{cells[str(budget)]['tokens']:.0f} / {cells[str(budget)]['cpu_seconds']:.3f}"
            if str(budget) in cells
            else ""
            for budget in content["budgets"]
        ]
        lines.append(f"| {_safe(label(row, content['rows']))} | " + " | ".join(texts) + " |")
    return lines


def _safe(text: str) -> str:
    return readable(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
