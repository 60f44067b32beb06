"""Make passages of chosen segments: short, and each whole in itself.

A sentence comes with the sentences that it stands among, a label with its value, an item with its list, code with the
line that introduces it. What was chosen is marked inside. A passage is one slice of the canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..core.ports import Segment
from ..core.text.words import count_words, sentence_spans
from ..core.types import Passage, Span
from ..pages.clean import rules
from ..pages.tree import Tree
from .segments import span_of

MOST: Final = 60
"""Words up to which a passage grows; a row, a pair, a list or code that was chosen may be longer."""

_LABEL: Final = 15
"""Words of a line without the end of a sentence, up to which it is a label that leans on what follows."""

_HEADINGS: Final = rules.HEADINGS | {"title", "caption"}
_NO_LEADS: Final = _HEADINGS | {"td", "th", "nav"}
_LISTS: Final = frozenset({"ul", "ol", "dl"})
_ITEMS: Final = frozenset({"li", "td", "th"})
_LINKS: Final = frozenset({"a", "button"})
_BOXES: Final = _LISTS | {"pre", "table"}
_COLONS: Final = (":", "：")
_STATES: Final = re.compile(r"\d|\b[Bb]y\s")
"""A line without the end of a sentence that may be an answer all the same: a number, or who made something."""
_SENTENCE_END: Final = re.compile(r"[.!?。！？…][\"'”’»)\]]*$")


def passages_of(chosen: Sequence[Segment], trees: Mapping[str, Tree]) -> list[Passage]:
    """Return the passages of chosen segments, in their order; those that overlap are one.

    A label, a heading or a question without what it leans on is left out, unless there is nothing else.

    :param trees: the documents by id; a segment of a document that is not in them is a passage as it is.
    """
    result: list[Passage] = []
    empty: list[Passage] = []
    for segment in chosen:
        tree = trees.get(segment.span.document)
        passage = segment.passage if tree is None else _grown(tree, segment)
        at = next((index for index, other in enumerate(result) if _overlap(other.spans[0], passage.spans[0])), -1)
        if tree is not None and at >= 0:
            result[at] = _joined(tree, result[at], passage)
        elif tree is not None and _only_leans(tree, passage):
            empty.append(passage)
        else:
            result.append(passage)
    return result or empty[:1]


def _overlap(one: Span, other: Span) -> bool:
    return one.document == other.document and one.start < other.end and other.start < one.end


def _only_leans(tree: Tree, passage: Passage) -> bool:
    """Tell whether each line of a passage is a question, an introduction, or a heading that states nothing."""
    start = passage.spans[0].start
    for line in passage.text.split("\n"):
        said = line.rstrip()
        states = bool(_SENTENCE_END.search(said)) or any(letter.isdigit() for letter in said)
        if said and not said.endswith(("?", "？", *_COLONS)) and (states or _holder(tree, start, rules.HEADINGS) < 0):
            return False
        start += len(line) + 1
    return True


def _grown(tree: Tree, segment: Segment) -> Passage:
    """Return the passage around a segment."""
    start, end, marks = _around(tree, segment)
    if segment.kind not in ("row", "pair"):
        start, end = _section(tree, start, end) or (start, end)
    if (start, end) == (segment.span.start, segment.span.end):
        return segment.passage
    lead = " ".join(segment.label.split())
    text = tree.canonical[start:end]
    said = count_words(lead) > 2 * _LABEL or lead in " ".join(text.split())
    marked = tuple(Span(tree.document, *mark) for mark in marks)
    span = Span(tree.document, start, end)
    label = "" if said else segment.label
    return replace(segment.passage, text=text, spans=(span,), label=label, shown="", marks=marked)


def _joined(tree: Tree, first: Passage, second: Passage) -> Passage:
    """Return the passage that holds two that overlap, the first one's words marked.

    It is the first alone where both are too long together.
    """
    one, other = first.spans[0], second.spans[0]
    span = Span(one.document, min(one.start, other.start), max(one.end, other.end))
    text = tree.canonical[span.start : span.end]
    if span == one or count_words(text) > 1.5 * MOST:
        return first
    return replace(first, text=text, spans=(span,), shown="", marks=first.marks or (one,))


def _around(tree: Tree, segment: Segment) -> tuple[int, int, list[tuple[int, int]]]:
    """Return (start, end) of the passage around a segment, and of what is marked in it."""
    text, start, end = tree.canonical, segment.span.start, segment.span.end
    own = [(start, end)]
    if segment.kind in ("row", "pair"):
        return start, end, own
    if segment.kind == "code":
        return *_with_line_before(tree, start, end, MOST // 2), own
    whole = _list_around(tree, start, end)
    if whole is not None:
        return *_with_line_before(tree, *whole, MOST), own if segment.kind == "sentence" else []
    if segment.kind == "list":
        return start, end, own
    start, end = _paragraph(text, start, end)
    if not _leans(tree, start, text[start:end].rstrip()):
        return start, end, own
    stop = _with_what_follows(tree, start, end)
    if _STATES.search(text, start, end):
        return start, stop, own
    after = stop - len(text[end:stop].lstrip())
    return start, stop, [(after, stop)] if after < stop and text.find("\n", after, stop) < 0 else []


def _leans(tree: Tree, start: int, line: str) -> bool:
    """Tell whether a line says nothing without what follows: a heading, a label, a question, an introduction."""
    if line.endswith(_COLONS) or _holder(tree, start, _HEADINGS) >= 0:
        return True
    words = count_words(line)
    if line.endswith(("?", "？")):
        return words <= 2 * _LABEL
    return words <= _LABEL and not _SENTENCE_END.search(line)


def _section(tree: Tree, start: int, end: int) -> tuple[int, int] | None:
    """Return the section around a span, heading included, where it is short and holds a list or code, but no table."""
    text = tree.canonical
    first, last = _line(text, start)
    last = max(last, end)
    if count_words(text[first:last]) > MOST:
        return None
    linked = _is_linked(tree, start, end) and not _STATES.search(text, start, end)
    while first and _holder(tree, first, _HEADINGS) < 0:
        low, high = _line(text, first - 1)
        menu = (
            not linked and _holder(tree, low, _HEADINGS) < 0 and text[low:high].strip() and _is_linked(tree, low, high)
        )
        if menu or count_words(text[low:last]) > MOST:
            return None
        first = low
    for low, high in _lines_after(text, last):
        if _holder(tree, low, _HEADINGS) >= 0 or (not linked and _is_linked(tree, low, high)):
            break
        last = high
        if count_words(text[first:last]) > MOST:
            return None
    tags = {*tree.tag[tree.node_at(first) : tree.node_at(max(first, last - 1)) + 1]}
    return (first, last) if tags & (_LISTS | {"pre"}) and "table" not in tags else None


def _paragraph(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a paragraph, or of a long one the sentences around a span."""
    first, last = _line(text, start)
    last = max(last, end)
    if count_words(text[first:last]) <= MOST:
        return first, last
    sentences = [(first + low, first + high) for low, high in sentence_spans(text[first:last])]
    low = next((index for index, (_, stop) in enumerate(sentences) if stop > start), len(sentences) - 1)
    high = next((index for index in range(len(sentences) - 1, low, -1) if sentences[index][0] < end), low)
    grows = True
    while grows:
        grows = False
        if low and count_words(text[sentences[low - 1][0] : sentences[high][1]]) <= MOST:
            low, grows = low - 1, True
        if high + 1 < len(sentences) and count_words(text[sentences[low][0] : sentences[high + 1][1]]) <= MOST:
            high, grows = high + 1, True
    start, end = min(start, sentences[low][0]), max(end, sentences[high][1])
    return start, start + len(text[start:end].rstrip())


