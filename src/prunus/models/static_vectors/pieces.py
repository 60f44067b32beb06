"""Cut texts into words, and words into the pieces that have a vector.

Only letters and digits count. A word between spaces begins with a mark, so that a word and the same letters inside
another word are two pieces; Han and kana, which have no spaces, bear none. The pieces of a word are looked up once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ...core.text.words import SYLLABIC, UNSPACED
from ..encoding import encode

if TYPE_CHECKING:
    from tokenizers import Tokenizer

START: Final = "▁"
"""Begins a word between spaces."""

_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8"
    f"\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff{SYLLABIC}"
)
"""Signs that stand in words, and the scripts whose words consist of letters and signs."""

_WORD: Final = re.compile(rf"[{UNSPACED}々]+|\d+|(?:[^\W\d_{UNSPACED}]|[{_MARKS}])+")
_UNSPACED: Final = re.compile(rf"[{UNSPACED}々\d]")
_UNSEEN: Final = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_KNOWN: Final = 100_000
"""Words whose pieces are kept; beyond them all are forgotten."""

_LONGEST: Final = 64
"""Letters of a word whose pieces are kept; longer ones hardly return, and would hold much memory."""


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case and compatible forms."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_UNSEEN)
    return _WORD.findall(text.lower())


def marked(word: str) -> str:
    """Return a word as the vocabulary knows it."""
    return word if _UNSPACED.match(word) else START + word


class Pieces:
    """Finds the pieces of texts; it may be shared by threads.

    :param tokenizer: knows the pieces.
    :param unknown: its number for what has no piece, which is left out.
    """

    def __init__(self, tokenizer: Tokenizer, unknown: int = 0) -> None:
        self._tokenizer = tokenizer
        self._unknown = unknown
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Yield the numbers of each text's pieces."""
        for start in range(0, len(texts), 256):  # bounded memory: some texts at a time
            parts = [words(text) for text in texts[start : start + 256]]
            known = self._look_up(parts)
            for part in parts:
                yield [piece for word in part for piece in known[word]]

    def _look_up(self, parts: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
        """Return a table that holds every word of some texts; no word ever leaves a table that was returned.

        Long words stand only in the table that is returned.
        """
        known = self._known
        if len(known) > _KNOWN:
            known = self._known = {}
        new = list({word for part in parts for word in part if word not in known})
        long: dict[str, tuple[int, ...]] = {}
        for word, encoding in zip(new, encode(self._tokenizer, [marked(word) for word in new]), strict=True):
            kept = known if len(word) <= _LONGEST else long
            kept[word] = tuple(piece for piece in encoding.ids if piece != self._unknown)
        return known | long if long else known
