"""Shared by the studies of extraction: extractors as systems, of the sentences of a question and of whole pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import prunus
from prunus.core.ports import Tagged
from prunus.core.registry import make_engine
from prunus.core.types import Span
from prunus_evals import readers
from prunus_evals.bm25 import BM25
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.records import Asker, Document, Question, Reply
from prunus_evals.systems._documents import page_of
from prunus_evals.tokens import Counter

TAGGED = "tagged"
EXTRACTORS = ("sentences", "bm25:3", "everything")
"""Extractors that need no model: Prunus' own, BM25 with a number of sentences, and all sentences."""


@dataclass(frozen=True, slots=True)
class Extractor:
    """An extractor without a model, or ``tagged``, which hands all sentences with their tags to a reader.

    :param spec: one of :data:`EXTRACTORS`, ``bm25:K``, ``sentences:K``, or ``tagged``.
    :raises UnknownName: there is no such extractor.
    """

    spec: str
    counter: Counter
    embedder: str = "static"

    def __post_init__(self) -> None:
        kind, _, count = self.spec.partition(":")
        if kind not in ("sentences", "bm25", "everything", TAGGED) or (count and not count.isdecimal()):
            raise UnknownName(f"unknown extractor {self.spec}; the extractors are: {', '.join(EXTRACTORS)}")

    @property
    def name(self) -> str:
        """The name in outcomes."""
        return f"extract:{self.spec}"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Return the asker; all work depends on the question."""
        kind = self.spec.partition(":")[0]
        if kind != "sentences":
            return _Asker(self, None)
        return _Asker(self, make_engine("extractor", self.spec, embedder=make_engine("embedder", self.embedder)))


@dataclass(frozen=True, slots=True)
class _Asker:
    extractor: Extractor
    engine: Any

    def ask(self, question: str, budget: int) -> Reply:
        """Return nothing: a question without sentences has no tags."""
        return Reply("", "text", tags=())

    def ask_question(self, question: Question, budget: int) -> Reply:
        """Choose among the sentences of a question; the text is cut at the budget, the tags are not."""
        counter = self.extractor.counter
        if self.extractor.spec == TAGGED:
            return Reply(counter.head(tagged_text(question.sentences), budget), "text")
        tags = self._tags(question)
        text = "\n".join(question.sentences[tag] for tag in tags or ())
        return Reply(counter.head(text, budget), "text", tags=tags)

    def _tags(self, question: Question) -> tuple[int, ...] | None:
        kind, _, count = self.extractor.spec.partition(":")
        if not question.sentences:
            return None
        if kind == "everything":
            return tuple(range(len(question.sentences)))
        if kind == "bm25":
            scores = BM25(question.sentences).scores(question.question)
            return tuple(sorted(np.argsort(-scores, kind="stable")[: int(count or 3)].tolist()))
        found: list[int] | None = asyncio.run(self.engine.extract(question.question, segments_of(question)))
        return None if found is None else tuple(sorted(found))


def segments_of(question: Question) -> list[Tagged]:
    """Return the sentences of a question as segments, each at its place in its document and under that one's title.

    A sentence that stands in no document behind the sentence before it has no title and no place.
    """
    found: list[Tagged] = []
    number = end = 0
    documents = question.documents
    for tag, sentence in enumerate(question.sentences):
        here, start = number, end
        place = -1
        while here < len(documents) and (place := documents[here].content.find(sentence, start)) < 0:
            here, start = here + 1, 0
        if place < 0:
            found.append(Tagged(tag, sentence, Span("", 0, len(sentence))))
            continue
        number, end = here, place + len(sentence)
        document = documents[number]
        found.append(Tagged(tag, sentence, Span(document.id, place, end), above=document.title))
    return found


def tagged_text(sentences: Sequence[str]) -> str:
    """Return sentences with their tags, as the paper's extractor reads them."""
    return "".join(f"<TAG-{tag}>{sentence}</TAG-{tag}>" for tag, sentence in enumerate(sentences))


READ = 32_768
"""Tokens of a question's pages that are extracted from at most."""


@dataclass(frozen=True, slots=True)
class PageExtractor:
    """Internet-SAG-Ext: what the extractor of Prunus chooses of all pages of a question.

    :param extractor: ``sentences``, or the spec of a language model, which names tags.
    """

    extractor: str
    counter: Counter

    @property
    def name(self) -> str:
        """The name in outcomes."""
        return f"extract:pages:{self.extractor}"

    @property
    def caveat(self) -> str:
        """What tables must say of the model that extracts."""
        if self.extractor == "sentences":
            return ""
        return readers.caveat(self.extractor, not self.extractor.startswith("scripted:"))

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Read and clean the pages; empty ones are left out."""
        pages = [page_of(document) for document in documents if document.content.strip()]
        return _PagesAsker(self, prunus.read(pages) if pages else None)


@dataclass(frozen=True, slots=True)
class _PagesAsker:
    extractor: PageExtractor
    pages: prunus.Documents | None

    def ask(self, question: str, budget: int) -> Reply:
        """Extract from the pages.

        :raises EvalError: the model failed.
        """
        if self.pages is None:
            return Reply("", "text")
        spec = self.extractor.extractor
        options = prunus.Options(extractor="sentences")
        if spec != "sentences":
            options = prunus.Options(extractor="tags", llm=spec)
        try:
            passages = prunus.extract(question, self.pages, READ, options)
        except prunus.PrunusError as error:
            raise EvalError(f"{self.extractor.name}: {error}") from error
        text = "\n".join(passage.text for passage in passages)
        return Reply(self.extractor.counter.head(text, budget), "text", quotes=tuple(p.text for p in passages))
