"""``sentences`` (default): the best sentences, rows and items for a question, the best first, without a model.

Each segment gets a score: the sum of its features (``_features.py``) by learned weights (``weights.json``). A second
weighing gives the chance that a chosen segment answers the question. Where a cross-encoder is there that
was trained for it (``prunus``), it reads the best segments (where a segment stands, what came before it, and its words,
each cell of a row behind the head of its column), and its scores are added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.checked_engines import declared
from ...core.errors import BadInput
from ...core.ports import Chosen, Embedder, Reranker, Segment
from ...core.sync import in_a_thread
from ...core.text.answer_forms import AnswerForm, asked_form
from ...core.text.bm25 import tokens
from ...core.text.broad import is_broad
from ...core.text.likeness import Likeness, dot_products
from ...core.text.numbers import bounded_int
from ...core.text.words import count_words
from ._features import Numbers, Question
from ._weights import MARGIN, weights

READ: Final = 24
"""Segments that a reader reads for a question, the best by the learned weights."""

_TITLE: Final = 60
_HEADING: Final = 90
_BEFORE: Final = 90
"""Code points of the title, the nearest heading and the segment before that are read at most."""

_LONGEST: Final = 900


def read(reranker: Reranker | None, question: Question, scores: Numbers) -> Numbers | None:
    """Return what is added to the score of each segment, float64 [segments]; None where nothing is.

    The best :data:`READ` segments are read; the others get the least that one of these gets.

    :param reranker: only one that declares a weight (``added``), and the language of the pages, is asked.
    :param scores: the scores of the segments by the learned weights.
    """
    if reranker is None:
        return None
    languages = declared(reranker, "reranker", "languages")
    if languages and question.language not in languages:  # first: to ask for the weight loads the model
        return None
    weight = float(declared(reranker, "reranker", "added"))
    if not weight:
        return None
    best = np.argsort(-scores, kind="stable")[:READ].tolist()
    result = weight * np.asarray(reranker.rerank(question.query, pair_texts(question.tagged, best)), np.float64)
    added = np.full(len(scores), result.min())
    added[best] = result
    return added


def pair_texts(tagged: Sequence[Segment], chosen: Sequence[int]) -> list[str]:
    """Return the texts of the chosen segments, for a reranker.

    :param tagged: all segments, in the order of their documents.
    :param chosen: places of the segments.
    """
    return [_text(tagged, index) for index in chosen]


def _text(tagged: Sequence[Segment], index: int) -> str:
    segment = tagged[index]
    title, *headings = [line for line in segment.above.split("\n") if line] or [""]
    if segment.kind == "row" and segment.label and headings and _is_header(headings[-1], segment.label):
        headings.pop()  # the heads stand beside the cells
    where = " › ".join(filter(None, [title[:_TITLE], *(heading[:_HEADING] for heading in headings[-1:])]))
    lead = ""
    if _continues(tagged, index) and segment.kind in ("sentence", "row"):
        before = tagged[index - 1].text
        lead = before.partition("\t")[0][:_BEFORE] if segment.kind == "row" else before[-_BEFORE:]
    return "\n".join(filter(None, [where, lead, _said(tagged, index)]))[:_LONGEST]


def _continues(tagged: Sequence[Segment], index: int) -> bool:
    """Tell whether a segment stands under the same headings as the one before it, and is of its kind."""
    if not index:
        return False
    before, segment = tagged[index - 1], tagged[index]
    return (before.above, before.kind, before.span.document) == (segment.above, segment.kind, segment.span.document)


def _is_header(line: str, label: str) -> bool:
    return line.split() == label.partition("; ")[0].replace(" | ", " ").split()


def _said(tagged: Sequence[Segment], index: int) -> str:
    """Return the words of a segment, each cell of a row behind the head of its column."""
    segment = tagged[index]
    if segment.kind != "row":
        return _labelled(segment)
    cells = (segment.shown or segment.text).split("\t")
    heads, _, spanning = segment.label.partition("; ")
    names = heads.split(" | ")
    if not segment.label:  # many tables hold their heads in a plain first row
        first = index
        while _continues(tagged, first) and index - first < _FIRST:
            first -= 1
        names = tagged[first].text.split("\t") if first < index else []
    if len(names) != len(cells):
        return _labelled(segment)
    said = [f"{name}: {cell.strip()}" if name != "-" else cell.strip() for name, cell in zip(names, cells, strict=True)]
    return "; ".join(filter(None, [*said, spanning]))


_FIRST: Final = 200
"""Rows up to which the first row of a table is looked for."""


ONE_PAGE = 3
"""Most segments that are chosen of one page, by default."""

SEVERAL_PAGES = 5
"""Most segments that are chosen of several pages, by default: an answer may rest on two pages."""

_THIS: Final = r"(?:this|it|the (?:post|article|page|text|piece|story|paper|report|entry|review|guide))\b"
_ASKS_WRITER: Final = re.compile(
    rf"\bwho (?:wrote|has written|authored|posted|published) {_THIS}|\bauthor of {_THIS}", re.I
)
_ASKS_DATE: Final = re.compile(
    rf"\bwhen (?:was|did) {_THIS}[^?]{{0,40}}\b(?:published|posted|written|updated|appear)|\bhow old is {_THIS}", re.I
)
_BYLINE: Final = re.compile(r"(?:(?:written|posted|published|words|text|story) )?(?:by:?|author:?) +[^\W\d_]", re.I)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_PUBLISHED: Final = re.compile(r"\b(?:published|posted|updated|written|date)\b", re.I)
_SHORT: Final = 90
"""Code points of a line that says who wrote a page, and when, at most."""
_EARLY: Final = 40
"""Segments of a page among which such a line is looked for."""

_SURE: Final = 0.7
"""Confidence of the best of one page from which others must be half as likely, else a quarter. On the dev half."""

_STATED: Final = 0.9
"""Confidence of a line that a rule finds: who wrote a page, and when; a telephone number or an address. By hand."""

_OPENING: Final = 0.8
"""Confidence of a sentence that opens the content of a page, as the answer to a question about the whole.

