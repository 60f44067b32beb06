"""What a block is, apart from any question: length, letters, place in its page, section and table."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..blocks import Blocks
from ._signals import groups, headings, link_density

Numbers = NDArray[np.float64]

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
        found = _layout(blocks)
        known = np.stack([found[name] for name in LAYOUT], axis=1).astype(np.float32)
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
