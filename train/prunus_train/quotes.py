"""Train the weights of the extractor ``sentences``: which segment answers a question, and whether any does.

The weights of segments maximise the share of the gold segments in a softmax over the segments of a page. They start at
weights chosen by hand and are drawn back to them; those of likeness stay at 0 or above. The weights of confidence, the
chance that a segment answers, are a logistic regression on the best segments of right and of wrong pages.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus.answer.extract._features import NAMES, Numbers, Question
from prunus.answer.extract._weights import READ_SIGNS, SIGNS, Weights, best, signs, weights, weights_of
from prunus.answer.extract.sentences import read
from prunus.core.ports import Reranker
from prunus.core.settings import Settings
from prunus.core.text.answer_kinds import KINDS
from prunus_train.data.quotes import QuoteExample
from prunus_train.errors import DataBroken

_WEIGHTS: Final = {
    "table_qa": 1.5, "tables": 1.5, "nq": 2.0, "fetaqa_en": 0.3, "faq_docs_multi": 0.5, "hotpotqa_en": 0.7
}  # fmt: skip
"""How much a question counts; 1 where nothing is said. Chosen by hand."""

_NOT_SURE: Final = frozenset({"faq_docs_multi", "hotpotqa_en"})
"""Sets from which confidence is not learned. Chosen by hand."""

_START: Final = {
    "bm25": 3.0, "cosine_scaled": 1.2, "block": 3.0, "covered": 1.5, "covered_all": 1.5, "pairs": 1.0, "before": 0.7,
    "after": 0.7, "news": 0.3, "short": -1.5, "lines": -1.5, "asks": -1.5, "asked_row": 2.0, "end_row": 1.5,
    "beside_row": 1.0, "counted": 1.0,
} | {f"fits_{kind.name}": 1.0 for kind in KINDS}  # fmt: skip
"""Weights to start from and to be drawn back to; 0 where nothing is said. Chosen by hand."""

_NEVER_BELOW_0: Final = (
    "bm25", "cosine", "cosine_scaled", "block", "covered", "covered_all", "covered_label", "covered_heading", "pairs",
    "names", "names_all", "before", "after", "key_covered", "row_covered", "asked_row",
    *(f"fits_{kind.name}" for kind in KINDS),
)  # fmt: skip
"""Features of likeness: more of one must never lower a score. Free weights fitted better here, and worse elsewhere."""

_ONE_WEIGHT: Final = (
    "row", "pair", "list", "code", "row_covered", "labelled", "one_cell", "asked_row", "end_row", "beside_row",
)  # fmt: skip
"""Features with the same weight in rows and in other segments."""

_UNUSED: Final = ("code",)
_MENU: Final = 0.4
"""A segment with this much of the feature ``lines`` or more is no gold: it looks like a menu."""

_DRAWN, _DRAWN_ROW = 5e-3, 1e-2
"""How strongly weights are drawn to their start, and those of rows to those of other segments."""

_READ_OF_A_SET: Final = 60
"""Questions of a training set that a reader reads for its bar, the first: each costs it two passes over 24 segments."""

_STEPS: Final = 300
_RATE: Final = 0.05
_RIDGE: Final = 3e-3


def train(examples: Sequence[QuoteExample], reranker: Reranker | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the weights that are learned from all examples, and figures of the dev half.

    :param reranker: a reader of segments; the confidence with it is learned, too; else that of this version stays.

    The figures: ``held_out``, under weights learned from the training sets alone; ``new``, under the new weights, which
    have seen the dev half; ``shipped``, under those of this version, which have seen it, too.
    """
    dev = [example for example in examples if example.dev]
    held_out = weights_of(fit([example for example in examples if not example.dev]))
    stored = fit(examples, reranker)
    compared = {"held_out": held_out, "new": weights_of(stored), "shipped": weights()}
    found = {name: figures(of_name, dev) for name, of_name in compared.items()}
    if reranker is not None:
        found |= {f"{name}, read": figures(compared[name], dev, reranker) for name in ("new", "shipped")}
    return stored, found


