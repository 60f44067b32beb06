"""``sentences`` (default): the best sentences, rows and items for a question, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..lexical import BM25, query_terms, stem, tokens
from ..ports import Embedder, Tagged
from ..text import guess_language
from ._kinds import Wanted, telling_words, wanted

BEARING = 0.5
"""What the question's terms that the best segments hold (a share) and their likeness must come to (dev half:
questions asked of another page get an answer in 7 %, those of the page itself none in 8 %)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the parts of a segment's score; BM25 counts 1. Chosen on the dev half (docs/log.md).

    :param dense: cosine of question and segment with what stands above it.
    :param block: the score of the block that it stands in.
    :param covered: share of the question's terms (by idf) that it holds; what stands above counts half.
    :param fitting, unfitting: factors for what holds the kind of thing that is asked for, and for what does not.
    :param beside: the better of the two segments beside it, under the same headings.
    :param fresh: for each further segment, the share of its score that hangs on words not yet said.
    :param near: share of the best score down to which further segments are taken.
    """

    dense: float = 0.4
    block: float = 1.0
    covered: float = 1.0
    fitting: float = 1.15
    unfitting: float = 0.85
    fresh: float = 0.3
    near: float = 0.5
    beside: float = 0.4


class Engine:
    """Scores segments by BM25 and embeddings, with the score of their block; may choose none."""

    name = "sentences"

    def __init__(self, embedder: Embedder, limit: int = 5, weights: Weights | None = None) -> None:
        """
        :param limit: how many segments are chosen at most.
        """
        self.embedder = embedder
        self.limit = limit
        self.weights = weights or Weights()

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
        return [tagged[place].tag for place in self._choose(score, tagged, [_words(text, language) for text in texts])]

    def _likeness(self, query: str, texts: list[str]) -> NDArray[np.float64]:
        """Return the cosine of the question and each text."""
        asked = self.embedder.embed([query], "query")[0]
        return np.asarray(self.embedder.embed(texts) @ asked, np.float64)

    def _fit(self, asked: Wanted | None, one: Tagged, query: str) -> float:
        """Return the factor for holding the kind of thing that is asked for."""
        if asked is None:
            return 1.0
        return self.weights.fitting if asked.is_held(one.text, query) else self.weights.unfitting

    def _choose(self, score: NDArray[np.float64], tagged: Sequence[Tagged], words: list[frozenset[str]]) -> list[int]:
        """Choose segment after segment: the best that says something new, and stands in no other."""
        chosen: list[int] = []
        said: set[str] = set()
        open_ = np.ones(len(tagged), bool)
        best = float(score.max())
        while len(chosen) < self.limit and open_.any():
            novelty = np.asarray([len(own - said) / max(1, len(own)) for own in words]) if said else 1.0
            value = np.where(open_, score * (1 - self.weights.fresh * (1 - novelty)), -np.inf)
            place = int(np.argmax(value))
            if chosen and (value[place] < self.weights.near * best or value[place] <= 0):
                break
            chosen.append(place)
            said |= words[place]
            for other, one in enumerate(tagged):
                if open_[other] and (words[other] <= words[place] or _overlap(one, tagged[place])):
                    open_[other] = False
        return chosen

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
