"""Features of blocks for a question, for the scorer ``trees``: what ``hybrid`` adds up, and more.

Each takes time linear in the blocks. What needs no question is computed once for all (:func:`layout`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder
from ...core.text.answer_kinds import asked_kinds
from ...core.text.bm25 import BM25, query_terms, stem, tokens
from ...pages.tree import subtree_text
from ..blocks import Blocks, is_overview
from . import bm25, embedding
from ._signals import group_means, groups, headings, labelled_texts, link_density, scaled
from .hybrid import HybridWeights, compares, fused

LAYOUT: Final = (
    "words",  # log of the block's words
    "filled",  # words over the granularity of the cut
    "heading",  # it is only a heading
    "links",  # share of words that are links
    "in_table",
    "in_list",
    "header_row",  # other blocks need it
    "deep",  # headings above it
    "digits",  # share of letters that are digits
    "capitals",  # capital letters a word
    "cells",  # cells of tables a word
    "stops",  # ends of sentences a word
    "asks",  # question marks a word
    "foreign",  # share of letters beyond ASCII
    "table_place",  # 0 at the first block of its table, 1 at the last
    "table_edge",  # it is the first or the last block of its table
    "near_links",  # mean share of links of the blocks around
)
"""Features that need no question. A block's place in its page and the size of the page are none: in the training sets
they tell which set a question is of, and articles lost what tables gained."""

_AROUND: Final = 2
"""Blocks on each side that are around a block."""


def layout(blocks: Blocks) -> NDArray[np.float32]:
    """Return the features of ``LAYOUT``, float32 [n, features]; they are computed once for all questions."""
    known = blocks.cache.get("layout")
    if not isinstance(known, np.ndarray):
        result = _layout(blocks)
        known = np.stack([result[name] for name in LAYOUT], axis=1).astype(np.float32)
        blocks.cache["layout"] = known
    return np.asarray(known, np.float32)


def _layout(blocks: Blocks) -> dict[str, Numbers]:
    count = len(blocks)
    words = np.fromiter((block.words for block in blocks.blocks), np.float64, count)
    documents = np.fromiter((block.document for block in blocks.blocks), np.int64, count)
    links, tables = link_density(blocks), groups(blocks, "table")
    needed = np.zeros(count)
    needed[[place for block in blocks.blocks for place in block.requires]] = 1.0
    table_place, table_size = places(tables)
    inside = tables >= 0
    leads = np.fromiter((bool(context.lead) for context in blocks.contexts), bool, count)
    edge = inside & ((table_place == 0) | (table_place == table_size - 1))
    return {
        "words": np.log1p(words),
        "filled": words / blocks.max_words,
        "heading": headings(blocks).astype(np.float64),
        "links": links,
        "in_table": inside.astype(np.float64),
        "in_list": (leads & ~inside).astype(np.float64),
        "header_row": needed,
        "deep": np.fromiter((len(context.headings) for context in blocks.contexts), np.float64, count),
        **_letters(blocks.texts, np.maximum(words, 1.0)),
        "table_place": table_place / np.maximum(table_size - 1, 1),
        "table_edge": edge.astype(np.float64),
        "near_links": window_means(links, documents, _AROUND),
    }


def _letters(texts: list[str], words: Numbers) -> dict[str, Numbers]:
    """Count kinds of letters in all texts at once."""
    code = np.frombuffer("".join(f"{text}\n" for text in texts).encode("utf-32-le", "replace"), "<u4")
    lengths = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    ends = np.cumsum(lengths) - 1

    def counted(marks: NDArray[np.bool_]) -> Numbers:
        total = np.cumsum(marks, dtype=np.int64)
        return np.asarray(np.diff(total[ends], prepend=0), np.float64)

    stops = (code == ord(".")) | (code == ord("!")) | (code == 0x3002)
    return {
        "digits": counted((code >= ord("0")) & (code <= ord("9"))) / lengths,
        "capitals": counted((code >= ord("A")) & (code <= ord("Z"))) / words,
        "cells": counted(code == ord("\t")) / words,
        "stops": counted(stops) / words,
        "asks": counted((code == ord("?")) | (code == 0xFF1F)) / words,
        "foreign": counted(code > 127) / lengths,
    }


def places(group: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Return each item's place in its group, from 0, and the group's size; 0 and 0 outside any (-1)."""
    place, size = np.zeros(len(group)), np.zeros(len(group))
    inside = np.flatnonzero(group >= 0)
    if len(inside):
        order = inside[np.argsort(group[inside], kind="stable")]
        labels = group[order]
        starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
        sizes = np.diff(np.r_[starts, len(order)])
        place[order] = np.arange(len(order)) - np.repeat(starts, sizes)
        size[order] = np.repeat(sizes, sizes)
    return place, size