def fit(examples: Sequence[QuoteExample], reranker: Reranker | None = None) -> dict[str, Any]:
    """Return the weights that are learned from some examples, as ``weights.json`` holds them."""
    text, row = (np.round(found, 2) + 0.0 for found in fit_segments(examples))  # + 0.0: no minus zero
    ordering = Weights(text, row, np.zeros(len(SIGNS)), np.zeros(len(SIGNS) + len(READ_SIGNS)))
    alone = np.round(fit_confidence(examples, ordering), 2) + 0.0
    read = weights().sure_read if reranker is None else np.round(fit_confidence(examples, ordering, reranker), 2) + 0.0
    segment = {name: [float(text[place]), float(row[place])] for place, name in enumerate(NAMES)}
    return {
        "segment": segment,
        "confidence": dict(zip(SIGNS, alone.tolist(), strict=True)),
        "confidence_read": dict(zip((*SIGNS, *READ_SIGNS), read.tolist(), strict=True)),
    }


def fit_segments(examples: Sequence[QuoteExample]) -> tuple[Numbers, Numbers]:
    """Return the weights of the features, in other segments and in rows of tables, by gradient descent (Adam).

    :raises DataBroken: no question has a gold segment.
    """
    menu, is_row = NAMES.index("lines"), NAMES.index("row")
    golds = [example.gold & (example.own.features[:, menu] < _MENU) for example in examples]
    used = [(example, gold) for example, gold in zip(examples, golds, strict=True) if gold.any()]
    if not used:
        raise DataBroken("no question of the training data has a segment that holds its answer")
    inputs = np.concatenate([example.own.features for example, _ in used])
    gold = np.concatenate([gold for _, gold in used])
    sizes = [len(gold) for _, gold in used]
    starts, page = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(used)), sizes)
    counts = np.asarray([_WEIGHTS.get(example.source, 1.0) for example, _ in used])
    counts = (counts / counts.sum())[page]
    in_row = np.flatnonzero(inputs[:, is_row] > 0)
    rows_ = inputs[in_row]
    start = np.stack([np.asarray([_START.get(name, 0.0) for name in NAMES]), np.zeros(len(NAMES))])
    drawn = np.asarray([[_DRAWN], [_DRAWN_ROW]])
    free = np.asarray([[name not in _UNUSED for name in NAMES], [name not in _ONE_WEIGHT for name in NAMES]])
    likeness = [NAMES.index(name) for name in _NEVER_BELOW_0]
    parts, speed, power = start.copy(), np.zeros_like(start), np.zeros_like(start)  # weights, and what rows add to them
    for step in range(1, _STEPS + 1):
        score = inputs @ parts[0]
        score[in_row] += rows_ @ parts[1]
        share = np.exp(score - np.maximum.reduceat(score, starts)[page])
        share /= np.add.reduceat(share, starts)[page]
        right = np.maximum(np.add.reduceat(share * gold, starts), 1e-9)[page]
        wrong = (share - share * gold / right) * counts
        slope = (np.stack([wrong @ inputs, wrong[in_row] @ rows_]) + drawn * (parts - start)) * free
        speed, power = 0.9 * speed + 0.1 * slope, 0.99 * power + 0.01 * slope**2
        rate = _RATE * (1 - 0.8 * step / _STEPS)
        parts -= rate * speed / (1 - 0.9**step) / (np.sqrt(power / (1 - 0.99**step)) + 1e-8)
        parts[0, likeness] = np.maximum(parts[0, likeness], 0)
        parts[1, likeness] = np.maximum(parts[1, likeness], -parts[0, likeness])
    return parts[0], parts[0] + parts[1]


