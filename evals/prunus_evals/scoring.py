"""Scores the output of one question by metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from prunus_evals.errors import BudgetBroken, MetricError
from prunus_evals.metrics import Metric
from prunus_evals.records import Output, Question, Reply
from prunus_evals.tokens import Counter
from prunus_evals.visible import visible_text


def output_of(reply: Reply, answer: str | None = None) -> Output:
    """Return what metrics score."""
    return Output(reply, visible_text(reply.text, reply.format), answer)


def tokens_of(reply: Reply, question: Question, system: str, budget: int, counter: Counter) -> int:
    """Return the tokens of a reply.

    :raises BudgetBroken: the reply has more tokens than the budget.
    """
    key: Any = counter  # its protocol does not say that it can be a key
    tokens = _counted(key, reply.text)
    if tokens > budget:
        raise BudgetBroken(system, question.id, budget, tokens)
    return tokens


@lru_cache(maxsize=8)
def _counted(counter: Counter, text: str) -> int:
    """Count a text; a short page is kept whole at several budgets, one after another."""
    return counter.count([text])[0]


def counts_of(question: Question, output: Output, metrics: Sequence[Metric]) -> dict[str, list[float]]:
    """Return what metrics over all answers together add up, by metric; see :class:`.metrics.Metric`.

    :raises MetricError: as :func:`scores_of`.
    """
    found: dict[str, list[float]] = {}
    for metric in metrics:
        if metric.counts is not None and (metric.of != "answer" or output.answer is not None):
            try:
                counts = metric.counts(question, output)
            except (MetricError, ImportError) as error:
                raise _named(error, metric, question) from error
            if counts is not None:
                found[metric.name] = [float(count) for count in counts]
    return found


def scores_of(question: Question, output: Output, metrics: Sequence[Metric]) -> dict[str, float]:
    """Return the scores by metric; a metric that does not apply to the question, or to its output, is left out.

    A metric of answers applies where a reader answered.

    :raises MetricError: a metric applies and cannot be computed; the message names metric and question.
    """
    found: dict[str, float] = {}
    for metric in metrics:
        if metric.of == "answer" and output.answer is None:
            continue
        try:
            value = metric.score(question, output)
        except (MetricError, ImportError) as error:
            raise _named(error, metric, question) from error
        if value is not None:
            found[metric.name] = float(value)
    return found


def _named(error: Exception, metric: Metric, question: Question) -> MetricError:
    return MetricError(f"{metric.name} of {question.task}, question {question.id}: {error}")
