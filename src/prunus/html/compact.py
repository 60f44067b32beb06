"""Close the gaps that the walk left: merged wrappers, emptied and split text nodes, doubled noscripts."""

from __future__ import annotations

from typing import Any, Final, Protocol

from . import rules

_SEARCHED: Final = 64
"""Noscripts whose words are searched for in the page; beyond, only equal text nodes count: the
search is linear in the page for each, and a hostile page could hold any number."""

_KEPT_EMPTY: Final = frozenset({"tr", "thead", "tbody", "tfoot", "td", "th", "body", "html"})


class Arrays(Protocol):
    """The arrays of a walk that has ended."""

    tag: list[str | None]
    parent: list[int]
    end: list[int]
    text: list[str]
    attrs: list[Any]
    origins: list[Any] | None


def drop_doubled_noscripts(walk: Arrays, noscripts: list[int]) -> bool:
    """Drop a <noscript> whose words the page shows elsewhere, or which only doubles a lazy image.

    :returns: whether anything was dropped.
    """
    tags, texts, ends = walk.tag, walk.text, walk.end
    known: set[str] = set()
    shown = ""
    looked = False
    done, dropped, searched = -1, False, 0
    for node in noscripts:
        if node < done:
            continue
        end = done = ends[node]
        parts = [" ".join(text.split()) for text in texts[node:end] if text and not text.isspace()]
        if parts:
            if not looked:
                looked = True
                outside = _words_outside(texts, ends, noscripts)
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


def _words_outside(texts: list[str], ends: list[int], noscripts: list[int]) -> list[str]:
    """Return the texts of a page that stand in no noscript."""
    inside = bytearray(len(texts))
    for node in noscripts:
        inside[node : ends[node]] = b"\1" * (ends[node] - node)
    return [" ".join(text.split()) for text, hidden in zip(texts, inside, strict=True) if text and not hidden]


def _drop(walk: Arrays, node: int, end: int) -> None:
    """Drop a subtree, and what held nothing else."""
    tags, texts = walk.tag, walk.text
    while node > 1 and walk.end[node - 1] == end and tags[node - 1] and tags[node - 1] not in _KEPT_EMPTY:
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
    tags, texts, parent, end = walk.tag, walk.text, walk.parent, walk.end
    place: list[int] = []  # where each old node stands now; a merged one where its parent stands
    before: list[int] = [0]  # kept nodes before each old node
    live: list[int] = []
    joined: dict[int, list[str]] = {}  # old number of the first of several adjacent text nodes
    latest = -1  # the text node right before, if nothing stands between
    count = 0
    for node, tag in enumerate(tags):
        text = texts[node]
        above = parent[node]
        if tag == "" and text and latest >= 0 and place[parent[latest]] == place[above]:
            joined.setdefault(latest, [texts[latest]]).append(text)
            place.append(count - 1)
        elif tag or (tag == "" and text):
            place.append(count)
            live.append(node)
            count += 1
            latest = -1 if tag else node
        else:
            place.append(place[above] if above >= 0 else -1)
        before.append(count)
    walk.parent = [place[parent[node]] if parent[node] >= 0 else -1 for node in live]
    walk.end = [before[end[node]] for node in live]
    for node, parts in joined.items():
        texts[node] = "".join(parts)
    walk.tag = [tags[node] for node in live]
    walk.text = [texts[node] for node in live]
    walk.attrs = [walk.attrs[node] for node in live]
    if walk.origins is not None:
        for node in joined:  # words of several elements: what holds them all is the element around them
            walk.origins[node] = walk.origins[parent[node]]
        walk.origins = [walk.origins[node] for node in live]
