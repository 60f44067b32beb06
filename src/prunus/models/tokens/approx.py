"""``approx``: an estimate of tokens that needs no model file; named for what it is.

A letter of Han or kana counts one token, other text one token for each four code points, each
punctuation mark and digit one: within about a fifth of current tokenizers on European languages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.text.words import UNSPACED

_PIECE = re.compile(rf"[{UNSPACED}]|\d|[^\W\d_]{{1,4}}|[^\w\s]+|_|\n+")


class Engine:
    """Estimates token counts without a tokenizer."""

    name = "approx"

    def __init__(self, model: str = "") -> None:
        self._model = model

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the approximate number of tokens of each text, shape [n]."""
        return np.fromiter((sum(1 for _ in _PIECE.finditer(text)) for text in texts), np.int64, len(texts))
