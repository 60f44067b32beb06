"""Train the extractor ``sentences``: which segment answers a question, and how likely any does.

The scorer has two parts. The weights of a sum maximise the share of the gold segments in a softmax over the segments of
a page; those of likeness stay at 0 or above, and those of asides at 0 or below. Boosted trees (LambdaMART) then learn
what to add to that sum. The scale of the scores and the bar, a logistic regression on right and wrong pages, are
learned from scores that a page's own questions had no part in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus.answer.extract._bearing import BEARING, Numbers, Seen, bearing, shares_of
from prunus.answer.extract._features import NAMES
from prunus.answer.extract._weights import BAR, Weights, weights, weights_of
from prunus.core.errors import BadInput
from prunus.core.text.answer_kinds import KINDS
from prunus.models.boosted import Boosted
from prunus.models.boosted import write as write_trees
from prunus_train import boosted
from prunus_train.data.quotes import Example
from prunus_train.errors import DataBroken

_COUNTS: Final = {
    "tables": 1.5, "qed_en": 2.0, "fetaqa_en": 0.3, "faq_docs_multi": 0.5, "ottqa_en": 0.7
}  # fmt: skip
"""How much a question counts; 1 where nothing is said. Chosen by hand."""

_START: Final = {"aside": -1.5, "excepted": -3.0, "lead": 0.3}
"""Weights to start from and to be drawn back to; 0 where nothing is said. Chosen by hand."""

_KEPT: Final = ("aside",)
"""Weights that stay as they start: the training pages hold too few references."""

RISING: Final = (
    "bm25", "cosine", "cosine_scaled", "block", "covered", "covered_all", "covered_label", "covered_heading", "pairs",
    "names", "names_all", "before", "after", "key_covered", "row_covered", "covered_rest", "covered_two", "bm25_rank",
    "block_rank", "cosine_rank", "counted", "cell_whole", "cells_whole", "cell_number", "cell_ordinal", "meets",
    "extreme", "extreme_hinted", "extreme_other", "extreme_best", "end_row", "end_best", "beside_row", "asked_cell",
    "asked_fits", *(f"fits_{kind.name}" for kind in KINDS),
)  # fmt: skip
"""Features of which more must never lower a score. Free weights fitted better here, and worse elsewhere."""

FALLING: Final = (
    "short", "lines", "asks", "fits_none", "behind", "aside", "row_behind", "beside_anchor", "excepted", "other_row",
    "total", "head_row",
)  # fmt: skip
"""Features of which more must never raise a score."""

_MENU: Final = 0.4
"""A segment with this much of the feature ``lines`` or more is no gold: it looks like a menu."""

_LIKE: Final = 20
_UNLIKE: Final = 12
"""Wrong segments of a question that training sees: the likest ones, and some of the rest, evenly."""

_DRAWN: Final = 5e-4
"""How strongly weights are drawn to their start."""

_STEPS: Final = 150
_RATE: Final = 0.05
_RIDGE: Final = 3e-3
_PLAN: Final = boosted.Plan(aim="ranking", trees=100, top=10, rate=0.05, rising=RISING, falling=FALLING)


def train(examples: Sequence[Example]) -> tuple[Boosted, dict[str, Any], dict[str, Any]]:
    """Return the scorer and what ``weights.json`` holds, and figures of the dev half.

    The figures: ``new``, under the new weights, whose scorer has not seen the dev half; ``shipped``, under those of
    this version.
    """
    segment, stored = fit(examples)
    dev = [example for example in examples if example.dev]
    found = {"new": figures(weights_of(segment, stored), dev)}
    with suppress(OSError, BadInput, ValueError):  # weights of other features cannot be compared
        found["shipped"] = figures(weights(), dev)
    return segment, stored, found


def fit(examples: Sequence[Example]) -> tuple[Boosted, dict[str, Any]]:
    """Return the scorer, learned from the training sets, and what ``weights.json`` holds, learned from the dev half.

    :raises DataBroken: no question has a gold segment, or none of the dev half has a right and a wrong page.
    """
    segment = fit_segments([example for example in examples if not example.dev])
    judged = [example for example in examples if example.dev and example.taught]
    scale = round(fit_scale(judged, segment), 3)
    bears = np.round(fit_bar(judged, segment, scale), 3) + 0.0  # + 0.0: no minus zero
    return segment, {"scale": scale, "bears": dict(zip(BEARING, bears.tolist(), strict=True))}


def _gold(example: Example) -> NDArray[np.bool_]:
    return example.gold & (example.own.features[:, NAMES.index("lines")] < _MENU)


def _shown(example: Example, gold: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the segments that training sees: the gold ones, the best others by likeness, and some of the rest."""
    features = example.own.features
    alike = sum(features[:, NAMES.index(name)] for name in ("bm25", "block", "cosine_scaled", "covered_all"))
    others = np.flatnonzero(~gold)
    ordered = others[np.argsort(-np.asarray(alike)[others], kind="stable")]
    rest = ordered[_LIKE:]
    evenly = rest[:: max(1, -(-len(rest) // _UNLIKE))]
    return np.sort(np.concatenate([np.flatnonzero(gold), ordered[:_LIKE], evenly]))


def fit_segments(examples: Sequence[Example]) -> Boosted:
    """Return the scorer: a sum of features, and trees that learn what to add to it.

    :raises DataBroken: no question has a gold segment.
    """
    used = [(example, gold) for example in examples if (gold := _gold(example)).any()]
    if not used:
        raise DataBroken("no question of the training data has a segment that holds its answer")
    shown = [(example, gold, _shown(example, gold)) for example, gold in used]
    data = boosted.Rows(
        np.concatenate([example.own.features[places] for example, _, places in shown]),
        np.concatenate([gold[places] for _, gold, places in shown]).astype(np.float64),
        [len(places) for *_, places in shown],
        np.concatenate([np.full(len(places), _COUNTS.get(example.source, 1.0)) for example, _, places in shown]),
    )
    return boosted.train(NAMES, data, _PLAN, weights=np.round(fit_sum(data), 3))


def fit_sum(data: boosted.Rows) -> Numbers:
    """Return the weights of the sum, by gradient descent (Adam)."""
    inputs, gold, sizes = np.asarray(data.features, np.float32), data.labels > 0, data.sizes
    starts, page = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    counts = np.ones(len(gold)) if data.counts is None else data.counts
    counts = counts / counts[starts].sum()
    start = np.asarray([_START.get(name, 0.0) for name in NAMES])
    free = np.asarray([name not in _KEPT for name in NAMES], np.float64)
    least = np.asarray([0.0 if name in RISING else -np.inf for name in NAMES])
    most = np.asarray([0.0 if name in FALLING else np.inf for name in NAMES])
    found, speed, power = start.copy(), np.zeros(len(NAMES)), np.zeros(len(NAMES))
    for step in range(1, _STEPS + 1):
        score = (inputs @ found.astype(np.float32)).astype(np.float64)
        share = np.exp(score - np.maximum.reduceat(score, starts)[page])
        share /= np.add.reduceat(share, starts)[page]
        right = np.maximum(np.add.reduceat(share * gold, starts), 1e-9)[page]
        wrong = ((share - share * gold / right) * counts).astype(np.float32)
        slope = (wrong @ inputs + _DRAWN * (found - start)) * free
        speed, power = 0.9 * speed + 0.1 * slope, 0.99 * power + 0.01 * slope**2
        rate = _RATE * (1 - 0.8 * step / _STEPS)
        found = found - rate * speed / (1 - 0.9**step) / (np.sqrt(power / (1 - 0.99**step)) + 1e-8)
        found = np.clip(found, least, most)
    return found


def fit_scale(examples: Sequence[Example], segment: Boosted) -> float:
    """Return the factor of the scores under which their softmax says best how likely each segment is gold."""
    scored = [(segment.scores(example.own.features), example.gold) for example in examples if example.gold.any()]
    tried = np.geomspace(0.2, 3.0, 28)
    losses = [-sum(np.log(max(1e-9, shares_of(one * score)[gold].sum())) for score, gold in scored) for one in tried]
    return float(tried[int(np.argmin(losses))])


def fit_bar(examples: Sequence[Example], segment: Boosted, scale: float) -> Numbers:
    """Return the weights of the signs that pages bear on a question, by logistic regression (Newton's method).

    Right and wrong pages count alike, and a set by the root of its questions.
    """
    sides: list[tuple[Example, Seen, float]] = []
    for example in examples:
        if example.wrong is not None:
            sides += [(example, example.own, 1.0), (example, example.wrong, 0.0)]
    if not sides:
        raise DataBroken("the dev half has no questions with a right and a wrong page")
    sizes = Counter(example.source for example, *_ in sides)
    inputs = np.stack([bearing(seen, scale * segment.scores(seen.features)) for _, seen, _ in sides])
    labels = np.asarray([label for *_, label in sides])
    counts = np.asarray(
        [(1.5 if "table" in example.source else 1.0) / sizes[example.source] ** 0.5 for example, *_ in sides]
    )
    counts /= counts.sum()
    found = np.zeros(len(BEARING))
    for _ in range(40):
        sure = 1 / (1 + np.exp(-inputs @ found))
        slope = inputs.T @ (counts * (sure - labels)) + _RIDGE * found
        bend = (inputs * (counts * sure * (1 - sure))[:, None]).T @ inputs + _RIDGE * np.eye(len(BEARING))
        found -= np.linalg.solve(bend, slope)
    return found


def figures(weights: Weights, examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return per source the questions, and the shares of them that are answered with gold first, at all, and wrongly.

    ``first``: the best segment holds an answer, and an answer is given. ``wrong`` is of the questions with a wrong
    page. ``error``: how far the chance that the pages answer is off, on right and wrong pages together, in ten bins.
    """
    found: dict[str, dict[str, float]] = {}
    for source in dict.fromkeys(example.source for example in examples):
        asked = [example for example in examples if example.source == source]
        scores = [weights.scores(example.own) for example in asked]
        right = [weights.chance(example.own, score) for example, score in zip(asked, scores, strict=True)]
        given = [chance >= BAR for chance in right]
        gold = [bool(example.holds[int(np.argmax(score))]) for example, score in zip(asked, scores, strict=True)]
        others = [example.wrong for example in asked if example.wrong is not None]
        wrong = [weights.chance(other, weights.scores(other)) for other in others]
        found[source] = {
            "questions": len(asked),
            "first": round(sum(map(min, gold, given)) / len(asked), 3),
            "answered": round(sum(given) / len(asked), 3),
            "wrong": round(sum(chance >= BAR for chance in wrong) / max(1, len(others)), 3),
            "error": round(calibration_error([*right, *wrong], [1.0] * len(right) + [0.0] * len(wrong)), 3),
        }
    return found


def calibration_error(chances: Sequence[float], labels: Sequence[float]) -> float:
    """Return the mean distance of stated chances and what came true, in ten bins, weighted by their sizes."""
    stated, true = np.asarray(chances), np.asarray(labels)
    bins = np.minimum((stated * 10).astype(int), 9)
    parts = [abs(float((stated - true)[bins == one].sum())) for one in {*bins.tolist()}]
    return float(sum(parts) / max(1, len(stated)))


def write(segment: Boosted, stored: Mapping[str, Any], path: Path) -> None:
    """Write the bar as JSON, a line for each weight, and the scorer beside it as ``.npz``."""
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stored["bears"].items())
    bears = '"bears": {\n' + ",\n".join(lines) + "\n}"
    path.write_text(f'{{\n"scale": {json.dumps(stored["scale"])},\n{bears}\n}}\n', encoding="utf-8")
    write_trees(segment, path.with_suffix(".npz"))
