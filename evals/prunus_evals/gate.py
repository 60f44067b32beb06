"""The quality gate: numbers of the report half, computed as in the reports, against pinned floors.

``floors.json`` holds ``survival[task][system][budget][measure]`` and ``quotes[task][measure]``, which the harness
measures, and ``articles[cleaner][measure]``, ``content[system][measure]``, ``kinds[system][measure]``,
``extraction[system][measure]``, ``segmentation[language][measure]`` and ``claims[system][measure]``, the parts
(:mod:`.parts`). A missing floor fails the gate, so that no floor can be dropped by accident; a floor without a measured
number fails it, too. Floors are set by :func:`pin`; :func:`refused` says which changes would lower a floor that nobody
named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prunus_evals import harness, parts, report, systems
from prunus_evals.errors import EvalError
from prunus_evals.harness import Plan
from prunus_evals.records import Outcome
from prunus_evals.tokens import Counter

FLOORS = Path(__file__).parent / "floors.json"
TASKS = ("table_qa", "websrc", "nq")
MEASURES = ("answer", "gold_whole")
QUOTES = ("table_qa", "xquad:de", "xquad:zh")
"""Tasks of quotes with questions enough for a floor."""

QUOTE_MEASURES = {"quote_first": "first", "quote_any": "any", "turned_away": "turned_away"}
PARTS = {
    "articles": ((), ("survived",)),
    "content": (("prunus:body",), ("f",)),
    "kinds": (("prunus:main",), ("all",)),
    "extraction": (("prunus",), ("f1",)),
    "segmentation": ((), ("right", "lossless")),
    "claims": (("prunus",), ("balanced",)),
}
"""The systems and the measures of each part."""

SLACK = 1e-6
"""Sums of floats may differ in the last digits from machine to machine."""

MARGIN = 0.02
"""How far below its number a floor is set: a change that helps most questions may cost a few."""


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


@dataclass(frozen=True, slots=True)
class Change:
    """What pinning does to a floor; None where there is no floor before, or none afterwards."""

    name: str
    old: float | None
    new: float | None

    @property
    def down(self) -> bool:
        """Whether the floor is lowered or dropped."""
        return self.old is not None and (self.new is None or self.new < self.old)

    def line(self) -> str:
        """Return the change as a line of a report."""
        if self.old is None:
            return f"NEW     {self.name}: {self.new:.4f}"
        if self.new is None:
            return f"DROPPED {self.name}: {self.old:.4f} -> none"
        return f"{'LOWERED' if self.down else 'raised '} {self.name}: {self.old:.4f} -> {self.new:.4f}"


def load_floors(path: Path = FLOORS) -> dict[str, float]:
    """Read the floors as a flat dict, with keys as ``survival/nq/prunus:trees:html/512/answer``.

    :raises EvalError: the file cannot be read, or the floors are not numbers of the report half.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvalError(f"{path}: the floors cannot be read: {error}") from error
    if not isinstance(found, dict) or found.pop("half", None) != "report":
        raise EvalError(f"{path}: the floors must be those of the report half")
    flat = dict(_flat(found))
    for name, value in flat.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EvalError(f"{path}: the floor {name} is no number")
    return {name: float(value) for name, value in flat.items()}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        name = f"{prefix}/{key}" if prefix else key
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value


def nested(flat: Mapping[str, float]) -> dict[str, Any]:
    """Turn flat numbers into the form of ``floors.json``; the inverse of :func:`load_floors`."""
    tree: dict[str, Any] = {"half": "report"}
    for name, value in flat.items():
        *folders, last = name.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return tree


def pin(measured: Mapping[str, float], floors: Mapping[str, float]) -> list[Change]:
    """Return the changes that bring the floors to the measured numbers, each less :data:`MARGIN`.

    A floor that its number reaches stays or goes up. One above its number comes down, and one without a number goes.
    """
    changes = []
    for name in dict.fromkeys([*floors, *measured]):
        old, value = floors.get(name), measured.get(name)
        new = None if value is None else round(value - MARGIN, 4)
        if old is not None and value is not None and new is not None and value >= old - SLACK:
            new = max(old, new)
        if new != old:
            changes.append(Change(name, old, new))
    return changes


