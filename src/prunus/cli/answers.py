"""Print an answer while it is written: its text, its sources, its events as JSON, and its trace to a file."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from ..answer.trace import as_record
from ..api.plain import answer_record
from ..core.errors import BadInput, PrunusError
from ..core.events import DoneEvent, ErrorEvent, Event, PageEvent, SearchEvent, TokenEvent
from ..core.types import Answer, Citation, Trace
from .output import emit, emit_json, emit_piece, one_line, say


class AnswerPrinter:
    """Prints a running answer: each event as JSON, or the text as the model writes it and then the sources.

    ``pages`` counts the pages that were read; ``failures`` lists the searches and pages that failed, with the reason.
    """

    def __init__(self, question: str, as_json: bool, events: bool) -> None:
        self._question, self._json, self._events = question, as_json, events
        self.pages = 0
        self.failures: list[str] = []

    async def follow(self, events: AsyncIterator[Event]) -> Answer:
        """Print the events and return the answer that ends them.

        :raises PrunusError: the run failed; with ``--events`` the error is printed as the last event, too.
        """
        text_printed = False
        try:
            async with aclosing(cast(Any, events)) as stream:
                async for event in stream:
                    self._count(event)
                    if self._events:
                        emit_json(asdict(event))
                    elif isinstance(event, TokenEvent) and not self._json:
                        emit_piece(event.text)
                        text_printed = True
                    if isinstance(event, DoneEvent):
                        self._end(event.answer)
                        return event.answer
        except PrunusError as error:
            if self._events:
                emit_json(asdict(ErrorEvent(str(error), error.subject)))
            if text_printed:
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

    def _end(self, answer: Answer) -> None:
        if self._json and not self._events:
            emit_json(answer_record(self._question, answer))
        elif not self._events:
            emit("\n\n" + sources(answer))


def sources(answer: Answer) -> str:
    """Return the sources of an answer as text: cited places, the check of each quote, unsupported sentences."""
    lines: list[str] = []
    text = " ".join(answer.text.split())
    last = 0
    for citation in sorted(answer.citations, key=lambda citation: citation.number):
        if citation.number != last:
            lines.append(f"[{citation.number}] {one_line(citation.title or '(no title)')}")
            last = citation.number
            site = "" if citation.site in citation.title else citation.site
            about = " · ".join(text for text in (", ".join(citation.authors), site, citation.published) if text)
            lines += [f"    {one_line(about)}"] if about else []
        lines.append(f"    {citation.url or 'page'}  {citation.xpath}".rstrip())
        lines.append(f"    quote: {_quote_check(citation, text)}")
    if answer.unsupported and answer.engines.get("generator") == "llm":
        lines.append(f"Not supported by the pages ({len(answer.unsupported)}):")
        lines += [f"  - {one_line(sentence)}" for sentence in answer.unsupported]
    return "\n".join(lines)


def _quote_check(citation: Citation, text: str) -> str:
    """Say whether the quote was found; print its words where the answer's text does not contain them."""
    if not citation.found:
        return "NOT FOUND"
    words = one_line(citation.quote)
    if " ".join(citation.quote.split()) in text or citation.support >= 1.0:
        return "found"
    return f"found, support {citation.support:.2f}: {words[:300]}"


def questions(first: str) -> Iterator[str]:
    """Yield the first question, then one question for each line of standard input, until an empty line or its end."""
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
    """Open a trace file; yield the function that writes a stage into it as one line of JSON, or None without a path.

    :raises BadInput: the file cannot be written.
    """
    if not path:
        yield None
        return
    import json

    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed below, so that this `except` catches only the opening
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror})", subject=path) from error
    with file:

        def write(trace: Trace) -> None:
            file.write(json.dumps(as_record(trace, time.time()), ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()

        yield write
