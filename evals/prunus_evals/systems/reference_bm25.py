"""The reference's cleaning and block tree with BM25, with its ranking bug fixed.

The published package deletes the best blocks instead of the worst. This system deletes the worst blocks, one after
another, until the rest fits. All else is the package's own: cleaning, blocks of at most 256 words, numbered tags in
the output, and a cut at the budget where even the best block does not fit.

Variant ``package`` ranks as the package does (words split at white space, case kept); ``words`` ranks over lower-case
words, which favours the reference.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from prunus_evals.data import reference_folder
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.reference import Reference, python_of
from prunus_evals.systems._documents import html_of
from prunus_evals.tokens import Counter

VARIANTS = ("package", "words")


class ReferenceBM25:
    """Keeps the blocks of the reference's tree that BM25 ranks first."""

    def __init__(self, reference: Reference, variant: str, counter: Counter) -> None:
        self.name = f"reference_bm25:{variant}"
        self._reference = reference
        self._variant = variant
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the page and cut it into blocks once."""
        before = self._reference.cpu_seconds
        blocks = int(self._reference.call("prepare", "\n".join(map(html_of, documents))))
        spent = self._reference.cpu_seconds - before
        return _Asker(self._reference, self._variant, self._counter, blocks, spent)


class _Asker:
    """Answers questions about one page; outputs of a question are kept for its other budgets."""

    def __init__(self, reference: Reference, variant: str, counter: Counter, blocks: int, prepared: float) -> None:
        self._reference = reference
        self._variant = variant
        self._counter = counter
        self._blocks = blocks
        self._prepared = prepared
        self._question: str | None = None
        self._rendered: dict[int, tuple[str, int]] = {}

    def ask(self, question: str, budget: int) -> Reply:
        """Return the tree without its worst blocks, within the budget."""
        theirs, ours = self._reference.cpu_seconds, time.process_time()
        if question != self._question:
            self._reference.call("rank", question, self._variant)
            self._question, self._rendered = question, {}
        text = self._fit(budget)
        spent = self._reference.cpu_seconds - theirs + time.process_time() - ours
        return Reply(text, "html", cpu_seconds=self._prepared + spent)

    def _render(self, count: int) -> tuple[str, int]:
        if count not in self._rendered:
            html = str(self._reference.call("keep", count))
            self._rendered[count] = html, self._counter.count([html])[0]
        return self._rendered[count]

    def _fit(self, budget: int) -> str:
        """Return the output with the most blocks that fit, found by doubling and then bisection."""
        low, high = 0, 1
        while high <= self._blocks and self._render(high)[1] <= budget:
            low, high = high, high * 2
        high = min(high, self._blocks + 1)
        while high - low > 1:
            middle = (low + high) // 2
            if self._render(middle)[1] <= budget:
                low = middle
            else:
                high = middle
        if low == 0:
            return self._counter.head(self._render(min(1, self._blocks))[0], budget)
        return self._render(low)[0]


NEEDS = "an environment of its own: prunus eval reference FOLDER (HTMLRAG_ENVIRONMENT names it)"


def missing(variant: str) -> str:
    """Return what it lacks; '' where it lacks nothing."""
    made = python_of(reference_folder()).is_file()
    return "" if made else "its environment is not made: prunus eval reference FOLDER (HTMLRAG_ENVIRONMENT names it)"


def make(counter: Counter, variant: str) -> System:
    """Return the system with this ranking, which starts its own worker."""
    return ReferenceBM25(Reference(reference_folder()), variant, counter)
