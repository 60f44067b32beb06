"""Train the scorer ``trees``: which blocks of pages hold the evidence for a question.

Boosted trees rank the blocks of each question, and the score of ``hybrid`` is added to what they say. A quarter of the
documents is held out for the figures and for the scale of the scores; the trees that are written have seen all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus.evidence.score._block_features import NAMES
from prunus.models.boosted import Boosted
from prunus_evals.split import digest
from prunus_train import boosted
from prunus_train.boosted import Plan, Rows
from prunus_train.data.blocks import Example
from prunus_train.errors import DataBroken

PLAN: Final = Plan(aim="ranking", trees=100, rate=0.1, columns=0.5, top=30)

_HYBRID: Final = 2.0
"""What the score of ``hybrid`` adds to the trees; it keeps pages that are unlike training close to it. By hand."""

COUNTS: Final = {
    "table_qa": 0.7, "qed_en": 3.0, "clapnq_en": 2.0, "ottqa_en": 0.5, "fetaqa_en": 0.5, "evidence_inference_en": 0.5
}  # fmt: skip
"""How much a question counts; 1 where nothing is said. Chosen by hand."""

_STEPS: Final = 30
_HELD_OUT: Final = "0123"
"""First hexadecimal digits of the digests of held-out documents."""


def train(examples: Sequence[Example], plan: Plan | None = None) -> tuple[Boosted, dict[str, Any]]:
    """Return the trees that are learned from all examples, and figures of held-out documents by source.

    The figures: ``hybrid``, and ``trees`` from the other documents alone.

    :raises DataBroken: there are no examples, or none is held out or left to train on.
    """
    plan = plan or PLAN
    held = [example for example in examples if digest(example.page)[0] in _HELD_OUT]
    rest = [example for example in examples if digest(example.page)[0] not in _HELD_OUT]
    if not held or not rest:
        raise DataBroken("the training data has too few documents: some are held out for the figures")
    partial = fit(rest, plan)
    scores = [partial.scores(example.features) for example in held]
    found = {
        "hybrid": figures(held, [example.features[:, NAMES.index("hybrid")] for example in held]),
        "trees": figures(held, scores),
    }
    return as_odds(fit(examples, plan), np.concatenate(scores), np.concatenate([one.gold for one in held])), found


def fit(examples: Sequence[Example], plan: Plan) -> Boosted:
    """Return the trees that are learned from some examples, with the score of ``hybrid`` added."""
    sizes = [len(example.gold) for example in examples]
    rows = Rows(
        np.concatenate([example.features for example in examples]),
        np.concatenate([example.gold for example in examples]),
        sizes,
        np.repeat([COUNTS.get(example.source, 1.0) for example in examples], sizes),
    )
    weights = np.zeros(len(NAMES))
    weights[NAMES.index("hybrid")] = _HYBRID
    return replace(boosted.train(NAMES, rows, plan), weights=weights)


def as_odds(model: Boosted, scores: NDArray[np.float64], gold: NDArray[np.bool_]) -> Boosted:
    """Return a model whose scores are log-odds, by a logistic regression on blocks that training did not see.

    :param scores: the scores of such blocks, float64 [blocks].
    :param gold: which of them hold the evidence.
    """
    inputs = np.stack([scores, np.ones(len(scores))], axis=1)
    found = np.zeros(2)
    for _ in range(_STEPS):  # Newton's method
        sure = 1 / (1 + np.exp(-(inputs @ found).clip(-30, 30)))
        bend = (inputs * (sure * (1 - sure))[:, None]).T @ inputs + 1e-6 * np.eye(2)
        found -= np.linalg.solve(bend, inputs.T @ (sure - gold))
    slope, level = max(float(found[0]), 1e-3), float(found[1])
    return replace(model, leaf=model.leaf * slope, weights=model.weights * slope, bias=model.bias * slope + level)


def figures(examples: Sequence[Example], scores: Sequence[NDArray[Any]]) -> Mapping[str, Mapping[str, float]]:
    """Return per source the questions, the mean reciprocal rank of the best gold block, and recall among the best 15.

    An equal score of another block counts against the gold block.
    """
    numbers: dict[str, list[tuple[float, float]]] = {}
    for example, found in zip(examples, scores, strict=True):
        best = found[example.gold].max()
        rank = 1 + int((found[~example.gold] >= best).sum())
        order = np.argsort(-found, kind="stable")[:15]
        recall = float(example.gold[order].sum() / example.gold.sum())
        numbers.setdefault(example.source, []).append((1 / rank, recall))
    return {
        source: {"questions": len(rows), "mrr": _mean(rows, 0), "recall@15": _mean(rows, 1)}
        for source, rows in numbers.items()
    }


def _mean(rows: Sequence[tuple[float, float]], column: int) -> float:
    return round(sum(row[column] for row in rows) / len(rows), 3)
