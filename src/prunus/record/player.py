"""Replay a recorded run: every request gets its recorded reply, and the network is not used.

A reply is found by the digest of its request. A replay with changed settings takes the replies of unchanged requests
from the record, and sends the other requests live.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypeVar, cast

import numpy as np

from ..answer.pictures import Pages
from ..core.errors import BadInput, PrunusError
from ..core.events import Event, TokenEvent, UsageEvent
from ..core.ports import LanguageModel
from ..core.types import Hit, Message, Page, Results, SearchRequest, Usage
from .file import RunFile
from .recorder import called, digest, error_from, page_from

T = TypeVar("T")


class Player:
    """Replies from a record; a request that is not in the record is sent live, or refused.

    :param live: kinds of requests that may be sent live: ``llm``, ``search``, ``embedder``, ``reranker``, ``page``.
    """

    def __init__(self, run: RunFile, live: Collection[str] = ()) -> None:
        self.run, self.live = run, live
        self._known: dict[tuple[str, str], list[dict[str, Any]]] = {}
        try:
            for entry in run.entries:
                self._known.setdefault((str(entry["kind"]), str(entry["key"])), []).append(entry)
        except (KeyError, TypeError) as error:
            raise BadInput("the recorded run holds an entry without a kind or a key", subject="events") from error

    def find(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the entry of a request; a repeated request gets the next entry, and at the end the last one again."""
        found = self._known.get((kind, key))
        if not found:
            return None
        return found.pop(0) if len(found) > 1 else found[0]

    def missing(self, kind: str, what: str) -> None:
        """Check that a request that is not in the record may be sent live.

        :raises BadInput: requests of this kind may not be sent live.
        """
        if kind in self.live:
            return
        way = f"name the {kind} that may be asked: --change {kind}=SPEC" if self.live else "it is asked otherwise now"
        raise BadInput(f"the recorded run holds no {what}; {way}", subject=what)

    def model(self, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`Tape`."""
        known = self.find("model", spec)
        if known is None:
            self.missing("llm", f"model {spec}")
            return make()
        return _PlayedModel(self, spec, known, make)

    def numbers(self, kind: str, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`Tape`."""
        return _PlayedNumbers(self, kind, spec, make)

    def provider(self, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`Tape`."""
        return _PlayedSearch(self, spec, make)

    def clock(self, clock: Callable[[], datetime]) -> Callable[[], datetime]:
        """See :class:`Tape`."""

        def now() -> datetime:
            known = self.find("clock", "")
            return datetime.fromisoformat(known["now"]) if known else clock()

        return now

    def pages(self, pages: Pages) -> Pages:
        """See :class:`Tape`."""

        async def read(urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
            wanted = dict.fromkeys(urls)
            order = [str(entry["key"]) for entry in self.run.entries if entry["kind"] == "page"]
            for url in dict.fromkeys(order):
                if url in wanted:
                    del wanted[url]
                    yield url, self._page(cast(dict[str, Any], self.find("page", url)))
            if wanted:
                self.missing("page", f"page {next(iter(wanted))}")
                async with aclosing(pages(list(wanted))) as found:
                    async for url, page in found:
                        yield url, page

        return read

    def given(self) -> list[Page]:
        """Return the caller's pages, which were recorded with the question."""
        found = [self._page(entry) for entry in self.run.entries if entry["kind"] == "given"]
        return [page for page in found if isinstance(page, Page)]

    def _page(self, entry: Mapping[str, Any]) -> Page | PrunusError:
        return reading(lambda: error_from(entry["error"]) if "error" in entry else page_from(self.run, entry["page"]))


class _PlayedModel(LanguageModel):
    """A recorded model; the real model is made only for a request that is not in the record."""

    def __init__(self, player: Player, spec: str, known: Mapping[str, Any], make: Callable[[], Any]) -> None:
        self._player, self._spec, self._make = player, spec, make
        self._llm: Any = None
        self.name, self.model = str(known.get("name", "")), str(known.get("model", ""))
        self.real, self.free = bool(known.get("real", True)), bool(known.get("free"))
        self.context_window = int(known.get("context_window", 0))
        self.sees_pictures = bool(known.get("sees_pictures"))
        if known.get("counts"):
            self.count = self._count

    def _live(self, what: str) -> Any:
        self._player.missing("llm", what)
        self._llm = self._llm if self._llm is not None else self._make()
        return self._llm

    def _count(self, texts: Sequence[str]) -> Any:
        known = self._player.find("count", digest(self._spec, list(texts)))
        if known is None:
            return self._live("count of tokens").count(texts)
        return reading(lambda: np.asarray([int(count) for count in known["counts"]], np.int64))

    async def ask_window(self) -> int:
        """Return the recorded window, or ask."""
        known = self._player.find("window", self._spec)
        if known is None:
            return int(await self._live("window of the model").ask_window())
        if "error" in known:
            raise reading(lambda: error_from(known["error"]))
        return reading(lambda: int(known["window"]))

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the recorded reply, or call the real model."""
        known = self._player.find("reply", digest(self._spec, called(messages, options)))
        if known is None:
            async with aclosing(cast(Any, self._live("reply to this prompt").stream(messages, **options))) as events:
                async for event in events:
                    yield event
            return
        for piece in reading(lambda: list(map(str, known["pieces"]))):
            yield TokenEvent(piece)
        if known.get("usage") is not None:
            yield UsageEvent(reading(lambda: Usage(**known["usage"])))
        if "error" in known:
            raise reading(lambda: error_from(known["error"]))


class _PlayedSearch:
    """A recorded search."""

    def __init__(self, player: Player, spec: str, make: Callable[[], Any]) -> None:
        self._player, self._spec, self._make = player, spec, make
        self._provider: Any = None

    async def search(self, request: SearchRequest) -> Results:
        """Return the recorded results, or call the real provider."""
        known = self._player.find("search", digest(self._spec, asdict(request)))
        if known is None:
            self._player.missing("search", f"answer to the query {request.query[:80]!r}")
            self._provider = self._provider if self._provider is not None else self._make()
            return cast(Results, await self._provider.search(request))
        if "error" in known:
            raise reading(lambda: error_from(known["error"]))
        return reading(lambda: _results(known["results"]))


def _results(row: Mapping[str, Any]) -> Results:
    hits = tuple(Hit(**hit) for hit in row["hits"])
    return Results(hits, tuple(row["warnings"]), float(row["usd"]), int(row["remaining"]))


class _PlayedNumbers:
    """A recorded embedder or reranker."""

    def __init__(self, player: Player, kind: str, spec: str, make: Callable[[], Any]) -> None:
        self._player, self._kind, self._spec, self._make = player, kind, spec, make
        self._engine: Any = None

    def embed(self, texts: Sequence[str], kind: str = "document") -> Any:
        """Return vectors; see :class:`~prunus.core.ports.Embedder`."""
        return self._asked("embed", list(texts), kind)

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        """Return scores; see :class:`~prunus.core.ports.Reranker`."""
        return self._asked("rerank", query, list(texts))

    def _asked(self, method: str, *request: Any) -> Any:
        known = self._player.find("numbers", digest(self._spec, method, request))
        if known is None:
            self._player.missing(self._kind, f"reply of the {self._kind}")
            self._engine = self._engine if self._engine is not None else self._make()
            return getattr(self._engine, method)(*request)
        kind, blobs = "<f4" if method == "embed" else "<f8", self._player.run.blobs
        return reading(lambda: np.frombuffer(blobs[known["blob"]], kind).reshape(known["shape"]))


def reading(work: Callable[[], T]) -> T:
    """Return the value of ``work``, which reads a part of the record.

    :raises BadInput: the record is damaged.
    """
    try:
        return work()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"the recorded run is damaged ({type(error).__name__}: {error})", subject="events") from error
