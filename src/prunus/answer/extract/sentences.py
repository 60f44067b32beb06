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
from ._kinds import Wanted, telling_words, wanted

BEARING = 0.5
"""What the question's terms that the best segments hold (a share) and their likeness must come to (dev half:
questions asked of another page get an answer in 7 %, those of the page itself none in 8 %)."""

_BRACKETED: Final = re.compile(r"\([^()]{0,80}\)")


@dataclass(frozen=True, slots=True)
class SentenceWeights:
    """Weights of the parts of a segment's score; BM25 counts 1. Chosen on the dev half (docs/lab/log.md).

    :param dense: cosine of question and segment with what stands above it.
    :param block: the score of the block that it stands in.
    :param covered: share of the question's terms (by idf) that it holds; what stands above counts half.
    :param fitting, unfitting: factors for what holds the kind of thing that is asked for, and for what does not.
    :param beside: the better of the two segments beside it, under the same headings.
    :param fresh: for each further segment, the share of its score that hangs on words not yet said.
    :param near: share of the best score down to which further segments are taken.
    :param near_first, near_last: the same where several pages are asked, while nothing of the question is held, and
        when all of it is (by idf): the more of it is held, the better a further segment must be.
    :param bridge: for a segment of a page that is named by a segment of another page that was chosen.
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
    """Scores segments by BM25 and embeddings, with the score of their block; may choose none."""

    name = "sentences"
    per_page = False

    def __init__(self, embedder: Embedder, limit: int = 5, weights: SentenceWeights | None = None) -> None:
        """
        :param limit: how many segments are chosen at most.
        """
        self.embedder = embedder
        self.limit = limit
        self.weights = weights or SentenceWeights()

    async def extract(self, query: str, tagged: Sequence[Tagged]) -> list[int] | None:
        """Return the tags of the best segments, best first, or None when nothing bears on the question."""
        if not tagged:
            return None
        texts = [one.text for one in tagged]
        above = [one.above for one in tagged]
        language = guess_language(" ".join(texts[:50]))
        index = BM25(texts, above, language=language, b=0.4)
        dense = self._likeness(query, [f"{a} {t}" for a, t in zip(above, texts, strict=True)])
        telling = telling_words(query)
        terms = list(dict.fromkeys(query_terms(telling, language)))
        weights = self.weights
        score = _scaled(index.scores(telling)) + weights.dense * _scaled(np.clip(dense, 0, None))
        score += weights.block * _scaled(np.asarray([one.score for one in tagged], np.float64))
        score += weights.covered * _covered(terms, index, [_words(text, language) for text in texts])
        score += weights.beside * _beside(score, tagged)
        score *= np.asarray([_weight(one) * self._fit(wanted(query), one, query) for one in tagged])
        if not self._bears(terms, index, score, dense):
            return None
        pages = _Pages(tagged, terms, index)
        words = [_words(text, language) for text in texts]
        return [tagged[place].tag for place in self._choose(score, tagged, words, pages)]

    def _likeness(self, query: str, texts: list[str]) -> NDArray[np.float64]:
        """Return the cosine of the question and each text."""
        asked = self.embedder.embed([query], "query")[0]
        return np.asarray(self.embedder.embed(texts) @ asked, np.float64)

    def _fit(self, asked: Wanted | None, one: Tagged, query: str) -> float:
        """Return the factor for holding the kind of thing that is asked for."""
        if asked is None:
            return 1.0
        return self.weights.fitting if asked.is_held(one.text, query) else self.weights.unfitting

    def _choose(
        self, score: NDArray[np.float64], tagged: Sequence[Tagged], words: list[frozenset[str]], pages: _Pages
    ) -> list[int]:
        """Choose segment after segment: the best that says something new, and stands in no other."""
        chosen: list[int] = []
        said: set[str] = set()
        open_ = np.ones(len(tagged), bool)
        best = float(score.max())
        while len(chosen) < self.limit and open_.any():
            novelty = np.asarray([len(own - said) / max(1, len(own)) for own in words]) if said else 1.0
            value = score * (1 - self.weights.fresh * (1 - novelty)) * (1 + self.weights.bridge * pages.named)
            value = np.where(open_, value, -np.inf)
            place = int(np.argmax(value))
            if chosen and (value[place] < self._bar(pages) * best or value[place] <= 0):
                break
            chosen.append(place)
            pages.choose(place)
            said |= words[place]
            for other, one in enumerate(tagged):
                if open_[other] and (words[other] <= words[place] or _overlap(one, tagged[place])):
                    open_[other] = False
        return chosen

    def _bar(self, pages: _Pages) -> float:
        """Return the share of the best score that a further segment must reach."""
        weights = self.weights
        if not pages.several:
            return weights.near
        return weights.near_first + (weights.near_last - weights.near_first) * pages.held()

    @staticmethod
    def _bears(terms: list[str], index: BM25, score: NDArray[np.float64], dense: NDArray[np.float64]) -> bool:
        """Tell whether the best segments bear on the question at all."""
        if not terms:
            return False
        best = np.argsort(-score, kind="stable")[:3].tolist()
        total = sum(index.idf(term) for term in terms)
        single = max(sum(index.idf(term) for term in terms if index.holds(item, term)) for item in best) / total
        together = sum(any(index.holds(item, term) for item in best) for term in terms) / len(terms)
        return bool((single + together) / 2 + max(0.0, float(dense[best].max())) >= BEARING)


class _Pages:
    """What is known of the pages while segments are chosen: which are named, and how much of the question is held."""

    def __init__(self, tagged: Sequence[Tagged], terms: Sequence[str], index: BM25) -> None:
        self.named = np.zeros(len(tagged))
        self.several = len({one.span.document for one in tagged}) > 1
        self._tagged = tagged
        self._titles = [_title(one) if self.several else frozenset() for one in tagged]
        self._left = {term: index.idf(term) for term in terms}
        self._total = sum(self._left.values())
        self._index = index

    def choose(self, place: int) -> None:
        """Take note of a segment that was chosen."""
        if not self.several:
            return
        for term in [term for term in self._left if self._index.holds(place, term)]:
            del self._left[term]
        words = frozenset(tokens(self._tagged[place].text))
        document = self._tagged[place].span.document
        for other, title in enumerate(self._titles):
            if title and title <= words and self._tagged[other].span.document != document:
                self.named[other] = 1.0

    def held(self) -> float:
        """Return the share of the question's terms, by idf, that the chosen segments hold."""
        return 1 - sum(self._left.values()) / self._total if self._total > 0 else 0.0