def fit_confidence(examples: Sequence[QuoteExample], weights: Weights, reranker: Reranker | None = None) -> Numbers:
    """Return the weights of the signs that a segment answers, by logistic regression (Newton's method).

    The best three segments of right and of wrong pages are looked at. Both kinds of pages count alike, and a set by the
    root of its questions: the chance is that of a question of which every other page does not answer.

    :param reranker: a reader of segments: then its signs are behind the others, of the pages that it reads.
    """
    used = [example for example in examples if example.source not in _NOT_SURE and (example.dev or example.wrong)]
    if reranker is not None:
        by_source = itertools.groupby(used, key=lambda example: example.source)  # examples of a set stand together
        used = [
            example
            for _, of_set in by_source
            for place, example in enumerate(of_set)
            if example.dev or place < _READ_OF_A_SET
        ]
    sides = [(example, example.own, True) for example in used]
    sides += [(example, example.wrong, False) for example in used if example.wrong is not None]
    inputs, labels, counts, owned = [], [], [], []
    sizes = Counter((example.source, own) for example, _, own in sides)
    if {own for _, own in sizes} != {False, True}:
        raise DataBroken("the training data has no questions with a right and a wrong page")
    for example, question, own in sides:
        scores, added = _scores(question, weights, reranker)
        if reranker is not None and added is None:
            continue  # the reader does not read its language
        places = best(scores)
        inputs.append(signs(question, scores, places, added))
        labels.append(example.held[places].astype(np.float64) if own else np.zeros(len(places)))
        owned.append(np.full(len(places), own))
        counts.append(np.full(len(places), _of_set(example) / sizes[example.source, own] ** 0.5 / len(places)))
    joined, truth, share, of_side = (np.concatenate(parts) for parts in (inputs, labels, counts, owned))
    for side in (False, True):
        share[of_side == side] /= share[of_side == side].sum()
    found = np.zeros(joined.shape[1])
    for _ in range(40):
        sure = 1 / (1 + np.exp(-joined @ found))
        slope = joined.T @ (share * (sure - truth)) + _RIDGE * found
        bend = (joined * (share * sure * (1 - sure))[:, None]).T @ joined + _RIDGE * np.eye(len(found))
        found -= np.linalg.solve(bend, slope)
    return found


def _scores(question: Question, weights: Weights, reranker: Reranker | None) -> tuple[Numbers, Numbers | None]:
    """Return the scores of the segments of a question, and what a reader added to them."""
    scores = weights.scores(question.features)
    added = None if reranker is None else read(reranker, question, scores)
    return (scores if added is None else scores + added), added


def _of_set(example: QuoteExample) -> float:
    """Return how much a question counts for confidence: pages as users have them, and tables, count more."""
    return (1.0 if example.dev else 0.5) * (1.5 if "table" in example.source else 1.0)


def figures(
    weights: Weights, examples: Sequence[QuoteExample], reranker: Reranker | None = None
) -> dict[str, dict[str, float]]:
    """Return per source the questions, and the shares of them that are answered with gold first, at all, and wrongly.

    ``first``: the best segment's passage holds an answer, and it is given; ``best``: it holds one, given or not.
    ``wrong`` is of the questions with a wrong page. ``off``: by how much the confidence of best segments, of right and
    wrong pages, is off (expected calibration error in ten bins).
    """
    found: dict[str, dict[str, float]] = {}
    for source in dict.fromkeys(example.source for example in examples):
        asked = [example for example in examples if example.source == source]
        own = [_first(example.own, weights, reranker) for example in asked]
        gold = np.asarray([example.held[place] for example, (place, _) in zip(asked, own, strict=True)])
        sure = np.asarray([chance for _, chance in own])
        others = [example.wrong for example in asked if example.wrong is not None]
        wrong = np.asarray([_first(other, weights, reranker)[1] for other in others])
        least = Settings().min_confidence
        found[source] = {
            "questions": len(asked),
            "first": float(np.mean(gold & (sure >= least))),
            "best": float(np.mean(gold)),
            "answered": float(np.mean(sure >= least)),
            "wrong": float(np.mean(wrong >= least)) if len(wrong) else 0.0,
            "off": off(np.concatenate([sure, wrong]), np.concatenate([gold, np.zeros(len(wrong))])),
        }
    return {source: {name: round(value, 3) for name, value in of_set.items()} for source, of_set in found.items()}


def off(chances: Numbers, truth: NDArray[Any]) -> float:
    """Return the expected calibration error in ten bins of equal width: mean distance of chance and share."""
    bins = np.minimum((chances * 10).astype(int), 9)
    parts = [(bins == one) for one in range(10) if (bins == one).any()]
    return float(sum(part.mean() * abs(chances[part].mean() - truth[part].mean()) for part in parts))


def _first(question: Question, weights: Weights, reranker: Reranker | None) -> tuple[int, float]:
    """Return the place of the best segment, and the chance that it answers."""
    scores, added = _scores(question, weights, reranker)
    place = best(scores)[0]
    return place, float(weights.confidence(question, scores, [place], added)[0])


def write(stored: Mapping[str, Any], path: Path) -> None:
    """Write the weights as JSON, a line for each."""
    parts = []
    for name in ("segment", "confidence", "confidence_read"):
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stored[name].items())
        parts.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
