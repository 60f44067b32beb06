"""``prunus eval compare``: two runs over the questions that both have, with paired differences, B minus A."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prunus_evals import systems
from prunus_evals.errors import EvalError
from prunus_evals.provenance import differences
from prunus_evals.readers import joined
from prunus_evals.records import Outcome
from prunus_evals.report.numbers import COSTS, HELD, Cell, cells_of, difference, estimate
from prunus_evals.report.tables import half_of, readable
from prunus_evals.split import half
from prunus_evals.stats import NONE_BELOW, apart, counted, shown
from prunus_evals.store import opened

MOST = 10
"""Questions that changed most, of each task."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is compared."""

    folder: Path
    about: Mapping[str, Any]
    cells: Mapping[tuple[str, str, int], Cell]
    questions: Mapping[tuple[str, str], Mapping[str, Any] | None]


def compare(first: Path, second: Path, pairs: Mapping[str, str] = {}, cases: bool | None = None) -> dict[str, Any]:
    """Return the differences of two runs, ready for JSON.

    A question counts where both runs have it with the same text, answers and documents.

    :param pairs: rows of the first run, each with the row of the second that it is compared with; none: rows of equal
        names.
    :param cases: name the questions that changed most; None: those that are not on the report half.
    :raises EvalError: a folder is no run, or the runs share no row or no question.
    """
    one, two = _read(first), _read(second)
    changed = {
        key
        for key in one.questions.keys() & two.questions.keys()
        if one.questions[key] and two.questions[key] and one.questions[key] != two.questions[key]
    }
    tables = []
    alone = [0, 0]
    halves: dict[str, set[str]] = {}
    moved: dict[str, dict[str, tuple[float, str, int, str]]] = {}
    for (task, row, budget), old in one.cells.items():
        new = two.cells.get((task, pairs.get(row, "" if pairs else row), budget))
        if new is None:
            continue
        both = {question for question in old.keys() & new.keys() if (task, question) not in changed}
        alone[0] += len(old) - len(both)
        alone[1] += len(new) - len(both)
        if both:
            halves.setdefault(task, set()).update(half(old[question].page) for question in both)
            kept = {question: old[question] for question in sorted(both)}, {name: new[name] for name in sorted(both)}
            name = row if not pairs else f"{row} → {pairs[row]}"
            tables.append({"task": task, "row": name, "budget": budget, **_numbers(*kept)})
            for question, (value, metric) in _moves(*kept).items():
                known = moved.setdefault(task, {}).get(question)
                if known is None or abs(value) > abs(known[0]):
                    moved[task][question] = value, name, budget, metric
    if not tables:
        raise EvalError(_nothing(one, two, pairs, alone))
    return {
        "a": str(first), "b": str(second),
        "plan": differences(_last(one.about, "plans"), _last(two.about, "plans")),
        "versions": differences(_versions(one.about), _versions(two.about)),
        "halves": {task: next(iter(seen)) if len(seen) == 1 else "all" for task, seen in halves.items()},
        "only_a": alone[0], "only_b": alone[1], "changed_questions": len(changed),
        "rows_only_a": _rows(one, pairs or _rows(two)),
        "rows_only_b": _rows(two, pairs.values() if pairs else _rows(one)),
        "differences": tables,
        "held": any(systems.holds(outcome.system) for outcome in _firsts(one) + _firsts(two)),
        "moved": {task: _named(found, task, one, cases) for task, found in moved.items()},
    }  # fmt: skip


def _read(folder: Path) -> _Run:
    with opened(folder) as store:
        outcomes = store.outcomes()
        if not outcomes:
            raise EvalError(f"{folder}: nothing was measured in this run")
        known = {key: store.question(*key) for key in {(outcome.task, outcome.question) for outcome in outcomes}}
        return _Run(folder, store.about(), cells_of(outcomes), known)


def _numbers(old: Cell, new: Cell) -> dict[str, Any]:
    """Return each metric and cost of both runs, and what the second has more, with its paired interval."""
    names = dict.fromkeys(name for outcome in old.values() for name in outcome.scores)
    found: dict[str, Any] = {}
    for name in (*names, *COSTS):
        more = difference(new, old, name)
        if more is None:
            continue
        both = [question for question in old if name in COSTS or _both(old[question], new[question], name)]
        one, two = ({question: cell[question] for question in both} for cell in (old, new))
        means = {"a": round(estimate(one, name).mean, 4), "b": round(estimate(two, name).mean, 4)}
        found[name] = {**means, "b_minus_a": more.numbers(), "questions": len(both)}
    caveat = joined(outcome.caveat for outcome in (*old.values(), *new.values()))
    return {"caveats": caveat.split(", ") if caveat else [], "numbers": found}


def _both(old: Outcome, new: Outcome, name: str) -> bool:
    return name in old.scores and name in new.scores


def _moves(old: Cell, new: Cell) -> dict[str, tuple[float, str]]:
    """Return how far the first metric of each question moved."""
    name = next((name for outcome in old.values() for name in outcome.scores), "")
    return {
        question: (new[question].scores[name] - old[question].scores[name], name)
        for question in old
        if _both(old[question], new[question], name)
    }


