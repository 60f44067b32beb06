"""Prunus itself, through `prunus.prune`."""

from __future__ import annotations

from collections.abc import Sequence

import prunus
from prunus_evals.records import Asker, Document, Format, Reply, System
from prunus_evals.systems._documents import page_of
from prunus_evals.tokens import Counter

# name of the variant → spec of the scorer; "static" is the embedding scorer with static vectors
SCORERS = {"hybrid": "hybrid", "bm25": "bm25", "static": "embedding"}
FORMATS: tuple[Format, ...] = ("html", "markdown")
VARIANTS = tuple(f"{scorer}:{format}" for scorer in SCORERS for format in FORMATS)


class Prunus:
    """Prunes with one scorer into one format.

    :param scorer: ``scorer``; ``scorer+embedder`` for an embedder other than ``static``; ``scorer>fine`` for a scorer
        of a second stage.
    """

    def __init__(self, scorer: str, format: Format) -> None:
        self.name = f"prunus:{scorer}:{format}"
        stages, _, embedder = scorer.partition("+")
        first, _, fine = stages.partition(">")
        self._options = prunus.Options(
            scorer=SCORERS.get(first, first),
            fine=SCORERS.get(fine, fine),
            stages=2 if fine else 0,
            embedder=embedder or "static",
        )
        self._format: Format = format

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean and cut the page once."""
        return _Asker(prunus.read([page_of(document) for document in documents]), self._format, self._options)


class _Asker:
    def __init__(self, page: prunus.Documents, format: Format, options: prunus.Options) -> None:
        self._page = page
        self._format: Format = format
        self._options = options

    def ask(self, question: str, budget: int) -> Reply:
        context = prunus.prune(self._page, question, budget=budget, format=self._format, options=self._options)
        return Reply(getattr(context, self._format), self._format)


def make(counter: Counter, variant: str) -> System:
    """Return the system of the variant ``scorer:format``; Prunus counts with its own default counter."""
    scorer, _, format = variant.rpartition(":")
    return Prunus(scorer, "markdown" if format == "markdown" else "html")


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed.

    These are ``scorer+embedder:format``, as ``hybrid+minilm:int8:html``; and ``scorer>fine:format``, as
    ``bm25>crossencoder:html``, with or without an embedder.
    """
    scorer, _, format = variant.rpartition(":")
    stages, plus, embedder = scorer.partition("+")
    first, parted, fine = stages.partition(">")
    listed = {*SCORERS, "embedding"}
    if parted:
        return first in listed and bool(fine) and bool(embedder) == bool(plus) and format in FORMATS
    return bool(plus and embedder) and stages in ("hybrid", "embedding") and format in FORMATS
