"""Quotes: whether they hold a gold answer, and whether questions of a wrong page are turned away.

A quote holds an answer by the rules of :func:`.matching.holds`. A question that is asked of a wrong page has the label
``{"page": "wrong"}``: no quote of it is right, and the best answer is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import holds
from prunus_evals.records import Output, Question


def is_wrong_page(question: Question) -> bool:
    """Return whether a question is asked of a page without its answer."""
    return question.labels.get("page") == "wrong"


def holding(question: Question, quotes: Sequence[str]) -> list[bool]:
    """Return of each quote whether it holds a gold answer, in any spelling."""
    spellings = [spelling for answer in question.answers for spelling in question.spellings(answer)]
    return [holds(quote, spellings) for quote in quotes]


def scores(question: Question, quotes: Sequence[str]) -> dict[str, float]:
    """Return the metrics of the quotes of a question; a share only where there are quotes."""
    if is_wrong_page(question):
        return {"turned_away": float(not quotes)}
    found = holding(question, quotes) if question.answers else []
    numbers = {"quote_answered": float(bool(quotes)), "quotes": float(len(quotes))}
    if question.answers:
        numbers |= {"quote_first": float(found[:1] == [True]), "quote_any": float(any(found))}
    if found:
        numbers["quote_share"] = sum(found) / len(found)
    return numbers


def _of(name: str) -> Callable[[Question, Output], float | None]:
    def score(question: Question, output: Output) -> float | None:
        quotes = output.reply.quotes
        return None if quotes is None else scores(question, quotes).get(name)

    return score


METRICS = (
    Metric("quote_first", "quotes", "first quote holds a gold answer", _of("quote_first")),
    Metric("quote_any", "quotes", "any quote holds a gold answer", _of("quote_any")),
    Metric("quote_share", "quotes", "share of an answer's quotes that hold a gold answer", _of("quote_share")),
    Metric("quote_answered", "quotes", "page of the question gets an answer", _of("quote_answered")),
    Metric("turned_away", "quotes", "wrong page gets no answer", _of("turned_away")),
)
