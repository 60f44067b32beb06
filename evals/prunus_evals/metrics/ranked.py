"""Measures of rankings with two grades, right and wrong: nDCG, reciprocal rank, hits and recall among the first k.

They are those of ``trec_eval``: nDCG takes the whole ranking, gains are discounted by log2(rank + 1), and the ideal
ranking has every right item first. A right item that is not ranked counts as not found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.records import Output, Question

FIRST = (1, 3, 5, 10, 20)
"""How many of the first documents hits and recall are taken of."""


def ndcg(ranking: Sequence[str], gold: Collection[str]) -> float:
    """Return the normalised discounted cumulative gain of a whole ranking."""
    gain = sum(1 / math.log2(place + 2) for place, item in enumerate(ranking) if item in gold)
    return gain / sum(1 / math.log2(place + 2) for place in range(len(gold)))


def reciprocal_rank(ranking: Sequence[str], gold: Collection[str]) -> float:
    """Return one divided by the rank, from 1, of the first right item; 0 where there is none."""
    return next((1 / rank for rank, item in enumerate(ranking, 1) if item in gold), 0.0)


def recall(ranking: Sequence[str], gold: Collection[str], first: int) -> float:
    """Return the share of the right items that are among the first ones."""
    return sum(item in gold for item in ranking[:first]) / len(gold)


def hit(ranking: Sequence[str], gold: Collection[str], first: int) -> float:
    """Return 1 where a right item is among the first ones, else 0."""
    return float(any(item in gold for item in ranking[:first]))


def of_rank(rank: int) -> dict[str, float]:
    """Return the measures of a ranking with one right item, by its rank from 1."""
    return {"mrr": 1 / rank} | {f"hit@{first}": float(rank <= first) for first in FIRST}


def of_scores(scores: Sequence[float], gold: Collection[int]) -> dict[str, float]:
    """Return the measures of scored items, best first, by the first right one; equal scores keep their order."""
    order = sorted(range(len(scores)), key=lambda item: -scores[item])
    return of_rank(1 + min(order.index(item) for item in gold))


def _metric(name: str, title: str, measure: Callable[[Sequence[str], Collection[str]], float]) -> Metric:
    def score(question: Question, output: Output) -> float | None:
        ranking = output.reply.ranking
        if not question.gold or not ranking:
            return None
        if len({*ranking}) < len(ranking):
            raise MetricError("the ranking has a document twice")
        return measure(ranking, {*question.gold_documents})

    return Metric(name, "ranking", title, score, "trec_eval")


def _first(measure: Callable[[Sequence[str], Collection[str], int], float], first: int) -> Callable[..., float]:
    return lambda ranking, gold: measure(ranking, gold, first)


METRICS = (
    _metric("ndcg", "nDCG of the ranked documents", ndcg),
    _metric("mrr", "reciprocal rank of the first right document", reciprocal_rank),
    *(_metric(f"recall@{k}", f"right documents among the first {k}", _first(recall, k)) for k in FIRST),
    *(_metric(f"hit@{k}", f"a right document is among the first {k}", _first(hit, k)) for k in FIRST),
)
