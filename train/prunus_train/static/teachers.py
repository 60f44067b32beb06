"""The vectors of the teachers, which are made once, kept on disk, and go on where they stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from prunus.core.ports import Embedder

_PART: Final = 256
"""Texts of a part, which is written whole."""


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
