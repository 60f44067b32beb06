"""Close the gaps that the walk left: merged wrappers, emptied and split text nodes, doubled noscripts."""

from __future__ import annotations

from typing import Any, Final, Protocol

from . import rules
from .growing import linked

_SEARCHED: Final = 64
"""Noscripts whose words are searched for in the page; beyond, only equal text nodes count: the
search is linear in the page for each, and a hostile page could hold any number."""

_KEPT_EMPTY: Final = frozenset({"tr", "thead", "tbody", "tfoot", "td", "th", "body", "html"})


class Arrays(Protocol):
    """The arrays of a walk that has ended."""

    tag: list[str | None]
    depth: list[int]
    text: list[str]
    attrs: dict[int, Any]
    origins: list[Any] | None


def drop_doubled_noscripts(walk: Arrays, noscripts: list[int]) -> bool:
    """Drop a <noscript> whose words the page shows elsewhere, or which only doubles a lazy image.

    :returns: whether anything was dropped.
    """
    tags, texts = walk.tag, walk.text
    ends = [_end_of(walk.depth, node) for node in noscripts]
    known: set[str] = set()
    shown = ""
    looked = False
    done, dropped, searched = -1, False, 0
    for node, end in zip(noscripts, ends, strict=True):
        if node < done:
            continue
        done = end
        parts = [_collapsed(text) for text in texts[node:end] if text and not text.isspace()]
        if parts:
            if not looked:
                looked = True
                outside = _words_outside(texts, noscripts, ends)
                known, shown = set(outside), " ".join(" ".join(outside).split())
            doubled = all(part in known for part in parts)
            if not doubled and searched < _SEARCHED:
                searched += 1
                doubled = " ".join(parts) in shown
        else:
            doubled = tags[node - 1] == "img" or "img" not in tags[node:end]
        if doubled:
            dropped = True
            _drop(walk, node, end)
    return dropped


def _end_of(depths: list[int], node: int) -> int:
    """Return the place after a node's last descendant."""
    end, depth = node + 1, depths[node]
    while end < len(depths) and depths[end] > depth:
        end += 1
    return end


def _collapsed(text: str) -> str:
    """Return a text with single spaces between its words; nearly all are so already."""
    if "  " in text or not text.isprintable():
        return " ".join(text.split())
    return text.strip(" ")


def _words_outside(texts: list[str], noscripts: list[int], ends: list[int]) -> list[str]:
    """Return the texts of a page that stand in no noscript."""
    inside = bytearray(len(texts))
    for node, end in zip(noscripts, ends, strict=True):
        inside[node:end] = b"\1" * (end - node)
    return [_collapsed(text) for text, hidden in zip(texts, inside, strict=True) if text and not hidden]


def _drop(walk: Arrays, node: int, end: int) -> None:
    """Drop a subtree, and what held nothing else."""
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


def close_gaps(walk: Arrays) -> None:
    """Rebuild the arrays: merged wrappers hand their children up, split text nodes join, empty ones go."""
    tags, texts, depths = walk.tag, walk.text, walk.depth
    live: list[int] = []
    depth: list[int] = []
    merged: list[int] = []  # depths of the merged nodes around
    joined: dict[int, list[str]] = {}  # old number of the first of several adjacent text nodes
    latest, latest_depth = -1, -1  # the text node right before, if nothing stands between
    for node, tag in enumerate(tags):
        level = depths[node]
        while merged and merged[-1] >= level:
            merged.pop()
        if tag is None:
            merged.append(level)
            continue
        level -= len(merged)
        if not tag:
            text = texts[node]
            if not text:
                continue
            if latest_depth == level:
                joined.setdefault(latest, [texts[latest]]).append(text)
                continue
            latest, latest_depth = node, level
        else:
            latest_depth = -1
        depth.append(level)
        live.append(node)
    for node, parts in joined.items():
        texts[node] = "".join(parts)
    walk.depth = depth
    walk.tag = [tags[node] for node in live]
    walk.text = [texts[node] for node in live]
    walk.attrs = {place: walk.attrs[node] for place, node in enumerate(live) if node in walk.attrs}
    if walk.origins is not None:
        above, _ = linked(depths)
        for node in joined:  # words of several elements: what holds them all is the element around them
            walk.origins[node] = walk.origins[above[node]]
        walk.origins = [walk.origins[node] for node in live]