def window_means(values: Numbers, documents: NDArray[np.int64], around: int) -> Numbers:
    """Return the mean of each block and so many before and after it in its document; ``documents`` ascend."""
    total = np.r_[0.0, np.cumsum(values)]
    place = np.arange(len(values))
    low = np.maximum(place - around, np.searchsorted(documents, documents, side="left"))
    high = np.minimum(place + around + 1, np.searchsorted(documents, documents, side="right"))
    return np.asarray((total[high] - total[low]) / (high - low), np.float64)


Numbers = NDArray[np.float64]

_MOST_TERMS: Final = 32
"""Terms of a question that are looked at; longer questions are read to there."""

_TOP: Final = 3
_HEADING_LETTERS: Final = 200
_NAME: Final = re.compile(r"(?<=[\w,;)] )[^\W\d_a-z]\w+")
"""A word with a capital that does not begin the question or a sentence of it."""

_KINDS: Final = ("number", "date", "name", "place", "reason", "meaning")

ASKED: Final = (
    "bm25", "bm25_scaled", "bm25_rank", "cosine_scaled", "cosine_rank", "hybrid", "hybrid_scaled", "hybrid_rank",
    "before", "after", "near", "wide", "section_best", "section_mean", "table_best", "table_mean", "table_first",
    "page_mean", "page_first", "covered", "covered_own", "covered_above", "covered_most", "rarest", "held", "pairs",
    "names", "names_own", "numbers", "numbers_own", "covered_near", "covered_table", "covered_section",
    "covered_page", "headings_named", "last_heading", "lead_named", "key_named", "fits", "compares", "overview",
    "kinds", *(f"asks_{kind}" for kind in _KINDS),
)  # fmt: skip
"""Features that depend on the question; ``QuestionFeatures`` says what each is."""

NAMES: Final = (*ASKED, *LAYOUT)
"""All features, in the order of the columns."""


def features(query: str, blocks: Blocks, embedder: Embedder) -> NDArray[np.float32]:
    """Return the features of every block, float32 [n, features], in the order of ``NAMES``."""
    asked = QuestionFeatures(query, blocks, embedder).found()
    return np.concatenate([np.stack([asked[name] for name in ASKED], axis=1).astype(np.float32), layout(blocks)], 1)


