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

from ...core.ports import Segment
from ...core.text.answer_kinds import KINDS, asked_kinds, content_words
from ...core.text.bm25 import BM25, QUERY_NOISE, query_terms, stem, tokens
from ...core.text.long_forms import with_long_forms
from ...core.text.words import guess_language
from ._asked_rows import AskedRow, asked_row

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
    "lines",  # short lines, of five words at most and without a stop, over 8, at most 1: menus have many
    "stop",  # ends with the stop of a sentence
    "asks",  # ends like a question or a lead: answers nothing alone
    "lead",  # first sentences of a page
    "place",  # its place among the segments: 0 first, 1 last
    "row", "pair", "list", "code",  # its kind
    "row_covered",  # ``covered`` of a row
    "labelled",  # a row under a header
    "one_cell",  # a row of one cell, as a caption
    "key_covered",  # share of the question's terms that the first cell of a row, or the term of a pair, holds
    "asked_row",  # the row with the most, the first or the next, where the question asks for it (``_asked_rows.py``)
    "end_row",  # the first or last row of its table, where the question asks for the first or last
    "beside_row",  # ``covered`` of the row before or after, where the question asks for what comes after or before
    "counted",  # the thing that the question counts stands right behind a number
    *(f"fits_{kind.name}" for kind in KINDS),  # holds the kind of answer that is asked for
)  # fmt: skip

BEARING: Final = (
    "one",  # 1
    "anywhere",  # share of the question's terms, by idf, that any segment or its headings hold
    "top",  # that the best segment or its headings hold
    "single",  # that one of the three best holds, the best of them
    "together",  # share of the terms that the three best hold together
    "cosine",  # best cosine of the three
    "cosine_most",  # best cosine of all segments
    "names",  # share of the question's names and numbers that are found anywhere; 1 where it has none
    "pairs",  # best ``pairs`` of the three
    "terms",  # terms of the question, over 12
    "unspaced",  # whether the question is in a script without spaces between words
    "unspaced_anywhere", "unspaced_together", "unspaced_pairs", "unspaced_cosine",  # the same there
)  # fmt: skip

_ASKS_END: Final = re.compile(
    r"\b(?:(?P<last>last|latest|final|newest|most recent|letzte[nrsm]?|sp\u00e4teste[nrsm]?)"
    r"|first|earliest|initial|erste[nrsm]?|fr\u00fcheste[nrsm]?)\b|(?P<zh_last>\u6700\u540e|\u6700\u5f8c)|\u9996\u5148|\u7b2c\u4e00|\u6700\u65e9",
    re.IGNORECASE,
)
_ASKS_AFTER: Final = re.compile(r"\b(?:after|next|follow(?:s|ed|ing)|n\u00e4chste[nrsm]?)\b", re.IGNORECASE)
_ASKS_BEFORE: Final = re.compile(r"\b(?:before|previous|prior|preced(?:es|ed|ing)|vorige[nrsm]?)\b", re.IGNORECASE)
_COUNTED: Final = re.compile(r"\b(?:how many|wie viele|combien de|cu\u00e1nt[oa]s)\s+(\w+)(?:\s+(\w+))?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d")
_STOPS: Final = (".", "!", "?", "\u3002", "\uff01", "\uff1f", "\u2026", '."', ".\u201d", ".)", "]")
_LEAD: Final = 3
"""Sentences of a page that count as its lead."""


