"""The nodes of one cleaned document as compact arrays in document order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ..core.text.words import count_words

Attrs = dict[str, str]


class NodeArrays:
    """The nodes of a document; treat them as immutable.

    Node ``i`` of ``len(tree)`` nodes has ``tag[i]`` ('' for a text node), ``parent[i]`` (-1 for the root) and
    ``end[i]``, one past its last descendant: a subtree is ``range(i, end[i])``. ``text[i]`` is the text that the node
    itself shows (text nodes, alt texts of images, labels). ``attrs[i]`` holds its kept attributes with whole values.
    """

    __slots__ = ("_words", "attrs", "cache", "end", "parent", "tag", "text")

    def __init__(
        self, tag: list[str], parent: Sequence[int], end: Sequence[int], text: list[str], attrs: list[Attrs | None]
    ) -> None:
        self.tag = tag
        self.parent = parent
        self.end = end
        self.text = text
        self.attrs = attrs
        self._words: Sequence[int] | None = None
        self.cache: dict[tuple[str, int], Any] = {}  # results of functions on single nodes, by function and node

    def __len__(self) -> int:
        return len(self.tag)

    @property
    def words(self) -> Sequence[int]:
        """Prefix sums of word counts: nodes ``[lo, hi)`` hold ``words[hi] - words[lo]`` words."""
        if self._words is None:
            self._words = list(accumulate((count_words(text) if text else 0 for text in self.text), initial=0))
        return self._words

    @property
    def has_words(self) -> bool:
        """Whether the document shows any word."""
        return any(text and not text.isspace() for text in self.text)

    def word_count(self, node: int) -> int:
        """Return the number of words in the subtree of ``node``, in O(1)."""
        return self.words[self.end[node]] - self.words[node]

    def children(self, node: int) -> list[int]:
        """Return the child nodes of ``node`` in order."""
        children = []
        child, stop, end = node + 1, self.end[node], self.end
        while child < stop:
            children.append(child)
            child = end[child]
        return children
