"""Replay a recorded run: every request gets its recorded reply, and the network is not used.

A reply is found by the digest of its request. A replay with changed settings takes the replies of unchanged requests
from the record, and sends the other requests live.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

import msgspec
import numpy as np
from msgspec import convert

from ..answer.pictures import Pages
from ..core.checked_engines import MEMBERS, adopted, declared, name_of
from ..core.errors import BadInput, PrunusError
from ..core.events import Event, TokenEvent, UsageEvent
from ..core.ports import Branches, LanguageModel, TokenTree
from ..core.registry import is_built_in, split_spec
from ..core.types import Message, Page, Results, SearchRequest, Usage
from .file import RunFile
from .recorder import LOGITS, NUMBERS, Recorder, bare, called, digest, error_from, page_from

T = TypeVar("T")

TAPED: Final = frozenset({"llm", "search", "embedder", "reranker", "path_scorer", "tokenizer"})
"""Kinds of engines whose replies a recorded run holds."""

Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**40), le=2**40)]
"""A recorded whole number; a larger one would not fit the arrays that it goes into."""


class Player:
    """Replies from a record; a request that is not in the record is sent live, or refused.

    :param live: kinds of requests that may be sent live: ``page``, and kinds of engines.
    """

    def __init__(self, run: RunFile, live: Collection[str] = ()) -> None:
        self.run, self.live = run, live
        self._known: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for entry in run.entries:
            self._known.setdefault(_request_of(entry), []).append(entry)

    def find(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the entry of a request; a repeated request gets the next entry, and at the end the last one again."""
        result = self._known.get((kind, key))
        if not result:
            return None
        return result.pop(0) if len(result) > 1 else result[0]

    def missing(self, kind: str, what: str) -> None:
        """Check that a request that is not in the record may be sent live.

        :raises BadInput: requests of this kind may not be sent live.
        """
        if kind in self.live:
            return
        way = f"name the {kind} that may be asked: --change {kind}=SPEC" if self.live else "it is asked otherwise now"
        raise BadInput(f"the recorded run holds no {what}; {way}", subject=what)

    def model(self, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`~prunus.record.recorder.Recorder`."""
        known = self.find("model", spec)
        if known is None:
            self.missing("llm", f"model {spec}")
            return make()
        return _PlayedModel(self, spec, known, make)

    def numbers(self, kind: str, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`~prunus.record.recorder.Recorder`."""
        return _PlayedNumbers(self, kind, spec, make)

    def paths(self, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`~prunus.record.recorder.Recorder`."""
        return _PlayedPaths(self, spec, make)

    def reaches(self, kind: str) -> bool:
        """See :class:`~prunus.record.recorder.Recorder`."""
        return kind in self.live

    def provider(self, spec: str, make: Callable[[], Any]) -> Any:
        """See :class:`~prunus.record.recorder.Recorder`."""
        return _PlayedSearch(self, "search", spec, make)

    def clock(self, clock: Callable[[], datetime]) -> Callable[[], datetime]:
        """See :class:`~prunus.record.recorder.Recorder`."""

        def now() -> datetime:
            known = self.find("clock", "")
            return reading(lambda: datetime.fromisoformat(known["now"]).astimezone()) if known else clock()

        return now

    def pages(self, pages: Pages) -> Pages:
        """See :class:`~prunus.record.recorder.Recorder`."""

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
        result = [self._page(entry) for entry in self.run.entries if entry["kind"] == "given"]
        return [page for page in result if isinstance(page, Page)]

    def array(self, entry: Mapping[str, Any], kind: str, shape: Sequence[int]) -> Any:
        """Return the recorded numbers of an entry."""
        return reading(lambda: np.frombuffer(self.run.blobs[entry["blob"]], kind).reshape(shape))

    def _page(self, entry: Mapping[str, Any]) -> Page | PrunusError:
        if "error" in entry:
            return reading(lambda: error_from(entry["error"]))
        return reading(lambda: page_from(self.run, entry["page"]))


def intercepted(by: Recorder | Player, kind: str, choice: Any, make: Callable[[], Any]) -> Any:
    """Return an engine that a recorder or a player stands before, where it reads something outside of Prunus.

    That is a service, a model's files, or the code of another package: a replay must not depend on them.

    :param choice: its spec, or the engine itself.
    :param make: makes the real engine.
    """
    spec = bare(name_of(choice))
    name, model = split_spec(name_of(choice))
    own = isinstance(choice, str) and not model and is_built_in(kind, name)
    if kind not in TAPED or (own and kind in ("embedder", "tokenizer")):  # a reranker's weights are in another package
        return make()
    if kind in ("embedder", "reranker", "tokenizer"):
        return adopted(kind, by.numbers(kind, spec, make), name)
    return {"llm": by.model, "path_scorer": by.paths, "search": by.provider}[kind](spec, make)


class _Model(msgspec.Struct):
    """What is recorded about a model."""

    name: str = ""
    model: str = ""
    real: bool = True
    free: bool = False
    context_window: Whole = 0
    sees_pictures: bool = False
    counts: bool = False


class _PlayedModel(LanguageModel):
    """A recorded model; the real model is made only for a request that is not in the record."""

    def __init__(self, player: Player, spec: str, entry: Mapping[str, Any], make: Callable[[], Any]) -> None:
        self._player, self._spec, self._make = player, spec, make
        self._llm: Any = None
        known = reading(lambda: convert(entry, _Model))
        self.name, self.model, self.real, self.free = known.name, known.model, known.real, known.free
        self.context_window, self.sees_pictures = known.context_window, known.sees_pictures
        if known.counts:
            self.count = self._count

    def _live(self, what: str) -> Any:
        self._player.missing("llm", what)
        self._llm = self._llm if self._llm is not None else self._make()
        return self._llm

    def _count(self, texts: Sequence[str]) -> Any:
        known = self._player.find("count", digest(self._spec, list(texts)))
        if known is None:
            return self._live("count of tokens").count(texts)
        counts = reading(lambda: convert(known["counts"], list[Whole]))
        return _checked(np.asarray(counts, np.int64), (len(texts),))

    async def ask_window(self) -> int:
        """Return the recorded window, or ask."""
        known = self._player.find("window", self._spec)
        if known is None:
            return int(await self._live("window of the model").ask_window())
        _raise_recorded(known)
        return reading(lambda: convert(known["window"], Whole))

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the recorded reply, or call the real model."""
        known = self._player.find("reply", digest(self._spec, called(messages, options)))
        if known is None:
            async with aclosing(cast(Any, self._live("reply to this prompt").stream(messages, **options))) as events:
                async for event in events:
                    yield event
            return
        for piece in reading(lambda: convert(known["pieces"], list[str])):
            yield TokenEvent(piece)
        if known.get("usage") is not None:
            yield UsageEvent(reading(lambda: convert(known["usage"], Usage)))
        _raise_recorded(known)


class _Played:
    """A recorded engine; the real engine is made only for a request that is not in the record."""

    def __init__(self, player: Player, kind: str, spec: str, make: Callable[[], Any]) -> None:
        self._player, self._kind, self._spec, self._make = player, kind, spec, make
        self._engine: Any = None

    def _live(self, what: str) -> Any:
        self._player.missing(self._kind, what)
        self._engine = self._engine if self._engine is not None else self._make()
        return self._engine


class _PlayedSearch(_Played):
    """A recorded search."""

    async def search(self, request: SearchRequest) -> Results:
        """Return the recorded results, or call the real provider."""
        known = self._player.find("search", digest(self._spec, asdict(request)))
        if known is None:
            return cast(Results, await self._live(f"answer to the query {request.query[:80]!r}").search(request))
        _raise_recorded(known)
        return reading(lambda: convert(known["results"], Results))


class _PlayedNumbers(_Played):
    """A recorded embedder, reranker or tokenizer."""

    def embed(self, texts: Sequence[str], kind: str = "document") -> Any:
        """Return vectors; see :class:`~prunus.core.ports.Embedder`."""
        return self._asked("embed", (len(texts), -1), list(texts), kind)

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        """Return scores; see :class:`~prunus.core.ports.Reranker`."""
        return self._asked("rerank", (len(texts),), query, list(texts))

    def count(self, texts: Sequence[str]) -> Any:
        """Return tokens; see :class:`~prunus.core.ports.TokenCounter`."""
        return self._asked("count", (len(texts),), list(texts))

    @property
    def above(self) -> int:
        """See :class:`~prunus.core.ports.Reranker`."""
        return reading(lambda: convert(self._said("above"), Whole))

    @property
    def beside(self) -> float:
        """See :class:`~prunus.core.ports.Reranker`."""
        return reading(lambda: convert(self._said("beside"), float))

    @property
    def added(self) -> float:
        """See :class:`~prunus.core.ports.Reranker`."""
        return reading(lambda: convert(self._said("added"), float))

    @property
    def languages(self) -> list[str]:
        """See :class:`~prunus.core.ports.Reranker`."""
        return reading(lambda: convert(list(self._said("languages")), list[str]))

    def _said(self, member: str) -> Any:
        known = self._player.find("member", digest(self._spec, member))
        if known is not None:
            return known["value"]
        if self._kind in self._player.live:
            return declared(self._live(f"settings of the {self._kind}"), "reranker", member)
        return MEMBERS["reranker"][member]  # the record of a version whose rerankers declared nothing

    def _asked(self, method: str, shape: tuple[int, ...], *request: Any) -> Any:
        known = self._player.find("numbers", digest(self._spec, method, request))
        if known is None:
            return getattr(self._live(f"reply of the {self._kind}"), method)(*request)
        recorded = reading(lambda: convert(known["shape"], list[Whole]))
        return _checked(self._player.array(known, NUMBERS[method], recorded), shape)


class _PlayedPaths(_Played):
    """A recorded path scorer."""

    def __init__(self, player: Player, spec: str, make: Callable[[], Any]) -> None:
        super().__init__(player, "path_scorer", spec, make)
        self.real = True
        self.decode = self._decode

    @property
    def prompt(self) -> str:
        """See :class:`~prunus.core.ports.PathScorer`."""
        known = self._player.find("prompt", self._spec)
        return "" if known is None else reading(lambda: convert(known["name"], str))

    @property
    def stop(self) -> int:
        """See :class:`~prunus.core.ports.PathScorer`."""
        known = self._player.find("stop", self._spec)
        return (
            self._live("token of the path scorer").stop
            if known is None
            else reading(lambda: convert(known["token"], Whole))
        )

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        """See :class:`~prunus.core.ports.PathScorer`."""
        known = self._player.find("encode", digest(self._spec, list(paths)))
        if known is None:
            return cast(list[list[int]], self._live("tokens of these paths").encode(paths))
        tokens = reading(lambda: convert(known["tokens"], list[list[Whole]]))
        if len(tokens) != len(paths) or not all(tokens):
            raise _damaged("the tokens of some paths are missing")
        return tokens

    def _decode(self, tokens: Sequence[int]) -> list[str]:
        known = self._player.find("decode", digest(self._spec, list(tokens)))
        texts = reading(lambda: convert(known["texts"], list[str])) if known is not None else []
        return texts if len(texts) == len(tokens) else [f"#{token}" for token in tokens]

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        """See :class:`~prunus.core.ports.PathScorer`."""
        request = (called(prompt, {}), tree.token.tolist(), tree.parent.tolist())
        known = self._player.find("branches", digest(self._spec, *request))
        if known is None:
            return cast(Branches, self._live("scores of these paths").branches(prompt, tree))
        _raise_recorded(known)
        ends = np.cumsum([0, *map(len, tree.children)])
        logits = _checked(self._player.array(known, LOGITS, [-1]), (int(ends[-1]),))
        cost = reading(lambda: convert([known[name] for name in ("forwards", "tokens", "reused")], list[Whole]))
        return Branches([logits[start:end] for start, end in pairwise(ends)], *cost)


def _request_of(entry: Mapping[str, Any]) -> tuple[str, str]:
    return reading(lambda: convert((entry["kind"], entry["key"]), tuple[str, str]))


def reading(work: Callable[[], T]) -> T:
    """Return the value of ``work``, which reads a part of the record.

    :raises BadInput: the record is damaged.
    """
    try:
        return work()
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(f"{type(error).__name__}: {error}") from error


def _checked(found: Any, shape: tuple[int, ...]) -> Any:
    """Check recorded numbers: finite, and as many as were asked for; -1 stands for any length."""
    right = len(found.shape) == len(shape) and all(b in (-1, a) for a, b in zip(found.shape, shape, strict=True))
    if not right or not np.isfinite(found).all():
        raise _damaged(f"numbers of shape {found.shape} are no reply to {shape[0]} texts")
    return found


def _raise_recorded(entry: Mapping[str, Any]) -> None:
    """Raise the recorded error of an entry, if it has one."""
    if "error" in entry:
        raise reading(lambda: error_from(entry["error"]))


def _damaged(fault: str) -> BadInput:
    return BadInput(f"the recorded run is damaged ({' '.join(fault.split())[:300]})", subject="events")
