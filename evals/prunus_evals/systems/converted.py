"""Documents converted to Markdown or text first, then given to another system: ``converted:FORM:SYSTEM``.

FORM is ``markdown`` or ``text``; SYSTEM any other system, as ``converted:text:prunus:hybrid:text``: convert, then
refine, where ``prunus:hybrid:text`` prunes the HTML, and converts what it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from prunus_evals import systems
from prunus_evals.records import Asker, Document, System
from prunus_evals.systems._documents import markdown_of, text_of
from prunus_evals.tokens import Counter

FORMS = {"markdown": "text/markdown", "text": "text/plain"}
VARIANTS = ("markdown:prunus:hybrid:markdown", "text:prunus:hybrid:text")


class Converted:
    """Gives converted documents to a system."""

    def __init__(self, form: str, inner: System) -> None:
        self.name = f"converted:{form}:{inner.name}"
        self._form = form
        self._inner = inner

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Convert each document, and let the system prepare them."""
        return self._inner.prepare([self._convert(document) for document in documents])

    def _convert(self, document: Document) -> Document:
        words = markdown_of(document) if self._form == "markdown" else text_of([document])
        return replace(document, content=words, media_type=FORMS[self._form])


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: a known form and another system."""
    form, _, inner = variant.partition(":")
    return form in FORMS and not inner.startswith("converted") and systems.exists(inner)


def missing(variant: str) -> str:
    """Return what the other system lacks; '' where it lacks nothing."""
    return systems.missing(variant.partition(":")[2])


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    form, _, inner = variant.partition(":")
    return Converted(form, systems.make(inner, counter))
