"""XPaths of nodes in the original page, as an HTML5 parser sees it; made on demand by parsing the page again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .clean.parse import FORMER, Element
from .clean.walk import walk_page
from .tree import Tree


def xpath_of(tree: Tree, node: int) -> str:
    """Return the XPath of a node in the HTML5-parsed original page; for a text node, the XPath of its element.

    The first call on a tree parses the page again; later calls use its result.
    """
    if tree._xpaths is None:
        tree._xpaths = XPaths(*tree._markup)
    return str(tree._xpaths[node])


class XPaths:
    """The XPaths of a cleaned page's nodes in its HTML5-parsed original; each is built when it is looked up."""

    def __init__(self, markup: str | bytes, charset: str) -> None:
        self._origins = walk_page(markup, charset, "page", True)[1]
        self._steps: dict[Any, str] = {}  # by element

    def __getitem__(self, node: int) -> str:
        """Return the XPath of an element, or of a text node's element, as ``/html/body/div[2]/p``."""
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
        """Record the XPath step of each child of an element: its tag, numbered where several children share it."""
        children = [
            (child, FORMER.get(child.tag, child.tag)) for child in parent.children if isinstance(child, Element)
        ]
        totals = Counter(tag for _, tag in children)
        numbers: Counter[str] = Counter()
        for child, tag in children:
            numbers[tag] += 1
            self._steps[child] = f"{tag}[{numbers[tag]}]" if totals[tag] > 1 else tag
