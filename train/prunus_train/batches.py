"""Batches of packed samples: the questions about a page part stand behind it, side by side.

A question sees the page and itself, never its neighbours, so that a page is read once for all of its
questions; each question's positions go on from the page's end, as if it stood there alone. This is
what a model sees at inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prunus_train.errors import DataBroken
from prunus_train.packed import Packed, Tokens
from prunus_train.presets import Hyper

PADDING = -1
PAGE = 0

_POOL = 4096
"""Page parts that are sorted by length at a time: batches of like length, in random order."""


_MOST_TOKENS = 1 << 16

_ALIGNED = 16
"""Sequences are padded to a multiple of this: fast attention with a mask asks for it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences side by side, [rows, tokens].

    :param segment: 0 the page, from 1 on the questions, -1 padding.
    :param position: place of a token as its question sees it.
    :param target: the token that comes next, where one counts.
    :param weight: what predicting it counts; 0 for nothing.
    :param path: whether the next token is one of a path.
    :param among: for each token of a path, row by row, which tokens it is chosen among.
    """

    tokens: NDArray[np.int64]
    segment: NDArray[np.int8]
    position: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float32]
    path: NDArray[np.bool_]
    among: list[NDArray[np.int64]] | None = None


def lengths(packed: Packed) -> NDArray[np.int64]:
    """Return the tokens of each page part with all of its questions."""
    return lengths_of(packed, np.arange(len(packed)))


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
    longest = -(-int(lengths_of(packed, rows).max()) // _ALIGNED) * _ALIGNED
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
    if hyper.among_steps:
        return replace(found, among=[one for index in rows for one in choices(packed, int(index))])
    return found


def choices(packed: Packed, index: int) -> list[NDArray[np.int64]]:
    """Return what each step of the paths that are taught is chosen among: what the paths of the blocks leave open.

    These are the branches of the token tree that inference reads (HtmlRAG, Eq. 2).

    :raises DataBroken: the samples do not keep the paths of all blocks.
    """
    below: dict[tuple[int, ...], set[int]] = {}
    known = packed.all_paths(index)
    if not known:
        raise DataBroken("these samples do not keep the paths of all blocks; train without --among-steps")
    for path in known:
        steps = path.tolist()
        for place, step in enumerate(steps):
            below.setdefault(tuple(steps[:place]), set()).add(step)
    found = []
    for number in range(packed.first_ask[index], packed.first_ask[index + 1]):
        steps = packed.ask(number)[1].tolist()
        for place, step in enumerate(steps):
            found.append(np.array(sorted(below.get(tuple(steps[:place]), set()) | {step}), np.int64))
    return found


def lengths_of(packed: Packed, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the tokens of some page parts with all of their questions."""
    first, last = packed.first_ask[rows], packed.first_ask[rows + 1]
    asks = packed.ask_start[last] - packed.ask_start[first] + len(packed.tail) * (last - first)
    own: NDArray[np.int64] = packed.page_start[rows + 1] - packed.page_start[rows] + asks
    return own


def _lay(found: Batch, row: int, packed: Packed, index: int, hyper: Hyper, chance: np.random.Generator | None) -> None:
    page = packed.page(index)
    size = len(page)
    found.tokens[row, :size] = page
    found.segment[row, :size] = PAGE
    found.position[row, :size] = np.arange(size)
    if chance is not None and hyper.page_weight and size > 1:
        found.target[row, : size - 1] = page[1:]
        share: float | NDArray[np.float64] = hyper.page_share
        if packed.names is not None:  # the number behind a tag's name: to know it is to know where one is
            share = np.where(packed.names[page[:-1]], hyper.number_share, hyper.page_share)
        found.weight[row, : size - 1] = hyper.page_weight * (chance.random(size - 1) < share)
    at, counts = size, (1.0, hyper.real_weight, hyper.passage_weight)  # by kind, as in KINDS
    for place, number in enumerate(range(packed.first_ask[index], packed.first_ask[index + 1]), 1):
        question, path, content = packed.ask(number)
        if chance is not None and hyper.vary and packed.kind[number] == 0:
            question = varied(question, content, packed, chance)
        whole = np.concatenate([question, path, content])
        end, first = at + len(whole), at + len(question) - 1
        found.tokens[row, at:end] = whole
        found.segment[row, at:end] = place
        found.position[row, at:end] = size + np.arange(len(whole))
        found.target[row, at : end - 1] = whole[1:]
        found.weight[row, first : first + len(path)] = counts[packed.kind[number]]
        found.path[row, first : first + len(path)] = True
        found.weight[row, first + len(path) : end - 1] = hyper.content_weight
        at = end
    if chance is not None and packed.words is not None and chance.random() < hyper.rename:
        names = renamed(packed.words, chance)
        found.tokens[row] = names[found.tokens[row]]
        found.target[row] = names[found.target[row]]


def renamed(words: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
    """Return another token for each: these words change places, all others stay.

    A page whose words were exchanged throughout, in its questions too, cannot be known by heart: to
    find the block, its words must be found in the page.
    """
    names = np.arange(_MOST_TOKENS)
    names[words] = chance.permutation(words)
    return names


def varied(question: Tokens, content: Tokens, packed: Packed, chance: np.random.Generator) -> Tokens:
    """Return a made question otherwise, so that none comes twice: words dropped, or others of the block in their place.

    It is never longer than before, so that batches keep their size.
    """
    size = len(question) - len(packed.tail)
    own = question[:size]
    if chance.random() < 0.3 and packed.tags is not None:
        plain = content[~packed.tags[content]]
        if len(plain) >= 4 and size >= 3:
            count = int(chance.integers(2, min(size, len(plain)) + 1))
            own = plain[np.sort(chance.choice(len(plain), count, replace=False))]
            return np.concatenate([own, packed.tail])
    keep = chance.random(size) >= 0.15
    return np.concatenate([own[keep] if keep.sum() > 1 else own, packed.tail])
