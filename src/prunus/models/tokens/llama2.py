"""``llama2``: counts tokens as Llama-2 does, without special tokens; its file is in the wheel of ``wordllama``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..encoding import encode
from ..wordllama import llama2_tokenizer


class Engine:
    """Counts tokens with the Llama-2 tokenizer.

    :raises MissingExtra: the package wordllama is not installed, at the first count.
    """

    name = "llama2"

    def __init__(self, model: str = "") -> None:
        self._model = model

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, shape [n]."""
        encodings = encode(llama2_tokenizer(), texts)
        return np.fromiter((len(encoding) for encoding in encodings), np.int64, len(texts))
