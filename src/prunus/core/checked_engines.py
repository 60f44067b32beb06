"""Wraps engines of other packages, so that inside Prunus they keep their port.

Engines that come with Prunus declare every member of their port; tests check that. An engine of another package needs
only the method of its port. It is wrapped once, when it is made: a missing member gets the default of :data:`MEMBERS`,
and a return value that the port forbids raises one line that names the engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Final, cast, get_args

import numpy as np

from .errors import BadEngine, BadInput, PrunusError
from .events import Event
from .ports import LANGUAGE_MODEL, Chosen, LanguageModel
from .types import Plan, Results, Summary

MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "scorer": {"second_stage": False, "one_prompt": False, "tree": None, "least_share": 0.0},
    "path_scorer": {"real": False, "decode": None, "prompt": ""},
    "reranker": {"above": 400, "beside": 0.0, "added": 0.0, "languages": ()},
    "embedder": {"identity": "", "dimension": 0},
    "llm": {name: getattr(LanguageModel(), name) for name in LANGUAGE_MODEL},
    "extractor": {"per_page": False},
    "generator": {"verbatim": False, "writes": False},
    "clusterer": {"needs_summaries": False, "last_layer": 1},
    "search": {"lacks_key": False, "lacks_address": False},
    "format": {"suffixes": (), "media_types": ()},
}
"""The optional members of each kind of engine, with their defaults."""


def declared(engine: Any, kind: str, member: str) -> Any:
    """Return an optional member of an engine or of its class, or the default."""
    return getattr(engine, member, MEMBERS[kind][member])


def adopted(kind: str, engine: Any, name: str) -> Any:
    """Return an engine of another package, wrapped.

    :param name: the engine's name in errors.
    :raises BadEngine: it lacks the method of its port.
    """
    return _ADOPTED.get(kind, _Adopted)(kind, engine, name)


def checked(kind: str, engine: Any) -> Any:
    """Return an engine that was given as an object; it is wrapped, unless it comes with Prunus.

    :raises BadInput: it is a class.
    """
    if isinstance(engine, type):
        raise BadInput(f"{kind}: {engine.__name__} is a class; give an object of it", subject=kind)
    return engine if type(engine).__module__.startswith("prunus.") else adopted(kind, engine, name_of(engine))


def name_of(choice: Any) -> str:
    """Return the spec of an engine; for an object its name, or the name of its class."""
    return choice if isinstance(choice, str) else str(getattr(choice, "name", "") or type(choice).__name__)


class _Adopted:
    """An engine of another package, with the defaults of the members that it lacks."""

    method: ClassVar[str] = ""

    def __init__(self, kind: str, engine: Any, name: str) -> None:
        self._kind, self._engine, self._label = kind, engine, f"{kind} {name}"
        self.name = str(getattr(engine, "name", name))
        if self.method and not callable(getattr(engine, self.method, None)):
            raise BadEngine(f"{self._label}: it has no method {self.method}", subject=name)

    def __getattr__(self, member: str) -> Any:
        if member.startswith("__"):
            raise AttributeError(member)
        defaults = MEMBERS.get(self._kind, {})
        return getattr(self._engine, member, defaults[member]) if member in defaults else getattr(self._engine, member)

    def _called(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except PrunusError:
            raise
        except Exception as error:  # the code of another package may raise anything
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> BadEngine:
        return self._wrong(f"it failed ({type(error).__name__}: {error})")

    def _wrong(self, what: str) -> BadEngine:
        return BadEngine(
            f"{self._label}: {' '.join(what.split())[:500]}; repair or replace that engine", subject=self.name
        )

    def _numbers(self, found: Any, shape: tuple[int, ...], per: str) -> Any:
        """Check an array of numbers; -1 in its shape stands for any length."""
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
            raise self._wrong(f"it returned {_called_what(found)}, not a numpy array of numbers")
        if len(found.shape) != len(shape) or any(b not in (-1, a) for a, b in zip(found.shape, shape, strict=True)):
            raise self._wrong(f"it returned an array of shape {found.shape} for {shape[0]} {per}")
        if not np.isfinite(found).all():
            raise self._wrong("it returned a number that is not finite")
        return found


def _called_what(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


class _Scorer(_Adopted):
    method = "score"

    def score(self, query: str, blocks: Any) -> Any:
        return self._numbers(self._called(lambda: self._engine.score(query, blocks)), (len(blocks),), "blocks")


class _Reranker(_Adopted):
    method = "rerank"

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        return self._numbers(self._called(lambda: self._engine.rerank(query, texts)), (len(texts),), "texts")


class _Embedder(_Adopted):
    method = "embed"

    def embed(self, texts: Sequence[str], kind: str = "document") -> Any:
        result = self._numbers(self._called(lambda: self._engine.embed(texts, kind)), (len(texts), -1), "texts")
        norms = np.linalg.norm(result, axis=1) if result.size else np.ones(0)
        if np.any(np.abs(norms - 1) > 1e-2) and np.any(norms[np.abs(norms - 1) > 1e-2] > 1e-6):
            raise self._wrong("it returned vectors that are not of unit norm")
        return result.astype(np.float32, copy=False)


class _TokenCounter(_Adopted):
    method = "count"

    def count(self, texts: Sequence[str]) -> Any:
        result = self._numbers(self._called(lambda: self._engine.count(texts)), (len(texts),), "texts")
        if result.size and (result.dtype.kind == "f" or result.min() < 0):
            raise self._wrong("it returned counts that are not whole numbers from 0")
        return result


class _Clusterer(_Adopted):
    method = "layer"

    def layer(self, items: Any, limits: Any) -> Any:
        result = self._called(lambda: self._engine.layer(items, limits))
        count = len(items.tokens)
        for group in result if isinstance(result, list | tuple) else [None]:
            if not isinstance(group, np.ndarray) or group.dtype.kind not in "iu" or not len(group):
                raise self._wrong("it returned something other than a list of arrays of item numbers")
            if group.min() < 0 or group.max() >= count:
                raise self._wrong(f"it returned an item outside of the {count} items of the layer")
        return result


class _Extractor(_Adopted):
    method = "extract"

    async def extract(self, query: str, tagged: Sequence[Any]) -> list[Chosen] | None:
        result = await self._awaited(self._engine.extract(query, tagged))
        known = {segment.tag for segment in tagged}
        chosen = result if isinstance(result, list) else []
        if (result is not None and chosen is not result) or not all(
            isinstance(choice, Chosen) and choice.tag in known for choice in chosen
        ):
            raise self._wrong("it returned something other than a list of Chosen of tags that it was shown, or None")
        return result

    async def _awaited(self, work: Any) -> Any:
        try:
            return await work
        except PrunusError:
            raise
        except Exception as error:  # the code of another package may raise anything
            raise self._failed(error) from error


class _Generator(_Extractor):
    method = "generate"

    @property
    def writes(self) -> bool:
        return bool(getattr(self._engine, "writes", hasattr(self._engine, "stream")))

    async def generate(self, query: str, passages: Sequence[Any]) -> str:
        result = await self._awaited(self._engine.generate(query, passages))
        if not isinstance(result, str):
            raise self._wrong(f"it returned {_called_what(result)}, not text")
        return result


class _Planner(_Extractor):
    method = "plan"

    async def plan(self, conversation: Sequence[Any], now: Any) -> Plan:
        result = await self._awaited(self._engine.plan(conversation, now))
        if not isinstance(result, Plan):
            raise self._wrong(f"it returned {_called_what(result)}, not a Plan")
        return result


class _Summarizer(_Extractor):
    method = "summarize"

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        result = await self._awaited(self._engine.summarize(batch, max_tokens))
        if (
            not isinstance(result, list)
            or len(result) != len(batch)
            or not all(isinstance(summary, Summary) for summary in result)
        ):
            raise self._wrong(f"it did not return a list of {len(batch)} summaries")
        return result


class _SearchProvider(_Extractor):
    method = "search"

    async def search(self, request: Any) -> Results:
        result = await self._awaited(self._engine.search(request))
        if not isinstance(result, Results):
            raise self._wrong(f"it returned {_called_what(result)}, not Results")
        return result


class _Format(_Adopted):
    method = "to_html"

    def to_html(self, page: Any) -> str | bytes:
        result = self._called(lambda: self._engine.to_html(page))
        if not isinstance(result, str | bytes):
            raise self._wrong(f"it returned {_called_what(result)}, not HTML as text or bytes")
        return result


class _Model(_Adopted):
    method = "stream"

    async def stream(self, messages: Sequence[Any], **options: Any) -> AsyncIterator[Event]:
        try:
            async with aclosing(cast(Any, self._engine.stream(messages, **options))) as events:
                async for event in events:
                    if not isinstance(event, get_args(Event)):
                        raise self._wrong(f"it yielded {_called_what(event)}, not an event")
                    yield event
        except PrunusError:
            raise
        except Exception as error:  # the code of another package may raise anything
            raise self._failed(error) from error


_ADOPTED: Final[Mapping[str, type[_Adopted]]] = {
    "scorer": _Scorer,
    "reranker": _Reranker,
    "embedder": _Embedder,
    "tokenizer": _TokenCounter,
    "clusterer": _Clusterer,
    "extractor": _Extractor,
    "generator": _Generator,
    "planner": _Planner,
    "summarizer": _Summarizer,
    "search": _SearchProvider,
    "format": _Format,
    "llm": _Model,
}
