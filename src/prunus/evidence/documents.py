"""Documents: pages that are cleaned once and cut once per granularity, for any number of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from ..core.errors import BadInput, BadPage, Failures, OutsideFailed, PrunusError
from ..core.types import Page
from ..pages.read import ToHtml, read_page
from ..pages.tree import Tree
from .blocks import Blocks, Units, cut
from .refine import Expanded, expand

T = TypeVar("T")
K = TypeVar("K")

_CUTS: Final = 4
"""Granularities whose blocks are held: the last ones. Documents that are kept can be asked for any number of them."""


class Documents:
    """Cleaned pages for any number of questions (treat it as immutable).

    :param trees: the cleaned documents, in the order of the pages.
    :param failures: the reason for each page that could not be read, by its name.
    """

    __slots__ = ("_cuts", "_expanded", "failures", "trees")

    def __init__(self, trees: Sequence[Tree], failures: dict[str, str] | None = None) -> None:
        self.trees = list(trees)
        self.failures = failures or {}
        self._cuts: dict[tuple[int, Units], Blocks] = {}
        self._expanded: dict[tuple[int, int, Units], Expanded] = {}

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def words(self) -> int:
        """Visible words of all documents together."""
        return sum(tree.words[-1] for tree in self.trees)

    @property
    def own_scorer(self) -> Any:
        """A scorer that only these documents can offer, and that is to be preferred; None without one."""
        return None

    def origin(self, document: str) -> Any:
        """Return the object that maps a span of a document to its source pages; None for a document that is a page.

        :param document: id of the document.
        """
        return None

    @property
    def overview(self) -> frozenset[str]:
        """Ids of the documents that answer an overview question even if they share no word with it; mostly none."""
        return frozenset()

    def first(self, count: int) -> Documents:
        """Return the first ``count`` documents."""
        return Documents(self.trees[:count], self.failures)

    def blocks(self, max_words: int, units: Units = "blocks") -> Blocks:
        """Return the blocks at a granularity; they are cut once for the last few granularities."""
        key = (max_words, units)
        blocks = self._cuts.get(key)
        if blocks is None:
            blocks = cut(self.trees, max_words, units)
            self._cuts = _with_last(self._cuts, key, blocks)
        return blocks

    def expanded(self, coarse_words: int, max_words: int, units: Units = "blocks") -> Expanded:
        """Return the coarse blocks, and the finer blocks cut inside them; they are cut once, as ``blocks``."""
        key = (coarse_words, max_words, units)
        expanded = self._expanded.get(key)
        if expanded is None:
            expanded = expand(self.blocks(coarse_words, units), max_words)
            self._expanded = _with_last(self._expanded, key, expanded)
        return expanded


def _with_last(held: dict[K, T], key: K, value: T) -> dict[K, T]:
    """Return what is held with one more, and without the oldest of too many; a new dict, for other threads read it."""
    return dict([*held.items(), (key, value)][-_CUTS:])


def read_pages(pages: Iterable[Page | PrunusError], to_html: ToHtml, *, strict: bool = True) -> Documents:
    """Clean pages once, for any number of questions.

    :param pages: pages, and errors in place of those that could not be got.
    :param to_html: converts a page of any format to HTML.
    :param strict: raise at the first page that cannot be read; otherwise note it in the failures and go on.
    :raises BadPage: a page cannot be read. Without ``strict``: no page can be read; the error is that of the first
        page, and its notes hold the reasons of the other pages.
    """
    trees: list[Tree] = []
    twins: Counter[str] = Counter()
    failures = Failures()
    for number, page in enumerate(pages, 1):
        try:
            if isinstance(page, PrunusError):
                raise page
            tree = read_page(page, to_html)
            twins[tree.snapshot] += 1
            if twins[tree.snapshot] > 1:  # the same content again, perhaps from another address: ids must differ
                tree.document = f"{tree.snapshot}#{twins[tree.snapshot]}"
            trees.append(tree)
        except (BadInput, OutsideFailed) as error:
            if strict:
                raise
            failures.note(error, (page.url or f"page {number}") if isinstance(page, Page) else "")
    if not trees:
        failure = failures.first or BadPage("no page was given", subject="pages")
        for reason in list(failures.values())[1:]:
            failure.add_note(reason)
        raise failure
    return Documents(trees, failures)
