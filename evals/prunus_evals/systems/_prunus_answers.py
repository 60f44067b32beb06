"""Shared with ``prunus``: the extractors and the answers of Prunus as systems.

``prunus:sentences`` and ``prunus:tags@llm=SPEC`` name the tags of sentences; ``prunus:extract`` returns the passages
that the extractor takes out of whole pages, and ``prunus:ask`` the quotes of an answer, both without a model or with
``@llm=SPEC``. Options: ``@count=3``: sentences at most, without a model; ``@embedder=SPEC``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import prunus
from prunus.core.confidence import chosen_segments
from prunus.core.errors import BadBudget, OutsideFailed, OverWindow, PrunusError, UnreadableReply
from prunus.core.events import Event
from prunus.core.ports import LLM, Segment
from prunus.core.registry import make_engine
from prunus.core.settings import load_settings
from prunus.core.types import Message, Span, Usage
from prunus_evals import readers
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, Stage, System
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import read
from prunus_evals.systems._extract import REFUSED, Extractor, Named
from prunus_evals.systems._variants import Kinds, Variant
from prunus_evals.tokens import NAME, Counter

HEADS = ("sentences", "tags", "extract", "ask")
READ = 32_768
"""Tokens of a question's pages that passages are extracted from at most."""

OPTIONS: Kinds = {"llm": str, "count": int, "embedder": str}
_OF_MODEL = ("extractor", "generator")
"""The failures of an answer that say that a reply of its model was of no use, and that it was made without it."""


def segments_of(sentences: Sequence[str], documents: Sequence[Document]) -> list[Segment]:
    """Return sentences as segments, each at its place in its document and under that one's title.

    A sentence that stands in no document behind the sentence before it has no title, and so have those after it.
    """
    found: list[Segment] = []
    number = end = loose = 0
    for tag, sentence in enumerate(sentences):
        place = -1
        while number < len(documents) and (place := documents[number].content.find(sentence, end)) < 0:
            number, end = number + 1, 0
        if place < 0:
            found.append(Segment(tag, sentence, Span("", loose, loose + len(sentence))))
            loose += len(sentence) + 1
        else:
            end = place + len(sentence)
            document = documents[number]
            found.append(Segment(tag, sentence, Span(document.id, place, end), above=document.title))
    return found


class _Naming:
    """An extractor of Prunus that names sentences.

    :param name: of the system, for errors.
    """

    def __init__(self, name: str, engine: Any) -> None:
        self._name = name
        self._engine = engine

    def extract(self, question: str, sentences: Sequence[str], documents: Sequence[Document]) -> Named:
        """Return what it names.

        :raises ReaderFailed: its model failed.
        """
        try:
            segments = segments_of(sentences, documents)
            chosen = asyncio.run(self._engine.extract(question, segments))
            found = chosen_segments(chosen, segments, load_settings().min_confidence)
        except (BadBudget, OverWindow):
            return REFUSED
        except OutsideFailed as error:
            if isinstance(error, UnreadableReply):
                return Named((), nonsense=True)
            raise readers.failed(self._name, error) from error
        return Named([segment.tag for segment in found])


