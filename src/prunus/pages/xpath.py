"""XPaths into the page as HTML5 parses it: the page is parsed and walked once more, on demand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .clean.formatting import FORMER
from .clean.parse import Element
from .clean.walk import walk_page
from .tree import Tree


def xpath_of(tree: Tree, node: int) -> str:
    """Return the XPath of a node in the page as HTML5 parses it.

    A text node answers with its element's path. The page is parsed once more for the first call on a tree; later
    calls look it up.
    """
    if tree._xpaths is None:
        tree._xpaths = XPaths(*tree._markup)
    return str(tree._xpaths[node])


class XPaths:
    """The XPath in the HTML5-parsed original of every node that cleaning keeps, each written when it is asked for."""

    def __init__(self, markup: str | bytes, charset: str) -> None:
        self._origins = walk_page(markup, charset, "page", True)[1]
        self._steps: dict[Any, str] = {}  # by element

    def __getitem__(self, node: int) -> str:
        """Return ``/html/body/div[2]/p`` for an element, or for the one that holds a text."""
        origin = self._origins[node]
        element = origin if isinstance(origin, Element) else origin.parent
        steps: list[str] = []
        while isinstance(element, Element):
            if element not in self._steps:
                self._number(element.parent)
            steps.append(self._steps[element])
            element = element.parent
        return "/" + "/".join(reversed(steps))

    def _number(self, parent: Any) -> None:
        """Note the step to each child of an element: its tag, with its number where several share it."""
        children = [
            (child, FORMER.get(child.tag, child.tag)) for child in parent.children if isinstance(child, Element)
        ]
        totals = Counter(tag for _, tag in children)
        numbers: Counter[str] = Counter()
        for child, tag in children:
            numbers[tag] += 1
            self._steps[child] = f"{tag}[{numbers[tag]}]" if totals[tag] > 1 else tag
