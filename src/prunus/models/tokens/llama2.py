"""``llama2`` (default): counts tokens as Llama-2 does, without special tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..wordllama import encode, llama2_tokenizer


class Engine:
    """Counts tokens with the Llama-2 tokenizer."""

    name = "llama2"

    def __init__(self, model: str = "") -> None:
        self._model = model

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, shape [n]."""
        encodings = encode(llama2_tokenizer(), texts)
        return np.fromiter((len(encoding) for encoding in encodings), np.int64, len(texts))
