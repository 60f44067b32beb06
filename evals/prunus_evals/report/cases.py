"""The worst cases of a run: what was asked, what was kept, and where the answer stands in the page.

The text of evidence and pages is as hostile as the web: here it is plain text, and whoever shows it must escape it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prunus_evals.records import ONLY, Outcome
from prunus_evals.report.numbers import Cell, Cells, leading
from prunus_evals.store import Store
from prunus_evals.visible import html_text

MOST = 8
"""Cases of a task."""

EVIDENCE = 8_000
"""Characters of evidence that are shown."""

AROUND = 300
"""Characters of a page that are shown on each side of an answer."""

DOCUMENTS = 5
"""Pages of a question that are shown; those with an answer come first."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a page's visible text.

    :param found: the answer that stands in it; '' where the page holds none and this is its start.
    """

    title: str
    url: str
    text: str
    found: str


@dataclass(frozen=True, slots=True)
class Case:
    """A question at which a row did badly.

    :param scores: the first metric of every row at the same budget.
    :param evidence: '' where it was not kept.
    """

    outcome: Outcome
    row: str
    metric: str
    scores: Mapping[str, float]
    question: str
    answers: tuple[str, ...]
    evidence: str
    passages: tuple[Passage, ...]


def worst(task: str, content: Mapping[str, Any], cells: Cells, store: Store, most: int = MOST) -> list[Case]:
    """Return the worst cases of the rows that others are compared with, worst first.

    A question is the worse the larger the budget at which it still fails, and is shown at that budget; between equals,
    that at which another row did best comes first. Questions with a full score at every budget are no cases.
    """
    firsts = {
        facts["base"]: next(iter(leading({"systems": {"": content["systems"][facts["base"]]}})), "")
        for facts in content["rows"].values()
    }
    bases = {row: metric for row, metric in firsts.items() if metric}
    found = []
    for row, metric in bases.items():
        budgets = sorted((budget for _, name, budget in cells if name == row), reverse=True)
        own = [cells[task, row, budget] for budget in budgets]
        others = [cell for (_, name, budget), cell in cells.items() if name != row and budget == budgets[0]]

        def rank(
            question: str, own: Sequence[Cell] = own, others: Sequence[Cell] = others, metric: str = metric
        ) -> tuple[object, ...]:
            best = max((_score(cell, question, metric) for cell in others), default=0.0)
            return (*(_score(cell, question, metric) for cell in own), -best, question)

        scored = [outcome for cell in own for outcome in cell.values() if metric in outcome.scores]
        full = max([1e-9, *(outcome.scores[metric] for outcome in scored)])
        failed: dict[str, Outcome] = {}
        for outcome in scored:  # the largest budget first
            if outcome.scores[metric] < full:
                failed.setdefault(outcome.question, outcome)
        for question in sorted(failed, key=rank)[: max(1, most // len(bases))]:
            found.append(_case(failed[question], row, metric, cells, store))
    return found


def _score(cell: Cell, question: str, metric: str) -> float:
    return cell[question].scores.get(metric, 1.0) if question in cell else 1.0


def _case(outcome: Outcome, row: str, metric: str, cells: Cells, store: Store) -> Case:
    facts = store.question(outcome.task, outcome.question) or {}
    answers = tuple(facts.get("answers", ())) or tuple(facts.get("references", ()))
    scores = {
        name: cell[outcome.question].scores[metric]
        for (_, name, budget), cell in cells.items()
        if budget == outcome.budget and outcome.question in cell and metric in cell[outcome.question].scores
    }
    passages = [_passage(document, outcome.page, answers, store) for document in facts.get("documents", ())]
    passages.sort(key=lambda passage: not passage.found)
    return Case(
        outcome=outcome,
        row=row,
        metric=metric,
        scores=scores,
        question=facts.get("question", "(the question was not kept)"),
        answers=answers,
        evidence=store.text(outcome.evidence) or "",
        passages=tuple(passages[:DOCUMENTS]),
    )


def _passage(document: Mapping[str, Any], page: str, answers: Sequence[str], store: Store) -> Passage:
    """Return the part of a page around the first answer that stands in it, else its start."""
    content = store.text(document["content"]) or ""
    text = html_text(content) if document["media_type"] == "text/html" else content
    text = " ".join(text.split())
    lower = text.lower()
    places = {answer: lower.find(answer.lower()) for answer in answers if answer}
    found = next((answer for answer, place in places.items() if place >= 0), "")
    start = max(0, places[found] - AROUND) if found else 0
    end = places[found] + len(found) + AROUND if found else 2 * AROUND
    cut = f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
    name = document["id"] if document["id"] != ONLY else page
    return Passage(document["title"] or name, document["url"], cut, found)


def facts_of(case: Case) -> dict[str, Any]:
    """Return a case ready for JSON, without texts of pages."""
    outcome = case.outcome
    return {
        "question": outcome.question, "page": outcome.page, "row": case.row, "budget": outcome.budget,
        "metric": case.metric, "scores": dict(case.scores), "evidence": outcome.evidence,
    }  # fmt: skip
