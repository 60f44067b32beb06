"""``sentences`` (default): the best sentences, rows and items for a question, without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..lexical import BM25, query_terms
from ..ports import Embedder, Tagged
from ..text import guess_language

COVERAGE = 0.3
"""Share of the question's telling terms (by idf) that the best sentence and its block must hold."""

NEAR = 0.55
"""Share of the best score down to which further sentences are taken."""

LIKENESS = 0.45
"""Cosine from which a sentence may answer without sharing a word with the question."""


class Engine:
    """Scores segments by BM25 and embeddings, with the score of their block; may choose none."""

    name = "sentences"

    def __init__(self, embedder: Embedder, limit: int = 4) -> None:
        """
        :param limit: how many segments are chosen at most.
        """
        self.embedder = embedder
        self.limit = limit

    async def extract(self, query: str, tagged: Sequence[Tagged]) -> list[int] | None:
        """Return the tags of the best segments, best first, or None when nothing bears on the question."""
        if not tagged:
            return None
        texts = [one.text for one in tagged]
        above = [one.above for one in tagged]
        language = guess_language(" ".join(texts[:50]))
        index = BM25(texts, above, language=language, b=0.4)
        lexical = index.scores(query)
        asked = self.embedder.embed([query], "query")[0]
        dense = np.asarray(
            self.embedder.embed([f"{a} {t}" for a, t in zip(above, texts, strict=True)]) @ asked, np.float64
        )
        score = (
            _scaled(lexical)
            + 0.4 * _scaled(np.clip(dense, 0, None))
            + 0.6 * _scaled(np.asarray([one.score for one in tagged]))
        )
        score *= np.asarray([_weight(text) for text in texts])
        if not self._bears(query, index, score, dense):
            return None
        order = np.argsort(-score, kind="stable")
        chosen: list[int] = []
        said: set[str] = set()
        for place in order:
            if len(chosen) >= self.limit or (chosen and score[place] < NEAR * score[order[0]]):
                break
            words = " ".join(texts[place].lower().split())
            if words and words not in said:
                said.add(words)
                chosen.append(tagged[place].tag)
        return chosen or None

    @staticmethod
    def _bears(query: str, index: BM25, score: np.ndarray, dense: np.ndarray) -> bool:
        """Tell whether the best segments bear on the question at all."""
        terms = list(dict.fromkeys(query_terms(query, index.language)))
        if not terms:
            return False
        best = np.argsort(-score, kind="stable")[:3].tolist()
        total = sum(index.idf(term) for term in terms)
        covered = sum(index.idf(term) for term in terms if any(index.holds(item, term) for item in best))
        return covered >= COVERAGE * total or float(dense[best].max()) >= LIKENESS


def _weight(text: str) -> float:
    """Return less for what answers nothing by itself: bare labels, and questions."""
    size = len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 3)
    weight = 0.55 if size < 4 and not any(letter.isdigit() for letter in text) else 1.0
    return weight * (0.5 if text.rstrip().endswith(("?", "\uff1f", ":")) else 1.0)


def _scaled(values: np.ndarray) -> np.ndarray:
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else values
