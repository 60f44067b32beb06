"""``approx``: an estimate of token counts that needs no vocabulary.

A letter of Han or kana and a digit count one token each, other words one token per four letters, a run of
punctuation one token. The estimate is within about a third of current tokenizers on European languages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.text.words import UNSPACED

_PIECE = re.compile(rf"[{UNSPACED}]|\d|[^\W\d_]{{1,4}}|[^\w\s]+|_|\n+")


class Engine:
    """Estimates token counts without a tokenizer; ``model`` has no effect."""

    name = "approx"

    def __init__(self, model: str = "") -> None:
        self._model = model

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the approximate number of tokens of each text, shape [n]."""
        return np.fromiter((sum(1 for _ in _PIECE.finditer(text)) for text in texts), np.int64, len(texts))
