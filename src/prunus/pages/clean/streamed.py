"""Puts what React streams where its script puts it.

React (18 and later) sends the slow parts of a page at its end, each in a hidden element, and after each a call of a
function of its own that moves it to its place. The calls are read; no script is run.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .parse import Comment, Document

_MOVES: Final = re.compile(r"\$R([CRS])\(\s*+[\"']([^\"'\\]{1,60})[\"']\s*+,\s*+[\"']([^\"'\\]{1,60})[\"']")
"""``$RC(place, part)``, and ``$RR``, which waits for style sheets, put a part instead of what is shown while it loads;
``$RS(part, place)`` puts one into another part."""

_BEGIN: Final = ("$", "$?", "$!", "$~")
_END: Final = "/$"
"""Comments around what is shown while a part loads."""

_PARTS: Final = "[hidden][id],table[hidden] tbody[id],table[hidden] tr[id],table[hidden] colgroup[id]"
_MOST: Final = 1_000  # moves of a page, and nodes that are shown while a part loads


def place_streamed(document: Document) -> None:
    """Move each part of a page that React streams to its place."""
    places: dict[str, Any] = {place.attr("id") or "": place for place in document.select("template[id]")}
    if not places:
        return
    parts: dict[str, Any] = {part.attr("id") or "": part for part in document.select(_PARTS)}
    calls = [call for script in document.select("script") for call in _MOVES.findall(script.text)]
    for kind, first, second in calls[:_MOST]:
        name, at = (first, second) if kind == "S" else (second, first)
        if name in parts and at in places and not any(above == parts[name] for above in places[at].ancestors):
            part, place = parts.pop(name), places.pop(at)
            for node in _while_loading(place) if kind != "S" else ():
                node.replace_with()
            place.replace_with(*list(part.children))


def _while_loading(place: Any) -> list[Any]:
    """Return the nodes from a place to the end of its boundary; none where it has no end."""
    depth = 0
    between: list[Any] = []
    node = place.next_sibling
    while node is not None and len(between) < _MOST:
        if isinstance(node, Comment):
            if node.data == _END and not depth:
                return between
            depth += (node.data in _BEGIN) - (node.data == _END)
        between.append(node)
        node = node.next_sibling
    return []
