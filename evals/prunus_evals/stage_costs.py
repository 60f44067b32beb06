"""Task ``stages``: tokens and seconds by stage, for questions over many pages at once.

Real pages of ``table_qa`` and ``nq`` stand for the results of a search: every question is asked of its own page among
others, in the order of their digests. No page stands in two questions, so that no vector is known from an earlier one.
Only the cost is measured. A page of these sets is a whole Wikipedia article, so 20 of them are longer than most search
results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, median
from typing import Any

from prunus_evals import scoring, stats, systems, tasks
from prunus_evals.errors import EvalError
from prunus_evals.records import Question, Stage
from prunus_evals.split import Half, digest
from prunus_evals.tokens import llama2

TASKS = ("table_qa", "nq")
PAGES = 20
QUESTIONS = 5
BUDGET = 4096
SYSTEMS = (
    "prunus:trees:html",
    "prunus:hybrid:html",
    "prunus:bm25>static:html",
    "chunks:headings:bm25",
    "chunks:fixed:static",
    "vectors:static",
    "whole:soup",
)
"""Systems that need no model."""


@dataclass(slots=True)
class Costs:
    """The stages of one system, a list for each question, and the tokens of its replies."""

    system: str
    stages: list[Sequence[Stage]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


def load(half: Half, pages: int = PAGES, count: int = QUESTIONS) -> list[Question]:
    """Return questions with many pages each; the question's own page is one of them.

    :raises EvalError: the half has fewer pages.
    """
    known = [group[0] for name in TASKS for group in tasks.groups(name, half, pages * count)]
    if len(known) < pages * count:
        names, there = " and ".join(TASKS), f"{len(known)} pages in the {half} half"
        raise EvalError(f"{names} have {there}, too few for {count} questions of {pages}; lower --pages or --limit")
    known.sort(key=lambda question: digest(question.page))
    found = []
    for start in range(0, pages * count, pages):
        group = known[start : start + pages]
        documents = [replace(one.documents[0], id=f"{one.task}/{one.page}") for one in group]
        found.append(replace(group[-1], documents=tuple(documents)))
    return found


def run(
    questions: Sequence[Question], names: Sequence[str], budget: int, progress: Callable[[str], None]
) -> list[Costs]:
    """Ask every system every question.

    :raises UnknownName: a system is not known, or notes no stages.
    """
    counter = llama2()
    found = []
    for name, system in [(name, systems.make(f"{name}@costs=yes", counter)) for name in names]:
        costs = Costs(name)
        for question in questions:
            reply = system.prepare(question.documents).ask(question.question, budget)
            costs.stages.append(reply.stages)
            costs.tokens.append(scoring.tokens_of(reply, question, name, budget, counter))
        found.append(costs)
        progress(f"{name}: {len(questions)} questions")
    return found


def summary(found: Sequence[Costs], questions: Sequence[Question], half: Half, budget: int) -> dict[str, Any]:
    """Return the numbers of the table, ready for JSON: means of tokens, medians of seconds."""
    rows: dict[str, Any] = {}
    for costs in found:
        by_name: dict[str, list[Stage]] = {}
        for stages in costs.stages:
            for stage in stages:
                by_name.setdefault(stage.name, []).append(stage)
        rows[costs.system] = {
            "stages": {name: _numbers(stages) for name, stages in by_name.items()},
            "tokens": round(mean(costs.tokens)),
            "seconds": round(median(sum(stage.seconds for stage in stages) for stages in costs.stages), 4),
        }
    pages = len(questions[0].documents)
    return {"half": half, "pages": pages, "questions": len(questions), "budget": budget, "systems": rows}


def _numbers(stages: Sequence[Stage]) -> dict[str, Any]:
    skipped = [stage.skipped for stage in stages if stage.skipped is not None]
    return {
        "tokens_in": round(mean(stage.tokens_in for stage in stages)),
        "tokens_out": round(mean(stage.tokens_out for stage in stages)),
        "seconds": round(median(stage.seconds for stage in stages), 4),
        "skipped": round(mean(skipped), 3) if skipped else None,
    }


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as a text table."""
    size = f"{stats.counted(result['questions'], 'question')}, {stats.counted(result['pages'], 'page')} each"
    lines = [
        f"cost by stage, {result['half']} half: {size}, budget {result['budget']}; means of tokens, medians of seconds"
    ]
    lines.append(f"{'system':34}{'stage':20}{'tokens in':>12}{'tokens out':>12}{'seconds':>10}{'skipped':>9}")
    for name, row in result["systems"].items():
        for stage, numbers in row["stages"].items():
            skipped = "" if numbers["skipped"] is None else f"{numbers['skipped']:.0%}"
            lines.append(
                f"{name[-33:]:34}{stage:20}{numbers['tokens_in']:>12,}{numbers['tokens_out']:>12,}"
                f"{numbers['seconds']:>10.3f}{skipped:>9}"
            )
        lines.append(f"{name[-33:]:34}{'all together':20}{'':12}{row['tokens']:>12,}{row['seconds']:>10.3f}")
    return "\n".join(lines)
