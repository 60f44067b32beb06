"""BM25 over token lists: words cut and stemmed by language, Han and kana as letters and pairs."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import Stemmer

from .text import SYLLABIC, UNSPACED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counted = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]

_TOKEN: Final = re.compile(rf"\d+(?:[.,]\d+)*|[{UNSPACED}]+|[{SYLLABIC}]+|[^\W_]+")
_UNSPACED_RUN: Final = re.compile(f"[{UNSPACED}{SYLLABIC}]")

_STEMMERS: Final = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

_PART: Final = 8_192
_PART_LETTERS: Final = 1_000_000
"""Texts that are counted at once, and their letters; what has been counted takes a small part of the memory that
counting takes."""

_SLICE: Final = 1 << 18
"""Frequencies that are saturated at once."""

_NO_ITEMS: Final = np.zeros(0, np.int32)
_NO_TERMS: Final = np.zeros(0, np.int64)

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


def _parts(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first of the texts that are counted at once, and the one after the last."""
    first, letters = 0, 0
    for place, text in enumerate(texts):
        letters += len(text)
        if place + 1 - first == _PART or letters > _PART_LETTERS:
            yield first, place + 1
            first, letters = place + 1, 0
    if first < len(texts):
        yield first, len(texts)


class BM25:
    """An index over short texts with an optional weaker field each (BM25F with two fields).

    :param texts: one text for each item.
    :param above: what stands above each item (headings, caption), counted at ``above_weight``.
    :param language: ISO 639-1 code, for the stemmer.
    :param k1, b: the usual parameters of BM25.

    Terms are known by 64-bit hashes: a large page holds millions of numbers and names, each once, and a string for
    each would take twenty times its place in the page. That any two of a million terms share one is less likely than
    one in thirty million.
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
        fields = [(texts, 1.0), (above, above_weight)] if above else [(texts, 1.0)]
        counted = [self._count(fields, first, stop) for first, stop in _parts(texts)]
        self._index(counted, k1, b)

    def _count(self, fields: Sequence[tuple[Sequence[str], float]], first: int, stop: int) -> Counted:
        """Count some texts: items and terms of each pair that occurs, weighted term frequencies; the terms' hashes.

        :param fields: texts of all items, and what a term in them weighs.
        :param first, stop: the items that are counted.
        """
        raw: dict[str, int] = {}
        found: list[tuple[NDArray[np.int64], NDArray[np.int64], float]] = []  # items, words, and what one weighs
        for texts, weight in fields:
            ids: list[int] = []
            lengths: list[int] = []
            same: dict[str, list[int]] = {}
            for text in texts[first:stop]:
                known = same.get(text)
                if known is None:
                    known = same[text] = [raw.setdefault(token, len(raw)) for token in tokens(text)]
                ids.extend(known)
                lengths.append(len(known))
            item = np.repeat(np.arange(first, first + len(lengths)), lengths)
            found.append((item, np.asarray(ids, np.int64), weight))
        stems = stem(list(raw), self.language)
        terms, to_term = np.unique(np.fromiter(map(hash, stems), np.int64, len(stems)), return_inverse=True)
        keys: list[NDArray[np.int64]] = []
        weights: list[NDArray[np.float64]] = []
        for item, words, weight in found:
            unique, counts = np.unique((item << 32) | to_term[words], return_counts=True)
            keys.append(unique)
            weights.append(counts.astype(np.float64) * weight)
        all_keys, place = np.unique(np.concatenate(keys), return_inverse=True)
        frequency = np.bincount(place, np.concatenate(weights), len(all_keys)).astype(np.float64)
        return (all_keys >> 32).astype(np.int32), (all_keys & 0xFFFFFFFF).astype(np.int32), frequency, terms

    def _index(self, counted: list[Counted], k1: float, b: float) -> None:
        """Turn counts into postings by term: items, and their saturated term frequencies."""
        self._terms = np.unique(np.concatenate([_NO_TERMS, *(part[3] for part in counted)]))
        numbers = (np.searchsorted(self._terms, part[3]).astype(np.int32)[part[1]] for part in counted)
        terms = np.concatenate([_NO_ITEMS, *numbers])
        items = np.concatenate([_NO_ITEMS, *(part[0] for part in counted)])
        frequency = np.concatenate([np.zeros(0), *(part[2] for part in counted)])
        counted.clear()
        length = np.bincount(items, frequency, self.size) if self.size else np.zeros(0)
        average = float(length.mean()) if self.size and length.any() else 1.0
        norm = k1 * (1 - b + b * length / average)
        for first in range(0, len(items), _SLICE):  # in parts: of a large page they are millions
            part = slice(first, first + _SLICE)
            frequency[part] = frequency[part] * (k1 + 1) / (frequency[part] + norm[items[part]])
        self._bounds = np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=len(self._terms)))])
        order = np.argsort(terms, kind="stable")
        del terms
        self._items, self._saturated = items[order], frequency[order]

    def _postings(self, term: str) -> slice:
        """Return where the postings of a stemmed term stand; nowhere for one that occurs in no item."""
        number = bisect_left(self._terms, hash(term))  # for one, quicker than numpy's
        if number == len(self._terms) or self._terms[number] != hash(term):
            return slice(0, 0)
        return slice(int(self._bounds[number]), int(self._bounds[number + 1]))

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a stemmed term (never negative)."""
        postings = self._postings(term)
        found: int = postings.stop - postings.start
        return math.log(1 + (self.size - found + 0.5) / (found + 0.5))

    def items(self, term: str) -> NDArray[np.int32]:
        """Return the items that hold a stemmed term, in order."""
        return self._items[self._postings(term)]

    def holds(self, item: int, term: str) -> bool:
        """Tell whether an item holds a stemmed term."""
        return bool((self.items(term) == item).any())

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the BM25 score of each item for a query; 0 where no term occurs."""
        result = np.zeros(self.size)
        for term in dict.fromkeys(query_terms(query, self.language)):
            part = self._postings(term)
            result[self._items[part]] += self.idf(term) * self._saturated[part]
        return result
