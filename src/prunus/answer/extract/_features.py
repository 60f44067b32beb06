"""What tells a segment that answers a question from one that does not: a matrix of numbers, most of them from 0 to 1.

Every feature is one line of :data:`NAMES`. All are computed in time linear in the segments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Tagged
from ...core.text.answer_kinds import KINDS, content_words
from ...core.text.bm25 import BM25, query_terms, stem, tokens
from ...core.text.words import guess_language
from ._asks import Asked
from ._bearing import Seen
from ._grid import GRID, Sight, grid_features

Numbers = NDArray[np.float64]

NAMES: Final = (
    "bm25",  # BM25 of the segment with its headings, over the best
    "cosine",  # of the question and the segment with its headings
    "cosine_scaled",  # the same over the best
    "block",  # score of the segment's block, over the best
    "covered",  # share of the question's terms, by idf, that the segment itself holds
    "covered_all",  # that the segment, its label or its headings hold
    "covered_heading",  # that the nearest heading holds
    "covered_label",  # that the header of its table, or the lead of its list, holds
    "pairs",  # share of neighbouring terms of the question that are neighbours in the segment
    "names",  # share of the question's names and numbers that the segment holds
    "names_all",  # that the segment or its headings hold
    "before",  # ``covered`` of the segment before it under the same headings
    "after",  # ``covered`` of the segment after it under the same headings
    "news",  # whether it holds three words and more that the question does not
    "short",  # fewer than four words, none of them a number
    "lines",  # short lines outside of rows, of five words at most and without a stop, over 8, at most 1: as in menus
    "stop",  # ends with the stop of a sentence
    "asks",  # ends like a question or a lead: answers nothing alone
    "lead",  # first sentences of a page
    "place",  # its place among the segments: 0 first, 1 last
    "row", "pair", "list", "code",  # its kind
    "row_covered",  # ``covered`` of a row
    "labelled",  # a row under a header
    "one_cell",  # a row of one cell, as a caption
    "key_covered",  # share of the question's terms that the first cell of a row, or the term of a pair, holds
    "counted",  # the thing that the question counts stands right behind a number
    *(f"fits_{kind.name}" for kind in KINDS),  # holds the kind of answer that is asked for
    "fits_none",  # holds no kind of answer that is asked for, where the question shows one
    "covered_rest",  # share of the terms that the page's title lacks, that the segment holds
    "covered_two",  # share of the terms that the segment or the one before it holds
    "behind",  # by how much ``covered_all`` is below that of the best segment
    "bm25_rank", "block_rank", "cosine_rank",  # 1 over the rank among the segments
    "pronoun",  # starts with a word that stands for something before it
    "size",  # words, logarithm over that of 100
    "aside",  # under a heading such as References, or written as a reference
    *GRID,
    "q_terms",  # terms of the question, over 12; from here on the same for all segments of a question
    "q_title",  # share of them that the title holds
    "q_rows",  # share of the segments that are rows
    "q_pages",  # whether there are several pages
    "q_unspaced",  # whether the question is in a script without spaces
    "q_extreme", "q_end", "q_beside", "q_counted", "q_demand",  # whether the question asks for such a thing
    *(f"q_{kind.name}" for kind in KINDS),  # whether it asks for this kind of answer
)  # fmt: skip

COLUMNS: Final = {name: place for place, name in enumerate(NAMES)}

_NUMBER: Final = re.compile(r"\d")
_STOPS: Final = (".", "!", "?", "\u3002", "\uff01", "\uff1f", "\u2026", '."', ".\u201d", ".)", "]")
_PRONOUN: Final = re.compile(
    r"\W{0,3}(?:he|she|it|they|his|her|its|their|this|these|that|those|such|er|sie|es|dies\w*|il|elle|ils)\b",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"^\W*(?:references|notes|footnotes|see also|external links|further reading|bibliography|sources|citations|contents"
    r"|einzelnachweise|weblinks|literatur|siehe auch|\u53c2\u8003\u8d44\u6599|\u53c3\u8003\u8cc7\u6599|\u811a\u6ce8)\b",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(r"^\W*(?:jump up)?\s*\^|\bretrieved\b.{0,40}\d{4}|\bISBN\b|\bdoi:", re.IGNORECASE)
_LEAD: Final = 3
"""Sentences of a page that count as its lead."""


@dataclass
class Question:
    """A question and its segments, with what several features share.

    :param cosines: of the question and each segment with its headings.
    """

    query: str
    tagged: Sequence[Tagged]
    cosines: Numbers

    def __post_init__(self) -> None:
        texts = [segment.text for segment in self.tagged]
        above = [segment.above for segment in self.tagged]
        self.language = guess_language(" ".join(texts[:50]))
        self.index = BM25(texts, above, language=self.language, b=0.4)
        self.content = content_words(self.query)
        self.terms = list(dict.fromkeys(query_terms(self.content, self.language)))
        weights = np.asarray([self.index.idf(term) * _length(term) for term in self.terms], np.float64)
        self.shares = weights / weights.sum() if len(weights) and weights.sum() > 0 else weights
        cut = [tokens(text) for text in texts]
        unique = list({word for words in cut for word in words})
        known = dict(zip(unique, stem(unique, self.language), strict=True))
        self.stems = [[known[word] for word in words] for words in cut]
        self.words = [frozenset(words) for words in self.stems]
        self._heads: dict[str, frozenset[str]] = {}

    def head(self, text: str) -> frozenset[str]:
        """Return the stems of a heading or a label."""
        found = self._heads.get(text)
        if found is None:
            found = self._heads[text] = frozenset(stem(tokens(text), self.language))
        return found

    @cached_property
    def named(self) -> list[int]:
        """The places of the terms that are names or numbers."""
        kept = set(stem([word for part in _names(self.query) for word in tokens(part)], self.language))
        return [place for place, term in enumerate(self.terms) if term in kept]

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """Whether each segment itself holds each term [segments, terms]."""
        return self._holding(self.words)

    @cached_property
    def held_above(self) -> NDArray[np.bool_]:
        """Whether the headings of each segment, its label included, hold each term."""
        return self._holding([self.head(segment.above) for segment in self.tagged]) | self.held_label

    @cached_property
    def held_label(self) -> NDArray[np.bool_]:
        """Whether the label of each segment holds each term."""
        return self._holding([self.head(segment.label) if segment.label else frozenset() for segment in self.tagged])

    def _holding(self, words: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
        known: dict[int, list[bool]] = {}  # many segments share one heading
        rows = []
        for held in words:
            row = known.get(id(held))
            if row is None:
                row = known[id(held)] = [term in held for term in self.terms]
            rows.append(row)
        return np.asarray(rows, bool).reshape(len(words), len(self.terms))

    @cached_property
    def features(self) -> Numbers:
        """The features of each segment, in the order of :data:`NAMES` [segments, features]."""
        found = self._lexical() | self._layout() | self._tables() | self._kinds() | self._text() | self._asked()
        return np.stack([np.asarray(found[name], np.float64) for name in NAMES], axis=1)

    @cached_property
    def seen(self) -> Seen:
        """The question as the learned parts take it."""
        everywhere = self.held | self.held_above
        return Seen(self.features.astype(np.float32), COLUMNS, everywhere, self.shares, self.cosines, self.named)

    def _lexical(self) -> dict[str, Numbers]:
        shares, held, everywhere = self.shares, self.held, self.held | self.held_above
        covered = held @ shares
        nearest = self._holding([self.head(_nearest(segment.above)) for segment in self.tagged])
        names = self.named
        same = self.neighbours
        before, after = np.zeros(len(covered)), np.zeros(len(covered))
        before[1:], after[:-1] = covered[:-1] * same, covered[1:] * same
        asked = set(stem(tokens(self.query), self.language))
        return {
            "bm25": _scaled(self.index.scores(self.content)),
            "cosine": self.cosines,
            "cosine_scaled": _scaled(np.clip(self.cosines, 0, None)),
            "block": _scaled(np.asarray([segment.score for segment in self.tagged], np.float64)),
            "covered": covered,
            "covered_all": everywhere @ shares,
            "covered_heading": nearest @ shares,
            "covered_label": self.held_label @ shares,
            "pairs": self._pairs(),
            "names": held[:, names].mean(axis=1) if names else np.zeros(len(covered)),
            "names_all": everywhere[:, names].mean(axis=1) if names else np.zeros(len(covered)),
            "before": before,
            "after": after,
            "news": np.asarray([len(words - asked) >= 3 for words in self.words], np.float64),
        }

    @cached_property
    def neighbours(self) -> Numbers:
        """Whether each segment but the first has the headings of the one before it."""
        tagged = self.tagged
        return np.asarray([tagged[i].above == tagged[i + 1].above for i in range(len(tagged) - 1)], np.float64)

    def _pairs(self) -> Numbers:
        wanted = set(zip(self.terms, self.terms[1:], strict=False))
        if not wanted:
            return np.zeros(len(self.tagged))
        near = [{*pairwise(words), *zip(words, words[2:], strict=False)} for words in self.stems]
        return np.asarray([len(wanted & pairs) / len(wanted) for pairs in near])

    def _layout(self) -> dict[str, Numbers]:
        tagged = self.tagged
        sizes = [_size(segment.text) for segment in tagged]
        kinds = [segment.kind for segment in tagged]
        lead, seen = np.zeros(len(tagged)), dict[str, int]()
        for place, segment in enumerate(tagged):
            document = segment.span.document
            if kinds[place] == "sentence" and sizes[place] >= 6 and seen.get(document, 0) < _LEAD:
                seen[document] = seen.get(document, 0) + 1
                lead[place] = 1 / seen[document]
        result: dict[str, Numbers] = {
            "short": np.asarray(
                [size < 4 and not _NUMBER.search(s.text) for size, s in zip(sizes, tagged, strict=True)]
            ),
            "lines": np.asarray([_short_lines(segment.text) * (segment.kind != "row") for segment in tagged]),
            "stop": np.asarray([segment.text.rstrip().endswith(_STOPS) for segment in tagged]),
            "asks": np.asarray([segment.text.rstrip().endswith(("?", "\uff1f", ":")) for segment in tagged]),
            "lead": lead,
            "place": np.linspace(0, 1, len(tagged)) if len(tagged) > 1 else np.zeros(len(tagged)),
        }
        for kind in ("row", "pair", "list", "code"):
            result[kind] = np.asarray([one == kind for one in kinds], np.float64)
        return result

    def _tables(self) -> dict[str, Numbers]:
        tagged, covered = self.tagged, self.held @ self.shares
        everywhere = self.held | self.held_above
        rows = np.asarray([segment.kind == "row" for segment in tagged], np.float64)
        keys = [self.head(_key(segment)) if segment.kind in ("row", "pair") else frozenset() for segment in tagged]
        nouns = set(stem(self.asked.counted, self.language))
        sight = Sight(self.held, everywhere, self.shares, self.terms, self.words, self.head, self._content)
        return {
            "row_covered": rows * covered,
            "labelled": np.asarray([segment.kind == "row" and segment.label != "" for segment in tagged]),
            "one_cell": np.asarray([segment.kind == "row" and "\t" not in segment.text for segment in tagged]),
            "key_covered": self._holding(keys) @ self.shares,
            "counted": np.asarray([bool(nouns) and _counts(words, nouns) for words in self.stems], np.float64),
        } | grid_features(tagged, self._runs(), sight, self.asked)

    def _content(self, text: str) -> list[str]:
        """Return the stems of a text without stop words."""
        return query_terms(text, self.language)

    def _runs(self) -> list[list[int]]:
        """Return the places of the rows of each table, two rows and more."""
        runs: list[list[int]] = []
        for place, segment in enumerate(self.tagged):
            if segment.kind != "row" or "\t" not in segment.text:
                continue
            if place and runs and runs[-1][-1] == place - 1 and self.neighbours[place - 1]:
                runs[-1].append(place)
            else:
                runs.append([place])
        return [run for run in runs if len(run) > 1]

    def _kinds(self) -> dict[str, Numbers]:
        result = {f"fits_{kind.name}": np.zeros(len(self.tagged)) for kind in KINDS}
        for kind in self.asked.kinds:
            result[f"fits_{kind.name}"] = np.asarray(
                [kind.is_held(segment.text, self.query) for segment in self.tagged], np.float64
            )
        fits = np.max([*result.values()], axis=0)
        return result | {"fits_none": (1 - fits) * bool(self.asked.kinds)}

    def _text(self) -> dict[str, Numbers]:
        """Signs of running text: what the title leaves to be said, what the sentence before holds, asides."""
        tagged, held, shares = self.tagged, self.held, self.shares
        everywhere = (held | self.held_above) @ shares
        rest = shares * (1 - self.held_title)
        left = rest.sum(axis=1)
        two = held.copy()
        two[1:] |= held[:-1] & (self.neighbours > 0)[:, None]
        block = np.asarray([segment.score for segment in tagged], np.float64)
        aside = {above: _ASIDE.search(_nearest(above)) is not None for above in {s.above for s in tagged}}
        return {
            "covered_rest": np.where(left > 0, (held * rest).sum(axis=1) / np.maximum(left, 1e-9), 0.0),
            "covered_two": two @ shares,
            "behind": float(everywhere.max()) - everywhere,
            "bm25_rank": _ranks(self.index.scores(self.content)),
            "block_rank": _ranks(block),
            "cosine_rank": _ranks(self.cosines),
            "pronoun": np.asarray([_PRONOUN.match(segment.text) is not None for segment in tagged], np.float64),
            "size": np.asarray([np.log1p(_size(segment.text)) / np.log(100) for segment in tagged]),
            "aside": np.asarray(
                [aside[s.above] or _REFERENCE.search(s.text[:300]) is not None for s in tagged], np.float64
            ),
        }

    @cached_property
    def held_title(self) -> NDArray[np.bool_]:
        """Whether the title of each segment's page holds each term [segments, terms]."""
        return self._holding([self.head(segment.above.partition("\n")[0]) for segment in self.tagged])

    def _asked(self) -> dict[str, Numbers]:
        """What the question itself is like, the same for each segment."""
        asked, tagged = self.asked, self.tagged
        found = {
            "q_terms": min(len(self.terms), 12) / 12,
            "q_title": float((self.held_title @ self.shares).max()),
            "q_rows": sum(segment.kind == "row" for segment in tagged) / len(tagged),
            "q_pages": float(len({segment.span.document for segment in tagged}) > 1),
            "q_unspaced": self.unspaced,
            "q_extreme": float(asked.extreme is not None),
            "q_end": float(bool(asked.end)),
            "q_beside": float(bool(asked.beside)),
            "q_counted": float(bool(asked.counted)),
            "q_demand": float(asked.demand is not None),
        } | {f"q_{kind.name}": float(kind in asked.kinds) for kind in KINDS}
        return {name: np.full(len(tagged), value) for name, value in found.items()}

    @cached_property
    def asked(self) -> Asked:
        """What the words of the question ask for."""
        return Asked(self.query)

    @cached_property
    def unspaced(self) -> float:
        """1 where the question is in a script without spaces between words, else 0."""
        letters = sum(not term.isascii() and len(term) < 3 for term in self.terms)
        return 1.0 if 2 * letters > len(self.terms) else 0.0


