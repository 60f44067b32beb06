"""``llm``: summaries by a language model with the paper's prompt (RAPTOR, Appendix D), in parallel and with retries.

Each summary is written to a file at once, by the hash of the prompt, the texts, the model and the length. So a run that
was killed, or that reached a limit on money, pays for no summary twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from pathlib import Path
from typing import Any, Final, cast

from ...core.errors import BadInput, OutsideFailed, one_line
from ...core.events import TokenEvent, UsageEvent
from ...core.ports import LLM
from ...core.sqlite import ERRORS, checksum, is_damage, write_ahead, writing
from ...core.types import Message, Summary, Usage
from ...models.loops import repeats_itself, without_loop
from ...models.prompts.fences import without_fences
from ...models.prompts.render import Quoted, render
from ._shorten import whole_sentences

_LAYOUT = 2
"""Version of the file of summaries."""
_UNSEALED = 1
"""The version without checksums; they are added where such a file is opened."""
_POINTS_A_TOKEN: Final = 40
"""Code points of a token, with room: a model that writes more than that many times its limit is stopped."""
_WAIT = 30.0
"""Seconds to wait for another process that writes the file of summaries."""


class Engine:
    """Summaries by a language model.

    :param llm: the model; wrapped in :class:`prunus.models.meter.Metered`, it refuses calls over a limit.
    :param kept: the file that keeps finished summaries; None keeps none.
    :param parallel: calls at the same time.
    :param tries: most calls for one summary, where the model fails or writes nothing.
    :param pause: called with the seconds to wait between two tries.
    :raises BadInput: ``parallel`` or ``tries`` is below 1.
    """

    name = "llm"

    def __init__(
        self,
        llm: LLM,
        kept: Path | None = None,
        *,
        parallel: int = 8,
        tries: int = 3,
        pause: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        if parallel < 1 or tries < 1:
            raise BadInput(f"{parallel} calls at a time, {tries} tries: both must be 1 or more", subject="parallel")
        self.llm, self.parallel, self.tries = llm, parallel, tries
        self._kept = KeptSummaries(kept)
        self._pause = pause

    @property
    def identity(self) -> str:
        """Names the model, on which the summaries depend."""
        return f"{self.llm.name}:{self.llm.model}"

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return a summary of each group; '' for a group without words, for which the model is not called.

        Finished summaries are kept, also where the call fails.

        :raises OutsideFailed: the model failed ``tries`` times on one group.
        :raises OverLimit: a limit of the meter is reached.
        """
        room = asyncio.Semaphore(self.parallel)
        tasks = [asyncio.ensure_future(self._summary(texts, max_tokens, room)) for texts in batch]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _summary(self, texts: Sequence[str], max_tokens: int, room: asyncio.Semaphore) -> Summary:
        if not _has_words(texts):
            return Summary("")
        messages = _messages(texts, max_tokens)
        key = self._key(messages, max_tokens)
        async with room:
            known = await asyncio.to_thread(self._kept.get, key)
            if known is not None:
                return Summary(known)
            summary = await self._call(messages, max_tokens)
            await asyncio.to_thread(self._kept.put, key, summary.text)
            return summary

    async def _call(self, messages: Sequence[Message], max_tokens: int) -> Summary:
        """Return the model's summary; call again where the model fails or writes nothing."""
        failure: OutsideFailed | None = None
        for attempt in range(self.tries):
            if attempt:
                await self._pause(2.0 ** (attempt - 1))
            try:
                text, usage = await self._read(messages, max_tokens)
            except OutsideFailed as error:
                failure = error
                continue
            if text:
                return Summary(text, usage)
            failure = OutsideFailed(f"{self.identity}: the summary is empty", subject=self.identity)
        assert failure is not None
        raise failure

    async def _read(self, messages: Sequence[Message], max_tokens: int) -> tuple[str, Usage]:
        """Return the model's summary of at most ``max_tokens`` tokens, without loops and fence lines, and the cost.

        A model that goes on, or repeats itself, is stopped.
        """
        text, seen, usage = "", 0, Usage()
        async with aclosing(cast(Any, self.llm.stream(messages, max_tokens=max_tokens, temperature=0.0))) as events:
            async for event in events:
                if isinstance(event, UsageEvent):
                    usage = event.usage
                elif isinstance(event, TokenEvent):
                    text += event.text
                    if len(text) > seen + 200:  # the search costs time: not at every token
                        seen = len(text)
                        if repeats_itself(text) or len(text) > _POINTS_A_TOKEN * max_tokens:
                            break
        text = without_loop(without_fences(text).strip())
        return (whole_sentences(text, max_tokens, self.llm.count) if self.llm.count is not None else text), usage

    def _key(self, messages: Sequence[Message], max_tokens: int) -> str:
        return key_of(self.identity, messages, max_tokens)


