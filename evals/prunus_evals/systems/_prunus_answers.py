"""Shared with ``prunus``: the extractors and the answers of Prunus as systems.

``prunus:sentences`` and ``prunus:tags@llm=SPEC`` name the tags of sentences; ``prunus:ask`` returns the quotes of an
answer, without a model or with ``@llm=SPEC``. Options: ``@count=3``: sentences at most; ``@embedder=SPEC``;
``@mode=naive``, ``vector`` or ``clean``: the baselines of an answer with a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import prunus
from prunus.core.errors import OutsideFailed, PrunusError
from prunus.core.ports import Tagged
from prunus.core.registry import make_engine
from prunus.core.types import Span, Usage
from prunus_evals import readers
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, Stage, System
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import read
from prunus_evals.systems._extract import ExtractAsker, Named
from prunus_evals.systems._variants import Kinds, Variant
from prunus_evals.tokens import Counter

HEADS = ("sentences", "tags", "ask")
OPTIONS: Kinds = {"llm": str, "count": int, "embedder": str, "mode": ("default", "naive", "vector", "clean")}
_NONSENSE = "named neither tags nor None"


class Extractor:
    """Names the sentences that an extractor of Prunus chooses."""

    def __init__(self, variant: Variant, counter: Counter, name: str) -> None:
        self.name = name
        self._counter = counter
        options = variant.options
        self._llm = options.get("llm", "") if variant.head == "tags" else ""
        if variant.head == "tags":
            if "llm" not in options:
                raise UnknownName("prunus:tags needs a language model: prunus:tags@llm=SPEC")
            self._engine: Any = make_engine("extractor", "tags", llm=readers.model(self._llm))
        else:
            spec = f"sentences:{options['count']}" if "count" in options else "sentences"
            try:
                self._engine = make_engine(
                    "extractor", spec, embedder=_embed.embedder(options.get("embedder", "static"))
                )
            except PrunusError as error:
                raise UnknownName(f"{name}: {error}") from error

    @property
    def caveat(self) -> str:
        """What tables must say of its model."""
        return readers.caveat(self._llm)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Keep the documents; the work depends on the question."""
        return ExtractAsker(documents, self._extract, self._counter)

    def _extract(self, question: str, sentences: Sequence[str]) -> Named:
        segments, start = [], 0
        for tag, sentence in enumerate(sentences):
            segments.append(Tagged(tag, sentence, Span("page", start, start + len(sentence))))
            start += len(sentence) + 1
        try:
            found: list[int] | None = asyncio.run(self._engine.extract(question, segments))
        except OutsideFailed as error:
            if _NONSENSE in str(error):
                return Named((), nonsense=True)
            raise readers.failed(self.name, error) from error
        return Named(found or ())


class Answers:
    """Returns the quotes of an answer."""

    def __init__(self, options: Mapping[str, Any], counter: Counter, name: str) -> None:
        self.name = name
        self._counter = counter
        self._llm = llm = options.get("llm", "")
        if llm:
            readers.model(llm)  # a wrong spec is refused before anything runs
        engines = {"llm": llm} if llm else {"extractor": "sentences", "generator": "quotes"}
        self._options = prunus.Options(
            mode=options.get("mode", "default"), embedder=options.get("embedder", ""), **engines
        )

    @property
    def caveat(self) -> str:
        """What tables must say of its model."""
        return readers.caveat(self._llm)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the pages once."""
        return _Answering(self.name, read(documents), self._options, self._counter)


class _Answering:
    def __init__(self, name: str, pages: prunus.Documents | None, options: prunus.Options, counter: Counter) -> None:
        self._name, self._pages, self._options, self._counter = name, pages, options, counter

    def ask(self, question: str, budget: int) -> Reply:
        if self._pages is None:
            return Reply("", "text", quotes=())
        try:
            answer = prunus.ask(question, self._pages, budget=budget, options=self._options)
        except (prunus.NothingFound, prunus.BadBudget) as error:
            return Reply("", "text", quotes=(), facts={"nothing": str(error)})
        except PrunusError as error:
            raise readers.failed(self._name, error) from error
        quotes = tuple(citation.quote for citation in answer.citations)
        text = self._counter.head("\n".join(quotes), budget)
        stages = tuple(_stage(name, usage) for name, usage in answer.spent.items())
        facts = {"answer": answer.text, "warnings": list(answer.warnings)}
        return Reply(text, "text", stages=stages, quotes=quotes, facts=facts)


def _stage(name: str, usage: Usage) -> Stage:
    return Stage(name, usage.prompt_tokens, usage.completion_tokens, sum(usage.seconds.values()))


def make(counter: Counter, variant: Variant, name: str) -> System:
    """Return the system of a variant whose head is one of :data:`HEADS`."""
    if variant.head == "ask":
        return Answers(variant.options, counter, name)
    return Extractor(variant, counter, name)
