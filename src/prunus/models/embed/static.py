"""``static`` (default): the average of 256-dimensional vectors of pieces of words, in many languages.

The vectors and their vocabulary ship with Prunus under its own licence (models/static_vectors/NOTICE.txt,
docs/models/static.md): no download, no network, no torch. ``prunus train static`` makes such vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..encoding import packed_tokenizer
from ..static_vectors.pieces import Pieces
from ._mean import mean_vectors

_LOCK = threading.Lock()
_LONGEST: Final = 20_000
"""Most code points of a text that are read; more would hardly change the average."""

IDENTITY: Final = "static-1"
"""Changes with every change of the vectors or of the vocabulary: stored vectors of another one are of no use."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Vectors of pieces, as they are stored.

    :param vectors: int8 [pieces, 256].
    :param scales: what a row is multiplied by, float32 [pieces].
    """

    vectors: NDArray[np.int8]
    scales: NDArray[np.float32]

    def rows(self, pieces: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of pieces, float32 [pieces, 256]."""
        return self.vectors[pieces] * self.scales[pieces, None]


@lru_cache(maxsize=1)
def _load() -> tuple[Table, Pieces]:
    from safetensors.numpy import load_file

    folder = Path(__file__).parents[1] / "static_vectors"
    stored = load_file(str(folder / "vectors.safetensors"))
    table = Table(stored["vectors"], stored["scales"].astype(np.float32))
    return table, Pieces(packed_tokenizer(folder / "tokenizer.json.gz"))


def static_model() -> tuple[Table, Pieces]:
    """Return the vectors and their vocabulary, loaded once for the process and shared (they are thread-safe)."""
    with _LOCK:
        return _load()


class Engine:
    """Embeds texts as the mean of their pieces' vectors, of unit norm; ``model`` has no effect."""

    name = "static"
    dimension = 256
    identity = IDENTITY

    def __init__(self, model: str = "") -> None:
        self._model = model

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return one vector per text, float32 [n, 256] of unit norm; a text without words gets a fixed vector.

        :param kind: static vectors treat queries and documents alike.
        """
        table, pieces = static_model()
        vectors = np.empty((len(texts), self.dimension), np.float32)
        result = pieces.of([text[:_LONGEST] for text in texts])
        for start in range(0, len(texts), 256):  # bounded memory: a slice of texts at a time
            vectors[start : start + 256] = mean_vectors(table.rows, self.dimension, list(islice(result, 256)))
        return vectors
