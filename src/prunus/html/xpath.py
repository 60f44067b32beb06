"""XPaths into the page as HTML5 parses it: the page is parsed and walked once more, on demand."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, overload

from .clean import walk_page
from .formatting import FORMER
from .parse import LARGE, Element, children_of, give_back_memory


def original_xpaths(markup: str | bytes, charset: str) -> Sequence[str]:
    """Return the XPath in the HTML5-parsed original of every node that cleaning keeps."""
    if len(markup) >= LARGE:
        give_back_memory()  # what scoring left
    steps = _Steps()
    levels = _Levels(steps)
    return _XPaths(walk_page(markup, charset, "page", (levels.step_to, array("i")))[1], steps)


class _Steps:
    """Steps from elements to their children: numbers, because an object for each takes as much as the DOM itself.

    ``above`` is the step that leads to the parent, -1 for the outermost; ``tag`` a place in ``tags``; ``number`` which
    of the parent's children of that tag, 0 where it is the only one.
    """

    def __init__(self) -> None:
        self.above = array("i")
        self.tag = array("i")
        self.number = array("i")
        self.tags: dict[str, int] = {}

    def add(self, above: int, tag: str, number: int) -> int:
        """Add a step; return its own number."""
        self.above.append(above)
        self.tag.append(self.tags.setdefault(tag, len(self.tags)))
        self.number.append(number)
        return len(self.above) - 1


class _XPaths(Sequence[str]):
    """The XPaths of a tree's nodes, each written when it is asked for."""

    def __init__(self, last: Sequence[int], steps: _Steps) -> None:
        self._last = last  # the step that leads to each node's element
        self._steps = steps
        self._tags = list(steps.tags)

    def __len__(self) -> int:
        return len(self._last)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        steps, parts = self._steps, []
        step = self._last[index]
        while step >= 0:
            number = steps.number[step]
            parts.append(self._tags[steps.tag[step]] + (f"[{number}]" if number else ""))
            step = steps.above[step]
        return "".join("/" + part for part in reversed(parts))


class _Level:
    """The children of an element, as far as they were numbered: nodes come in document order, hardly ever out of it.

    :param step: the step that leads to the element.
    """

    def __init__(self, parent: Any, step: int) -> None:
        self.parent = parent
        self.step = step
        self._totals: dict[str, int] = {}
        for child in children_of(parent):
            if isinstance(child, Element):
                tag = FORMER.get(child.tag, child.tag)
                self._totals[tag] = self._totals.get(tag, 0) + 1
        self._start()

    def _start(self) -> None:
        self._latest: Any = None
        self._reached = -1  # the step to the latest child, once it was made
        self._next: Any = self.parent[0]
        self._numbers: dict[str, int] = {}

    def step_to(self, element: Any, steps: _Steps) -> int:
        """Return the step to a child: its tag, with its number where several share it."""
        while self._latest != element:
            if self._next is None:  # it was passed before
                self._start()
            self._latest, self._next, self._reached = self._next, self._next.next_sibling, -1
            if isinstance(self._latest, Element):
                tag = FORMER.get(self._latest.tag, self._latest.tag)
                self._numbers[tag] = self._numbers.get(tag, 0) + 1
        if self._reached < 0:
            tag = FORMER.get(element.tag, element.tag)
            self._reached = steps.add(self.step, tag, self._numbers[tag] if self._totals[tag] > 1 else 0)
        return self._reached


class _Levels:
    """The levels above the latest element."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._open: list[_Level] = []
        self._places: dict[Any, int] = {}  # by the element whose children a level holds

    def step_to(self, node: Any) -> int:
        """Return the last step of ``/html/body/div[2]/p`` for an element, or for the one that holds a text."""
        element = node if isinstance(node, Element) else node.parent
        known = self._places.get(element)
        if known is not None:  # a text after its children: they may go on
            return self._open[known].step
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
            step = self._open[-1].step_to(above, self._steps) if self._open else -1  # above all is the document
            self._places[above] = len(self._open)
            self._open.append(_Level(above, step))
        return self._open[-1].step_to(element, self._steps)
