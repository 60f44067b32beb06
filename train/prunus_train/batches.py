"""Batches of packed samples: a sequence is a page part followed by all questions about it.

A question attends to the page and to itself, but not to the other questions, so that the model reads a page once for
all of its questions. The positions of each question continue at the page's end, as if it were the only question. This
is what a model sees at inference.
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
"""Number of page parts that are sorted by length together: batches have similar lengths, but a random order."""

_MOST_TOKENS = 1 << 16
"""Bound of a vocabulary whose words can be renamed."""

_ALIGNED = 16
"""Sequences are padded to a multiple of this length, which fast attention with a mask requires."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of sequences; all arrays are [rows, tokens].

    :param segment: 0 for the page, 1, 2, … for the questions, -1 for padding.
    :param position: position of a token, as its question sees it.
    :param target: the next token, where ``weight`` is above 0.
    :param weight: weight of predicting the target in the loss; 0 where it does not count.
    :param path: whether the target is a token of a path.
    :param among: the tokens to choose from, for each token of a path, row by row; None: the whole vocabulary.
    """

    tokens: NDArray[np.int64]
    segment: NDArray[np.int8]
    position: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float32]
    path: NDArray[np.bool_]
    among: list[NDArray[np.int64]] | None = None


def lengths(packed: Packed) -> NDArray[np.int64]:
    """Return the number of tokens of each page part with all of its questions."""
    return lengths_of(packed, np.arange(len(packed)))


def order(packed: Packed, micro_tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Return the indexes of the page parts of each micro-batch of an epoch; the same for the same seed.

    :param micro_tokens: tokens of a micro-batch at most, padding included.
    """
    sizes = lengths(packed)
    chance = np.random.default_rng([seed, epoch])
    shuffled = chance.permutation(len(packed))
    found: list[NDArray[np.int64]] = []
    for start in range(0, len(shuffled), _POOL):
        pool = shuffled[start : start + _POOL]
        found.extend(_cut(pool[np.argsort(sizes[pool], kind="stable")], sizes, micro_tokens))
    return [found[place] for place in chance.permutation(len(found))]


def _cut(pool: NDArray[np.int64], sizes: NDArray[np.int64], micro_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Cut parts, sorted by length, into micro-batches of at most ``micro_tokens`` tokens, padding included."""
    start = 0
    for place in range(1, len(pool) + 1):
        if place == len(pool) or (place + 1 - start) * sizes[pool[place]] > micro_tokens:
            yield pool[start:place]
            start = place


def batch(packed: Packed, rows: NDArray[np.int64], hyper: Hyper, chance: np.random.Generator | None = None) -> Batch:
    """Return the batch of some page parts.

    :param rows: indexes of the page parts.
    :param chance: draws the tokens of the page that count in the loss, and varies made questions; None for
        validation, where neither happens.
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
        _fill_row(found, row, packed, int(index), hyper, chance)
    if hyper.among_steps:
        return replace(found, among=[tokens for index in rows for tokens in choices(packed, int(index))])
    return found


def choices(packed: Packed, index: int) -> list[NDArray[np.int64]]:
    """Return the tokens to choose from at each step of the taught paths: those with which a block's path continues.

    These are the branches of the token tree that inference scores (HtmlRAG, Eq. 2).

    :raises DataBroken: the samples do not hold the paths of all blocks.
    """
    below: dict[tuple[int, ...], set[int]] = {}
    known = packed.all_paths(index)
    if not known:
        raise DataBroken("these samples do not hold the paths of all blocks; train without --among-steps")
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
    """Return the number of tokens of some page parts with all of their questions."""
    first, last = packed.first_ask[rows], packed.first_ask[rows + 1]
    asks = packed.ask_start[last] - packed.ask_start[first] + len(packed.tail) * (last - first)
    total: NDArray[np.int64] = packed.page_start[rows + 1] - packed.page_start[rows] + asks
    return total


def _fill_row(
    found: Batch, row: int, packed: Packed, index: int, hyper: Hyper, chance: np.random.Generator | None
) -> None:
    """Write a page part and its questions into a row of a batch."""
    page = packed.page(index)
    size = len(page)
    found.tokens[row, :size] = page
    found.segment[row, :size] = PAGE
    found.position[row, :size] = np.arange(size)
    if chance is not None and hyper.page_weight and size > 1:
        found.target[row, : size - 1] = page[1:]
        share: float | NDArray[np.float64] = hyper.page_share
        if (
            packed.names is not None
        ):  # the number after a tag's name is the place in the page: worth more training than other tokens
            share = np.where(packed.names[page[:-1]], hyper.number_share, hyper.page_share)
        found.weight[row, : size - 1] = hyper.page_weight * (chance.random(size - 1) < share)
    at, counts = size, (1.0, hyper.real_weight, hyper.passage_weight)  # by kind, as in KINDS
    for place, number in enumerate(range(packed.first_ask[index], packed.first_ask[index + 1]), 1):
        question, path, content = packed.ask(number)
        if chance is not None and hyper.vary and packed.kind[number] == 0:
            question = varied(question, content, packed, chance)
        sequence = np.concatenate([question, path, content])
        end, first = at + len(sequence), at + len(question) - 1
        found.tokens[row, at:end] = sequence
        found.segment[row, at:end] = place
        found.position[row, at:end] = size + np.arange(len(sequence))
        found.target[row, at : end - 1] = sequence[1:]
        found.weight[row, first : first + len(path)] = counts[packed.kind[number]]
        found.path[row, first : first + len(path)] = True
        found.weight[row, first + len(path) : end - 1] = hyper.content_weight
        at = end
    if chance is not None and packed.words is not None and chance.random() < hyper.rename:
        names = renamed(packed.words, chance)
        found.tokens[row] = names[found.tokens[row]]
        found.target[row] = names[found.target[row]]


def renamed(words: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
    """Return a permutation of the tokens: these words are exchanged for each other, all other tokens stay.

    It is applied to a page and its questions. The model cannot memorise such a page: to find the block, it must find
    the question's words in the page.
    """
    names = np.arange(_MOST_TOKENS)
    names[words] = chance.permutation(words)
    return names


def varied(question: Tokens, content: Tokens, packed: Packed, chance: np.random.Generator) -> Tokens:
    """Return a variation of a made question, so that no question repeats: with words dropped, or other block words.

    It is never longer than the original, so that batches keep their size.
    """
    size = len(question) - len(packed.tail)
    words = question[:size]
    if chance.random() < 0.3 and packed.tags is not None:
        plain = content[~packed.tags[content]]
        if len(plain) >= 4 and size >= 3:
            count = int(chance.integers(2, min(size, len(plain)) + 1))
            words = plain[np.sort(chance.choice(len(plain), count, replace=False))]
            return np.concatenate([words, packed.tail])
    keep = chance.random(size) >= 0.15
    return np.concatenate([words[keep] if keep.sum() > 1 else words, packed.tail])
