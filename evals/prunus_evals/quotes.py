"""Task ``quotes``: the quotes that ``prunus.ask`` gives without a model, from the page of a question and a wrong one.

A quote holds the answer when a gold answer stands in it (:func:`.metrics.matching.holds`). The wrong page of
a question is the next page of its task, in the order of the keys' digests. Means are over questions, with intervals
over pages.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import prunus
from prunus_evals import stats, tasks
from prunus_evals.metrics.quoted import holding
from prunus_evals.records import Question
from prunus_evals.split import Half

TASKS = ("table_qa", "nq", "websrc", "xquad_de", "xquad_zh")
MEASURES = ("first", "any", "quotes", "answered", "wrong")
XQUAD_QUESTIONS = 4
"""Questions of each XQuAD article, the first by their digests."""

TITLES = {
    "first": "first quote holds a gold answer",
    "any": "any quote does",
    "quotes": "quotes of an answer",
    "answered": "page of the question gets an answer",
    "wrong": "wrong page gets an answer",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The quotes of one question.

    :param first, any: whether the first quote, or any quote, holds a gold answer.
    :param quotes: the number of quotes from the question's page.
    :param wrong: the number of quotes from a wrong page.
    :param seconds: wall time of both answers, reading the pages excluded.
    """

    page: str
    question: str
    first: bool
    any: bool
    quotes: int
    wrong: int
    seconds: float


def load(name: str, wanted: Half, limit: int | None = None) -> list[list[Question]]:
    """Return the questions of a task's half by page, in the order of the pages' digests.

    :param limit: pages at most.
    """
    if not name.startswith("xquad_"):
        return tasks.load(name, wanted, limit)
    return [page[:XQUAD_QUESTIONS] for page in tasks.load(name.replace("_", ":"), wanted, limit)]


def quotes_of(question: str, pages: Any) -> list[str]:
    """Return the quotes of an answer without a model, in their order; none where nothing answers."""
    try:
        answer = prunus.ask(question, pages)
    except prunus.NothingFound:
        return []
    return [citation.quote for citation in answer.citations]


def run(pages: Sequence[Sequence[Question]]) -> list[Outcome]:
    """Ask every question of its page and of the next page."""
    outcomes: list[Outcome] = []
    following = prunus.read(pages[0][0].html)
    for place in range(len(pages) - 1, -1, -1):  # backwards: each page is read once, and is then the wrong one
        page = pages[place]
        own = prunus.read(page[0].html)
        wrong = following
        for question in page:
            start = time.perf_counter()
            found, others = quotes_of(question.question, own), quotes_of(question.question, wrong)
            seconds = time.perf_counter() - start
            hits = holding(question, found)
            outcomes.append(
                Outcome(page[0].page, question.id, hits[:1] == [True], any(hits), len(found), len(others), seconds)
            )
        following = own
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the numbers of a task, each as mean, low and high; quotes are counted where there is an answer."""
    numbers: dict[str, Any] = {"questions": len(outcomes), "pages": len({outcome.page for outcome in outcomes})}
    for measure in MEASURES:
        values: dict[str, list[float]] = {}
        for outcome in outcomes:
            if measure != "quotes" or outcome.quotes:
                values.setdefault(outcome.page, []).append(_value(outcome, measure))
        if values:
            numbers[measure] = stats.mean(values).numbers()
    numbers["seconds"] = round(sum(outcome.seconds for outcome in outcomes) / max(1, 2 * len(outcomes)), 4)
    return numbers


def _value(outcome: Outcome, measure: str) -> float:
    if measure == "answered":
        return float(outcome.quotes > 0)
    if measure == "wrong":
        return float(outcome.wrong > 0)
    return float(getattr(outcome, measure))


def table(result: Mapping[str, Any]) -> str:
    """Return the summaries of tasks as a text table."""
    found = result["tasks"]
    lines = [f"quotes without a model, {result['half']} half; 95 % intervals over pages, {stats.NONE_BELOW}"]
    lines.append(f"{'':38}" + "".join(f"{name:>22}" for name in found))
    lines.append(f"{'questions':38}" + "".join(f"{numbers['questions']:>22}" for numbers in found.values()))
    for measure in MEASURES:
        cells = [stats.shown(numbers[measure]) if measure in numbers else "-" for numbers in found.values()]
        lines.append(f"{TITLES[measure]:38}" + "".join(f"{cell:>22}" for cell in cells))
    lines.append(f"{'seconds of an answer':38}" + "".join(f"{numbers['seconds']:>22}" for numbers in found.values()))
    return "\n".join(lines)
