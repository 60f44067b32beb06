"""Prunus itself, through its public door."""

from __future__ import annotations

from prunus_evals.records import Asker, Format, Reply, System
from prunus_evals.tokens import Counter

SCORERS = ("hybrid", "bm25", "static")
FORMATS: tuple[Format, ...] = ("html", "markdown")
VARIANTS = tuple(f"{scorer}:{format}" for scorer in SCORERS for format in FORMATS)


class Prunus:
    """Prunes with one scorer into one format."""

    def __init__(self, scorer: str, format: Format) -> None:
        self.name = f"prunus:{scorer}:{format}"
        self._scorer = scorer
        self._format: Format = format

    def prepare(self, html: str) -> Asker:
        """Keep the page; the public door cleans and cuts it."""
        return _Asker(html, self._scorer, self._format)


class _Asker:
    def __init__(self, html: str, scorer: str, format: Format) -> None:
        self._html = html
        self._scorer = scorer
        self._format: Format = format

    def ask(self, question: str, budget: int) -> Reply:
        import prunus  # here, because the baselines must run without it

        context = prunus.prune(
            self._html,
            question,
            budget=budget,
            format=self._format,
            options=prunus.Options(scorer=self._scorer),
        )
        return Reply(getattr(context, self._format), self._format)


def make(counter: Counter, variant: str) -> System:
    """Return the variant ``scorer:format``; Prunus counts with its own default counter."""
    scorer, _, format = variant.partition(":")
    return Prunus(scorer, "markdown" if format == "markdown" else "html")