def _title(one: Tagged) -> frozenset[str]:
    """Return the words of the title of a segment's page, without what stands in brackets."""
    return frozenset(tokens(_BRACKETED.sub(" ", one.above.partition("\n")[0])))


def _covered(terms: list[str], index: BM25, words: list[frozenset[str]]) -> NDArray[np.float64]:
    """Return the share of the question's terms, by idf, that each segment holds; half for what stands above."""
    result = np.zeros(len(words))
    total = sum(index.idf(term) for term in terms)
    if total <= 0:
        return result
    for term in terms:
        share = index.idf(term) / total
        result[index.items(term)] += share / 2
        result += [share / 2 if term in own else 0.0 for own in words]
    return result


def _beside(score: NDArray[np.float64], tagged: Sequence[Tagged]) -> NDArray[np.float64]:
    """Return the better of the two neighbours that stand under the same headings; 0 where there is none."""
    same = np.asarray([one.above == other.above for one, other in pairwise(tagged)], np.float64)
    result = np.zeros(len(score))
    result[1:] = score[:-1] * same
    result[:-1] = np.maximum(result[:-1], score[1:] * same)
    return result


def _words(text: str, language: str) -> frozenset[str]:
    return frozenset(stem(tokens(text), language))


def _overlap(one: Tagged, other: Tagged) -> bool:
    """Tell whether two segments share words of the page."""
    same = one.span.document == other.span.document
    return same and one.span.start < other.span.end and other.span.start < one.span.end


def _weight(one: Tagged) -> float:
    """Return less for what answers nothing by itself: bare labels, and questions."""
    text = one.text
    size = len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 3)
    weight = 0.55 if size < 4 and not any(letter.isdigit() for letter in text) else 1.0
    return weight * (0.5 if text.rstrip().endswith(("?", "\uff1f", ":")) else 1.0)


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else np.zeros(len(values))
