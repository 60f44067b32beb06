"""Batches of packed samples: the questions about a page part stand behind it, side by side.

A question sees the page and itself, never its neighbours, so that a page is read once for all of its
questions; each question's positions go on from the page's end, as if it stood there alone. This is
what a model sees at inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prunus_train.packed import Packed
from prunus_train.presets import Hyper

PADDING = -1
PAGE = 0

_POOL = 4096
"""Page parts that are sorted by length at a time: batches of like length, in random order."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences side by side, [rows, tokens].

    :param segment: 0 the page, from 1 on the questions, -1 padding.
    :param position: place of a token as its question sees it.
    :param target: the token that comes next, where one counts.
    :param weight: what predicting it counts; 0 for nothing.
    :param path: whether the next token is one of a path.
    """

    tokens: NDArray[np.int64]
    segment: NDArray[np.int8]
    position: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float32]
    path: NDArray[np.bool_]


def lengths(packed: Packed) -> NDArray[np.int64]:
    """Return the tokens of each page part with all of its questions."""
    asks = np.diff(packed.ask_start) + len(packed.tail)
    sums = np.concatenate([[0], np.cumsum(asks)])
    return np.diff(packed.page_start) + sums[packed.first_ask[1:]] - sums[packed.first_ask[:-1]]


def order(packed: Packed, micro_tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Return the page parts of each micro-batch of an epoch; the same for the same seed."""
    sizes = lengths(packed)
    chance = np.random.default_rng([seed, epoch])
    shuffled = chance.permutation(len(packed))
    found: list[NDArray[np.int64]] = []
    for start in range(0, len(shuffled), _POOL):
        pool = shuffled[start : start + _POOL]
        found.extend(_cut(pool[np.argsort(sizes[pool], kind="stable")], sizes, micro_tokens))
    return [found[place] for place in chance.permutation(len(found))]


def _cut(pool: NDArray[np.int64], sizes: NDArray[np.int64], micro_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Cut parts that are sorted by length so that each cut, padded to its longest, holds the tokens at most."""
    start = 0
    for place in range(1, len(pool) + 1):
        if place == len(pool) or (place + 1 - start) * sizes[pool[place]] > micro_tokens:
            yield pool[start:place]
            start = place


def batch(packed: Packed, rows: NDArray[np.int64], hyper: Hyper, chance: np.random.Generator | None = None) -> Batch:
    """Lay page parts with their questions out side by side.

    :param chance: draws the page's tokens that are predicted; none are without it.
    """
    longest = int(lengths_of(packed, rows).max())
    shape = (len(rows), longest)
    found = Batch(
        tokens=np.zeros(shape, np.int64),
        segment=np.full(shape, PADDING, np.int8),
        position=np.zeros(shape, np.int64),
        target=np.zeros(shape, np.int64),
        weight=np.zeros(shape, np.float32),
        path=np.zeros(shape, np.bool_),
    )
    for row, index in enumerate(rows):
        _lay(found, row, packed, int(index), hyper, chance)
    return found


def lengths_of(packed: Packed, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the tokens of some page parts with all of their questions."""
    tail = len(packed.tail)
    own = []
    for index in rows:
        first, last = packed.first_ask[index], packed.first_ask[index + 1]
        asks = packed.ask_start[last] - packed.ask_start[first] + tail * (last - first)
        own.append(packed.page_start[index + 1] - packed.page_start[index] + asks)
    return np.array(own, np.int64)


def _lay(
    found: Batch, row: int, packed: Packed, index: int, hyper: Hyper, chance: np.random.Generator | None
) -> None:
    page = packed.page(index)
    size = len(page)
    found.tokens[row, :size] = page
    found.segment[row, :size] = PAGE
    found.position[row, :size] = np.arange(size)
    if chance is not None and hyper.page_weight and size > 1:
        found.target[row, : size - 1] = page[1:]
        found.weight[row, : size - 1] = hyper.page_weight * (chance.random(size - 1) < hyper.page_share)
    at = size
    for place, number in enumerate(range(packed.first_ask[index], packed.first_ask[index + 1]), 1):
        question, path, content = packed.ask(number)
        whole = np.concatenate([question, path, content])
        end, first = at + len(whole), at + len(question) - 1
        found.tokens[row, at:end] = whole
        found.segment[row, at:end] = place
        found.position[row, at:end] = size + np.arange(len(whole))
        found.target[row, at : end - 1] = whole[1:]
        found.weight[row, first : first + len(path)] = 1.0
        found.path[row, first : first + len(path)] = True
        found.weight[row, first + len(path) : end - 1] = hyper.content_weight
        at = end
