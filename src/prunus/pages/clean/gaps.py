"""Clean up the arrays after the walk: merged wrappers, empty and split text nodes, noscripts that repeat the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..tree import Attrs
from . import rules
from .tree_builder import GrowingTree, linked

_SEARCHED: Final = 64
"""Noscripts whose words are searched for in the whole page. Each search is linear in the page, and a hostile page could
hold any number of noscripts: beyond this number, only equal text nodes count."""

_KEPT_EMPTY: Final = frozenset({"tr", "thead", "tbody", "tfoot", "td", "th", "body", "html"})


def drop_doubled_noscripts(walk: GrowingTree, noscripts: list[int]) -> bool:
    """Drop each <noscript> whose words the page shows elsewhere, or that only repeats a lazy image.

    :returns: whether anything was dropped.
    """
    tags, texts = walk.tag, walk.text
    parents, all_ends = linked(walk.depth)
    ends = [all_ends[node] for node in noscripts]
    outside_texts: set[str] = set()
    outside: list[str] = []
    shown = ""
    collected = False
    starts: dict[int, int] = {}  # of the nodes that were dropped, by their end
    last_end, dropped, searched = -1, False, 0
    for node, end in zip(noscripts, ends, strict=True):
        if node < last_end:
            continue
        last_end = end
        parts = [_collapsed(text, True) for text in texts[node:end] if text and not text.isspace()]
        if parts:
            if not collected:
                collected = True
                outside = _words_outside(walk, noscripts, ends)
                outside_texts = set(outside)
            doubled = all(part in outside_texts for part in parts)
            if not doubled and searched < _SEARCHED:
                searched += 1
                shown = shown or " ".join([text for text in outside if text])
                doubled = " ".join(parts) in shown
        else:
            doubled = tags[starts.get(node, node) - 1] == "img" or "img" not in tags[node:end]
        if doubled:
            dropped = True
            starts[end] = _drop(walk, node, end, parents, starts)
    return dropped


def _collapsed(text: str, raw: bool) -> str:
    """Return a text with single spaces between its words.

    :param raw: the text may be preformatted; other texts have single spaces already.
    """
    if raw and ("  " in text or not text.isprintable()):
        return " ".join(text.split())
    return text.strip(" ")


def _words_outside(walk: GrowingTree, noscripts: list[int], ends: list[int]) -> list[str]:
    """Return the texts of a page outside its noscripts."""
    texts: list[str] = []
    after = 0
    for node, end in zip(noscripts, ends, strict=True):
        if node >= after:  # else it is nested in the previous noscript
            texts += walk.text[after:node]
            after = end
    texts += walk.text[after:]
    raw = walk.preformatted
    return [_collapsed(text, raw) for text in texts if text]


def _drop(walk: GrowingTree, node: int, end: int, parents: Sequence[int], starts: Mapping[int, int]) -> int:
    """Drop a subtree, the elements around it that hold nothing else, and those that hold a space at a line's end.

    :param starts: where dropped nodes begin, by their end: they are passed over.
    :returns: where the dropped nodes begin now.
    """
    tags, texts, depths = walk.tag, walk.text, walk.depth
    after, depth = depths[end] if end < len(tags) else 0, depths[node]
    held_block = any(tag and tag not in rules.INLINE for tag in tags[node:end])
    for index in range(node, end):
        tags[index] = None
        texts[index] = ""
    while node > 1:
        if node in starts:
            node = starts[node]
            continue
        tag, level = tags[node - 1], depths[node - 1]
        first = tag == "" and texts[node - 1] == " " and level == depth > depths[node - 2]
        if first and tags[node - 2] in rules.INLINE and _ends_line(walk, node - 1, end, parents):
            texts[node - 1] = ""
        if tag and tag not in _KEPT_EMPTY and after <= level < depth:
            depth = level
            held_block = held_block or tag not in rules.INLINE
        elif tag is None or tag or texts[node - 1] or level < depth:
            break
        node -= 1
        tags[node] = None
    # at most one space stays between the words on both sides, and one where a block separated them
    if end < len(tags) and tags[end] == "":
        before = texts[node - 1] if tags[node - 1] == "" else ""
        if not texts[end].startswith(" "):
            texts[end] = " " + texts[end] if held_block and before and not before.endswith(" ") else texts[end]
        elif before.endswith(" ") or (not before and tags[node - 1] not in rules.INLINE):
            texts[end] = texts[end][1:]
    return node


def _ends_line(walk: GrowingTree, node: int, end: int, parents: Sequence[int]) -> bool:
    """Tell whether a line ends between a node and the node ``end``, which follows its subtree; not so in <pre>."""
    tags, depths = walk.tag, walk.depth
    ends = end >= len(tags) or not (tags[end] == "" or tags[end] in rules.INLINE)
    above = parents[node]
    while above >= 0 and (walk.preformatted or not ends):
        if tags[above] in rules.PREFORMATTED:
            return False
        ends = ends or (depths[above] >= depths[end] and tags[above] not in rules.INLINE)
        above = parents[above]
    return ends


def close_gaps(walk: GrowingTree) -> None:
    """Rebuild the arrays: children of merged wrappers move up, adjacent text nodes join, empty text nodes go."""
    tags, texts, depths = walk.tag, walk.text, walk.depth
    tag_list: list[Any] = []
    text_list: list[str] = []
    depth_list: list[int] = []
    attrs: list[Attrs | None] = []
    origins: list[Any] | None = None if walk.origins is None else []
    parents, _ = linked(depths) if walk.origins else ([], [])
    joined: dict[int, list[str]] = {}  # parts of a joined text node, by its new index
    merged: list[int] = []  # depths of the merged nodes around this node
    latest = -1  # depth of the text node right before this node, -1 if another node is between
    for node, tag in enumerate(tags):
        level = depths[node]
        while merged and merged[-1] >= level:
            merged.pop()
        if tag is None:
            merged.append(level)
            continue
        level -= len(merged)
        text = texts[node]
        if tag:
            latest = -1
        elif not text:
            continue
        elif latest == level:
            joined.setdefault(len(text_list) - 1, [text_list[-1]]).append(text)
            if origins and walk.origins:  # words of several elements: their common parent is the origin
                origins[-1] = walk.origins[parents[node]]
            continue
        else:
            latest = level
        tag_list.append(tag)
        text_list.append(text)
        depth_list.append(level)
        attrs.append(walk.attrs[node])
        if origins is not None and walk.origins is not None:
            origins.append(walk.origins[node])
    for place, parts in joined.items():
        text_list[place] = "".join(parts)
    walk.tag, walk.text, walk.depth, walk.attrs, walk.origins = tag_list, text_list, depth_list, attrs, origins
