"""Train the scorer ``trees``: which blocks of pages hold the evidence for a question.

Boosted trees (lightgbm) rank the blocks of each question, and the score of ``hybrid`` is added to what they say. A
quarter of the documents is held out for the figures and for the scale of the scores; the trees that are written have
seen all. Features are rounded to float32 first, so that the exported thresholds, float32 too, part the rows as training
did. Training runs on one thread with fixed seeds: the same data gives the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus.core.errors import MissingExtra
from prunus.core.installation import pip_install_folder
from prunus.evidence.score._block_features import NAMES
from prunus.models.boosted import Boosted
from prunus_evals.split import digest
from prunus_train.data.blocks import BlockExample
from prunus_train.errors import DataBroken


@dataclass(frozen=True, slots=True)
class TreeRows:
    """Training data.

    :param features: numbers [rows, features].
    :param labels: 0 or 1, float [rows].
    :param sizes: rows of each question, in order.
    :param counts: how much a row counts, float [rows]; None where all count 1.
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    sizes: Sequence[int]
    counts: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class TreePlan:
    """Hyper-parameters of LambdaMART, which ranks right rows above wrong ones of the same question.

    :param trees, leaves, depth: size of the ensemble.
    :param rate: how much of each tree is added.
    :param least: fewest rows of a leaf.
    :param ridge: how strongly leaves are drawn to 0.
    :param rows, columns: shares of questions and of features that each tree sees.
    :param top: the order of so many first rows is judged.
    """

    trees: int = 100
    leaves: int = 15
    depth: int = 5
    rate: float = 0.1
    least: int = 50
    ridge: float = 5.0
    rows: float = 0.8
    columns: float = 0.5
    top: int = 30
    seed: int = 1


PLAN: Final = TreePlan()

_HYBRID: Final = 2.0
"""What the score of ``hybrid`` adds to the trees; it keeps pages that are unlike training close to it. By hand."""

COUNTS: Final = {
    "table_qa": 0.7, "qed_en": 3.0, "clapnq_en": 2.0, "ottqa_en": 0.5, "fetaqa_en": 0.5, "evidence_inference_en": 0.5
}  # fmt: skip
"""How much a question counts; 1 where nothing is said. Chosen by hand."""

_STEPS: Final = 30
_HELD_OUT: Final = "0123"
"""First hexadecimal digits of the digests of held-out documents."""


def train(examples: Sequence[BlockExample], plan: TreePlan | None = None) -> tuple[Boosted, dict[str, Any]]:
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


def fit(examples: Sequence[BlockExample], plan: TreePlan) -> Boosted:
    """Return the trees that are learned from some examples, with the score of ``hybrid`` added."""
    sizes = [len(example.gold) for example in examples]
    rows = TreeRows(
        np.concatenate([example.features for example in examples]),
        np.concatenate([example.gold for example in examples]),
        sizes,
        np.repeat([COUNTS.get(example.source, 1.0) for example in examples], sizes),
    )
    weights = np.zeros(len(NAMES))
    weights[NAMES.index("hybrid")] = _HYBRID
    return replace(boosted(NAMES, rows, plan), weights=weights)


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


def figures(examples: Sequence[BlockExample], scores: Sequence[NDArray[Any]]) -> Mapping[str, Mapping[str, float]]:
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


def boosted(names: Sequence[str], data: TreeRows, plan: TreePlan) -> Boosted:
    """Train an ensemble of trees.

    :param names: name of each feature.
    :raises DataBroken: there is no right or no wrong row, or a number is not finite.
    :raises MissingExtra: lightgbm is not installed.
    """
    return exported(names, fitted(names, data, plan))


def fitted(names: Sequence[str], data: TreeRows, plan: TreePlan) -> Any:
    """Return the library's trained model."""
    lightgbm = need_library()
    rows, labels = _checked(names, data)
    dataset = lightgbm.Dataset(
        rows.astype(np.float64),
        labels,
        group=list(data.sizes),
        weight=None if data.counts is None else np.asarray(data.counts, np.float64),
        feature_name=[f"f{place}" for place in range(len(names))],  # the library refuses some letters
        free_raw_data=True,
    )
    return lightgbm.train(_settings(plan), dataset, num_boost_round=plan.trees)


