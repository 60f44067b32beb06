"""The best segments for a question, read by a cross-encoder that was trained for it, as ``prunus``.

It reads where a segment stands, what came before it, and its words, each cell of a row behind the head of its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ...core.checked_engines import declared
from ...core.ports import Reranker, Segment
from ._features import Numbers, Question

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
    found = weight * np.asarray(reranker.rerank(question.query, pair_texts(question.tagged, best)), np.float64)
    added = np.full(len(scores), found.min())
    added[best] = found
    return added


def pair_texts(tagged: Sequence[Segment], chosen: Sequence[int]) -> list[str]:
    """Return the texts of the chosen segments, for a reranker.

    :param tagged: all segments, in the order of their documents.
    :param chosen: places of the segments.
    """
    return [_text(tagged, place) for place in chosen]


def _text(tagged: Sequence[Segment], place: int) -> str:
    segment = tagged[place]
    title, *headings = [line for line in segment.above.split("\n") if line] or [""]
    if segment.kind == "row" and segment.label and headings and _is_header(headings[-1], segment.label):
        headings.pop()  # the heads stand beside the cells
    where = " › ".join(filter(None, [title[:_TITLE], *(heading[:_HEADING] for heading in headings[-1:])]))
    lead = ""
    if _continues(tagged, place) and segment.kind in ("sentence", "row"):
        before = tagged[place - 1].text
        lead = before.partition("\t")[0][:_BEFORE] if segment.kind == "row" else before[-_BEFORE:]
    return "\n".join(filter(None, [where, lead, _said(tagged, place)]))[:_LONGEST]


def _continues(tagged: Sequence[Segment], place: int) -> bool:
    """Tell whether a segment stands under the same headings as the one before it, and is of its kind."""
    if not place:
        return False
    before, segment = tagged[place - 1], tagged[place]
    return (before.above, before.kind, before.span.document) == (segment.above, segment.kind, segment.span.document)


def _is_header(line: str, label: str) -> bool:
    return line.split() == label.partition("; ")[0].replace(" | ", " ").split()


def _said(tagged: Sequence[Segment], place: int) -> str:
    """Return the words of a segment, each cell of a row behind the head of its column."""
    segment = tagged[place]
    if segment.kind != "row":
        return f"{segment.label}: {segment.text}" if segment.label else segment.text
    cells = (segment.shown or segment.text).split("\t")
    heads, _, spanning = segment.label.partition("; ")
    names = heads.split(" | ")
    if not segment.label:  # many tables hold their heads in a plain first row
        first = place
        while _continues(tagged, first) and place - first < _FIRST:
            first -= 1
        names = tagged[first].text.split("\t") if first < place else []
    if len(names) != len(cells):
        return f"{segment.label}: {segment.text}" if segment.label else segment.text
    said = [f"{name}: {cell.strip()}" if name != "-" else cell.strip() for name, cell in zip(names, cells, strict=True)]
    return "; ".join(filter(None, [*said, spanning]))


_FIRST: Final = 200
"""Rows up to which the first row of a table is looked for."""