def refused(changes: Sequence[Change], lower: Sequence[str] = ()) -> list[Change]:
    """Return the changes that lower or drop a floor that is not named.

    :param lower: floors that may be lowered or dropped: their names, or the first parts of these.
    :raises EvalError: a name fits no floor that would be lowered.
    """
    down = [change for change in changes if change.down]
    for name in lower:
        if not any(_named(change.name, name) for change in down):
            raise EvalError(f"--lower {name}: no floor of this name is above its number")
    return [change for change in down if not any(_named(change.name, name) for name in lower)]


def _named(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}/")


def pinned(floors: Mapping[str, float], changes: Sequence[Change]) -> dict[str, float]:
    """Return floors after changes."""
    found = {**floors, **{change.name: change.new for change in changes}}
    return {name: value for name, value in found.items() if value is not None}


def write_floors(floors: Mapping[str, float], path: Path = FLOORS) -> None:
    """Write floors; the file is the old or the new one at every time.

    :raises EvalError: the file cannot be written.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.write_text(json.dumps(nested(floors), indent=2) + "\n", encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise EvalError(f"{path}: the floors cannot be written: {error}") from error


def measure(counter: Counter, progress: Callable[[str], None] = lambda text: None) -> dict[str, float]:
    """Measure the default system, quotes and the parts on the report half.

    :param progress: told what is measured next.
    """
    found: dict[str, float] = {}
    for task in TASKS:
        progress(f"survival, {task}")
        found |= survival_numbers(_run(Plan((task,), (systems.DEFAULT,), "report"), counter))
    for task in QUOTES:
        progress(f"quotes, {task}")
        few = 4 if task.startswith("xquad") else None
        for name, wanted in ((task, ("quote_first", "quote_any")), (f"wrong_page:{task}", ("turned_away",))):
            plan = Plan((name,), ("prunus:ask",), "report", budgets=(4096,), metrics=wanted, questions=few)
            found |= quote_numbers(task, _run(plan, counter))
    for part, (chosen, measures) in PARTS.items():
        progress(part)
        found |= part_numbers(parts.measure(part, "report", chosen), measures)
    return found


def _run(plan: Plan, counter: Counter) -> list[Outcome]:
    return harness.run(plan, engines=harness.Engines(counter, [systems.make(name, counter) for name in plan.systems]))


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


def quote_numbers(task: str, outcomes: list[Outcome]) -> dict[str, float]:
    """Return the gate's numbers of quotes: the shares with the answer, and of wrong pages that are turned away."""
    first = outcomes[0]
    numbers = report.cell(outcomes, first.task, first.system, first.budget, first.system)
    return {
        f"quotes/{task.replace(':', '_')}/{short}": round(float(numbers[name][0]), 4)
        for name, short in QUOTE_MEASURES.items()
        if name in numbers
    }


def part_numbers(result: Mapping[str, Any], measures: Sequence[str]) -> dict[str, float]:
    """Return the gate's numbers of a part; of segmentation those of all languages together."""
    found: dict[str, float] = {}
    for row, numbers in result["rows"].items():
        for name in measures if result["part"] != "segmentation" or row == "all" else ():
            value = numbers[name][0] if isinstance(numbers[name], list) else numbers[name]
            found[f"{result['part']}/{row}/{name}"] = float(value)
    return found


def compare(measured: Mapping[str, float], floors: Mapping[str, float]) -> list[Check]:
    """Return a check for every number and every floor; a check with only one of them fails."""
    names = list(dict.fromkeys([*measured, *floors]))
    checks = [Check(name, measured.get(name), floors.get(name)) for name in names]
    return checks or [Check("anything at all", None, None)]  # a gate that measures nothing must fail
