"""``llama2`` (default): tokens as Llama-2 counts them, no special tokens added."""

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
        found = encode(llama2_tokenizer(), texts)
        return np.fromiter((len(one) for one in found), np.int64, len(texts))
