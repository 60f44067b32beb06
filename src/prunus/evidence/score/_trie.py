"""The token tree: merges token paths with common beginnings, and computes path probabilities from its branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import Branches, Ints, TokenTree

MOST_TOKENS = 20_000_000
"""Most tokens of all paths together; a page with more must be cut coarser, or pruned first."""


def grow(paths: Sequence[Sequence[int]], stop: int = -1) -> tuple[TokenTree, Ints]:
    """Merge paths of tokens into a tree.

    Equal paths end in the same node. A path that is the beginning of a longer path ends in a separate
    child with the token ``stop``. This is rare: most tokenizers have different tokens for ``>`` and ``><``.

    :param paths: tokens of each path; no path is empty.
    :param stop: the token that ends a text; -1 for none.
    :returns: the tree, and the node in which each path ends, int [paths].
    :raises BadInput: a path has no token, there are too many tokens, or a stop token is needed and missing.
    """
    if sum(map(len, paths)) > MOST_TOKENS:
        raise BadInput(f"the paths of {len(paths)} blocks are over {MOST_TOKENS} tokens; cut coarser, or prune first")
    below: list[dict[int, int]] = [{}]  # children of each node in order of insertion: token -> node
    ends = [_insert(below, path) for path in paths]
    inner = {end for end in ends if below[end]}
    if inner and stop < 0:
        raise BadInput("one path is the beginning of another, and the tokenizer has no token for the end of a text")
    stops = {}
    for end in inner:
        stops[end] = below[end].setdefault(stop, len(below))
        if stops[end] == len(below):
            below.append({})
    return _laid_out(below, [stops.get(end, end) for end in ends])


def _insert(below: list[dict[int, int]], path: Sequence[int]) -> int:
    """Add a path; return the node in which it ends."""
    if not path:
        raise BadInput("a path has no token; the tokenizer cannot write tags")
    node = 0
    for token in path:
        children = below[node]
        child = children.get(token)
        if child is None:
            child = children[token] = len(below)
            below.append({})
        node = child
    return node


def _laid_out(below: list[dict[int, int]], ends: list[int]) -> tuple[TokenTree, Ints]:
    """Number the nodes in preorder; find the branching nodes and the nodes that the model must read."""
    count = len(below)
    token, parent, depth = (np.full(count, fill, np.int64) for fill in (-1, -1, 0))
    place = np.zeros(count, np.int64)
    stack: list[tuple[int, int, int, int]] = [(0, -1, -1, 0)]  # node by insertion, token, parent, depth
    done = 0
    branching: list[int] = []
    while stack:
        node, node_token, above, node_depth = stack.pop()
        token[done], parent[done], depth[done], place[node] = node_token, above, node_depth, done
        if len(below[node]) > 1:
            branching.append(done)
        stack.extend((child, child_token, done, node_depth + 1) for child_token, child in reversed(below[node].items()))
        done += 1
    needed = np.zeros(count, bool)
    needed[branching] = True
    for node in range(count - 1, 0, -1):
        if needed[node]:
            needed[parent[node]] = True
    children: dict[int, list[int]] = {node: [] for node in branching}
    for node in range(1, count):
        if (above := int(parent[node])) in children:
            children[above].append(node)
    groups = [np.asarray(children[node], np.int64) for node in branching]
    tree = TokenTree(token, parent, depth, needed, np.asarray(branching, np.int64), groups)
    return tree, place[np.asarray(ends, np.int64)] if ends else np.zeros(0, np.int64)


def log_probabilities(tree: TokenTree, branches: Branches) -> NDArray[np.float64]:
    """Return the log probability of each node given its parent, float64 [n] (HtmlRAG, Eq. 2).

    A node without siblings has probability 1. Siblings get the softmax over their logits alone. Several
    first tokens are siblings below the end of the prompt, so that the leaves always sum to 1.

    :raises OutsideFailed: the model gave no number for a branch, or a number that is not finite.
    """
    log_p = np.zeros(len(tree))
    if len(branches.logits) != len(tree.branching):
        raise OutsideFailed(f"the model answered {len(branches.logits)} of {len(tree.branching)} branches")
    for children, branch in zip(tree.children, branches.logits, strict=True):
        logits = np.asarray(branch, np.float64)
        if logits.shape != children.shape or not np.isfinite(logits).all():
            raise OutsideFailed("the model gives no number for some branches of the token tree, or none that is finite")
        shifted = logits - logits.max()  # keeps exp from overflowing
        log_p[children] = shifted - np.log(np.exp(shifted).sum())
    return log_p


def sum_along_paths(tree: TokenTree, log_p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log probability of the path from the root to each node, float64 [n] (HtmlRAG, Eq. 3), unclamped."""
    total = log_p.copy()
    parent = tree.parent
    for node in range(1, len(tree)):
        total[node] += total[parent[node]]
    return total