class QuestionFeatures:
    """The features of all blocks for one question. There is at least one block."""

    def __init__(self, query: str, blocks: Blocks, embedder: Embedder) -> None:
        self.query, self.blocks = query, blocks
        self.count = len(blocks)
        self.index = bm25.index_of(blocks)
        self.lexical = self.index.scores(query)
        self.dense = embedding.Engine(embedder).beside_words(query, blocks)
        self.base, self.hybrid = fused(query, blocks, self.lexical, self.dense, HybridWeights())
        self.tables, self.sections = groups(blocks, "table"), groups(blocks, "section")
        self.pages = np.fromiter((block.document for block in blocks.blocks), np.int64, self.count)
        self.terms = list(dict.fromkeys(query_terms(query, self.index.language)))[:_MOST_TERMS]
        idf = np.asarray([self.index.idf(term) for term in self.terms])
        self.idf = idf / max(float(idf.sum()), 1e-9)
        self.any, self.own = held_terms(self.index, self.terms)

    def found(self) -> dict[str, Numbers]:
        """Return all features by name, float64 [n] each."""
        return self._scores() | self._surroundings() | self._coverage() | self._labels() | self._kinds()

    def _scores(self) -> dict[str, Numbers]:
        """BM25 (over the most that it can be), cosine, and both with the surroundings: plain, over the best, rank."""
        most = max(2.2 * sum(self.index.idf(term) for term in self.terms), 1e-9)
        lexical, dense = np.clip(self.lexical, 0, None), np.clip(self.dense, 0, None)
        return {
            "bm25": lexical / most,
            "bm25_scaled": scaled(lexical),
            "bm25_rank": log_ranks(lexical),
            "cosine_scaled": scaled(dense),
            "cosine_rank": log_ranks(self.dense),
            "hybrid": self.hybrid,
            "hybrid_scaled": scaled(np.clip(self.hybrid, 0, None)),
            "hybrid_rank": log_ranks(self.hybrid),
        }

    def _surroundings(self) -> dict[str, Numbers]:
        """BM25 and cosine of the block before, after, two and five on each side; of section, table and page."""
        base, same = self.base, self.pages[1:] == self.pages[:-1]
        table_mean, page_mean = group_means(base, self.tables, _TOP), group_means(base, self.pages, _TOP)
        return {
            "before": np.r_[0.0, np.where(same, base[:-1], 0.0)],
            "after": np.r_[np.where(same, base[1:], 0.0), 0.0],
            "near": window_means(base, self.pages, 2),
            "wide": window_means(base, self.pages, 5),
            "section_best": group_means(base, self.sections, 1),
            "section_mean": group_means(base, self.sections, _TOP),
            "table_best": group_means(base, self.tables, 1),
            "table_mean": table_mean,
            "table_first": scaled(table_mean),
            "page_mean": page_mean,
            "page_first": scaled(page_mean),
        }

    def _coverage(self) -> dict[str, Numbers]:
        """Share of the question's terms, by idf, in the block with or without what stands above it, and around it."""
        covered, own = self.any @ self.idf, self.own @ self.idf
        names, numbers = self._weights(self._names), self._weights(self._numbers)
        pairs = (self.own[:, 1:] & self.own[:, :-1]).mean(axis=1) if len(self.terms) > 1 else np.zeros(self.count)
        around = self.any.copy()
        same = (self.pages[1:] == self.pages[:-1])[:, None]
        around[1:] |= self.any[:-1] & same
        around[:-1] |= self.any[1:] & same
        return {
            "covered": covered,
            "covered_own": own,
            "covered_above": (self.any & ~self.own) @ self.idf,
            "covered_most": scaled(covered),
            "rarest": (self.own * self.idf).max(axis=1, initial=0.0) / max(float(self.idf.max(initial=0.0)), 1e-9),
            "held": np.log1p(self.own.sum(axis=1)),
            "pairs": pairs,
            "names": self.any @ names,
            "names_own": self.own @ names,
            "numbers": self.any @ numbers,
            "numbers_own": self.own @ numbers,
            "covered_near": around @ self.idf,
            "covered_table": self._by_group(self.tables),
            "covered_section": self._by_group(self.sections),
            "covered_page": self._by_group(self.pages),
        }

    def _by_group(self, group: NDArray[np.int64]) -> Numbers:
        """Return the share of the terms that each block's table, section or page holds as a whole; 0 outside any."""
        result, inside = np.zeros(self.count), group >= 0
        if not inside.any():
            return result
        held = np.zeros(int(group.max()) + 1)
        for index, weight in enumerate(self.idf):
            held[np.unique(group[self.any[:, index] & inside])] += weight
        result[inside] = held[group[inside]]
        return result

    @cached_property
    def _names(self) -> frozenset[str]:
        """The stemmed terms of the question's words with a capital."""
        words = [token for name in _NAME.findall(self.query) for token in tokens(name)]
        return frozenset(stem(words, self.index.language))

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(term for term in self.terms if term[:1].isdigit())

    def _weights(self, wanted: frozenset[str]) -> Numbers:
        """Return the terms' weights with those of other terms 0; they add up to 1, where one is wanted."""
        weights = np.where([term in wanted for term in self.terms], self.idf, 0.0) if self.terms else np.zeros(0)
        return np.asarray(weights / max(float(weights.sum()), 1e-9), np.float64)

    def _labels(self) -> dict[str, Numbers]:
        """Share of the terms in the headings, the last heading, the lead, and the first cell of a row."""
        shares: dict[int, tuple[float, float, float]] = {}
        result = np.zeros((self.count, 3))
        for index, context in enumerate(self.blocks.contexts):
            known = shares.get(id(context))  # equal contexts are one object
            if known is None:
                tree = self.blocks.trees[self.blocks.blocks[index].document]
                heads = [subtree_text(tree, node)[:_HEADING_LETTERS] for node in context.headings]
                known = (self._share(heads), self._share(heads[-1:]), self._share([context.lead]))
                shares[id(context)] = known
            result[index] = known
        key = np.zeros(self.count)
        for index in np.flatnonzero((self.tables >= 0) & self.own.any(axis=1)).tolist():
            key[index] = self._share([labelled_texts(self.blocks)[index].split("\t", 1)[0][:_HEADING_LETTERS]])
        return {
            "headings_named": result[:, 0],
            "last_heading": result[:, 1],
            "lead_named": result[:, 2],
            "key_named": key,
        }

    def _share(self, texts: Sequence[str]) -> float:
        """Return the share of the terms, by idf, that some texts hold."""
        said = self._known_terms("\n".join(texts))
        return float(sum(weight for term, weight in zip(self.terms, self.idf, strict=True) if term in said))

    def _known_terms(self, text: str) -> frozenset[str]:
        """Return the stemmed terms of a text above blocks, or in a first cell; kept for the next question."""
        if not text:
            return frozenset()
        known = self.blocks.cache.get("said")
        said: dict[str, frozenset[str]] = known if isinstance(known, dict) else {}
        self.blocks.cache["said"] = said
        if text not in said:
            said[text] = frozenset(stem(tokens(text), self.index.language))
        return said[text]

    def _kinds(self) -> dict[str, Numbers]:
        """Whether the block holds the kind of answer that the question asks for, and what the question is."""
        kinds = asked_kinds(self.query)
        fits = np.zeros(self.count)
        for kind in kinds:
            fits += self._fitting(kind.name) / len(kinds)
        asked = {kind.name for kind in kinds}
        flags = {f"asks_{name}": float(name in asked) for name in _KINDS}
        flags |= {
            "compares": float(compares(self.query)),
            "overview": float(is_overview(self.query)),
            "kinds": float(len(kinds)),
        }
        return {"fits": fits} | {name: np.full(self.count, value) for name, value in flags.items()}

    def _fitting(self, name: str) -> Numbers:
        """Mark the blocks that hold an answer of a kind; kept for the next question of that kind."""
        key = f"fits:{name}"
        known = self.blocks.cache.get(key)
        if not isinstance(known, np.ndarray):
            kind = next(kind for kind in asked_kinds(self.query) if kind.name == name)
            held = (any(pattern.search(text) for pattern in kind.held) for text in labelled_texts(self.blocks))
            known = np.fromiter(held, np.float64, self.count)
            self.blocks.cache[key] = known
        return np.asarray(known, np.float64)


def held_terms(index: BM25, terms: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which items hold which terms, in all and in their own text; bool [items, terms] each."""
    anywhere = np.zeros((index.size, len(terms)), bool)
    own = np.zeros_like(anywhere)
    for at, term in enumerate(terms):
        items = index.items(term)
        anywhere[items, at] = True
        own[items, at] = index.own(term)
    return anywhere, own


def log_ranks(values: Numbers) -> Numbers:
    """Return the log of each value's rank, 0 for the best; equal values share the best rank of them."""
    ordered = np.sort(-values)
    return np.asarray(np.log1p(np.searchsorted(ordered, -values, side="left")), np.float64)