def _has_words(texts: Sequence[str]) -> bool:
    return any(text.strip() for text in texts)


def _messages(texts: Sequence[str], max_tokens: int) -> list[Message]:
    words = max(10, max_tokens * 3 // 4)  # a token is about three quarters of an English word
    return render("summarize", words=words, texts=[Quoted(text) for text in texts if text.strip()])


# --- summaries on the disk ----------------------------------------------------------------------


def key_of(model: str, messages: Sequence[Message], max_tokens: int) -> str:
    """Return the sha256 of the model, the length and the messages, hex."""
    state = hashlib.sha256()
    for part in (model, str(max_tokens), *(text for message in messages for text in (message.role, message.content))):
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


class KeptSummaries:
    """Finished summaries in one SQLite file; without a path, none are kept.

    :param path: the file; its folder is created.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def get(self, key: str) -> str | None:
        """Return the summary of a key; None where the file has none, or where it does not match its checksum."""
        if self._path is None or not self._path.exists():
            return None
        with self._opened() as file:
            row = file.execute("SELECT text, seal FROM summaries WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row and row[1] == checksum(key, row[0]) else None

    def put(self, key: str, text: str) -> None:
        """Write a summary; on return it is durable."""
        if self._path is None:
            return
        safe = text.encode("utf-8", "replace").decode("utf-8")
        with self._opened() as file:
            file.execute("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?)", (key, safe, checksum(key, safe)))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        assert self._path is not None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)) as file:
                layout = file.execute("PRAGMA user_version").fetchone()[0]
                if layout not in (0, _UNSEALED, _LAYOUT):
                    raise BadInput(f"{self._path}: written by another version; delete it", subject=str(self._path))
                write_ahead(file, _WAIT)
                if layout != _LAYOUT:
                    _create(file)
                yield file
        except ERRORS as error:
            if is_damage(error):
                raise BadInput(
                    f"{self._path}: not a file of summaries ({one_line(str(error))}); delete it",
                    subject=str(self._path),
                ) from error
            raise OutsideFailed(
                f"{self._path}: summaries cannot be written ({error})", subject=str(self._path)
            ) from error
        except OSError as error:
            raise OutsideFailed(
                f"{self._path}: summaries cannot be written ({error})", subject=str(self._path)
            ) from error


def _create(file: sqlite3.Connection) -> None:
    """Make the table, or add checksums to an older one, unless another process has done it since.

    :raises sqlite3.DatabaseError: the file holds the tables of another program.
    """
    with writing(file):
        layout = file.execute("PRAGMA user_version").fetchone()[0]
        (tables,) = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if layout == 0 and tables:
            raise sqlite3.DatabaseError("it holds other tables")
        if layout == 0:
            file.execute("CREATE TABLE summaries (key TEXT PRIMARY KEY, text TEXT, seal INTEGER) WITHOUT ROWID")
        if layout == _UNSEALED:
            file.execute("ALTER TABLE summaries ADD COLUMN seal INTEGER")
            for key, text in file.execute("SELECT key, text FROM summaries").fetchall():
                file.execute("UPDATE summaries SET seal = ? WHERE key = ?", (checksum(key, text), key))
        file.execute(f"PRAGMA user_version = {_LAYOUT}")