def need_library() -> Any:
    """Import lightgbm; a command that needs it later asks before the work of minutes.

    :raises MissingExtra: it is not installed.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtra(
            f"boosted trees are trained by lightgbm; run: {pip_install_folder('train')}", subject="lightgbm"
        ) from error
    return lightgbm


def _checked(names: Sequence[str], data: TreeRows) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return features and labels as training needs them."""
    rows, labels = np.asarray(data.features, np.float32), np.asarray(data.labels, np.float64)
    if rows.ndim != 2 or rows.shape != (len(labels), len(names)):
        raise DataBroken(f"{len(labels)} labels and {len(names)} names do not fit features of shape {rows.shape}")
    if not np.isfinite(rows).all():
        place = int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])
        raise DataBroken(f"the feature {names[place]} is not a finite number in every row")
    if not len(labels) or labels.min() == labels.max():
        raise DataBroken("the training data has no right row beside a wrong one")
    return rows, labels


def _settings(plan: TreePlan) -> dict[str, Any]:
    """Translate a plan to the library's parameters; one thread, fixed seeds, no missing values."""
    return {
        "objective": "lambdarank",
        "num_leaves": plan.leaves,
        "max_depth": plan.depth,
        "learning_rate": plan.rate,
        "min_data_in_leaf": plan.least,
        "lambda_l2": plan.ridge,
        "bagging_fraction": plan.rows,
        "bagging_freq": 1 if plan.rows < 1 else 0,
        "feature_fraction": plan.columns,
        "lambdarank_truncation_level": plan.top,
        "seed": plan.seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "use_missing": False,
        "verbosity": -1,
    }


def exported(names: Sequence[str], booster: Any) -> Boosted:
    """Turn the library's model into plain arrays. Leaves hold the library's start value, where it has one."""
    nodes: list[tuple[int, float, int, int, float]] = []  # feature, threshold, left, right, value
    roots = []
    for tree in booster.dump_model()["tree_info"]:
        roots.append(len(nodes))
        _add(nodes, tree["tree_structure"])
    thresholds = _rounded_down(np.asarray([node[1] for node in nodes], np.float64))
    return Boosted(
        tuple(names),
        np.asarray([node[0] for node in nodes], np.int32),
        thresholds,
        np.asarray([node[2:4] for node in nodes], np.int32).reshape(len(nodes), 2),
        np.asarray([node[4] for node in nodes], np.float64),
        np.asarray(roots, np.int32),
        np.zeros(len(names)),
        0.0,
        max((_depth(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]), default=0),
    )


def _add(nodes: list[tuple[int, float, int, int, float]], node: dict[str, Any]) -> int:
    """Add a node with all below it, parents first; return its number."""
    place = len(nodes)
    if "split_feature" not in node:
        nodes.append((0, float("inf"), place, place, float(node["leaf_value"])))
        return place
    if node["decision_type"] != "<=":
        raise ValueError(f"a split by {node['decision_type']!r} cannot be exported")
    nodes.append((0, 0.0, place, place, 0.0))
    left = _add(nodes, node["left_child"])
    right = _add(nodes, node["right_child"])
    nodes[place] = (int(node["split_feature"]), float(node["threshold"]), left, right, 0.0)
    return place


def _depth(node: dict[str, Any]) -> int:
    """Return the comparisons on the longest way to a leaf."""
    if "split_feature" not in node:
        return 0
    return 1 + max(_depth(node["left_child"]), _depth(node["right_child"]))


def _rounded_down(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 not above each threshold: it parts float32 numbers as the threshold does."""
    nearest = thresholds.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest.astype(np.float64) > thresholds, below, nearest).astype(np.float32)