def _named(
    found: Mapping[str, tuple[float, str, int, str]], task: str, run: _Run, cases: bool | None
) -> list[dict[str, Any]]:
    """Return the questions that changed most; those of the report half only where they are wanted."""
    rows = []
    for question, (value, row, budget, metric) in sorted(found.items(), key=lambda item: (-abs(item[1][0]), item[0])):
        facts = run.questions[task, question] or {}
        page = str(facts.get("page", ""))
        show = half(page) != "report" if cases is None else cases
        if value and show:
            rows.append({
                "question": question, "text": facts.get("question", ""), "row": row, "budget": budget,
                "metric": metric, "b_minus_a": round(value, 4),
            })  # fmt: skip
    return rows[:MOST]


def _rows(run: _Run, but: Iterable[str] = ()) -> list[str]:
    """Return the rows of a run, but those that are named."""
    used = {*but}
    return [row for row in dict.fromkeys(row for _, row, _ in run.cells) if row not in used]


def _nothing(one: _Run, two: _Run, pairs: Mapping[str, str], alone: list[int]) -> str:
    """Return why two runs cannot be compared: the first thing that they have nothing of in common."""
    folders = f"{one.folder} and {two.folder}"
    if any(alone):
        what = _halves(one, two) or "share no question"
        return f"{folders} {what}; compare runs of the same tasks, halves and limits"
    for run, row in [(one, row) for row in pairs] + [(two, row) for row in pairs.values()]:
        if row not in _rows(run):
            return f"--match: {run.folder} has no row {row}; its rows are: {', '.join(_rows(run))}"
    first, second = _firsts(one, pairs), _firsts(two, pairs.values())
    for what in ("task", "budget") if pairs else ("task", "system", "budget", "reader"):
        ours, theirs = (dict.fromkeys(getattr(outcome, what) for outcome in side) for side in (first, second))
        both = ours.keys() & theirs.keys()
        if not both:
            has = f"the first has {', '.join(map(str, ours))}, the second {', '.join(map(str, theirs))}"
            return f"{folders} share no {what}; {has}" + (f"; {HINT}" if what in ("system", "reader") else "")
        first, second = ([outcome for outcome in side if getattr(outcome, what) in both] for side in (first, second))
    return f"{folders} have no row at the same task and budget; {HINT}"


def _firsts(run: _Run, rows: Collection[str] = ()) -> list[Outcome]:
    """Return an outcome of each cell; only of these rows where any are named."""
    return [next(iter(cell.values())) for (_, row, _), cell in run.cells.items() if not rows or row in rows]


HINT = "--match pairs rows of different names"


def _halves(one: _Run, two: _Run) -> str:
    """Return that no task was measured on the same half; '' where one was."""
    first, second = (run.about.get("halves", {}) for run in (one, two))
    tasks = [task for task in first if task in second]
    if not tasks or any(first[task] == second[task] or "all" in (first[task], second[task]) for task in tasks):
        return ""
    told = ", ".join(f"{task}: {half_of(first[task])} and {half_of(second[task])}" for task in tasks)
    return f"share no half of a task ({told})"


def _last(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = about.get(name) or [{}]
    last: Mapping[str, Any] = found[-1]
    return last


def _versions(about: Mapping[str, Any]) -> dict[str, Any]:
    start = _last(about, "starts")
    return {**start.get("versions", {}), **({"code": start["code"]} if "code" in start else {})}


def table(result: Mapping[str, Any]) -> str:
    """Return a comparison as text."""
    lines = [f"A: {result['a']}", f"B: {result['b']}"]
    lines += [f"plan: {line.replace(' there', ' in A').replace(' here', ' in B')}" for line in result["plan"]]
    lines += [f"version: {line.replace(' there', ' in A').replace(' here', ' in B')}" for line in result["versions"]]
    lines += [f"left out: {result['only_a']} outcomes of A and {result['only_b']} of B, whose questions are not shared"]
    if result["changed_questions"]:
        lines += [f"left out: {result['changed_questions']} questions whose text, answers or documents differ"]
    for side in ("a", "b"):
        if result[f"rows_only_{side}"]:
            lines += [f"rows of {side.upper()} alone: {', '.join(result[f'rows_only_{side}'])}"]
    for task in dict.fromkeys(entry["task"] for entry in result["differences"]):
        lines += ["", f"{task}, {half_of(result['halves'][task])}: A, B, and B minus A; 95 % over pages, {NONE_BELOW}"]
        lines += [f"  {'':16} {'A':>10} {'B':>10}   B minus A"]
        for entry in result["differences"]:
            if entry["task"] == task:
                lines += _lines(entry)
        moved = result["moved"].get(task, ())
        lines += ["questions that changed most:"] if moved else []
        for found in moved:
            where = f"{found['row']}, {found['budget']} tokens"
            asked = readable(f"{found['question']} {found['text']}")
            lines.append(f"  {found['b_minus_a']:+.3f} {found['metric']}, {where}: {asked}")
    return "\n".join([*lines, *(["", HELD] if result["held"] else [])])


def _lines(entry: Mapping[str, Any]) -> list[str]:
    caveat = f" ({', '.join(entry['caveats'])})" if entry["caveats"] else ""
    lines = [f"{entry['row']}{caveat}, {entry['budget']:,} tokens"]
    for name, numbers in entry["numbers"].items():
        more = numbers["b_minus_a"]
        mark = " *" if apart(*more[1:]) else ""
        lines.append(
            f"  {name:16} {numbers['a']:10.3f} {numbers['b']:10.3f}   "
            f"{shown(more, signed=True)}, {counted(numbers['questions'], 'question')}{mark}"
        )
    return lines
