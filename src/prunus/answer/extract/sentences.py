"""``sentences`` (default): the best sentences, rows and items for a question, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder, Tagged
from ...core.text.bm25 import BM25, query_terms, stem, tokens
from ...core.text.words import guess_language
from ._kinds import AnswerKind, answer_kind, content_words

BEARING = 0.5
"""The least sum of the best segments' share of the question's terms and their cosine; below it there is no answer.

On the dev half, 7 % of the questions about another page get an answer, and 8 % of the questions about the page none.
"""

_BRACKETED: Final = re.compile(r"\([^()]{0,80}\)")


@dataclass(frozen=True, slots=True)
class SentenceWeights:
    """Weights of the parts of a segment's score; BM25 counts 1. Chosen on the dev half (docs/lab/log.md).

    :param dense: weight of the cosine of the question and the segment with its headings.
    :param block: weight of the score of the segment's block.
    :param covered: weight of the share of the question's terms (by idf) that the segment holds; a term in its headings
        counts half.
    :param fitting, unfitting: factors for a segment that holds the kind of answer that the question asks for, and for
        a segment that does not.
    :param beside: weight of the better of the two neighbours under the same headings.
    :param fresh: share of a segment's score that is lost where all its words are in segments chosen before.
    :param near: the least score of a further segment, as a share of the best score.
    :param near_first, near_last: the same for several pages, where the chosen segments hold none of the question's
        terms (by idf), and where they hold all: the more is held, the better a further segment must be.
    :param bridge: added share of the score for a segment whose page is named in a chosen segment of another page.
    """

    dense: float = 0.4
    block: float = 1.0
    covered: float = 1.0
    fitting: float = 1.15
    unfitting: float = 0.85
    fresh: float = 0.3
    near: float = 0.5
    near_first: float = 0.4
    near_last: float = 0.7
    bridge: float = 0.5
    beside: float = 0.4


class Engine:
    """Scores segments by BM25, embeddings and the score of their block; chooses none for an unrelated question."""

    name = "sentences"
    per_page = False

    def __init__(self, embedder: Embedder, limit: int = 5, weights: SentenceWeights | None = None) -> None:
        """
        :param limit: most segments that are chosen.
        """
        self.embedder = embedder
        self.limit = limit
        self.weights = weights or SentenceWeights()

    async def extract(self, query: str, tagged: Sequence[Tagged]) -> list[int] | None:
        """Return the tags of the best segments, best first, or None when nothing bears on the question."""
        if not tagged:
            return None
        texts = [segment.text for segment in tagged]
        above = [segment.above for segment in tagged]
        language = guess_language(" ".join(texts[:50]))
        index = BM25(texts, above, language=language, b=0.4)
        cosines = self._cosines(query, [f"{a} {t}" for a, t in zip(above, texts, strict=True)])
        content = content_words(query)
        terms = list(dict.fromkeys(query_terms(content, language)))
        weights = self.weights
        score = _scaled(index.scores(content)) + weights.dense * _scaled(np.clip(cosines, 0, None))
        score += weights.block * _scaled(np.asarray([segment.score for segment in tagged], np.float64))
        score += weights.covered * _covered(terms, index, [_words(text, language) for text in texts])
        score += weights.beside * _beside(score, tagged)
        kind = answer_kind(query)
        score *= np.asarray([_weight(segment) * self._fit(kind, segment, query) for segment in tagged])
        if not self._bears(terms, index, score, cosines):
            return None
        pages = _Pages(tagged, terms, index)
        words = [_words(text, language) for text in texts]
        return [tagged[place].tag for place in self._choose(score, tagged, words, pages)]

    def _cosines(self, query: str, texts: list[str]) -> NDArray[np.float64]:
        """Return the cosine of the question and each text, float64 [texts]."""
        question = self.embedder.embed([query], "query")[0]
        return np.asarray(self.embedder.embed(texts) @ question, np.float64)

    def _fit(self, kind: AnswerKind | None, segment: Tagged, query: str) -> float:
        """Return the factor for holding, or not holding, the kind of answer that the question asks for."""
        if kind is None:
            return 1.0
        return self.weights.fitting if kind.is_held(segment.text, query) else self.weights.unfitting

    def _choose(
        self, score: NDArray[np.float64], tagged: Sequence[Tagged], words: list[frozenset[str]], pages: _Pages
    ) -> list[int]:
        """Choose one segment after the other: the best by its score and its new words, and never one inside another."""
        chosen: list[int] = []
        seen: set[str] = set()
        open_ = np.ones(len(tagged), bool)
        best = float(score.max())
        while len(chosen) < self.limit and open_.any():
            novelty = np.asarray([len(held - seen) / max(1, len(held)) for held in words]) if seen else 1.0
            value = score * (1 - self.weights.fresh * (1 - novelty)) * (1 + self.weights.bridge * pages.named)
            value = np.where(open_, value, -np.inf)
            place = int(np.argmax(value))
            if chosen and (value[place] < self._bar(pages) * best or value[place] <= 0):
                break
            chosen.append(place)
            pages.choose(place)
            seen |= words[place]
            for candidate, segment in enumerate(tagged):
                if open_[candidate] and (words[candidate] <= words[place] or _overlap(segment, tagged[place])):
                    open_[candidate] = False
        return chosen

    def _bar(self, pages: _Pages) -> float:
        """Return the least score of a further segment, as a share of the best score."""
        weights = self.weights
        if not pages.several:
            return weights.near
        return weights.near_first + (weights.near_last - weights.near_first) * pages.held()

    @staticmethod
    def _bears(terms: list[str], index: BM25, score: NDArray[np.float64], dense: NDArray[np.float64]) -> bool:
        """Tell whether the three best segments bear on the question at all (see ``BEARING``)."""
        if not terms:
            return False
        best = np.argsort(-score, kind="stable")[:3].tolist()
        total = sum(index.idf(term) for term in terms)
        single = max(sum(index.idf(term) for term in terms if index.holds(item, term)) for item in best) / total
        together = sum(any(index.holds(item, term) for item in best) for term in terms) / len(terms)
        return bool((single + together) / 2 + max(0.0, float(dense[best].max())) >= BEARING)


class _Pages:
    """The state of the choice over several pages: the pages named so far, and the question's terms still missing."""

    def __init__(self, tagged: Sequence[Tagged], terms: Sequence[str], index: BM25) -> None:
        self.named = np.zeros(len(tagged))
        self.several = len({segment.span.document for segment in tagged}) > 1
        self._tagged = tagged
        self._titles = [_title(segment) if self.several else frozenset() for segment in tagged]
        self._left = {term: index.idf(term) for term in terms}
        self._total = sum(self._left.values())
        self._index = index

    def choose(self, place: int) -> None:
        """Update the state for a chosen segment."""
        if not self.several:
            return
        for term in [term for term in self._left if self._index.holds(place, term)]:
            del self._left[term]
        words = frozenset(tokens(self._tagged[place].text))
        document = self._tagged[place].span.document
        for candidate, title in enumerate(self._titles):
            if title and title <= words and self._tagged[candidate].span.document != document:
                self.named[candidate] = 1.0

    def held(self) -> float:
        """Return the share of the question's terms, by idf, that the chosen segments hold."""
        return 1 - sum(self._left.values()) / self._total if self._total > 0 else 0.0


