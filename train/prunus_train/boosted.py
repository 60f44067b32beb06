"""Train a small ensemble of boosted trees with lightgbm, and export it for ``prunus.models.boosted``.

Features are rounded to float32 first, so that the exported thresholds, float32 too, part the rows as training did.
Training runs on one thread with fixed seeds: the same data gives the same file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prunus.core.errors import MissingExtra
from prunus.core.installation import pip_install_folder
from prunus.models.boosted import Boosted
from prunus_train.errors import DataBroken


@dataclass(frozen=True, slots=True)
class Rows:
    """Training data.

    :param features: numbers [rows, features].
    :param labels: float [rows]; 0 or 1, or small whole grades for ``ranking``.
    :param sizes: rows of each question, in order; () where rows stand alone.
    :param counts: how much a row counts, float [rows]; None where all count 1.
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    sizes: Sequence[int] = ()
    counts: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Hyper-parameters.

    :param aim: ``ranking`` (LambdaMART: right rows above wrong ones of the same question), ``softmax`` (the share of
        the right rows in a softmax over the rows of a question) or ``binary`` (the score is a log-odds).
    :param trees, leaves, depth: size of the ensemble.
    :param rate: how much of each tree is added.
    :param least: fewest rows of a leaf.
    :param ridge: how strongly leaves are drawn to 0.
    :param rows, columns: shares of questions (or rows) and of features that each tree sees.
    :param top: ``ranking`` judges the order of so many first rows.
    :param rising, falling: names of features of which more never lowers, or never raises, the score.
    """

    aim: Literal["ranking", "softmax", "binary"] = "ranking"
    trees: int = 150
    leaves: int = 15
    depth: int = 5
    rate: float = 0.08
    least: int = 50
    ridge: float = 5.0
    rows: float = 0.8
    columns: float = 0.7
    top: int = 30
    rising: Sequence[str] = ()
    falling: Sequence[str] = ()
    seed: int = 1


def train(
    names: Sequence[str], data: Rows, plan: Plan | None = None, *, weights: NDArray[Any] | None = None
) -> Boosted:
    """Train an ensemble.

    :param names: name of each feature.
    :param weights: a linear part, float [features]: the trees learn what to add to it.
    :raises DataBroken: there is no right or no wrong row, or a number is not finite.
    :raises MissingExtra: lightgbm is not installed.
    """
    booster, linear = fitted(names, data, plan or Plan(), weights)
    return exported(names, booster, linear)


def fitted(
    names: Sequence[str], data: Rows, plan: Plan, weights: NDArray[Any] | None = None
) -> tuple[Any, NDArray[np.float64]]:
    """Return the library's trained model and the linear part."""
    lightgbm = need_library()
    rows, labels = _checked(names, data)
    linear = np.zeros(len(names)) if weights is None else np.asarray(weights, np.float64)
    start = None if weights is None else rows.astype(np.float64) @ linear
    grouped = plan.aim != "binary"
    if grouped and sum(data.sizes) != len(rows):
        raise DataBroken(f"{len(rows)} rows, but the questions have {sum(data.sizes)} together")
    dataset = lightgbm.Dataset(
        rows.astype(np.float64),
        labels,
        group=list(data.sizes) if grouped else None,
        weight=None if data.counts is None else np.asarray(data.counts, np.float64),
        init_score=start,
        feature_name=[f"f{place}" for place in range(len(names))],  # the library refuses some letters
        free_raw_data=True,
    )
    return lightgbm.train(_settings(names, plan), dataset, num_boost_round=plan.trees), linear


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


def _checked(names: Sequence[str], data: Rows) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
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


def _settings(names: Sequence[str], plan: Plan) -> dict[str, Any]:
    """Translate a plan to the library's parameters; one thread, fixed seeds, no missing values."""
    objective = {"ranking": "lambdarank", "softmax": "rank_xendcg", "binary": "binary"}[plan.aim]
    bent = [int(name in plan.rising) - int(name in plan.falling) for name in names]
    return {
        "objective": objective,
        "num_leaves": plan.leaves,
        "max_depth": plan.depth,
        "learning_rate": plan.rate,
        "min_data_in_leaf": plan.least,
        "lambda_l2": plan.ridge,
        "bagging_fraction": plan.rows,
        "bagging_freq": 1 if plan.rows < 1 else 0,
        "feature_fraction": plan.columns,
        "lambdarank_truncation_level": plan.top,
        "monotone_constraints": bent if any(bent) else None,
        "seed": plan.seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "use_missing": False,
        "verbosity": -1,
    }


def exported(names: Sequence[str], booster: Any, weights: NDArray[np.float64]) -> Boosted:
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
        np.asarray(weights, np.float64),
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
