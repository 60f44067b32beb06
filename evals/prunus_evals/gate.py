"""The quality gate: numbers of the report half, computed as in the reports, against pinned floors.

``floors.json`` holds ``survival[task][system][budget][measure]``, ``articles[cleaner][measure]``,
``content[system][measure]`` and ``quotes[task][measure]``. A missing floor fails the gate, so that no floor can be
dropped by accident; a floor without a measured number fails it, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prunus_evals import articles, content, quotes, report, survival, systems, tasks
from prunus_evals.errors import EvalError
from prunus_evals.records import Outcome
from prunus_evals.tokens import Counter

FLOORS = Path(__file__).parent / "floors.json"
TASKS = ("table_qa", "websrc", "nq")
MEASURES = ("answer", "gold_whole")
QUOTES = ("table_qa", "xquad_de", "xquad_zh")
"""Tasks of quotes with questions enough for a floor."""

CLEANERS = ("prunus:html", "prunus:markdown", "prunus:text")
SLACK = 1e-6
"""Sums of floats may differ in the last digits from machine to machine."""


@dataclass(frozen=True, slots=True)
class Check:
    """A measured number and its floor; None where one of them is missing."""

    name: str
    value: float | None
    floor: float | None

    @property
    def passed(self) -> bool:
        """Whether both numbers exist and the measured one is not below the floor."""
        if self.value is None or self.floor is None:
            return False
        return self.value >= self.floor - SLACK

    def line(self) -> str:
        """Return the check as a line of a report."""
        value = "not measured" if self.value is None else f"{self.value:.4f}"
        floor = "missing" if self.floor is None else f"{self.floor:.4f}"
        return f"{'ok  ' if self.passed else 'FAIL'} {self.name}: {value}, floor {floor}"


def load_floors(path: Path = FLOORS) -> dict[str, float]:
    """Read the floors as a flat dict, with keys as ``survival/nq/prunus:hybrid:html/512/answer``.

    :raises EvalError: the floors are not those of the report half.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("half") != "report":
        raise EvalError(f"{path}: the floors must be those of the report half")
    return dict(_flat({key: content[key] for key in ("survival", "articles", "content", "quotes")}))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in tree.items():
        name = f"{prefix}/{key}" if prefix else key
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, float(value)


def nested(flat: Mapping[str, float]) -> dict[str, Any]:
    """Turn flat numbers into the form of ``floors.json``; the inverse of :func:`load_floors`."""
    tree: dict[str, Any] = {"half": "report", "survival": {}, "articles": {}, "content": {}, "quotes": {}}
    for name, value in flat.items():
        *folders, last = name.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return tree


def measure(counter: Counter) -> dict[str, float]:
    """Measure the default system and the cleaning on the report half."""
    default = systems.make(systems.DEFAULT, counter)
    outcomes: list[Outcome] = []
    for name in TASKS:
        outcomes += survival.run(tasks.load(name, "report"), [default], survival.BUDGETS, counter)
    found = survival_numbers(outcomes)
    kept = articles.run(articles.load("report"), CLEANERS)
    scored = content.run(articles.load("report"), ["prunus:body"])
    given = {name: quotes.summary(quotes.run(quotes.load(name, "report"))) for name in QUOTES}
    found |= article_numbers(articles.summary(kept, "report"))
    return found | content_numbers(content.summary(scored, "report")) | quote_numbers(given)


def survival_numbers(outcomes: list[Outcome]) -> dict[str, float]:
    """Return the gate's numbers of a survival run, computed as in the reports."""
    found: dict[str, float] = {}
    for task, system, budget in dict.fromkeys((o.task, o.system, o.budget) for o in outcomes):
        numbers = report.cell(outcomes, task, system, budget, systems.DEFAULT)
        for measure_name in MEASURES:
            value = numbers.get(measure_name)
            if isinstance(value, list):
                found[f"survival/{task}/{system}/{budget}/{measure_name}"] = float(value[0])
    return found


def article_numbers(result: dict[str, object]) -> dict[str, float]:
    """Return the gate's numbers of a cleaning run."""
    cleaners = result["cleaners"]
    if not isinstance(cleaners, dict):
        raise TypeError("the summary of articles has no table of cleaners")
    return {f"articles/{name}/survived": float(numbers["survived"]) for name, numbers in cleaners.items()}


def content_numbers(result: dict[str, Any]) -> dict[str, float]:
    """Return the gate's numbers of main content."""
    return {f"content/{name}/f": float(found["f"][0]) for name, found in result["systems"].items()}


def quote_numbers(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the gate's numbers of quotes: the shares with the answer, and of wrong pages that are turned away."""
    numbers: dict[str, float] = {}
    for name, task in found.items():
        numbers[f"quotes/{name}/first"] = float(task["first"][0])
        numbers[f"quotes/{name}/any"] = float(task["any"][0])
        numbers[f"quotes/{name}/turned_away"] = round(1 - float(task["wrong"][0]), 4)
    return numbers


def compare(measured: Mapping[str, float], floors: Mapping[str, float]) -> list[Check]:
    """Return a check for every number and every floor; a check with only one of them fails."""
    names = list(dict.fromkeys([*measured, *floors]))
    checks = [Check(name, measured.get(name), floors.get(name)) for name in names]
    return checks or [Check("anything at all", None, None)]  # a gate that measures nothing must fail
