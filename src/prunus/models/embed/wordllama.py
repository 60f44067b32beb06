"""``wordllama``: the average of 256-dimensional static token embeddings from the wheel of ``wordllama``.

The weights and the tokenizer are read directly with ``safetensors`` and ``tokenizers``: no download, no network, no
torch. They were the default before ``static`` was made. The vectors are distilled from the token embeddings of
Llama-2 70B and Phi-3-medium; ``prunus doctor`` states their licence.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..encoding import encode
from ..wordllama import llama2_tokenizer, wheel_file
from ._mean import mean_vectors

_LOCK = threading.Lock()
_LONGEST = 20_000
"""Most code points of a text that are read; more would hardly change the average."""


@lru_cache(maxsize=1)
def _load() -> NDArray[np.float32]:
    from safetensors.numpy import load_file

    return load_file(str(wheel_file("weights", "l2_supercat_256.safetensors")))["embedding.weight"].astype(np.float32)


def _table() -> NDArray[np.float32]:
    with _LOCK:
        return _load()


class Engine:
    """Embeds texts as the mean of their tokens' static vectors, of unit norm."""

    name = "wordllama"
    dimension = 256
    identity = "static"  # the name of these vectors in the indexes that were built with them

    def __init__(self, model: str = "") -> None:
        self._model = model

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return one vector per text, float32 [n, 256] of unit norm; an empty text gets a fixed vector.

        :param kind: static vectors treat queries and documents alike.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        encodings = encode(llama2_tokenizer(), [text[:_LONGEST] for text in texts])
        for start in range(0, len(texts), 256):  # bounded memory: a slice of texts at a time
            vectors[start : start + 256] = self.pool([encoding.ids for encoding in islice(encodings, 256)])
        return vectors

    def pool(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Average and normalise the vectors of token ids, float32 [n, 256]."""
        return mean_vectors(_table().__getitem__, self.dimension, ids)
