"""The quality of a tree, on trees of known quality."""

from __future__ import annotations

import numpy as np
import pytest

from prunus.index.nodes import View
from prunus_evals import trees


def made(labels: list[int], groups: list[list[int]]) -> trees.Tree:
    """Return a tree whose leaves point along their label's axis, with groups above them and one root."""
    count, above = len(labels), len(groups)
    own = np.eye(max(labels) + 1, dtype=np.float32)[labels]
    means = [own[group].mean(axis=0) / np.linalg.norm(own[group].mean(axis=0)) for group in groups]
    matrix = np.concatenate([own, np.stack(means), own.mean(axis=0)[None]]).astype(np.float32)
    place = np.arange(count + above + 1)
    layer = np.asarray([0] * count + [1] * above + [2])
    document = np.asarray([*labels, *[-1] * (above + 1)])
    row = np.where(layer == 0, place, -1)
    view = View(place, layer, document, place, place, row, place, matrix, [], [], 1)
    edges = {count + at: group for at, group in enumerate(groups)}
    return trees.Tree(view, edges | {count + above: list(range(count, count + above))})


LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 2]
GOOD = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
MIXED = [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_a_tree_by_subject_is_coherent_pure_and_finds_its_way() -> None:
    tree = made(LABELS, GOOD)
    asked = np.eye(3, dtype=np.float32)
    assert trees.coherence(tree) == pytest.approx(1.0)
    assert trees.purity(tree) == 1.0
    assert trees.routing(tree, asked, beam=1, nearest=3) == [1.0, 1.0, 1.0]


def test_a_mixed_tree_is_none_of_these() -> None:
    tree = made(LABELS, MIXED)
    assert trees.coherence(tree) == pytest.approx(0.0, abs=1e-6)
    assert trees.purity(tree) == pytest.approx(1 / 3)
    assert trees.routing(tree, np.eye(3, dtype=np.float32), beam=1, nearest=3) == pytest.approx([1 / 3] * 3)


def test_a_beam_as_wide_as_the_tree_finds_everything_and_scores_every_node() -> None:
    tree = made(LABELS, MIXED)
    asked = np.eye(3, dtype=np.float32)
    assert trees.routing(tree, asked, beam=8, nearest=9) == [1.0] * 3
    assert trees.scored(tree, asked, beam=8) == 1.0
    assert trees.beam_of(tree, asked, 0.6) == 1
    found, _ = tree.reached(asked[0], beam=1, roots=[9])
    assert found.tolist() == [0, 3, 6]
