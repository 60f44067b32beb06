"""``smollm2`` (default): counts tokens as the SmolLM2 models do; special tokens are plain text.

The vocabulary is that of SmolLM2 (Apache-2.0, models/smollm2/NOTICE.txt): 49,152 tokens of bytes; each digit is one. A
text is cut into words, digits, marks and spaces before pieces are joined, so that its count is the sum of the counts of
its parts. Parts return all the time, and each is counted once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..encoding import encode
from ..smollm2.tokenizer import smollm2_tokenizer

_LOCK = threading.Lock()
_NUMBERS: Final = (
    "\u00b2-\u00b3\u00b9\u00bc-\u00be\u09f4-\u09f9\u0b72-\u0b77\u0bf0-\u0bf2\u0c78-\u0c7e\u0d58-\u0d5e"
    "\u0d70-\u0d78\u0f2a-\u0f33\u1369-\u137c\u16ee-\u16f0\u17f0-\u17f9\u19da\u2070\u2074-\u2079\u2080-\u2089"
    "\u2150-\u2182\u2185-\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u2cfd\u3007\u3021-\u3029\u3038-\u303a"
    "\u3192-\u3195\u3220-\u3229\u3248-\u324f\u3251-\u325f\u3280-\u3289\u32b1-\u32bf\ua6e6-\ua6ef\ua830-\ua835"
)
"""Numbers beside the decimal digits (Nl and No of Unicode), as a class of a pattern."""

_SPACE: Final = "\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LETTER: Final = rf"[^\W\d_{_NUMBERS}]"
_PART: Final = re.compile(
    rf"[\d{_NUMBERS}]|'(?:s|t|re|ve|m|ll|d)| ?{_LETTER}+| ?(?:[^\w{_SPACE}]|_)+"
    rf"|[{_SPACE}]+(?![^{_SPACE}\d{_NUMBERS}])|[{_SPACE}]+"
)
"""The cuts that the tokenizer makes first."""

_RARE: Final = re.compile("[\U00010000-\U0010ffff\ud800-\udfff]")
"""Letters whose classes differ between versions of Unicode, and lone surrogates: the tokenizer cuts these texts."""

_TEXTS: Final = 512
"""Texts that are cut at once."""
_KNOWN: Final = 200_000
"""Parts whose counts are kept; beyond them all are forgotten."""

_LONGEST: Final = 64
"""Letters of a part whose count is kept; longer ones hardly return, and would hold much memory."""


class _Counted:
    """The tokenizer, and the counts of the parts that were met."""

    def __init__(self) -> None:
        self.tokenizer = smollm2_tokenizer()
        self.known: dict[str, int] = {}

    def table(self, parts: Sequence[Sequence[str]]) -> dict[str, int]:
        """Return a table that holds the count of every part; nothing ever leaves a table that was returned.

        Long parts stand only in the table that is returned.
        """
        known = self.known
        if len(known) > _KNOWN:
            known = self.known = {}
        new = list({part for cut in parts for part in cut if part not in known})
        if not new:
            return known
        counts = dict(zip(new, map(len, encode(self.tokenizer, new)), strict=True))
        known.update((part, count) for part, count in counts.items() if len(part) <= _LONGEST)
        return known if max(map(len, new)) <= _LONGEST else known | counts


@lru_cache(maxsize=1)
def _load() -> _Counted:
    return _Counted()


class Engine:
    """Counts tokens with the tokenizer of SmolLM2; ``model`` has no effect."""

    name = "smollm2"

    def __init__(self, model: str = "") -> None:
        self._model = model

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, shape [n]."""
        result = np.empty(len(texts), np.int64)
        for start in range(0, len(texts), _TEXTS):
            result[start : start + _TEXTS] = self._counts(texts[start : start + _TEXTS])
        return result

    def _counts(self, texts: Sequence[str]) -> list[int]:
        parts = [[text] if _RARE.search(text) else _PART.findall(text) for text in texts]
        with _LOCK:
            counted = _load()  # every engine of the process adds to one table
        known = counted.table(parts)
        return [sum(map(known.__getitem__, cut)) for cut in parts]