def _title(segment: Tagged) -> frozenset[str]:
    """Return the words of the title of a segment's page, without bracketed text as in "Mercury (planet)"."""
    return frozenset(tokens(_BRACKETED.sub(" ", segment.above.partition("\n")[0])))


def _covered(terms: list[str], index: BM25, words: list[frozenset[str]]) -> NDArray[np.float64]:
    """Return the share of the question's terms, by idf, that each segment holds; terms in its headings count half."""
    result = np.zeros(len(words))
    total = sum(index.idf(term) for term in terms)
    if total <= 0:
        return result
    for term in terms:
        share = index.idf(term) / total
        result[index.items(term)] += share / 2
        result += [share / 2 if term in held else 0.0 for held in words]
    return result


def _beside(score: NDArray[np.float64], tagged: Sequence[Tagged]) -> NDArray[np.float64]:
    """Return the better score of the two neighbours under the same headings; 0 where there is none."""
    same = np.asarray([segment.above == following.above for segment, following in pairwise(tagged)], np.float64)
    result = np.zeros(len(score))
    result[1:] = score[:-1] * same
    result[:-1] = np.maximum(result[:-1], score[1:] * same)
    return result


def _words(text: str, language: str) -> frozenset[str]:
    return frozenset(stem(tokens(text), language))


def _overlap(first: Tagged, second: Tagged) -> bool:
    """Tell whether two segments share words of the page."""
    same = first.span.document == second.span.document
    return same and first.span.start < second.span.end and second.span.start < first.span.end


def _weight(segment: Tagged) -> float:
    """Return a factor below 1 for segments that answer nothing alone: bare labels, questions and leads of lists."""
    text = segment.text
    size = len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 3)
    weight = 0.55 if size < 4 and not any(letter.isdigit() for letter in text) else 1.0
    return weight * (0.5 if text.rstrip().endswith(("?", "\uff1f", ":")) else 1.0)


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else np.zeros(len(values))
