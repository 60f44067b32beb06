"""XPaths into the page as HTML5 parses it: the page is parsed and walked once more, on demand."""

from __future__ import annotations

from typing import Any

from .clean import walk_page
from .formatting import FORMER
from .parse import Element, children_of


def original_xpaths(markup: str | bytes, charset: str) -> list[str]:
    """Return the XPath in the HTML5-parsed original of every node that cleaning keeps."""
    _, origins = walk_page(markup, charset, "page", True)
    levels = _Levels()
    found: list[str] = []
    element: Any = None
    path = ""
    for place, node in enumerate(origins):
        holder = node if isinstance(node, Element) else node.parent
        if holder != element:
            element, path = holder, levels.path(holder)
        found.append(path)
        origins[place] = None  # the objects for a large page's nodes take as much as the nodes
    return found


class _Level:
    """The children of an element, as far as they were numbered: nodes come in document order, hardly ever out of it.

    :param path: the XPath of the element.
    """

    def __init__(self, parent: Any, path: str) -> None:
        self.parent = parent
        self.path = path
        self._totals: dict[str, int] = {}
        for child in children_of(parent):
            if isinstance(child, Element):
                tag = FORMER.get(child.tag, child.tag)
                self._totals[tag] = self._totals.get(tag, 0) + 1
        self._start()

    def _start(self) -> None:
        self._latest: Any = None
        self._next: Any = self.parent[0]
        self._numbers: dict[str, int] = {}

    def path_of(self, element: Any) -> str:
        """Return the XPath of a child: its tag, with its number where several share it."""
        while self._latest != element:
            if self._next is None:  # it was passed before
                self._start()
            self._latest, self._next = self._next, self._next.next_sibling
            if isinstance(self._latest, Element):
                tag = FORMER.get(self._latest.tag, self._latest.tag)
                self._numbers[tag] = self._numbers.get(tag, 0) + 1
        tag = FORMER.get(element.tag, element.tag)
        return f"{self.path}/{tag}[{self._numbers[tag]}]" if self._totals[tag] > 1 else f"{self.path}/{tag}"


class _Levels:
    """The levels above the latest element."""

    def __init__(self) -> None:
        self._open: list[_Level] = []
        self._places: dict[Any, int] = {}  # by the element whose children a level holds

    def path(self, element: Any) -> str:
        """Build ``/html/body/div[2]/p`` for an element."""
        known = self._places.get(element)
        if known is not None:  # a text after its children: they may go on
            return self._open[known].path
        missing = []
        parent = element.parent
        while parent is not None and parent not in self._places:
            missing.append(parent)
            parent = parent.parent
        stay = 0 if parent is None else self._places[parent] + 1
        for level in self._open[stay:]:
            del self._places[level.parent]
        del self._open[stay:]
        for above in reversed(missing):
            path = self._open[-1].path_of(above) if self._open else ""  # above all others is the document
            self._places[above] = len(self._open)
            self._open.append(_Level(above, path))
        return self._open[-1].path_of(element)
