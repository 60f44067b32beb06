"""Writes the report of a run into its folder: ``report.html`` and ``report.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prunus_evals.errors import EvalError
from prunus_evals.provenance import differences
from prunus_evals.readers import CAVEATS
from prunus_evals.records import Outcome
from prunus_evals.report.cases import Case, facts_of, worst
from prunus_evals.report.numbers import cells_of, scored, summary, without_repeats
from prunus_evals.report.page import page
from prunus_evals.split import Wanted, half
from prunus_evals.store import Store, opened
from prunus_evals.systems import DEFAULT

FORM = 1
"""The form of ``report.json``."""


def write(folder: Path, cases: bool | None = None, default: str = DEFAULT) -> tuple[Path, dict[str, Any]]:
    """Write the report of a run, and return the place of its page and what ``report.json`` holds.

    :param cases: show the worst cases with texts of their pages; None: of tasks that are not on the report half.
    :param default: the system that others are compared with.
    :raises EvalError: the folder is no run, nothing was measured, or the report cannot be written.
    """
    with opened(folder) as store:
        facts, shown = read(store, cases, default)
        text = page(facts, shown)
    place = folder / "report.html"
    try:
        place.write_text(text, encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    except OSError as error:
        raise EvalError(f"the report cannot be written: {error}") from error
    return place, facts


def read(store: Store, cases: bool | None, default: str) -> tuple[dict[str, Any], dict[str, list[Case] | None]]:
    """Return what ``report.json`` holds, and the worst cases by task.

    :raises EvalError: nothing was measured.
    """
    outcomes = store.outcomes()
    if not outcomes:
        raise EvalError(f"{store.place}: nothing was measured in this run")
    about = store.about()
    halves: dict[str, Wanted] = {**_halves(outcomes), **about.get("halves", {})}
    numbers = summary(outcomes, halves, default, about.get("left_out", {}))
    tasks = {name: content for name, content in numbers.items() if isinstance(content, dict)}
    cells = without_repeats(cells_of(outcomes))
    shown: dict[str, list[Case] | None] = {}
    for task, content in tasks.items():
        own = {key: cell for key, cell in cells.items() if key[0] == task}
        show = halves[task] != "report" if cases is None else cases
        shown[task] = worst(task, content, own, store) if show else None
        content["worst"] = [facts_of(case) for case in shown[task] or ()]
    run: dict[str, Any] = {name: about[name] for name in ("plans", "starts") if name in about}
    facts = {"form": FORM, "default": default, "run": run, "outcomes": len(outcomes), "tasks": tasks}
    return {**facts, "warnings": warnings(run, tasks)}, shown


def _halves(outcomes: list[Outcome]) -> dict[str, Wanted]:
    """Return the half of each task by its pages, for a run that did not note it."""
    found: dict[str, set[Wanted]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.task, set()).add(half(outcome.page))
    return {task: next(iter(seen)) if len(seen) == 1 else "all" for task, seen in found.items()}


def warnings(run: Mapping[str, Any], tasks: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the report must know first."""
    found = []
    rows = [row for content in tasks.values() for row in content["rows"].values()]
    for name in sorted({name for row in rows for name in row["caveat"].split(", ") if name}):
        found.append(f"{name}: {CAVEATS.get(name, name)}. Rows that it concerns are marked “{name}”.")
    starts = run.get("starts", ())
    if starts and starts[-1]["end"] != "finished":
        found.append(f"The last start did not finish ({starts[-1]['end']}): tables hold what was measured until then.")
    if len(run.get("plans", ())) > 1:
        found.append(f"{len(run['plans'])} plans were run into this folder; rows can have different questions.")
    states = {start.get("state", start["code"]) for start in starts}
    if len(states) > 1:
        moved = differences(starts[0]["versions"], starts[-1]["versions"])
        what = f": {'; '.join(moved)}" if moved else ", of the same version numbers"
        found.append(
            f"{len(states)} states of code, packages or settings were run into this folder{what}; tables hold what the "
            "last of them measured."
        )
    for task, content in tasks.items():
        silent = [row for row, cells in content["systems"].items() if not any(map(scored, cells.values()))]
        if silent:
            what = "no metric scores the answers (see --metrics)"
            found.append(f"{task}: {what}, so that only costs are shown of: {', '.join(silent)}.")
        for row, cells in content["systems"].items():
            asked = sum(cell["questions"]["all"] for cell in cells.values())
            if without := sum(cell.get("without_model", 0) for cell in cells.values()):
                found.append(
                    f"{task}: {without} of {asked} answers of {row} were made without its model, whose reply was of no "
                    "use; they are scored as they are."
                )
            if empty := sum(cell.get("reader", {}).get("empty", 0) for cell in cells.values()):
                found.append(f"{task}: {empty} of {asked} replies of {row} are empty; they are scored as answers.")
        sizes = {cell["questions"]["all"] for cells in content["systems"].values() for cell in cells.values()}
        if len(sizes) > 1:
            found.append(f"{task}: not every row has every question; each number says how many it has.")
    return found
