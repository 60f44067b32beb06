"""Whole documents one after another, cut at the budget: ``html``, ``soup``, ``markdown``, ``clean``, ``lean``.

``html``: as they are; ``soup``: plain text by BeautifulSoup; ``markdown``: by markdownify; ``clean`` and ``lean``: the
HTML that Prunus cleans, with and without addresses. The question changes nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import prunus
from prunus.core.installation import pip_install_folder
from prunus_evals.records import Asker, Document, OutputFormat, System
from prunus_evals.systems._documents import Head, html_of, markdown_of, page_of, soup_of
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.tokens import Counter

_BLANK = re.compile(r"\n\s*\n")


def _clean(document: Document) -> str:
    return prunus.clean(page_of(document)) if document.content.strip() else ""


def _lean(document: Document) -> str:
    return prunus.clean(page_of(document), style=prunus.LEAN) if document.content.strip() else ""


CONVERTERS: Mapping[str, tuple[OutputFormat, Callable[[Document], str]]] = {
    "html": ("html", html_of),
    "soup": ("text", soup_of),
    "markdown": ("markdown", lambda document: _BLANK.sub("\n\n", markdown_of(document)).strip()),
    "clean": ("html", _clean),
    "lean": ("html", _lean),
}
VARIANTS = tuple(CONVERTERS)
OPTIONS: Kinds = {**COSTS}
PACKAGES = {"soup": "bs4", "markdown": "markdownify"}


class Whole:
    """Keeps the head of converted documents."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._format, self._convert = CONVERTERS[variant.head]
        self._costs = variant.options.get("costs") == "yes"
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Convert the documents once."""
        start = time.perf_counter()
        text = "\n".join(map(self._convert, documents))
        stages = StageTimer(self._counter, self._costs)
        stages.note("convert", time.perf_counter() - start, [document.content for document in documents], [text])
        return Head(text, self._format, self._counter, stages.found)


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: one with options."""
    return read("whole", variant, OPTIONS).head in VARIANTS


NEEDS = "; ".join(f"{name}: {pip_install_folder('evals')} ({package})" for name, package in PACKAGES.items())


def missing(variant: str) -> str:
    """Return which package a variant lacks; '' where it lacks none."""
    package = PACKAGES.get(variant.partition("@")[0], "")
    return f"{pip_install_folder('evals')} ({package})" if package and find_spec(package) is None else ""


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    return Whole(f"whole:{variant}", read("whole", variant, OPTIONS), counter)
