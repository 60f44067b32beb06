"""Documents: pages cleaned once, cut once at each granularity, asked many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.errors import BadInput, BadPage, Failures, OutsideFailed
from ..core.types import Page
from ..pages.read import ToHtml, read_page
from ..pages.tree import Tree
from .blocks import Blocks, Units, cut
from .recut import Expanded, expand


class Documents:
    """Cleaned pages that can be asked any number of questions (treat it as immutable).

    :param trees: the cleaned documents, in the order in which they were given.
    :param failures: what could not be read, by name: the reason.
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
        """What scores the blocks of these documents better than any other scorer; None: nothing does."""
        return None

    def origin(self, document: str) -> Any:
        """Return what leads the words of a document on to the pages that they were made of; None: it is a page."""
        return None

    @property
    def overview(self) -> frozenset[str]:
        """The documents that answer a question about the whole, whose words nothing needs to share; mostly none."""
        return frozenset()

    def first(self, count: int) -> Documents:
        """Return the first so many documents."""
        return Documents(self.trees[:count], self.failures)

    def blocks(self, max_words: int, units: Units = "blocks") -> Blocks:
        """Return the cut at a granularity, made once."""
        key = (max_words, units)
        found = self._cuts.get(key)
        if found is None:
            found = self._cuts[key] = cut(self.trees, max_words, units)
        return found

    def expanded(self, coarse_words: int, max_words: int, units: Units = "blocks") -> Expanded:
        """Return the cut at a coarse granularity, its blocks expanded to a finer one; made once."""
        key = (coarse_words, max_words, units)
        found = self._expanded.get(key)
        if found is None:
            found = self._expanded[key] = expand(self.blocks(coarse_words, units), max_words)
        return found


def read_pages(
    pages: Iterable[Page], to_html: ToHtml, *, strict: bool = True, failures: Failures | None = None
) -> Documents:
    """Clean pages once, for any number of questions.

    :param strict: raise at the first page that cannot be read; else note it in ``failures`` and go on.
    :param failures: where whoever yields the pages notes those that it could not read.
    :raises BadPage: a page cannot be read; without ``strict``, only if none can: then the reasons of the others are its
        notes.
    """
    trees: list[Tree] = []
    twins: Counter[str] = Counter()
    failures = Failures() if failures is None else failures
    for number, page in enumerate(pages, 1):
        try:
            tree = read_page(page, to_html)
            twins[tree.snapshot] += 1
            if twins[tree.snapshot] > 1:  # the same page once more, perhaps from another address
                tree.document = f"{tree.snapshot}#{twins[tree.snapshot]}"
            trees.append(tree)
        except (BadInput, OutsideFailed) as error:
            if strict:
                raise
            failures.note(error, page.url or f"page {number}")
    if not trees:
        none = failures.first or BadPage("no page was given", subject="pages")
        for line in list(failures.values())[1:]:
            none.add_note(line)  # the others are told, too
        raise none
    return Documents(trees, failures)