On .91 of 131 dev pages four fifths of the quoted words are what people marked as content (``docs/lab/log.md``).
"""

_SENTENCE: Final = 8
"""Words from which on a segment with the end of a sentence is prose."""

_ENDED: Final = re.compile(r"[.!?:…。！？：؟।][\"'”’»)\]]*\s*$")

_LINE: Final = 12
"""Words up to which a segment is a line of its own."""

_FORMED: Final = 0.6
"""Confidence of a line whose form alone answers: an address, hours, the first price in the content. By hand."""

_MOST: Final = 50
_BRACKETED: Final = re.compile(r"\([^()]{0,80}\)")


class Engine:
    """Chooses the best few segments by learned weights, each with the chance that it answers."""

    name = "sentences"
    per_page = False

    def __init__(self, embedder: Embedder, reranker: Reranker | None = None, model: str = "") -> None:
        """
        :param reranker: reads the best segments, where it was trained for that, as ``prunus``.
        :param model: most segments that are chosen, 1 to 50, as in ``sentences:3``; '' for three of one page, five of
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

    async def extract(self, query: str, tagged: Sequence[Segment]) -> list[Chosen] | None:
        """Return the best segments, best first, or None where the question has no words to look for."""
        return await in_a_thread(lambda: self._extract(query, tagged)) if tagged else None

    def _extract(self, query: str, tagged: Sequence[Segment]) -> list[Chosen] | None:
        if is_broad(query):
            return [Chosen(tagged[place].tag, _OPENING) for place in _opening(tagged, self.limit)]
        stated = _stated(query, tagged)
        if stated >= 0:
            return [Chosen(tagged[stated].tag, _STATED)]
        question = Question(query, tagged, cosines(self.embedder, query, tagged))
        score = weights().scores(question.features)
        form = asked_form(query)
        if form is not None and not (form.own and question.several_pages):
            found = self._with_form(form, question, score)
            if found or form.only:
                return found
        added = read(self.reranker, question, score)
        if added is not None:
            score = score + added
        if not question.terms:
            return None
        chosen, asked = self._choose(score, question), question.asked_row
        chances = weights().confidence(question, score, chosen, added).tolist()
        best = max(chances)
        least = best / 2 if best >= _SURE and not question.several_pages else best / 4
        return [
            Chosen(tagged[place].tag, round(chance, 3), asked.how if asked is not None and asked.place == place else "")
            for place, chance in zip(chosen, chances, strict=True)
            if chance >= least
        ]

    def _with_form(self, form: AnswerForm, question: Question, score: Numbers) -> list[Chosen]:
        """Choose segments that hold what is asked for, by their scores; of what the page is about, by their blocks'."""
        tagged = question.tagged
        held = [  # the items of a list are segments, too
            segment.kind != "list" and form.held(_labelled(segment)) and not form.held(segment.label)
            for segment in tagged
        ]
        # an address goes on over several lines: the passage of the first holds the others
        places = [place for place, one in enumerate(held) if one and not (place and held[place - 1])]
        if form.own:  # a line of its own says it, not a sentence on it; blocks early in the content score higher
            places.sort(key=lambda place: (count_words(tagged[place].text) > _LINE, -tagged[place].score))
        else:
            places.sort(key=lambda place: -score[place])
        sure = (_STATED if form.only else _FORMED) * question.known(form.about)
        best = places[: self.limit or (1 if form.own else ONE_PAGE)]
        return [Chosen(tagged[place].tag, round(sure, 3)) for place in best]

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
            index = int(np.argmax(value))
            if chosen and value[index] < best:
                break
            chosen.append(index)
            pages.choose(index)
            for candidate, segment in enumerate(tagged):
                if open_[candidate] and (words[candidate] <= words[index] or _overlap(segment, tagged[index])):
                    open_[candidate] = False
        return chosen


