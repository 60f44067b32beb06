"""The space that the static vectors live in, and the table of vectors that fitting begins with.

The teachers' spaces stand side by side, turned and shortened. One teacher knows English only, the other a hundred
languages. Where a text has the vector of one alone, a linear map that was learned from English texts with both gives
the other. So all languages share one space.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from prunus.core.ports import Embedder
from prunus.models.static_vectors.pieces import START

Vectors = NDArray[np.float32]

_PART: Final = 256
"""Texts of a part, which is written whole."""

_COMMON: Final = 1e-4
"""A piece with this share of all pieces weighs half as much as a rare one (SIF)."""


def embedded(
    teacher: Embedder,
    texts: Sequence[str],
    kind: Literal["query", "document"],
    folder: Path,
    report: Callable[[int, int], None],
) -> NDArray[np.float32]:
    """Return the vectors of texts by a teacher, float32 [texts, dimensions]; parts that are on disk are read.

    :param folder: where the parts are kept, each by the digest of its texts.
    :param report: is told how many texts are done, and how many there are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for start in range(0, len(texts), _PART):
        part = texts[start : start + _PART]
        path = folder / f"{_digest(teacher, part, kind)}.npy"
        if path.is_file():
            parts.append(np.load(path))
        else:
            vectors = teacher.embed(part, kind).astype(np.float16)
            unfinished = path.with_suffix(".part")
            with unfinished.open("wb") as file:
                np.save(file, vectors)
            unfinished.replace(path)
            parts.append(vectors)
        report(min(start + _PART, len(texts)), len(texts))
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros((0, teacher.dimension), np.float32)


def _digest(teacher: Embedder, texts: Sequence[str], kind: str) -> str:
    told = "\0".join((teacher.identity, kind, *texts))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def centred(vectors: Vectors, groups: NDArray[np.int64]) -> Vectors:
    """Subtract the mean of each group of texts, and scale to unit norm.

    :param groups: number of each text's group (its language and kind), int64 [texts].
    """
    found = vectors.copy()
    if not len(found):
        return found
    overall = vectors.mean(0)
    for group in np.unique(groups):
        members = groups == group
        share = min(1.0, members.sum() / 100)  # the mean of a few texts says more of them than of their language
        found[members] -= share * vectors[members].mean(0) + (1 - share) * overall
    return unit(found)


def unit(vectors: Vectors) -> Vectors:
    """Scale to unit norm; a zero vector stays."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms == 0, 1, norms), np.float32)


def linear(source: Vectors, target: Vectors, strength: float = 0.02) -> Vectors:
    """Return the map [source, target] of least squares with a penalty.

    :param strength: of the penalty, as a share of the number of texts per dimension of unit variance.
    """
    gram = source.T.astype(np.float64) @ source
    gram += strength * len(source) / source.shape[1] * np.eye(len(gram)) * 10
    return np.asarray(np.linalg.solve(gram, source.T.astype(np.float64) @ target), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Turns teachers' vectors into targets.

    :param to_second: map from the first teacher's space to the second's.
    :param to_first: the other way.
    :param axes: principal axes of both side by side, [first + second, dimensions].
    """

    to_second: Vectors
    to_first: Vectors
    axes: Vectors

    def first(self, vectors: Vectors) -> Vectors:
        """Return targets for texts with vectors of the first teacher."""
        return unit(_beside(vectors, unit(vectors @ self.to_second)) @ self.axes)

    def second(self, vectors: Vectors) -> Vectors:
        """Return targets for texts with vectors of the second teacher."""
        return unit(_beside(unit(vectors @ self.to_first), vectors) @ self.axes)

    def both(self, first: Vectors, second: Vectors) -> Vectors:
        """Return targets for texts with vectors of both teachers."""
        return unit(_beside(first, second) @ self.axes)


def learn(both: tuple[Vectors, Vectors], first: Vectors, second: Vectors, dimensions: int) -> Space:
    """Learn the space.

    :param both: vectors of texts by both teachers.
    :param first, second: vectors of texts by one teacher alone, as many as the other's for equal weight.
    """
    there, back = linear(*both), linear(both[1], both[0])
    everything = np.concatenate(
        [_beside(*both), _beside(first, unit(first @ there)), _beside(unit(second @ back), second)]
    )
    spread = everything.T.astype(np.float64) @ everything
    axes = np.linalg.eigh(spread)[1][:, ::-1][:, :dimensions]
    return Space(there, back, np.asarray(axes, np.float32))


def _beside(first: Vectors, second: Vectors) -> Vectors:
    return np.concatenate([first, second], axis=1)


def first_table(
    tokenizer: Tokenizer,
    counts: NDArray[np.int64],
    teachers: tuple[Embedder, Embedder],
    space: Space,
    folder: Path,
    report: Callable[[int, int], None],
) -> NDArray[np.float32]:
    """Return the first vectors of all pieces, float32 [pieces, dimensions].

    :param counts: how often each piece stands in the passages.
    :param teachers: the first knows English alone, and tells pieces of ASCII; the second tells the others.
    """
    letters = [str(tokenizer.id_to_token(number)).removeprefix(START) for number in range(tokenizer.get_vocab_size())]
    found = np.zeros((len(letters), space.axes.shape[1]), np.float32)
    ascii_ = np.asarray([text.isascii() for text in letters])
    for teacher, chosen, target in ((teachers[0], ascii_, space.first), (teachers[1], ~ascii_, space.second)):
        rows = np.flatnonzero(chosen)
        vectors = embedded(teacher, [letters[row] or " " for row in rows], "query", folder, report)
        found[rows] = target(centred(vectors, _scripts([letters[row] for row in rows])))
    return found * piece_weights(counts)[:, None]


def piece_weights(counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the weight of each piece, 0 to 1: common ones say little."""
    shares = counts / max(int(counts.sum()), 1)
    return np.asarray(_COMMON / (_COMMON + shares), np.float32)


def counted(ids: Sequence[Sequence[int]], size: int) -> NDArray[np.int64]:
    """Return how often each piece stands in texts."""
    flat = np.concatenate([np.asarray(row, np.int64) for row in ids]) if ids else np.zeros(0, np.int64)
    return np.bincount(flat, minlength=size)


def _scripts(pieces: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for the script of each piece: the teacher's vectors of a script have much in common."""
    numbers: dict[str, int] = {}
    names = (unicodedata.name(piece[:1], "").split(" ")[0] for piece in pieces)
    return np.asarray([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
