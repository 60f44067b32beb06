"""The main text of the documents, cut at the budget: by trafilatura, by readability, or by Prunus.

What an extractor of articles keeps, whatever the question; where it finds none in a page, nothing is kept of the page.
``prunus`` is ``prunus.clean(page, main=True)``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import prunus
from prunus_evals.records import Asker, Document, OutputFormat, System
from prunus_evals.systems._documents import Head, page_of
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.tokens import Counter
from prunus_evals.visible import html_text


def _trafilatura(document: Document) -> str:
    from trafilatura import extract  # here: only this baseline needs it

    return str(extract(document.content, include_comments=False, include_tables=True) or "")


def _readability(document: Document) -> str:
    from readability import Document as Readable  # here: only this baseline needs it

    page = Readable(document.content)
    try:
        body = page.summary(html_partial=True)
    except Exception:  # the package raises its own error, or one of lxml, for a page without an article
        return ""
    return "\n".join(filter(None, (page.short_title(), html_text(body))))


def _prunus(document: Document) -> str:
    return prunus.clean(page_of(document), "text", main=True)


EXTRACTORS: Mapping[str, Callable[[Document], str]] = {
    "trafilatura": _trafilatura,
    "readability": _readability,
    "prunus": _prunus,
}
VARIANTS = tuple(EXTRACTORS)
DISTRIBUTIONS = {"trafilatura": "trafilatura", "readability": "readability-lxml"}
OPTIONS: Kinds = {**COSTS}
FORMAT: OutputFormat = "text"


class MainText:
    """Keeps the head of the main texts; a plain text is main text as it is."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._extract = EXTRACTORS[variant.head]
        self._costs = variant.options.get("costs") == "yes"
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Extract the main texts once."""
        start = time.perf_counter()
        text = "\n".join(filter(None, map(self._text, documents)))
        stages = StageTimer(self._counter, self._costs)
        stages.note("extract", time.perf_counter() - start, [document.content for document in documents], [text])
        return Head(text, FORMAT, self._counter, stages.found)

    def _text(self, document: Document) -> str:
        if document.media_type != "text/html" or not document.content.strip():
            return document.content.strip()
        return self._extract(document)


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: one with options."""
    return read("main_text", variant, OPTIONS).head in VARIANTS


NEEDS = "; ".join(f"{name}: pip install {package}" for name, package in DISTRIBUTIONS.items())


def missing(variant: str) -> str:
    """Return which package a variant lacks; '' where it lacks none."""
    package = variant.partition("@")[0]
    return "" if package == "prunus" or find_spec(package) else f"pip install {DISTRIBUTIONS[package]}"


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    return MainText(f"main_text:{variant}", read("main_text", variant, OPTIONS), counter)
