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
        language = guess_language(" ".join(texts[:50]))
        index = BM25(texts, language=language)
        lexical = index.scores(query)
        dense = np.asarray(self.embedder.embed(texts) @ self.embedder.embed([query], "query")[0], np.float64)
        if not self._bears(query, index, lexical, dense):
            return None
        block = np.asarray([one.score for one in tagged])
        length = np.asarray([len(text.split()) if text.isascii() else len(text) / 2 for text in texts])
        score = _scaled(lexical) + 0.5 * _scaled(np.clip(dense, 0, None)) + 0.5 * _scaled(block)
        score = np.where(length < 3, score * 0.6, score)  # a bare label answers nothing by itself
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
    def _bears(query: str, index: BM25, lexical: np.ndarray, dense: np.ndarray) -> bool:
        """Tell whether anything here bears on the question at all."""
        terms = list(dict.fromkeys(query_terms(query, index.language)))
        if not terms:
            return False
        total = sum(index.idf(term) for term in terms)
        best = int(np.argmax(lexical))
        covered = 0.0
        if lexical[best] > 0:
            covered = sum(index.idf(term) for term in terms if index.holds(best, term))
        return covered >= COVERAGE * total or float(dense.max()) >= LIKENESS


def _scaled(values: np.ndarray) -> np.ndarray:
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else values
