"""Where to cut what stands on lines: words, pictures and inline elements that are larger than a block.

Sentences and lines stay whole where they fit; only one that is larger than a block is cut between words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..core.text.words import SYLLABIC, UNSPACED, count_words, sentence_spans
from ..pages.clean import rules
from ..pages.tree import Tree

_CUTTABLE: Final = re.compile(rf"\s+|[{UNSPACED}{SYLLABIC}]")


@dataclass(slots=True)
class Piece:
    """A block in the making; ``requires`` counts within its document."""

    node: int
    lo: int
    hi: int
    words: int
    first: int = 0
    last: int = -1
    requires: tuple[int, ...] = ()


def cut_run(tree: Tree, whole: Piece, max_words: int) -> list[Piece]:
    """Cut a run of siblings into pieces that cover exactly it.

    :param whole: the run; it may start and end inside text nodes.
    :param max_words: what a piece holds at most, unless one word holds more.
    """
    parts = _parts(tree, whole)
    text = "".join(part for _, part in parts)
    cuts = _cut_points(text, max_words)
    if _is_preformatted(tree, whole.node):
        cuts = [_line_start(text, cut) for cut in cuts]
    pieces: list[Piece] = []
    lo, first = whole.lo, whole.first
    index, base = 0, 0
    for cut in cuts:
        while base + len(parts[index][1]) < cut:
            base += len(parts[index][1])
            index += 1
        node, part = parts[index]
        start = whole.first if node == whole.lo else 0
        if tree.tag[node] or cut - base == len(part):
            hi, last, following, offset = node + 1, -1, node + 1, 0
        else:
            offset = start + cut - base
            hi, last, following = node + 1, offset, node
        if hi > lo and hi <= whole.hi:
            pieces.append(_piece(tree, whole, (lo, hi, first, last)))
            lo, first = following, offset
    if whole.hi > lo:
        pieces.append(_piece(tree, whole, (lo, whole.hi, first, whole.last)))
    return pieces


def _parts(tree: Tree, whole: Piece) -> list[tuple[int, str]]:
    """Return what a run shows, node by node; the end of a line and a picture hold apart the words beside them."""
    parts: list[tuple[int, str]] = []
    for node in range(whole.lo, whole.hi):
        tag, text = tree.tag[node], tree.text[node]
        if tag == "br":
            parts.append((node, "\n"))
        elif tag and text:
            parts.append((node, text + " "))
        elif text:
            start = whole.first if node == whole.lo else 0
            end = whole.last if whole.last >= 0 and node == whole.hi - 1 else len(text)
            parts.append((node, text[start:end]))
    return parts


def _is_preformatted(tree: Tree, node: int) -> bool:
    """Tell whether a node stands in code, or is it."""
    while node > 0 and tree.tag[node] not in rules.PREFORMATTED:
        node = tree.parent[node]
    return node > 0


def _piece(tree: Tree, whole: Piece, place: tuple[int, int, int, int]) -> Piece:
    """Make a piece of a run: from its node ``lo`` up to ``hi``, from offset ``first`` up to ``last`` in their text."""
    lo, hi, first, last = place
    end = hi - 1
    if lo == end:
        words = tree.words[hi] - tree.words[lo]
        if first or last >= 0:
            words = count_words(tree.text[lo][first : last if last >= 0 else None])
        return Piece(whole.node, lo, hi, words, first, last, whole.requires)
    words = tree.words[hi] - tree.words[lo]
    if first:
        words -= tree.words[lo + 1] - tree.words[lo] - count_words(tree.text[lo][first:])
    if last >= 0:
        words -= tree.words[hi] - tree.words[end] - count_words(tree.text[end][:last])
    return Piece(whole.node, lo, hi, words, first, last, whole.requires)


def _cut_points(text: str, max_words: int) -> list[int]:
    """Choose where to cut a long text: between sentences; inside one only if it exceeds a block."""
    cuts: list[int] = []
    held = 0
    for start, end in sentence_spans(text):
        size = count_words(text[start:end])
        if held and held + size > max_words:
            cuts.append(start)
            held = 0
        if size > max_words:
            inner = _word_cuts(text, start, end, max_words)
            cuts.extend(inner)
            held = count_words(text[inner[-1] : end]) if inner else size
        else:
            held += size
    return cuts


def _line_start(text: str, place: int) -> int:
    """Return where the line begins whose first word stands at a place; the place itself, if words stand before it."""
    start = place
    while start and text[start - 1] in " \t":
        start -= 1
    return start if start and text[start - 1] == "\n" else place


def _word_cuts(text: str, start: int, end: int, max_words: int) -> list[int]:
    """Cut one endless sentence after every ``max_words`` words, at white space where there is some."""
    average = max(1, (end - start) // max(1, count_words(text[start:end])))
    stride = max(1, average * max_words)
    cuts = []
    place = start + stride
    while place < end:
        found = _CUTTABLE.search(text, place - 1, end)  # never inside a word
        if not found or found.end() >= end:
            break
        cuts.append(found.end())
        place = found.end() + stride
    return cuts
