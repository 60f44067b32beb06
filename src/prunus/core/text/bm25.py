"""BM25 over short texts: words are stemmed by language; Han and kana count as letters and pairs of letters."""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

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


_SCANS: Final = 64
"""Terms that are looked for one by one, before the occurrences of all terms are sorted."""


@lru_cache(maxsize=32)
def _stemmer(language: str) -> Any:
    """Return the stemmer of a language, None where there is none."""
    name = _STEMMERS.get(language[:2].lower())
    return Stemmer.Stemmer(name) if name else None


def tokens(text: str) -> list[str]:
    """Cut text into lower-case tokens. Scripts without spaces become letters and pairs of letters."""
    results = cast("list[str]", _TOKEN.findall(text.lower()))
    if text.isascii():
        return results
    result: list[str] = []
    for token in results:
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


class _Postings(NamedTuple):
    """The items that hold a term, in order.

    :param saturated: the saturated frequency of the term in each.
    :param own: whether its own text holds the term, and not only the text above it.
    """

    items: NDArray[np.int64]
    saturated: NDArray[np.float64]
    own: NDArray[np.bool_]


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
        self._k1, self._b = k1, b
        self._known: dict[str, _Postings] = {}
        self._index([(texts, 1.0), (above, above_weight)] if above else [(texts, 1.0)])

    def _index(self, fields: Sequence[tuple[Sequence[str], float]]) -> None:
        """Read the texts: the term and the item of each occurrence, and the length of each item.

        :param fields: texts of all items, and the weight of a term in them.
        """
        words: defaultdict[str, int] = defaultdict(count().__next__)
        read = [(*_numbered(texts, words), weight) for texts, weight in fields]
        self._numbers: dict[str, int] = {}  # number of each stemmed term
        stems = stem(list(words), self.language)
        term_of = np.asarray([self._numbers.setdefault(term, len(self._numbers)) for term in stems], np.int32)
        self._fields: list[_Field] = []
        length = np.zeros(self.size)
        for ids, lengths, weight in read:
            items = np.repeat(np.arange(self.size, dtype=np.int32), lengths)
            self._fields.append(_Field(term_of[ids], items, weight))
            length += lengths * weight
        average = float(length.mean()) if self.size and length.any() else 1.0
        self._norm = self._k1 * (1 - self._b + self._b * length / average)

    def _postings(self, term: str) -> _Postings:
        """Return the postings of a stemmed term."""
        known = self._known.get(term)
        if known is None:
            known = self._known[term] = self._find(self._numbers.get(term, -1))
        return known

    def _find(self, number: int) -> _Postings:
        """Find the postings of a term by its number."""
        ordered = len(self._known) >= _SCANS
        seen = [np.unique(field.items_of(number, ordered), return_counts=True) for field in self._fields]
        items, position = np.unique(np.concatenate([items for items, _ in seen]), return_inverse=True)
        weights = [counts * field.weight for (_, counts), field in zip(seen, self._fields, strict=True)]
        frequency = np.bincount(position, np.concatenate(weights), len(items)).astype(np.float64)
        own = np.zeros(len(items), bool)
        own[position[: len(seen[0][0])]] = True
        return _Postings(items.astype(np.int64), frequency * (self._k1 + 1) / (frequency + self._norm[items]), own)

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a stemmed term (never negative)."""
        holding = len(self.items(term))
        return math.log(1 + (self.size - holding + 0.5) / (holding + 0.5))

    def items(self, term: str) -> NDArray[np.int64]:
        """Return the items that hold a stemmed term, in order."""
        return self._postings(term).items

    def own(self, term: str) -> NDArray[np.bool_]:
        """Return for each of :meth:`items` whether its own text holds the term, and not only the text above it."""
        return self._postings(term).own

    def holds(self, item: int, term: str) -> bool:
        """Tell whether an item holds a stemmed term."""
        return bool((self.items(term) == item).any())

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the BM25 score of each item for a query; 0 where no term occurs."""
        result = np.zeros(self.size)
        for term in dict.fromkeys(query_terms(query, self.language)):
            postings = self._postings(term)
            result[postings.items] += self.idf(term) * postings.saturated
        return result


def _numbered(texts: Sequence[str], words: defaultdict[str, int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the numbers of all words of the texts in their order, int32, and the words of each text, int64.

    :param words: the number of each word; new words are added.
    """
    ids = array("i")
    lengths: list[int] = []
    seen: dict[str, list[int]] = {}  # many items share one text, as the headings above them
    for text in texts:
        known = seen.get(text)
        if known is None:
            known = seen[text] = list(map(words.__getitem__, tokens(text)))
        ids.extend(known)
        lengths.append(len(known))
    return np.array(ids, np.int32), np.array(lengths, np.int64)


class _Field:
    """The occurrences of terms in one field of all items.

    :param terms: number of the term of each occurrence, int32, by item.
    :param items: its item, int32, ascending.
    :param weight: what one occurrence counts.
    """

    def __init__(self, terms: NDArray[np.int32], items: NDArray[np.int32], weight: float) -> None:
        self.weight = weight
        self._held = (terms, items, False)  # one tuple, because another thread may read while it is replaced

    def items_of(self, term: int, ordered: bool) -> NDArray[np.int32]:
        """Return the item of each occurrence of a term, ascending.

        :param ordered: sort the occurrences by term first; it pays for many terms. One term is found faster by a scan.
        """
        terms, items, sorted_by_term = self._held
        if ordered and not sorted_by_term:
            order = np.argsort(terms, kind="stable")
            terms, items, sorted_by_term = self._held = (terms[order], items[order], True)
        if not sorted_by_term:
            return np.asarray(items[terms == term], np.int32)
        first, last = np.searchsorted(terms, [term, term + 1])
        return np.asarray(items[first:last], np.int32)
