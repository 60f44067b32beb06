"""Record everything that comes from outside during an answer: pages, replies of search and models, the clock.

A :class:`Recorder` wraps the search, the models, the reading of pages, and the clock. In a replay a
:class:`~prunus.record.player.Player` takes its place. Each reply is stored by the digest of its request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, Final, cast, get_type_hints

import msgspec
import numpy as np

from ..answer.pictures import Pages
from ..core import errors
from ..core.checked_engines import declared
from ..core.errors import OutsideFailed, OverWindow, PrunusError
from ..core.events import Event, TokenEvent, UsageEvent
from ..core.ports import Branches, LanguageModel, TokenTree
from ..core.text.secrets import HIDDEN, hide_secrets
from ..core.types import Message, Page, Results, SearchRequest
from .file import RunFile

_ERRORS: Final = ("BadInput", "BadPage", "BadBudget", "MissingExtra", "NothingFound", "OutsideFailed")
_DROPPED: Final = frozenset({"set-cookie", "cookie", "authorization", "proxy-authorization"})
"""Headers that may hold a secret."""

_PAGE: Final = {name: kind for name, kind in get_type_hints(Page).items() if name != "content"}
NUMBERS: Final = {"embed": "<f4", "rerank": "<f8", "count": "<i8"}
"""The numpy type of recorded numbers, by the method that gave them."""

LOGITS: Final = "<f8"
_LATE_PAGE: Final = "{url}: not read in the time that was left"
_LATE_SEARCH: Final = "search: no answer in the time that was left"
_LATE_MODEL: Final = "the model did not finish in the time that was left"


def bare(spec: str) -> str:
    """Return a spec without the user name, the password and the key in its address."""
    return hide_secrets(spec).replace(f"{HIDDEN}@", "")


def digest(*parts: Any) -> str:
    """Return the sha256 of a request, hex."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, sort_keys=True).encode("ascii")).hexdigest()


def called(messages: Sequence[Message], options: Mapping[str, Any]) -> list[Any]:
    """Return a call of a model as plain data."""
    return [[asdict(message) for message in messages], {name: options[name] for name in sorted(options)}]


# --- pages and errors as plain data --------------------------------------------------------------


def page_to(run: RunFile, page: Page) -> dict[str, Any]:
    """Return a page as plain data; its content becomes a blob."""
    row = {field.name: getattr(page, field.name) for field in fields(Page) if field.name != "content"}
    row["headers"] = {name: value for name, value in page.headers.items() if name.lower() not in _DROPPED}
    text = isinstance(page.content, str)
    content = page.content.encode("utf-8", "surrogatepass") if isinstance(page.content, str) else page.content
    return row | {"blob": run.keep(content), "text": text}


def page_from(run: RunFile, row: Mapping[str, Any]) -> Page:
    """Return a recorded page."""
    content = run.blobs[row["blob"]]
    same = {name: msgspec.convert(row[name], kind) for name, kind in _PAGE.items() if name in row}
    return Page(content=content.decode("utf-8", "surrogatepass") if row["text"] else content, **same)


def error_to(error: PrunusError) -> dict[str, Any]:
    """Return an error as plain data; its kind is its nearest base class that a replay can make."""
    if isinstance(error, OverWindow):
        sizes = {"window": error.window, "needed": error.needed}
        return {"kind": "OverWindow", "message": str(error), "subject": error.subject, **sizes}
    kind = next((base.__name__ for base in type(error).__mro__ if base.__name__ in _ERRORS), "OutsideFailed")
    return {"kind": kind, "message": str(error), "subject": error.subject}


def error_from(row: Mapping[str, Any]) -> PrunusError:
    """Return a recorded error."""
    if row["kind"] == "OverWindow":
        sizes = {name: msgspec.convert(row[name], int) for name in ("window", "needed")}
        return OverWindow(str(row["message"]), **sizes, subject=str(row["subject"]))
    kind = row["kind"] if row["kind"] in _ERRORS else "OutsideFailed"
    result: PrunusError = getattr(errors, kind)(str(row["message"]), subject=str(row["subject"]))
    return result


# --- recording -----------------------------------------------------------------------------------