@dataclass
class Question:
    """A question and its segments, with what several features share.

    :param cosines: of the question and each segment with its headings.
    """

    query: str
    tagged: Sequence[Segment]
    cosines: Numbers

    def __post_init__(self) -> None:
        texts = [segment.text for segment in self.tagged]
        above = [segment.above for segment in self.tagged]
        self.language = guess_language(" ".join(texts[:50]))
        self.index = BM25(texts, above, language=self.language, b=0.4)
        self.content = content_words(with_long_forms(self.query, texts))
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
        result = self._heads.get(text)
        if result is None:
            result = self._heads[text] = frozenset(stem(tokens(text), self.language))
        return result

    def known(self, text: str) -> float:
        """Return the share of a text's content words that stand on the pages, 1 for a text without any."""
        words = set(stem([word for word in tokens(text) if word not in QUERY_NOISE], self.language))
        everywhere = frozenset[str]().union(*self.words, *(self.head(segment.above) for segment in self.tagged))
        return len(words & everywhere) / len(words) if words else 1.0

    @cached_property
    def named(self) -> list[int]:
        """The places of the terms that are names or numbers."""
        kept = set(stem([word for part in _names(self.query) for word in tokens(part)], self.language))
        return [index for index, term in enumerate(self.terms) if term in kept]

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
        return np.asarray([[term in held for term in self.terms] for held in words], bool).reshape(
            len(words), len(self.terms)
        )

    @cached_property
    def features(self) -> Numbers:
        """The features of each segment, in the order of :data:`NAMES` [segments, features]."""
        result = self._lexical() | self._layout() | self._tables() | self._kinds()
        return np.stack([np.asarray(result[name], np.float64) for name in NAMES], axis=1)

    @cached_property
    def several_pages(self) -> bool:
        """Whether the segments are of more than one page."""
        return len({segment.span.document for segment in self.tagged}) > 1

    @cached_property
    def asked_row(self) -> AskedRow | None:
        """The row of a table that the question asks for by its place or by a number."""
        return asked_row(self)

    @cached_property
    def likeness(self) -> Numbers:
        """BM25 of each segment with its headings, over the best."""
        return _scaled(self.index.scores(self.content))

    def bearing(self, best: Sequence[int]) -> Numbers:
        """Return what tells whether the pages bear on the question at all, in the order of :data:`BEARING`.

        :param best: the places of the best segments, best first; three are looked at.
        """
        everywhere, shares, cosines = self.held | self.held_above, self.shares, np.clip(self.cosines, 0, None)
        top, few = best[0], list(best[:3])
        letters = sum(not term.isascii() and len(term) < 3 for term in self.terms)
        unspaced = 1.0 if 2 * letters > len(self.terms) else 0.0
        names = everywhere[:, self.named].any(axis=0) if self.named else np.ones(1)
        anywhere = (everywhere.any(axis=0) @ shares).item()
        single = float((everywhere[few] @ shares).max())
        together = float(everywhere[few].any(axis=0).mean()) if self.terms else 0.0
        result = {
            "one": 1.0,
            "anywhere": anywhere,
            "top": (everywhere[top] @ shares).item(),
            "single": single,
            "together": together,
            "cosine": float(cosines[few].max()),
            "cosine_most": float(cosines.max()),
            "names": float(names.mean()),
            "pairs": float(self.features[few, NAMES.index("pairs")].max()),
            "terms": min(len(self.terms), 12) / 12,
            "unspaced": unspaced,
            "unspaced_anywhere": unspaced * anywhere,
            "unspaced_together": unspaced * together,
            "unspaced_pairs": unspaced * float(self.features[few, NAMES.index("pairs")].max()),
            "unspaced_cosine": unspaced * float(cosines[few].max()),
        }
        return np.asarray([result[name] for name in BEARING])

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
            "bm25": self.likeness,
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
        for index, segment in enumerate(tagged):
            document = segment.span.document
            if kinds[index] == "sentence" and sizes[index] >= 6 and seen.get(document, 0) < _LEAD:
                seen[document] = seen.get(document, 0) + 1
                lead[index] = 1 / seen[document]
        result: dict[str, Numbers] = {
            "short": np.asarray(
                [size < 4 and not _NUMBER.search(s.text) for size, s in zip(sizes, tagged, strict=True)]
            ),
            "lines": np.asarray([_short_lines(segment.text) for segment in tagged]),
            "stop": np.asarray([segment.text.rstrip().endswith(_STOPS) for segment in tagged]),
            "asks": np.asarray([segment.text.rstrip().endswith(("?", "\uff1f", ":")) for segment in tagged]),
            "lead": lead,
            "place": np.linspace(0, 1, len(tagged)) if len(tagged) > 1 else np.zeros(len(tagged)),
        }
        for kind in ("row", "pair", "list", "code"):
            result[kind] = np.asarray([one == kind for one in kinds], np.float64)
        return result

    def _tables(self) -> dict[str, Numbers]:
        size, covered = len(self.tagged), self.held @ self.shares
        rows = np.asarray([segment.kind == "row" for segment in self.tagged], np.float64)
        result = {name: np.zeros(size) for name in ("asked_row", "end_row", "beside_row", "counted")}
        result["row_covered"] = rows * covered
        result["labelled"] = np.asarray([segment.kind == "row" and segment.label != "" for segment in self.tagged])
        result["one_cell"] = np.asarray([segment.kind == "row" and "\t" not in segment.text for segment in self.tagged])
        keys = [self.head(_key(segment)) if segment.kind in ("row", "pair") else frozenset() for segment in self.tagged]
        result["key_covered"] = self._holding(keys) @ self.shares
        if self.asked_row is not None:
            result["asked_row"][self.asked_row.place] = 1
        end = _ASKS_END.search(self.query)
        after, before = _ASKS_AFTER.search(self.query), _ASKS_BEFORE.search(self.query)
        everywhere = (self.held | self.held_above) @ self.shares
        top = max(1e-9, float(everywhere.max()))
        if end or after or before:
            for run in self.runs:
                near = float(everywhere[run].max()) / top  # how likely the question is about this table
                if end:
                    last = end["last"] or end["zh_last"]
                    result["end_row"][run[-1] if last else run[0]] = near
                values = near * _scaled(covered[run])
                if after:
                    result["beside_row"][run[1:]] = values[:-1]
                if before:
                    result["beside_row"][run[:-1]] = np.maximum(result["beside_row"][run[:-1]], values[1:])
        counted = _COUNTED.search(self.query)
        if counted:
            nouns = set(stem([word.lower() for word in counted.groups() if word], self.language))
            result["counted"] = np.asarray([_counts(words, nouns) for words in self.stems], np.float64)
        return result

    @cached_property
    def runs(self) -> list[list[int]]:
        """The places of the rows of each table, two rows and more."""
        runs: list[list[int]] = []
        for index, segment in enumerate(self.tagged):
            if segment.kind != "row" or "\t" not in segment.text:
                continue
            if index and runs and runs[-1][-1] == index - 1 and self.neighbours[index - 1]:
                runs[-1].append(index)
            else:
                runs.append([index])
        return [run for run in runs if len(run) > 1]

    def _kinds(self) -> dict[str, Numbers]:
        result = {f"fits_{kind.name}": np.zeros(len(self.tagged)) for kind in KINDS}
        for kind in asked_kinds(self.query):
            result[f"fits_{kind.name}"] = np.asarray(
                [kind.is_held(segment.text, self.query) for segment in self.tagged], np.float64
            )
        return result


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


def _key(segment: Segment) -> str:
    """Return the first cell of a row, or the term of a pair."""
    return segment.text.partition("\t" if segment.kind == "row" else "\n")[0][:200]


def _size(text: str) -> int:
    """Return the words of a text; three letters of a script without spaces count as one."""
    return len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 3)


def _counts(words: Sequence[str], nouns: set[str]) -> bool:
    """Tell whether a noun stands within three words behind a number."""
    for index, word in enumerate(words):
        if word[0].isdigit() and not nouns.isdisjoint(words[index + 1 : index + 4]):
            return True
    return False


def _scaled(values: Numbers) -> Numbers:
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else np.zeros(len(values))