def _list_around(tree: Tree, start: int, end: int) -> tuple[int, int] | None:
    """Return the innermost list around a span, where it is short."""
    node = _holder(tree, start, _LISTS)
    if node < 0 or tree.word_count(node) > MOST:
        return None
    first, last = span_of(tree, node, tree.end[node])
    around = [part for part in ((first, start), (end, last)) if tree.canonical[slice(*part)].strip()]
    if around and not _is_linked(tree, start, end) and all(_is_linked(tree, *part) for part in around):
        return None  # a number among the links of a menu
    return min(start, first), max(end, last)


def _with_line_before(tree: Tree, start: int, end: int, most: int) -> tuple[int, int]:
    """Add the line before a list or code, where it introduces it: no heading, no cell, and short enough.

    :param most: words of both at most, where the line does not end in a colon.
    """
    before = tree.canonical[:start].rstrip()
    first = before.rfind("\n") + 1
    line = before[first:]
    if not line or _holder(tree, first, _NO_LEADS) >= 0:
        return start, end
    if line.endswith(_COLONS):
        fits = count_words(line) <= 2 * _LABEL
    else:
        fits = count_words(line) + count_words(tree.canonical[start:end]) <= most
    return (first, end) if fits else (start, end)


def _with_what_follows(tree: Tree, start: int, end: int) -> int:
    """Return the end of what a label or an introduction leans on: a list, code, the rows or the lines behind it.

    An item or a cell leans on nothing outside of it, and a text on no menu: a label may have one link as its value.
    """
    text, own_end = tree.canonical, end
    item = _holder(tree, start, _ITEMS)
    states, linked = _STATES.search(text, start, end), _is_linked(tree, start, end)
    for first, last in _lines_after(text, end):
        if _holder(tree, first, _HEADINGS) >= 0 and end > own_end:
            break
        if item >= 0 and tree.node_at(first) >= tree.end[item]:
            break
        if (states or (end > own_end and not linked)) and _is_linked(tree, first, last):
            break
        if count_words(text[start:last]) > MOST:
            cut = _first_sentences(text, first, last, MOST - count_words(text[start:end])) if end == own_end else end
            return max(end, cut)
        box = _holder(tree, first, _BOXES)
        within = box >= 0 and tree.starts[box] >= own_end
        if within and count_words(text[start : tree.stop(tree.end[box] - 1)]) <= MOST:
            return tree.stop(tree.end[box] - 1)
        end = last
        if not within and not _leans(tree, first, text[first:last].rstrip()):
            break
    return end