class _Watched:
    """A language model that tells afterwards whether it failed: an answer goes on without the model then."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self._error: OutsideFailed | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Pass the model's events on."""
        try:
            async with aclosing(self._llm.stream(messages, **options)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
        except OutsideFailed as error:
            self._error = self._error or error
            raise

    def check(self, name: str) -> None:
        """Raise what failed since the last check.

        :param name: of the system.
        :raises ReaderFailed: the server cannot be reached, refuses, or does not finish.
        """
        error, self._error = self._error, None
        if error is not None:
            raise readers.failed(name, error) from error


class _Asking:
    """What is asked about pages that are cleaned."""

    def __init__(
        self,
        name: str,
        pages: prunus.Documents | None,
        options: prunus.Options,
        counter: Counter,
        model: _Watched | None,
    ) -> None:
        self._name, self._pages, self._options, self._counter = name, pages, options, counter
        self._model = model

    def _check(self) -> None:
        if self._model is not None:
            self._model.check(self._name)


class _Extracting(_Asking):
    def ask(self, question: str, budget: int) -> Reply:
        """Return the passages, and as quotes, too, those that the budget cuts.

        :raises ReaderFailed: the model failed.
        """
        if self._pages is None:
            return Reply("", "text", quotes=())
        try:
            passages = prunus.extract(question, self._pages, READ, self._options)
        except (BadBudget, OverWindow) as error:
            return Reply("", "text", quotes=(), facts={"nothing": str(error)})
        except OutsideFailed as error:
            self._check()
            if isinstance(error, UnreadableReply):
                return Reply("", "text", quotes=(), facts={"nothing": str(error), "nonsense": 1})
            raise readers.failed(self._name, error) from error
        self._check()  # at one page of several: the others were extracted
        quotes = tuple(passage.text for passage in passages)
        return Reply(self._counter.head("\n".join(quotes), budget), "text", quotes=quotes)


class _Answering(_Asking):
    def ask(self, question: str, budget: int) -> Reply:
        """Return the quotes; the fact ``without_model`` counts an answer in which a reply of the model was of no use.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish.
        """
        if self._pages is None:
            return Reply("", "text", quotes=())
        try:
            answer = prunus.ask(question, self._pages, budget=budget, options=self._options)
        except (prunus.NothingFound, prunus.BadBudget) as error:
            self._check()
            return Reply("", "text", quotes=(), facts={"nothing": str(error)})
        except PrunusError as error:
            self._check()
            raise readers.failed(self._name, error) from error
        self._check()
        quotes = tuple(citation.quote for citation in answer.citations)
        text = self._counter.head("\n".join(quotes), budget)
        stages = tuple(_stage(name, usage) for name, usage in answer.spent.items())
        facts: dict[str, Any] = {"answer": answer.text, "warnings": list(answer.warnings)}
        unused = {stage: answer.failures[stage] for stage in _OF_MODEL if stage in answer.failures}
        facts |= {"without_model": 1, "failures": unused} if unused else {}
        return Reply(text, "text", stages=stages, quotes=quotes, facts=facts)


class OfPages:
    """Asks Prunus about whole pages: for passages, or for the quotes of an answer.

    :param llm: spec of its language model; '' for none.
    :param models: specs of its other models.
    :param asking: what is asked.
    """

    def __init__(
        self,
        name: str,
        options: prunus.Options,
        counter: Counter,
        llm: str,
        models: Sequence[str],
        asking: type[_Extracting] | type[_Answering],
    ) -> None:
        self.name = name
        self.models = (*filter(None, [llm]), *models)
        self._llm = llm
        self._model = _Watched(readers.model(llm)) if llm else None
        self._options = replace(options, llm=self._model) if self._model else options
        self._counter = counter
        self._asking = asking

    @property
    def caveat(self) -> str:
        """What tables must say of its model."""
        return readers.caveat(self._llm)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the pages once."""
        return self._asking(self.name, read(documents), self._options, self._counter, self._model)


def _stage(name: str, usage: Usage) -> Stage:
    return Stage(name, usage.prompt_tokens, usage.completion_tokens, sum(usage.seconds.values()))


def make(counter: Counter, variant: Variant, name: str) -> System:
    """Return the system of a variant whose head is one of :data:`HEADS`.

    :raises UnknownName: a model or an embedder cannot be made, or an option has no meaning here.
    """
    options = variant.options
    llm = options.get("llm", "")
    if variant.head == "ask":
        named = options.get("embedder", "")
        chosen = prunus.Options(embedder=named, tokenizer=NAME)
        if not llm:
            chosen = replace(chosen, extractor="sentences", generator="quotes")
        return OfPages(name, chosen, counter, llm, _embed.models(named), _Answering)
    if variant.head == "tags" and not llm:
        raise UnknownName("prunus:tags needs a language model: prunus:tags@llm=SPEC")
    if variant.head == "sentences" and llm:
        raise UnknownName(f"{name}: sentences need no language model; take prunus:tags@llm={llm}")
    spec = f"sentences:{options['count']}" if "count" in options else "sentences"
    embedder = _embed.embedder(options.get("embedder", "static"))
    models = _embed.models(embedder.name)
    try:
        engine: Any = (
            make_engine("extractor", "tags", llm=readers.model(llm))
            if llm
            else make_engine("extractor", spec, embedder=embedder)
        )
    except PrunusError as error:
        raise UnknownName(f"{name}: {error}") from error
    if variant.head == "extract":
        chosen = prunus.Options(embedder=embedder, tokenizer=NAME, extractor="tags" if llm else spec)
        return OfPages(name, chosen, counter, llm, models, _Extracting)
    return Extractor(name, _Naming(name, engine).extract, counter, llm, models)