def _labelled(segment: Segment) -> str:
    """Return the words of a segment behind its label."""
    return f"{segment.label}: {segment.text}" if segment.label else segment.text


def _opening(tagged: Sequence[Segment], limit: int) -> list[int]:
    """Return the places of the first sentences of each page in turn, for a question about the whole.

    :param limit: segments at most; 0 for the default.
    """
    pages: dict[str, list[int]] = {}
    for place, segment in enumerate(tagged):
        pages.setdefault(segment.span.document, []).append(place)
    most = limit or (SEVERAL_PAGES if len(pages) > 1 else ONE_PAGE)
    sentences = [_sentences_of(tagged, places)[: -(-most // len(pages))] for places in pages.values()]
    return [place for places in sentences for place in places][:most]


def _sentences_of(tagged: Sequence[Segment], places: Sequence[int]) -> list[int]:
    """Return those of the places that hold sentences; else those of longer lines; else all."""
    for words in (_SENTENCE, _SENTENCE // 2):
        found = [
            place
            for place in places
            if tagged[place].kind == "sentence"
            and count_words(tagged[place].text) >= words
            and (words < _SENTENCE or _ENDED.search(tagged[place].text))
        ]
        if found:
            return found
    return list(places)


def _stated(query: str, tagged: Sequence[Segment]) -> int:
    """Return the place of the line that says who wrote a page, or when, if the question asks for that; -1 for none."""
    says = _is_byline if _ASKS_WRITER.search(query) else _is_dateline if _ASKS_DATE.search(query) else None
    if says is None:
        return -1
    lines = (" ".join(segment.text.split()) for segment in tagged[:_EARLY])
    return next((index for index, line in enumerate(lines) if len(line) <= _SHORT and says(line)), -1)


def _is_byline(line: str) -> bool:
    return _BYLINE.match(line) is not None


def _is_dateline(line: str) -> bool:
    """Tell whether a line has a year, and is no sentence or one about publishing."""
    return bool(_YEAR.search(line)) and (not line.endswith((".", "!", "?")) or bool(_PUBLISHED.search(line)))


def cosines(embedder: Embedder, query: str, tagged: Sequence[Segment]) -> NDArray[np.float64]:
    """Return the cosine of the question and each segment with its headings, float64 [segments].

    They are put on the scale that the weights were learned with.
    """
    question = embedder.embed([query], "query")[0]
    texts = [f"{segment.above} {segment.text}" for segment in tagged]
    return Likeness(embedder).as_learned(query, question, dot_products(embedder.embed(texts), question))


class _Pages:
    """The state of the choice over several pages: the pages named so far, and the question's terms still missing."""

    def __init__(self, question: Question) -> None:
        tagged = question.tagged
        self.several = question.several_pages
        self._question = question
        self._titles = [_title(segment) if self.several else frozenset() for segment in tagged]
        self._missing = np.ones(len(question.terms), bool)
        self._named = np.zeros(len(tagged))
        self._unread = np.ones(len(tagged))  # segments of documents of which none is chosen
        self._held = (question.held | question.held_above).astype(np.float64)
        self._most = 0.0  # share of the question's terms that the best chosen segment holds

    def choose(self, index: int) -> None:
        """Update the state for a chosen segment: pages that it names are likelier to hold the rest of an answer."""
        if not self.several:
            return
        question = self._question
        self._missing &= self._held[index] == 0
        self._most = max(self._most, (self._held[index] @ question.shares).item())
        words = frozenset(tokens(question.tagged[index].text))
        document = question.tagged[index].span.document
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
