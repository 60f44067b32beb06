"""Search results without ranking inside pages: ``naive``, ``snippets`` or ``title_abstract``, cut at the budget.

``naive``: title and text of every document, in the order of the search. ``snippets``: title and snippet of every
document; where the search gave no snippet, the first 100 characters of the text stand for it, and the fact ``proxies``
counts how often. ``title_abstract``: title and abstract, which is the section that is called so, else the first
paragraph of ten words or more that is not the title.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import prunus
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import page_of, plain
from prunus_evals.tokens import Counter

VARIANTS = ("naive", "snippets", "title_abstract")
SNIPPET = 100
"""Characters of the text that stand for a snippet."""

WORDS = 10
"""Fewest words of a first paragraph: shorter lines are headings, dates and menus."""

_ABSTRACT = re.compile(r"^#{1,6}[^\S\n]{0,9}(?:abstract|summary|zusammenfassung|résumé|摘要)\b", re.IGNORECASE)


def title_of(document: Document) -> str:
    """Return the title that the search gave, else that of the page; '' without one."""
    if document.title or document.media_type != "text/html" or not document.content.strip():
        return document.title
    return prunus.metadata(page_of(document)).title


def abstract_of(document: Document) -> str:
    """Return the section that is called an abstract, else the first paragraph of ten words or more, not the title."""
    if not document.content.strip():
        return ""
    html = document.media_type == "text/html"
    written = prunus.clean(page_of(document), "markdown", prunus.LEAN, main=True) if html else document.content
    blocks = [" ".join(block.split()) for block in written.split("\n\n")]
    for place, block in enumerate(blocks):
        if _ABSTRACT.match(block):
            section = []
            for following in blocks[place + 1 :]:
                if following.startswith("#"):
                    break
                section.append(following)
            return "\n".join(filter(None, section))
    title = " ".join(document.title.split())
    long = (block for block in blocks if len(block.split()) >= WORDS and block != title)
    return next((block for block in long if block[0] not in "#|"), "")


@dataclass(frozen=True, slots=True)
class Results:
    """Keeps the head of what stands for each document."""

    name: str
    variant: str
    counter: Counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Take title and text, snippet or abstract of every document once."""
        facts: dict[str, int] = {}
        if self.variant == "snippets":
            facts["proxies"] = sum(not document.snippet and bool(document.content.strip()) for document in documents)
        parts = ("\n".join(filter(None, (title_of(one), self._body(one)))) for one in documents)
        return _Asker("\n\n".join(filter(None, parts)), facts, self.counter)

    def _body(self, document: Document) -> str:
        if self.variant == "naive":
            return plain(document).strip()
        if self.variant == "title_abstract":
            return abstract_of(document)
        return document.snippet or " ".join(plain(document)[: 10 * SNIPPET].split())[:SNIPPET]


@dataclass(frozen=True, slots=True)
class _Asker:
    text: str
    facts: Mapping[str, int]
    counter: Counter

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self.counter.head(self.text, budget), "text", facts=self.facts)


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    return Results(f"results:{variant}", variant, counter)
