"""The request log: one JSON line a question, for training and evaluation. Off unless the operator names a folder.

A line holds what the extractor saw and chose, and what was answered: the question, the pages, their tagged sentences,
the tags that were taken, the answer and its citations. Secrets in addresses are hidden; so are e-mail addresses and
long numbers in what the client wrote. Files are named by the day, UTC, and deleted when they are too old.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput, PrunusError, one_line
from ..core.events import DoneEvent, Event, PageEvent, PlanEvent
from ..core.text.secrets import hide_secrets
from ..core.types import Answer, Trace
from .errors import note_bug
from .mask import Mask
from .work import PassedOn

log = logging.getLogger("prunus.serve")

FORMAT: Final = "prunus-requests-1"
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")
_NUMBER: Final = re.compile(r"\+?\d(?:[ ()/.-]?\d){8,30}")
"""A number of nine digits or more: of a telephone, an account, a card."""


@dataclass
class Note:
    """What is noted of one question while it is answered.

    :param tagged: per page the tagged sentences that the extractor saw, as ``{"tag", "page", "text"}``.
    """

    question: str
    turns: Sequence[tuple[str, str]] = ()
    pages: list[dict[str, str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    tagged: list[dict[str, Any]] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    answer: Answer | None = None
    ended: str = "left"

    def listen(self, trace: Trace) -> None:
        """Note a stage; see ``Options.trace``."""
        if trace.stage == "extract":
            self.tagged = list(trace.detail.get("tagged", ()))
            self.tags = list(trace.detail.get("chosen", ()))

    def event(self, event: Event | None) -> None:
        """Note an event."""
        match event:
            case PlanEvent(plan):
                self.queries = [query.text for query in plan.queries]
            case PageEvent(url, title, failure):
                self.pages.append({"url": url, "title": title, "failure": failure})
            case DoneEvent(answer):
                self.answer, self.ended = answer, "done"


class RequestLog:
    """Writes the log of one server; several processes may share its folder.

    :param folder: made where it is missing.
    :param days: files older than this are deleted.
    :raises BadInput: the folder cannot be written.
    """

    def __init__(self, folder: Path, days: int, mask: Mask) -> None:
        self._folder, self._days, self._mask = folder, days, mask
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._delete_old(datetime.now(UTC))
        except OSError as error:
            raise BadInput(f"log: {folder} cannot be written ({error.strerror})", subject="log") from error

    async def noted(
        self, note: Note, events: AsyncGenerator[Event | None, None], write: Callable[[Callable[[], None]], None]
    ) -> AsyncGenerator[Event | None, None]:
        """Pass events on, and write the note when they end, however they end.

        :param write: runs the writing in a thread.
        """
        passed_on = False
        try:
            async with aclosing(events):
                async for event in events:
                    note.event(event)
                    yield event
        except PassedOn:
            passed_on = True  # the background process writes the line
            raise
        except PrunusError as error:
            note.ended = one_line(str(error), longest=300)
            raise
        finally:
            if not passed_on:
                write(lambda: self.write(note))

    def write(self, note: Note) -> None:
        """Append the line of one question. A failure is logged: it is no reason to fail the answer."""
        try:
            self._write(note, datetime.now(UTC))
        except OSError as error:
            log.error("the request log cannot be written: %s", error.strerror)
        except Exception as error:  # a bug: nobody waits for this call, who could be told
            note_bug(error, "the request log")

    def delete_old(self) -> None:
        """Delete the files of days that are too old; called now and then, because a quiet server writes nothing."""
        try:
            self._delete_old(datetime.now(UTC))
        except OSError as error:
            log.error("old files of the request log cannot be deleted: %s", error.strerror)

    def _write(self, note: Note, now: datetime) -> None:
        path = self._folder / f"requests-{now:%Y-%m-%d}.jsonl"
        line = json.dumps(self._record(note, now), ensure_ascii=False) + "\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))  # one call: lines of processes do not mix
        finally:
            os.close(descriptor)

    def _record(self, note: Note, now: datetime) -> dict[str, Any]:
        answer = note.answer
        record: dict[str, Any] = {
            "format": FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "question": _hidden(note.question),
            "turns": [{"role": role, "content": _hidden(text)} for role, text in note.turns],
            "queries": [_hidden(query) for query in note.queries],
            "pages": note.pages,
            "tagged": note.tagged,
            "tags": note.tags,
            "ended": note.ended,
        }
        if answer is not None:
            record |= {
                "answer": answer.text,
                "citations": [
                    {"number": cited.number, "url": cited.url, "quote": cited.quote, "found": cited.found}
                    for cited in answer.citations
                ],
                "unsupported": list(answer.unsupported),
                "failures": dict(answer.failures),
                "engines": dict(answer.engines),
                "tokens": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
                "seconds": dict(answer.usage.seconds),
            }
        return _without_secrets(self._mask.record(record))  # type: ignore[no-any-return]

    def _delete_old(self, now: datetime) -> None:
        oldest = f"requests-{now - timedelta(days=self._days):%Y-%m-%d}.jsonl"
        for path in self._folder.glob("requests-????-??-??.jsonl"):
            if path.name < oldest:
                path.unlink(missing_ok=True)


def _hidden(text: str) -> str:
    """Return what a client wrote without e-mail addresses and long numbers."""
    return _NUMBER.sub("[number]", _EMAIL.sub("[email]", text))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, dict):
        return {key: _without_secrets(part) for key, part in value.items()}
    return [_without_secrets(part) for part in value] if isinstance(value, list) else value
