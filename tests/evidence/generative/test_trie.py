"""The token tree against its definition: the nodes that a model must read, and the sums of probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.ports import Branches, TokenTree
from prunus.evidence.score._trie import grow, log_probabilities, sum_along_paths

STOP = 99
PATHS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=7), min_size=1, max_size=25)


def drawn(tree: TokenTree, seed: int) -> Branches:
    generator = np.random.default_rng(seed)
    return Branches([generator.normal(0, 30, len(children)) for children in tree.children])


def ended(paths: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the paths, with a stop where another goes on from their end."""
    whole = {tuple(path) for path in paths}
    longer = {path[:size] for path in whole for size in range(len(path))}
    return [(*path, STOP) if tuple(path) in longer else tuple(path) for path in paths]


@given(PATHS)
def test_each_path_ends_in_a_leaf_that_spells_it(paths: list[list[int]]) -> None:
    tree, leaves = grow(paths, STOP)
    assert [tuple(tree.path(int(leaf))) for leaf in leaves] == ended(paths)
    assert not set(leaves.tolist()) & set(tree.parent.tolist())
    assert len(tree) == 1 + len({path[: size + 1] for path in ended(paths) for size in range(len(path))})


@given(PATHS)
def test_a_node_is_read_where_a_branching_node_stands_at_or_below_it(paths: list[list[int]]) -> None:
    tree, _ = grow(paths, STOP)
    children = {node: [one for one in range(len(tree)) if tree.parent[one] == node] for node in range(len(tree))}

    def branches_below(node: int) -> bool:
        return len(children[node]) > 1 or any(map(branches_below, children[node]))

    assert tree.needed.tolist() == [branches_below(node) for node in range(len(tree))]
    assert tree.branching.tolist() == [node for node in range(len(tree)) if len(children[node]) > 1]
    assert [group.tolist() for group in tree.children] == [children[node] for node in tree.branching.tolist()]
    assert tree.read.tolist() == [node for node in range(1, len(tree)) if tree.needed[node]]


@given(PATHS)
def test_nodes_stand_in_preorder(paths: list[list[int]]) -> None:
    tree, _ = grow(paths, STOP)
    way: list[int] = []
    for node in range(len(tree)):
        del way[int(tree.depth[node]) :]
        assert tree.parent[node] == (way[-1] if way else -1)
        way.append(node)


@given(PATHS, st.integers(0, 1000))
def test_the_probabilities_of_all_leaves_sum_to_one(paths: list[list[int]], seed: int) -> None:
    tree, leaves = grow(paths, STOP)
    total = sum_along_paths(tree, log_probabilities(tree, drawn(tree, seed)))
    assert np.exp(total[np.unique(leaves)]).sum() == pytest.approx(1.0, abs=1e-12)


@given(PATHS, st.integers(0, 1000), st.floats(-500, 500))
def test_a_constant_added_to_the_logits_of_a_node_changes_nothing(
    paths: list[list[int]], seed: int, shift: float
) -> None:
    tree, _ = grow(paths, STOP)
    one = drawn(tree, seed)
    other = Branches([logits + shift for logits in one.logits])
    assert np.allclose(log_probabilities(tree, one), log_probabilities(tree, other), atol=1e-9)


def test_roots_and_only_children_have_probability_one() -> None:
    tree, leaves = grow([[1, 2, 3, 4, 9], [1, 2, 3, 5, 9], [1, 2, 3, 5, 8]])
    own = log_probabilities(tree, Branches([np.log([0.25, 0.75]), np.log([0.5, 0.5])]))
    assert np.exp(own).tolist() == pytest.approx([1, 1, 1, 1, 0.25, 1, 0.75, 0.5, 0.5])
    assert np.exp(sum_along_paths(tree, own)[leaves]).tolist() == pytest.approx([0.25, 0.375, 0.375])
    assert tree.read.tolist() == [1, 2, 3, 6]
    assert tree.skipped == pytest.approx(0.5)


def test_nothing_is_clamped() -> None:
    tree, leaves = grow([[1, 2, 3], [1, 2, 4], [1, 5]])
    scores = sum_along_paths(
        tree, log_probabilities(tree, Branches([np.asarray([-4000.0, 0.0]), np.asarray([-3000.0, 0.0])]))
    )
    assert scores[leaves].tolist() == [-7000.0, -4000.0, 0.0]


def test_paths_of_the_same_tokens_share_their_leaf() -> None:
    tree, leaves = grow([[1, 2], [1, 3], [1, 2]])
    assert leaves[0] == leaves[2] != leaves[1]
    assert len(tree) == 4


def test_a_path_that_others_go_on_from_needs_a_stop() -> None:
    tree, leaves = grow([[1, 2], [1, 2, 3]], STOP)
    assert tree.path(int(leaves[0])) == [1, 2, STOP]
    with pytest.raises(BadInput, match="no token for the end of a text"):
        grow([[1, 2], [1, 2, 3]])


def test_several_first_tokens_are_siblings() -> None:
    tree, leaves = grow([[1, 2], [3, 2]])
    assert tree.branching.tolist() == [0]
    assert len(tree.read) == 0
    assert sum_along_paths(tree, log_probabilities(tree, Branches([np.zeros(2)])))[leaves].tolist() == [np.log(0.5)] * 2


def test_one_path_and_none_need_no_model() -> None:
    tree, leaves = grow([[1, 2, 3]])
    assert len(tree.branching) == 0
    assert sum_along_paths(tree, log_probabilities(tree, Branches([])))[leaves].tolist() == [0.0]
    tree, leaves = grow([])
    assert (len(tree), len(leaves), tree.skipped, tree.deepest) == (1, 0, 0.0, 0)


def test_thousands_of_siblings() -> None:
    tree, leaves = grow([[1, *map(int, str(number)), 10] for number in range(5000)])
    total = sum_along_paths(tree, log_probabilities(tree, drawn(tree, 1)))
    assert np.exp(total[leaves]).sum() == pytest.approx(1.0)


def test_a_path_without_a_token_is_an_error() -> None:
    with pytest.raises(BadInput, match="a path has no token"):
        grow([[1], []])


@pytest.mark.parametrize(
    "logits",
    [[], [np.zeros(3)], [np.asarray([0.0, np.nan])], [np.asarray([0.0, -np.inf])], [np.asarray([0.0, np.inf])]],
    ids=["none", "too many", "nan", "minus infinity", "infinity"],
)
def test_numbers_that_are_missing_or_none_are_an_error(logits: list[np.ndarray]) -> None:
    tree, _ = grow([[1, 2], [1, 3]])
    with pytest.raises(OutsideFailed, match="the model"):
        log_probabilities(tree, Branches(logits))