class Recorder:
    """Passes all requests on, and adds each reply to ``run``."""

    def __init__(self) -> None:
        self.run = RunFile()

    def keep(self, kind: str, key: str, **value: Any) -> None:
        """Add an entry."""
        self.run.entries.append({"kind": kind, "key": key, **value})

    def model(self, spec: str, make: Callable[[], Any]) -> Any:
        """Return a language model; ``make`` makes the real one."""
        return _RecordedModel(self, spec, make())

    def numbers(self, kind: str, spec: str, make: Callable[[], Any]) -> Any:
        """Return an embedder, a reranker or a tokenizer."""
        return _RecordedNumbers(self, spec, make())

    def paths(self, spec: str, make: Callable[[], Any]) -> Any:
        """Return a path scorer."""
        return _RecordedPaths(self, spec, make())

    def reaches(self, kind: str) -> bool:
        """Tell whether requests of a kind may go outside; see :class:`~prunus.record.player.Player`."""
        return True

    def provider(self, spec: str, make: Callable[[], Any]) -> Any:
        """Return a search provider."""
        return _RecordedSearch(self, spec, make())

    def clock(self, clock: Callable[[], datetime]) -> Callable[[], datetime]:
        """Return a clock."""

        def now() -> datetime:
            result = clock()
            self.keep("clock", "", now=result.isoformat())
            return result

        return now

    def pages(self, pages: Pages) -> Pages:
        """Return a reader of pages."""

        async def read(urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
            waiting = dict.fromkeys(urls)
            try:
                async with aclosing(pages(urls)) as found:
                    async for url, page in found:
                        waiting.pop(url, None)
                        self.page(url, page)
                        yield url, page
            finally:
                for url in waiting:  # given up, because they did not come in time
                    self.page(url, OutsideFailed(_LATE_PAGE.format(url=url), subject=url))

        return read

    def page(self, url: str, page: Page | PrunusError, kind: str = "page") -> None:
        """Add a page, or the error of a page that could not be read."""
        if isinstance(page, PrunusError):
            self.keep(kind, url, error=error_to(page))
        else:
            self.keep(kind, url, page=page_to(self.run, page))


class _RecordedModel(LanguageModel):
    """A model whose replies are recorded; a reply that failed or was given up is recorded as far as it came."""

    def __init__(self, recorder: Recorder, spec: str, llm: Any) -> None:
        self._recorder, self._spec, self._llm = recorder, spec, llm
        self.name, self.model, self.real, self.free = llm.name, llm.model, llm.real, llm.free
        self.context_window, self.sees_pictures = llm.context_window, llm.sees_pictures
        known = {"name": self.name, "model": self.model, "real": self.real, "free": self.free}
        known |= {"context_window": self.context_window, "sees_pictures": self.sees_pictures}
        recorder.keep("model", spec, **known, counts=llm.count is not None)
        if llm.count is not None:
            self.count = self._count

    def _count(self, texts: Sequence[str]) -> Any:
        result = self._llm.count(texts)
        self._recorder.keep("count", digest(self._spec, list(texts)), counts=[int(count) for count in result])
        return result

    async def ask_window(self) -> int:
        """Return the window of the model, and keep it."""
        try:
            window = int(await self._llm.ask_window())
        except PrunusError as error:
            self._recorder.keep("window", self._spec, error=error_to(error))
            raise
        self._recorder.keep("window", self._spec, window=window)
        return window

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield what the model yields."""
        pieces, usage = list[str](), None
        error: PrunusError | None = OutsideFailed(_LATE_MODEL, subject="llm")  # until it ends by itself
        try:
            async with aclosing(cast(Any, self._llm.stream(messages, **options))) as events:
                async for event in events:
                    if isinstance(event, TokenEvent):
                        pieces.append(event.text)
                    elif isinstance(event, UsageEvent):
                        usage = asdict(event.usage)
                    yield event
            error = None
        except PrunusError as failed:
            error = failed
            raise
        finally:
            key = digest(self._spec, called(messages, options))
            value: dict[str, Any] = {"pieces": pieces, "usage": usage}
            self._recorder.keep("reply", key, **value, **({"error": error_to(error)} if error else {}))


class _RecordedSearch:
    """A search provider whose results are recorded."""

    def __init__(self, recorder: Recorder, spec: str, provider: Any) -> None:
        self._recorder, self._spec, self._provider = recorder, spec, provider

    async def search(self, request: SearchRequest) -> Results:
        """Return the provider's results."""
        key = digest(self._spec, asdict(request))
        try:
            result: Results = await self._provider.search(request)
        except PrunusError as error:
            self._recorder.keep("search", key, error=error_to(error))
            raise
        except asyncio.CancelledError:
            self._recorder.keep("search", key, error=error_to(OutsideFailed(_LATE_SEARCH, subject="search")))
            raise
        self._recorder.keep("search", key, request=asdict(request), results=asdict(result))
        return result


class _RecordedNumbers:
    """An embedder, reranker or tokenizer whose numbers are recorded as blobs."""

    def __init__(self, recorder: Recorder, spec: str, engine: Any) -> None:
        self._recorder, self._spec, self._engine = recorder, spec, engine

    def embed(self, texts: Sequence[str], kind: str = "document") -> Any:
        """Return vectors; see :class:`~prunus.core.ports.Embedder`."""
        return self._asked("embed", list(texts), kind)

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        """Return scores; see :class:`~prunus.core.ports.Reranker`."""
        return self._asked("rerank", query, list(texts))

    def count(self, texts: Sequence[str]) -> Any:
        """Return tokens; see :class:`~prunus.core.ports.TokenCounter`."""
        return self._asked("count", list(texts))

    @property
    def above(self) -> int:
        """See :class:`~prunus.core.ports.Reranker`."""
        return int(self._said("above"))

    @property
    def beside(self) -> float:
        """See :class:`~prunus.core.ports.Reranker`."""
        return float(self._said("beside"))

    @property
    def added(self) -> float:
        """See :class:`~prunus.core.ports.Reranker`."""
        return float(self._said("added"))

    @property
    def languages(self) -> list[str]:
        """See :class:`~prunus.core.ports.Reranker`."""
        return list(self._said("languages"))

    def _said(self, member: str) -> Any:
        result = declared(self._engine, "reranker", member)
        self._recorder.keep("member", digest(self._spec, member), value=result)
        return result

    def _asked(self, method: str, *request: Any) -> Any:
        result = np.ascontiguousarray(getattr(self._engine, method)(*request), NUMBERS[method])
        blob = self._recorder.run.keep(result.tobytes())
        self._recorder.keep("numbers", digest(self._spec, method, request), blob=blob, shape=list(result.shape))
        return result


class _RecordedPaths:
    """A path scorer whose tokens and logits are recorded."""

    def __init__(self, recorder: Recorder, spec: str, engine: Any) -> None:
        self._recorder, self._spec, self._engine = recorder, spec, engine
        self.real = engine.real
        self.decode = self._decode if engine.decode is not None else None

    @property
    def prompt(self) -> str:
        """See :class:`~prunus.core.ports.PathScorer`."""
        result = str(declared(self._engine, "path_scorer", "prompt"))
        self._recorder.keep("prompt", self._spec, name=result)
        return result

    @property
    def stop(self) -> int:
        """See :class:`~prunus.core.ports.PathScorer`."""
        result = int(self._engine.stop)
        self._recorder.keep("stop", self._spec, token=result)
        return result

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        """See :class:`~prunus.core.ports.PathScorer`."""
        result: list[list[int]] = self._engine.encode(paths)
        self._recorder.keep("encode", digest(self._spec, list(paths)), tokens=result)
        return result

    def _decode(self, tokens: Sequence[int]) -> list[str]:
        result: list[str] = self._engine.decode(tokens)
        self._recorder.keep("decode", digest(self._spec, list(tokens)), texts=result)
        return result

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        """See :class:`~prunus.core.ports.PathScorer`."""
        key = digest(self._spec, called(prompt, {}), tree.token.tolist(), tree.parent.tolist())
        try:
            result: Branches = self._engine.branches(prompt, tree)
        except PrunusError as error:
            self._recorder.keep("branches", key, error=error_to(error))
            raise
        logits = np.concatenate([np.asarray(values, LOGITS) for values in result.logits])
        cost = {"forwards": result.forwards, "tokens": result.tokens, "reused": result.reused}
        self._recorder.keep("branches", key, blob=self._recorder.run.keep(logits.tobytes()), **cost)
        return result
