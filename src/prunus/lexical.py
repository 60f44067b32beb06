"""BM25 over token lists: words cut and stemmed by language, Han and kana as letters and pairs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import Stemmer

from .text import SYLLABIC, UNSPACED

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKEN: Final = re.compile(rf"\d+(?:[.,]\d+)*|[{UNSPACED}]+|[{SYLLABIC}]+|[^\W_]+")
_UNSPACED_RUN: Final = re.compile(f"[{UNSPACED}{SYLLABIC}]")

_STEMMERS: Final = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

_SAME: Final = 10_000
"""Texts that are remembered while an index is built, for those that come more than once."""

QUERY_NOISE: Final = frozenset(
    """a an and any are as at be been being by can could did do does for from had has have he her his how i
    if in into is it its me much many my of on or our please she should so tell than that the their them
    there these they this those to us was we were what when where which who whom whose why will with
    would you your der die das ein eine ist sind war waren wer wie was wann wo welche welcher welches
    von mit und oder im in den dem le la les un une des est sont qui que quel quelle quels quelles quand
    où comment combien de du et ou dans el los las una es son quién qué cuál cuándo dónde cómo cuánto
    cuántos y en del por para""".split()
)
"""Words of a question that say nothing about its subject; dropped from queries, never from blocks."""


@lru_cache(maxsize=32)
def _stemmer(language: str) -> Any:
    """Return the stemmer of a language, None where there is none."""
    name = _STEMMERS.get(language[:2].lower())
    return Stemmer.Stemmer(name) if name else None


def tokens(text: str) -> list[str]:
    """Cut text into lower-case tokens; runs without spaces become letters and pairs of letters."""
    found = cast("list[str]", _TOKEN.findall(text.lower()))
    if text.isascii():
        return found
    result: list[str] = []
    for token in found:
        if _UNSPACED_RUN.match(token):
            result.extend(token)
            result.extend(token[i : i + 2] for i in range(len(token) - 1))
        else:
            result.append(token)
    return result


def stem(words: Sequence[str], language: str = "en") -> list[str]:
    """Stem lower-case words; a language without a stemmer leaves them as they are."""
    stemmer = _stemmer(language)
    return list(words) if stemmer is None else cast("list[str]", stemmer.stemWords(list(words)))


def query_terms(query: str, language: str = "en") -> list[str]:
    """Return the stemmed terms of a query, without words that say nothing; all of them if none is left."""
    words = tokens(query)
    telling = [word for word in words if word not in QUERY_NOISE]
    return stem(telling or words, language)


class BM25:
    """An index over short texts with an optional weaker field each (BM25F with two fields).

    :param texts: one text for each item.
    :param above: what stands above each item (headings, caption), counted at ``above_weight``.
    :param language: ISO 639-1 code, for the stemmer.
    :param k1, b: the usual parameters of BM25.
    """

    def __init__(
        self,
        texts: Sequence[str],
        above: Sequence[str] = (),
        *,
        language: str = "en",
        above_weight: float = 0.5,
        k1: float = 1.2,
        b: float = 0.75,
    ) -> None:
        self.language = language
        self.size = len(texts)
        self._vocabulary: dict[str, int] = {}
        weights = self._fields(texts, 1.0)
        if above:
            weights = self._merged(weights, self._fields(above, above_weight))
        self._index(weights, k1, b)

    def _fields(self, texts: Sequence[str], weight: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Count one field: sorted keys item × vocabulary, with weighted term frequencies."""
        raw: dict[str, int] = {}
        ids: list[int] = []
        lengths: list[int] = []
        same: dict[str, list[int]] = {}
        for text in texts:
            known = same.get(text)
            if known is None:
                known = [raw.setdefault(token, len(raw)) for token in tokens(text)]
                if len(same) < _SAME:
                    same[text] = known
            ids.extend(known)
            lengths.append(len(known))
        stems = stem(list(raw), self.language)
        vocabulary = self._vocabulary
        to_stem = np.fromiter((vocabulary.setdefault(s, len(vocabulary)) for s in stems), np.int64, len(stems))
        item = np.repeat(np.arange(len(lengths)), lengths)
        keys = (item << 32) | (to_stem[np.asarray(ids, np.int64)] if ids else np.zeros(0, np.int64))
        unique, counts = np.unique(keys, return_counts=True)
        return unique, counts.astype(np.float64) * weight

    @staticmethod
    def _merged(
        one: tuple[NDArray[np.int64], NDArray[np.float64]], other: tuple[NDArray[np.int64], NDArray[np.float64]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Add up two fields."""
        keys, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
        return keys.astype(np.int64), np.bincount(place, np.concatenate([one[1], other[1]]), len(keys)).astype(
            np.float64
        )

    def _index(self, weights: tuple[NDArray[np.int64], NDArray[np.float64]], k1: float, b: float) -> None:
        """Turn counts into postings by term: items, and their saturated term frequencies."""
        keys, frequency = weights
        items, terms = keys >> 32, keys & 0xFFFFFFFF
        length = np.bincount(items, frequency, self.size) if self.size else np.zeros(0)
        average = float(length.mean()) if self.size and length.any() else 1.0
        norm = k1 * (1 - b + b * length / average)
        saturated = frequency * (k1 + 1) / (frequency + norm[items])
        order = np.argsort(terms, kind="stable")
        self._items, self._saturated = items[order], saturated[order]
        self._bounds = np.searchsorted(terms[order], np.arange(len(self._vocabulary) + 1))

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a stemmed term (never negative)."""
        number = self._vocabulary.get(term)
        found = 0 if number is None else int(self._bounds[number + 1] - self._bounds[number])
        return math.log(1 + (self.size - found + 0.5) / (found + 0.5))

    def items(self, term: str) -> NDArray[np.int64]:
        """Return the items that hold a stemmed term, in order."""
        number = self._vocabulary.get(term)
        return self._items[self._bounds[number] : self._bounds[number + 1]] if number is not None else self._items[:0]

    def holds(self, item: int, term: str) -> bool:
        """Tell whether an item holds a stemmed term."""
        return bool((self.items(term) == item).any())

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the BM25 score of each item for a query; 0 where no term occurs."""
        result = np.zeros(self.size)
        for term in dict.fromkeys(query_terms(query, self.language)):
            number = self._vocabulary.get(term)
            if number is None:
                continue
            part = slice(self._bounds[number], self._bounds[number + 1])
            result[self._items[part]] += self.idf(term) * self._saturated[part]
        return result
