"""How an answer is shown while it comes, and what of a run is written down."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, cast

from ..answer.trace import as_record
from ..api.plain import answer_record
from ..core.errors import BadInput, PrunusError
from ..core.events import DoneEvent, ErrorEvent, Event, PageEvent, SearchEvent, TokenEvent
from ..core.types import Answer, Citation, Trace
from .output import emit, emit_json, emit_piece, one_line, say


class Following(Protocol):
    """What follows a run to its answer."""

    async def follow(self, events: AsyncIterator[Event]) -> Answer:
        """Return the answer, showing what comes before it."""
        ...


class Shown:
    """Shows a run as it goes: events as JSON, or the text as it is written and its sources behind it.

    ``pages`` counts the pages that were read, ``failures`` holds what could not be.
    """

    def __init__(self, question: str, as_json: bool, events: bool) -> None:
        self._question, self._json, self._events = question, as_json, events
        self.pages = 0
        self.failures: list[str] = []

    async def follow(self, events: AsyncIterator[Event]) -> Answer:
        """Run to the answer.

        :raises PrunusError: the run ended early; with events it is one, too.
        """
        begun = False
        try:
            async with aclosing(cast(Any, events)) as each:
                async for event in each:
                    self._count(event)
                    if self._events:
                        emit_json(asdict(event))
                    elif isinstance(event, TokenEvent) and not self._json:
                        emit_piece(event.text)
                        begun = True
                    if isinstance(event, DoneEvent):
                        self._end(event.answer)
                        return event.answer
        except PrunusError as error:
            if self._events:
                emit_json(asdict(ErrorEvent(str(error), error.subject)))
            if begun:
                emit("")
            raise
        raise RuntimeError("the events ended without an answer")

    def _count(self, event: Event) -> None:
        if isinstance(event, PageEvent):
            self.pages += not event.failure
        failure = event.failure if isinstance(event, PageEvent | SearchEvent) else ""
        if failure:
            self.failures.append(failure)
        if isinstance(event, SearchEvent) and not self._events:
            for warning in event.warnings:
                say(f"prunus: {one_line(warning)}")

    def _end(self, found: Answer) -> None:
        if self._json and not self._events:
            emit_json(answer_record(self._question, found))
        elif not self._events:
            emit("\n\n" + sources(found))


def written(found: Answer) -> str:
    """Return an answer as text: what it says, then its sources."""
    return f"{found.text}\n\n{sources(found)}"


def sources(found: Answer) -> str:
    """Return the sources of an answer: the places that are cited, the check of each quote, what nothing bears out."""
    lines: list[str] = []
    quoted = " ".join(found.text.split())
    last = 0
    for citation in sorted(found.citations, key=lambda one: one.number):
        if citation.number != last:
            lines.append(f"[{citation.number}] {one_line(citation.title or '(no title)')}")
            last = citation.number
        dated = f"  {one_line(citation.published)}" if citation.published else ""
        lines.append(f"    {citation.url or 'page'}  {citation.xpath}{dated}".rstrip())
        lines.append(f"    quote: {_check(citation, quoted)}")
    if found.unsupported and found.citations and found.engines.get("generator") == "llm":
        lines.append(f"Not borne out by the pages ({len(found.unsupported)}):")
        lines += [f"  - {one_line(sentence)}" for sentence in found.unsupported]
    return "\n".join(lines)


def _check(citation: Citation, quoted: str) -> str:
    """Say whether a quote was found; where the answer does not hold its words, show them."""
    if not citation.found:
        return "NOT FOUND"
    words = one_line(citation.quote)
    if " ".join(citation.quote.split()) in quoted or citation.support >= 1.0:
        return "found"
    return f"found, support {citation.support:.2f}: {words[:300]}"


def questions(first: str) -> Iterator[str]:
    """Yield a question, then those of standard input, a line each, until it ends."""
    yield first
    while sys.stdin is not None:
        if sys.stdin.isatty():
            say("Next question (an empty line ends):")
        line = sys.stdin.readline()
        if not line.strip():
            return
        yield line.strip()


@contextmanager
def traced(path: str | None) -> Iterator[Callable[[Trace], None] | None]:
    """Open the file of a trace; yields what writes each stage into it as one line of JSON.

    :raises BadInput: it cannot be written.
    """
    if not path:
        yield None
        return
    import json

    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed below: its errors are not the answer's
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror})", subject=path) from error
    with file:

        def write(trace: Trace) -> None:
            file.write(json.dumps(as_record(trace, time.time()), ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()

        yield write
