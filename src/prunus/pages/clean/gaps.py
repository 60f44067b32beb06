"""Clean up the arrays after the walk: merged wrappers, empty and split text nodes, noscripts that repeat the page."""

from __future__ import annotations

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
    ends = [_end_of(walk.depth, node) for node in noscripts]
    outside_texts: set[str] = set()
    outside: list[str] = []
    shown = ""
    collected = False
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
            doubled = tags[node - 1] == "img" or "img" not in tags[node:end]
        if doubled:
            dropped = True
            _drop(walk, node, end)
    return dropped


def _end_of(depths: list[int], node: int) -> int:
    """Return the index after a node's last descendant."""
    end, depth = node + 1, depths[node]
    while end < len(depths) and depths[end] > depth:
        end += 1
    return end


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


def _drop(walk: GrowingTree, node: int, end: int) -> None:
    """Drop a subtree, and the elements around it that hold nothing else."""
    tags, texts, depths = walk.tag, walk.text, walk.depth
    after = depths[end] if end < len(tags) else 0
    while (
        node > 1 and after <= depths[node - 1] < depths[node] and tags[node - 1] and tags[node - 1] not in _KEPT_EMPTY
    ):
        node -= 1
    for index in range(node, end):
        tags[index] = None
        texts[index] = ""
    # at most one space stays between the words on both sides
    if end < len(tags) and tags[end] == "" and texts[end].startswith(" "):
        before = texts[node - 1] if tags[node - 1] == "" else ""
        if before.endswith(" ") or (not before and tags[node - 1] not in rules.INLINE):
            texts[end] = texts[end][1:]


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
