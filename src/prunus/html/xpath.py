"""XPaths into the page as HTML5 parses it: the page is parsed and walked once more, on demand."""

from __future__ import annotations

from typing import Any

from .clean import walk_page
from .formatting import FORMER
from .parse import Element, Node


def original_xpaths(markup: str | bytes, charset: str) -> list[str]:
    """Return the XPath in the HTML5-parsed original of every node that cleaning keeps."""
    _, origins = walk_page(markup, charset, "page", True)
    known: dict[Any, str] = {}
    return [_xpath(node, known) for node in origins]


def _xpath(node: Node, known: dict[Any, str]) -> str:
    """Build ``/html/body/div[2]/p`` for an element, or for a text node's parent."""
    element: Any = node if isinstance(node, Element) else node.parent
    steps = []
    while isinstance(element, Element):
        step = known.get(element)
        if step is None:
            parent = element.parent
            counts: dict[str, list[Any]] = {}
            for child in parent.children if parent is not None else [element]:
                if isinstance(child, Element):
                    counts.setdefault(FORMER.get(child.tag, child.tag), []).append(child)
            for tag, same in counts.items():
                for number, twin in enumerate(same, 1):
                    known[twin] = f"{tag}[{number}]" if len(same) > 1 else tag
            step = known[element]
        steps.append(step)
        element = element.parent
    return "/" + "/".join(reversed(steps))
