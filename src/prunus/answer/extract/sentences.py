"""``sentences`` (default): the best sentences, rows and items for a question, the best first, without a model.

Each segment gets a score: the sum of its features (``_features.py``) by learned weights (``weights.json``). A second
weighing tells from the best segments whether the pages bear on the question at all. Where a cross-encoder is there that
was trained for it (``prunus``), it reads the best segments, and its scores are added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ...core.ports import Embedder, Reranker, Segment
from ...core.sync import in_a_thread
from ...core.text.bm25 import tokens
from ...core.text.likeness import Likeness
from ...core.text.numbers import bounded_int
from ._features import Numbers, Question
from ._reading import read
from ._weights import MARGIN, weights

ONE_PAGE = 2
"""Most segments that are chosen of one page, by default."""

SEVERAL_PAGES = 5
"""Most segments that are chosen of several pages, by default: an answer may rest on two pages."""

_MOST: Final = 50
_BRACKETED: Final = re.compile(r"\([^()]{0,80}\)")


class Engine:
    """Scores segments by learned weights; chooses one or two, and none for a question that the pages do not answer."""

    name = "sentences"
    per_page = False

    def __init__(self, embedder: Embedder, reranker: Reranker | None = None, model: str = "") -> None:
        """
        :param reranker: reads the best segments, where it was trained for that, as ``prunus``.
        :param model: most segments that are chosen, 1 to 50, as in ``sentences:3``; '' for two of one page, five of
            several.
        :raises BadInput: it is no such number.
        """
        self.embedder = embedder
        self.reranker = reranker
        self.limit = 0
        if model:
            self.limit = bounded_int(model if model.isdecimal() else None, 0, most=_MOST + 1)
            if not 1 <= self.limit <= _MOST:
                raise BadInput(
                    f"extractor sentences: {model!r} is no number of quotes; give 1 to {_MOST}, as sentences:3",
                    subject="extractor",
                )

    async def extract(self, query: str, tagged: Sequence[Segment]) -> list[int] | None:
        """Return the tags of the best segments, best first, or None when nothing bears on the question."""
        return await in_a_thread(lambda: self._extract(query, tagged)) if tagged else None

    def _extract(self, query: str, tagged: Sequence[Segment]) -> list[int] | None:
        question = Question(query, tagged, cosines(self.embedder, query, tagged))
        score = weights().scores(question.features)
        added = read(self.reranker, question, score)
        if added is not None:
            score = score + added
        if not weights().answers(question, score, added):
            return None
        return [tagged[place].tag for place in self._choose(score, question)]

    def _choose(self, score: NDArray[np.float64], question: Question) -> list[int]:
        """Choose one segment after the other; none inside another, and none that says nothing new."""
        tagged, words = question.tagged, question.words
        pages = _Pages(question)
        limit = self.limit or (SEVERAL_PAGES if pages.several else ONE_PAGE)
        chosen: list[int] = []
        open_ = np.ones(len(tagged), bool)
        best = float(score.max())
        while len(chosen) < limit and open_.any():
            value = np.where(open_, score + pages.added() + pages.allowed(), -np.inf)
            place = int(np.argmax(value))
            if chosen and value[place] < best:
                break
            chosen.append(place)
            pages.choose(place)
            for candidate, segment in enumerate(tagged):
                if open_[candidate] and (words[candidate] <= words[place] or _overlap(segment, tagged[place])):
                    open_[candidate] = False
        return chosen


def cosines(embedder: Embedder, query: str, tagged: Sequence[Segment]) -> NDArray[np.float64]:
    """Return the cosine of the question and each segment with its headings, float64 [segments].

    They are put on the scale that the weights were learned with.
    """
    question = embedder.embed([query], "query")[0]
    texts = [f"{segment.above} {segment.text}" for segment in tagged]
    return Likeness(embedder).as_learned(query, question, embedder.embed(texts) @ question)


class _Pages:
    """The state of the choice over several pages: the pages named so far, and the question's terms still missing."""

    def __init__(self, question: Question) -> None:
        tagged = question.tagged
        self.several = len({segment.span.document for segment in tagged}) > 1
        self._question = question
        self._titles = [_title(segment) if self.several else frozenset() for segment in tagged]
        self._missing = np.ones(len(question.terms), bool)
        self._named = np.zeros(len(tagged))
        self._unread = np.ones(len(tagged))  # segments of documents of which none is chosen
        self._held = (question.held | question.held_above).astype(np.float64)
        self._most = 0.0  # share of the question's terms that the best chosen segment holds

    def choose(self, place: int) -> None:
        """Update the state for a chosen segment: pages that it names are likelier to hold the rest of an answer."""
        if not self.several:
            return
        question = self._question
        self._missing &= self._held[place] == 0
        self._most = max(self._most, (self._held[place] @ question.shares).item())
        words = frozenset(tokens(question.tagged[place].text))
        document = question.tagged[place].span.document
        for candidate, title in enumerate(self._titles):
            other = question.tagged[candidate].span.document
            if other == document:
                self._unread[candidate] = 0.0
            elif title and title <= words:
                self._named[candidate] = 1.0

    def added(self) -> Numbers:
        """Return what is added to each score: for a page that a chosen segment names, and for terms still missing."""
        if not self.several or not self._question.terms or self._missing.all():
            return self._named * MARGIN["bridge"]
        return self._named * MARGIN["bridge"] + MARGIN["missing"] * (
            self._held @ (self._missing * self._question.shares)
        )

    def allowed(self) -> Numbers:
        """Return by how much each further segment may be worse than the best: less, the more of the question is held.

        A page of which nothing is chosen may say as much as the best one, and something else.
        """
        if not self.several:
            return np.full(len(self._titles), MARGIN["one"])
        shares = self._question.shares
        missing = (self._missing @ shares).item() if len(self._missing) else 0.0
        margin = MARGIN["last"] + (MARGIN["first"] - MARGIN["last"]) * missing
        says_as_much = self._unread * (self._held @ shares >= self._most - 1e-9) if len(shares) else self._unread
        return np.maximum(margin, MARGIN["first"] * says_as_much)


def _title(segment: Segment) -> frozenset[str]:
    """Return the words of the title of a segment's page, without bracketed text as in "Mercury (planet)"."""
    return frozenset(tokens(_BRACKETED.sub(" ", segment.above.partition("\n")[0])))


def _overlap(first: Segment, second: Segment) -> bool:
    """Tell whether two segments share words of the page."""
    same = first.span.document == second.span.document
    return same and first.span.start < second.span.end and second.span.start < first.span.end