def _length(term: str) -> float:
    """Return a factor below 1 for a single Han letter: pairs of letters tell more."""
    return 0.3 if len(term) == 1 and not term.isascii() else 1.0


_CAPITAL: Final = re.compile(r"(?<=\s)[\"'\u201c\u2018(]?[^\W\d_a-z][\w'\u2019-]*|\d[\d.,:]*")


def _names(query: str) -> list[str]:
    """Return the words of a question with a capital letter, but for its first word, and its numbers."""
    return [
        match.group()
        for match in _CAPITAL.finditer(query)
        if match.group().upper() != match.group().lower() or match.group()[0].isdigit()
    ]


def _nearest(above: str) -> str:
    """Return the nearest heading: the last line that is not empty."""
    return above.rstrip("\n").rpartition("\n")[2]


def _short_lines(text: str) -> float:
    """Return the number of short lines without a stop, over 8, at most 1."""
    lines = text.split("\n")
    if len(lines) < 3:
        return 0.0
    short = sum(line.count(" ") < 5 and not line.rstrip().endswith(_STOPS) for line in lines[:16])
    return min(1.0, short / 8)


def _key(segment: Tagged) -> str:
    """Return the first cell of a row, or the term of a pair."""
    return segment.text.partition("\t" if segment.kind == "row" else "\n")[0][:200]


def _size(text: str) -> int:
    """Return the words of a text; three letters of a script without spaces count as one."""
    return len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 3)


def _counts(words: Sequence[str], nouns: set[str]) -> bool:
    """Tell whether a noun stands within three words behind a number."""
    for place, word in enumerate(words):
        if word[0].isdigit() and not nouns.isdisjoint(words[place + 1 : place + 4]):
            return True
    return False


def _scaled(values: Numbers) -> Numbers:
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else np.zeros(len(values))


def _ranks(values: Numbers) -> Numbers:
    """Return 1 over the rank of each value, the highest first; equal ones share the best rank."""
    ordered = np.sort(-values)
    ranks: Numbers = 1 / (1.0 + np.searchsorted(ordered, -values))
    return ranks
