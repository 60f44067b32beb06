"""What a document holds beside what it shows: speaker notes, comments, hidden sheets and slides.

Formats write each as an ``<aside>`` that begins with its label in ``<data value="aside-KIND">``, which cleaning keeps.
"""

from __future__ import annotations

import re
from typing import Final

from .tree import Tree

NOTES: Final = '<h3><data value="aside-notes">Speaker notes</data></h3>'
"""The label of speaker notes. As a heading it covers the rest of its aside, and comes with each part of it."""

HIDDEN: Final = '<data value="aside-hidden">Hidden {}</data>'
"""The label of a hidden ``sheet`` or ``slide``."""

_COMMENT: Final = '<data value="aside-comment">Comment{}:</data>'
_BEGINS: Final = re.compile(r'<aside>(?:<(?:p|h[1-6])>)?(?:<data value="\w{1,9}-\d{1,7}">)?<data value="aside-')
_EDGE: Final = re.compile(r"<(/?)aside\b")
_WORDS: Final = {"aside-notes": "speaker notes", "aside-comment": "comment", "aside-hidden": "hidden"}


def aside(label: str, markup: str) -> str:
    """Return markup under its label."""
    return f"<aside>{label}{markup}</aside>"


def comment(markup: str, by: str = "", on: str = "") -> str:
    """Return a comment; '' without words.

    :param markup: HTML: text, or paragraphs.
    :param by: its author, as HTML.
    :param on: the cell that it is on.
    """
    if not markup.strip():
        return ""
    label = _COMMENT.format(f"{on and f' on {on}'}{by and f' by {by}'}")
    is_paragraph = markup.startswith("<p>")
    return aside("", f"<p>{label} {markup[3:]}" if is_paragraph else f"<p>{label} {markup}</p>")


def without_asides(markup: str) -> str:
    """Return what the document shows: its HTML without speaker notes, comments, hidden sheets and slides."""
    kept, position = [], 0
    while begin := _BEGINS.search(markup, position):
        depth, end = 0, len(markup)
        for edge in _EDGE.finditer(markup, begin.start()):
            depth += -1 if edge[1] else 1
            if not depth:
                end = edge.end() + 1
                break
        kept.append(markup[position : begin.start()])
        position = end
    return "".join([*kept, markup[position:]])


def asides_around(tree: Tree, node: int) -> dict[str, int]:
    """Return the asides around a node: ``speaker notes``, ``comment`` or ``hidden``, and the node where each begins."""
    around: dict[str, int] = {}
    while (node := tree.parent[node]) >= 0:
        if tree.tag[node] == "aside":
            for at in range(node + 1, min(node + 4, tree.end[node])):  # the label is the aside's first words
                word = _WORDS.get((tree.attrs[at] or {}).get("value", "")) if tree.tag[at] == "data" else None
                if word:
                    around.setdefault(word, node)
    return around
