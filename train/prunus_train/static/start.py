"""The table that fitting begins with: each piece has the teachers' vector of its letters, weighted by its frequency."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from prunus.core.ports import Embedder
from prunus.models.static_vectors.pieces import START
from prunus_train.static.space import Space, centred
from prunus_train.static.teachers import embedded

_COMMON: Final = 1e-4
"""A piece with this share of all pieces weighs half as much as a rare one (SIF)."""


def table(
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
    return found * weights(counts)[:, None]


def weights(counts: NDArray[np.int64]) -> NDArray[np.float32]:
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
