"""BM25 over short texts: words are stemmed by language; Han and kana count as letters and pairs of letters."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import Stemmer

from .words import SYLLABIC, UNSPACED

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

QUERY_NOISE: Final = frozenset(
    """a an and any are as at be been being by can could did do does for from had has have he her his how i
    if in into is it its me much many my of on or our please she should so tell than that the their them
    there these they this those to us was we were what when where which who whom whose why will with
    would you your der die das ein eine ist sind war waren wer wie was wann wo welche welcher welches
    von mit und oder im in den dem le la les un une des est sont qui que quel quelle quels quelles quand
    où comment combien de du et ou dans el los las una es son quién qué cuál cuándo dónde cómo cuánto
    cuántos y en del por para""".split()
)
"""Stop words of questions in English, German, French and Spanish; dropped from queries, never from blocks."""


@lru_cache(maxsize=32)
def _stemmer(language: str) -> Any:
    """Return the stemmer of a language, None where there is none."""
    name = _STEMMERS.get(language[:2].lower())
    return Stemmer.Stemmer(name) if name else None


def tokens(text: str) -> list[str]:
    """Cut text into lower-case tokens. Scripts without spaces become letters and pairs of letters."""
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
    """Stem lower-case words; words of a language without a stemmer stay unchanged."""
    stemmer = _stemmer(language)
    return list(words) if stemmer is None else cast("list[str]", stemmer.stemWords(list(words)))


def query_terms(query: str, language: str = "en") -> list[str]:
    """Return the stemmed terms of a query without stop words; a query of stop words keeps them all."""
    words = tokens(query)
    content_words = [word for word in words if word not in QUERY_NOISE]
    return stem(content_words or words, language)


class BM25:
    """A BM25 index over short texts, each with an optional second field (BM25F with two fields).

    :param texts: one text for each item.
    :param above: the headings or caption of each item; terms in it count ``above_weight``, terms in its text 1.
    :param language: ISO 639-1 code, for the stemmer.
    :param k1, b: saturation of term frequency, and strength of length normalisation.
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
        self._numbers: dict[str, int] = {}  # number of each stemmed term
        self._index([(texts, 1.0), (above, above_weight)] if above else [(texts, 1.0)], k1, b)

    def _index(self, fields: Sequence[tuple[Sequence[str], float]], k1: float, b: float) -> None:
        """Build the postings: for each term its items, with saturated term frequencies.

        :param fields: texts of all items, and the weight of a term in them.
        """
        words: dict[str, int] = {}
        occurrences: list[tuple[NDArray[np.int64], NDArray[np.int64], float]] = []  # items, words, weight of a word
        for texts, weight in fields:
            ids: list[int] = []
            lengths: list[int] = []
            seen_texts: dict[str, list[int]] = {}  # many items share one text, as the headings above them
            for text in texts:
                known = seen_texts.get(text)
                if known is None:
                    known = seen_texts[text] = [words.setdefault(token, len(words)) for token in tokens(text)]
                ids.extend(known)
                lengths.append(len(known))
            occurrences.append((np.repeat(np.arange(self.size), lengths), np.asarray(ids, np.int64), weight))
        stems = stem(list(words), self.language)
        term_of = np.asarray([self._numbers.setdefault(term, len(self._numbers)) for term in stems], np.int64)
        keys: list[NDArray[np.int64]] = []
        weights: list[NDArray[np.float64]] = []
        for item, word, weight in occurrences:
            # term in the upper half of the key, item in the lower: sorted keys group the postings by term
            unique, counts = np.unique((term_of[word] << 32) | item, return_counts=True)
            keys.append(unique)
            weights.append(counts * weight)
        pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
        self._own = np.zeros(len(pairs), bool)
        self._own[place[: len(keys[0])]] = True
        terms, self._items = pairs >> 32, pairs & 0xFFFFFFFF
        frequency = np.bincount(place, np.concatenate(weights), len(pairs)).astype(np.float64)
        length = np.bincount(self._items, frequency, self.size) if self.size else np.zeros(0)
        average = float(length.mean()) if self.size and length.any() else 1.0
        norm = k1 * (1 - b + b * length / average)
        self._saturated = frequency * (k1 + 1) / (frequency + norm[self._items])
        self._bounds = np.searchsorted(terms, np.arange(len(self._numbers) + 1))

    def _postings(self, term: str) -> slice:
        """Return the slice of a stemmed term's postings; empty where no item holds the term."""
        number = self._numbers.get(term)
        if number is None:
            return slice(0, 0)
        return slice(int(self._bounds[number]), int(self._bounds[number + 1]))

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a stemmed term (never negative)."""
        postings = self._postings(term)
        holding: int = postings.stop - postings.start
        return math.log(1 + (self.size - holding + 0.5) / (holding + 0.5))

    def items(self, term: str) -> NDArray[np.int64]:
        """Return the items that hold a stemmed term, in order."""
        return self._items[self._postings(term)]

    def own(self, term: str) -> NDArray[np.bool_]:
        """Return for each of :meth:`items` whether its own text holds the term, and not only the text above it."""
        return self._own[self._postings(term)]

    def holds(self, item: int, term: str) -> bool:
        """Tell whether an item holds a stemmed term."""
        return bool((self.items(term) == item).any())

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the BM25 score of each item for a query; 0 where no term occurs."""
        result = np.zeros(self.size)
        for term in dict.fromkeys(query_terms(query, self.language)):
            postings = self._postings(term)
            result[self._items[postings]] += self.idf(term) * self._saturated[postings]
        return result