def _is_linked(tree: Tree, start: int, end: int) -> bool:
    """Tell whether all words of a slice of the canonical text are those of links."""
    text = tree.canonical[start:end]
    start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    nodes = range(tree.node_at(start), tree.node_at(max(start, end - 1)) + 1)
    return all(_holder(tree, tree.starts[node], _LINKS) >= 0 for node in nodes if tree.text[node].strip())


def _first_sentences(text: str, first: int, last: int, most: int) -> int:
    """Return the end of the sentences that a line begins with, up to some words; the first one may be longer."""
    end = first
    for low, high in sentence_spans(text[first:last]):
        if count_words(text[first : first + high]) > (most if low else MOST):
            break
        end = first + high
    return end - (len(text[first:end]) - len(text[first:end].rstrip()))


def _lines_after(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines behind a position that are not empty."""
    while end < len(text):
        first, end = _line(text, end + 1 if text[end] == "\n" else end)
        if text[first:end].strip():
            yield first, end
        end += 1


def _line(text: str, position: int) -> tuple[int, int]:
    """Return the line around a position."""
    last = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, len(text) if last < 0 else last


def _holder(tree: Tree, position: int, tags: frozenset[str]) -> int:
    """Return the innermost element of some tags around a position of the canonical text; -1 where there is none."""
    node = tree.node_at(position)
    while node >= 0 and tree.tag[node] not in tags:
        node = tree.parent[node]
    return node
