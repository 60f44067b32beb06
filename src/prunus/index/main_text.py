"""The main content of leaves: what summaries are made of, so that no menu and no cookie banner leads one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..core.errors import BadPage, errors_of_page
from ..pages.main.keep import clean_with_main, main_spans
from .evidence import unpacked
from .nodes import IndexedDocument, Node, NodeStore


class MainText:
    """Gives the texts of leaves without the parts of their pages that are not main content.

    Each page is cleaned once; what is kept of it are offsets.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._known: dict[int, bool] = {}  # by node: whether it holds main content
        self._spans: dict[str, Sequence[tuple[int, int]] | None] = {}

    def of(self, nodes: Sequence[Node]) -> list[str]:
        """Return the texts of a group of nodes; whole texts where none of them holds main content.

        A summary is whole where a leaf below it holds main content, else ''.
        """
        texts = [self._of_leaf(node) if node.layer == 0 else node.text if self._holds(node) else "" for node in nodes]
        return texts if any(texts) else [node.text for node in nodes]

    def _holds(self, node: Node) -> bool:
        """Tell whether a node, or a leaf below it, holds main content."""
        known = self._known.get(node.id)
        if known is None:
            below = self._store.get(node.children) if node.layer else ()
            known = any(map(self._holds, below)) if node.layer else bool(self._of_leaf(node))
            self._known[node.id] = known
        return known

    def _of_leaf(self, leaf: Node) -> str:
        if leaf.document not in self._spans:
            self._spans[leaf.document] = _spans_of(self._store.document(leaf.document))
        spans = self._spans[leaf.document]
        if spans is None:
            return leaf.text
        parts = []
        place = max(0, bisect_right(spans, (leaf.start, leaf.start)) - 1)
        while place < len(spans) and spans[place][0] < leaf.end:
            start, end = max(spans[place][0], leaf.start), min(spans[place][1], leaf.end)
            if start < end:
                parts.append(leaf.text[start - leaf.start : end - leaf.start])
            place += 1
        return "\n".join(parts)


def _spans_of(document: IndexedDocument) -> Sequence[tuple[int, int]] | None:
    """Return the spans of a document's main content; None for all of it."""
    markup, charset = unpacked(document.source) if document.source else ("", "")
    if markup:
        with suppress(BadPage), errors_of_page(document.id):
            tree: Any = clean_with_main(markup, charset, document.id)
            if tree.canonical == document.text:  # else another version of cleaning cut the leaves
                return main_spans(tree)
    return None
