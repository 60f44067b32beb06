"""Full text for large indexes: for each term the nodes that hold it, in a mapped file; BM25 as SQLite computes it.

SQLite's full text scores every match one by one. Here the scores of a term are one step over arrays. The words are
those that SQLite holds: stemmed, in the fields ``text`` (weight 1) and ``above`` (weight a half). A term that SQLite
cuts in two, such as a number with a point, is found as it is written, and its parts are found, too.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....core.ports import Ints
from .._words import K1, B

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
"""Named arrays, in a mapped file or in memory."""

_PARTS: Final = re.compile(r"[^\W_]+")
_BATCH: Final = 1 << 22
"""Words that are sorted at a time; bounds the memory."""
_FEWEST: Final = 1e-6
"""SQLite's weight of a term that more than half of the nodes hold."""


def hash_of(term: str) -> int:
    """Return the number of a term in the file; two terms share one once in billions of billions of times."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


class _Numbers(dict[str, int]):
    """The number of each term, in the order in which they are first asked for; and the parts of terms that have any."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[int, list[int]] = {}

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        parts = _PARTS.findall(word)
        if parts != [word]:
            self.parts[number] = [self[part] for part in parts]
        return number


class Postings:
    """Collects the words of nodes; :meth:`arrays` gives the arrays of the file.

    :param name: begins the names of the arrays.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = _Numbers()
        self._terms: list[int] = []
        self._counts: list[int] = []
        self._sizes: list[NDArray[np.int64]] = []
        self._nodes = 0
        self._done: list[tuple[Ints, NDArray[np.int32], NDArray[np.uint8]]] = []

    def add(self, text: str, above: str) -> None:
        """Add the next node: its stemmed words, with spaces between."""
        for field in (text, above):
            words = field.split()
            self._terms.extend(map(self._numbers.__getitem__, words))
            self._counts.append(len(words))
        if len(self._terms) >= _BATCH:
            self._sort()

    def _sort(self) -> None:
        """Turn the words collected so far into postings: sorted by term, then by node."""
        counts = np.asarray(self._counts, np.int64)
        node = np.repeat(np.arange(len(counts)) // 2, counts)
        above = np.repeat(np.arange(len(counts)) % 2, counts)
        terms = np.asarray(self._terms, np.int64)
        sizes = counts.reshape(-1, 2).sum(axis=1)
        cut = np.flatnonzero(np.isin(terms, [*self._numbers.parts])).tolist()
        parts = [self._numbers.parts[number] for number in terms[cut].tolist()]
        many = np.asarray([len(numbers) for numbers in parts], np.int64)
        np.add.at(sizes, node[cut], many - 1)
        terms = np.concatenate([terms, np.asarray([number for numbers in parts for number in numbers], np.int64)])
        node = np.concatenate([node, np.repeat(node[cut], many)]) + self._nodes
        above = np.concatenate([above, np.repeat(above[cut], many)])
        keys = np.sort((terms << 33) | (node << 1) | above)
        pairs, start = np.unique(keys >> 1, return_index=True)
        twice = np.add.reduceat(2 - (keys & 1), start) if len(keys) else keys
        halves = np.minimum(twice, 255).astype(np.uint8)
        self._done.append((pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32), halves))
        self._sizes.append(sizes)
        self._nodes += len(sizes)
        self._terms, self._counts = [], []

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays: hashes of terms, where their postings end, nodes and frequencies, sizes of nodes."""
        self._sort()
        counts = np.zeros(len(self._numbers), np.int64)
        for terms, _, _ in self._done:
            counts += np.bincount(terms, minlength=len(counts))
        hashes = np.fromiter((hash_of(word) for word in self._numbers), np.uint64, len(self._numbers))
        order = np.argsort(hashes, kind="stable")
        ends = np.cumsum(counts[order])
        filled = np.empty(len(counts), np.int64)
        filled[order] = ends - counts[order]
        nodes, twice = np.empty(int(counts.sum()), np.int32), np.empty(int(counts.sum()), np.uint8)
        for terms, items, halves in self._done:
            used, start, many = np.unique(terms, return_index=True, return_counts=True)
            places = np.repeat(filled[used] - start, many) + np.arange(len(terms))
            nodes[places], twice[places] = items, halves
            filled[used] += many
        self._done = []
        sizes = np.concatenate(self._sizes).astype(np.int32)
        made: dict[str, NDArray[Any]] = {
            "hashes": hashes[order],
            "ends": ends,
            "nodes": nodes,
            "twice": twice,
            "sizes": sizes,
        }
        return {f"{self._name}_{name}": array for name, array in made.items()}


class Lexicon:
    """The postings of one kind of nodes.

    :param name: begins the names of the arrays.
    :param like: whose weights of terms and mean length are taken; by default its own.
    """

    def __init__(self, file: Arrays, name: str, like: Lexicon | None = None) -> None:
        self._file, self._name = file, name
        self._hashes, self._ends = file[f"{name}_hashes"], file[f"{name}_ends"]
        self._like = like or self
        sizes = file[f"{name}_sizes"]
        self.count = len(sizes)
        self._mean_size = float(sizes.mean(dtype=np.float64)) if len(sizes) else 0.0
        self._norms = (K1 * (1 - B + B * sizes / (self._like._mean_size or 1.0))).astype(np.float32)

    def scores(self, terms: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return the BM25 score of every node, float32 [nodes]; and the nodes with a term, some more than once."""
        scores = np.zeros(self.count, np.float32)
        matched = [np.zeros(0, np.int32)]
        for term in terms:
            start, stop = self._place(term)
            nodes = self._file[f"{self._name}_nodes"][start:stop]
            frequency = self._file[f"{self._name}_twice"][start:stop] * np.float32(0.5)
            weight = np.float32(self._like._weight(term) * (K1 + 1))
            scores[nodes] += weight * frequency / (frequency + self._norms[nodes])
            matched.append(nodes)
        return scores, np.concatenate(matched)

    def _place(self, term: str) -> tuple[int, int]:
        """Return where the postings of a term start and end."""
        wanted = np.uint64(hash_of(term))
        place = int(np.searchsorted(self._hashes, wanted))
        if place == len(self._hashes) or self._hashes[place] != wanted:
            return 0, 0
        return int(self._ends[place - 1]) if place else 0, int(self._ends[place])

    def _weight(self, term: str) -> float:
        start, stop = self._place(term)
        holding = stop - start
        return max(_FEWEST, math.log((self.count - holding + 0.5) / (holding + 0.5)))
