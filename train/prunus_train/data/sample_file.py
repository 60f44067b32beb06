"""The file of a maker of samples: units of work that are written whole, the samples made of them, and the report.

``PATH.units`` has a line for each unit (a request, a question) that is done; a killed run goes on behind the last whole
line. ``PATH`` and ``PATH.report.json`` are written at the end, whole or not at all. Replies of models are kept in
``PATH.replies``, so that a maker that was stopped asks nothing twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from prunus.core.errors import BadBudget, OverWindow, PrunusError
from prunus.core.events import TokenEvent
from prunus.core.ports import LLM
from prunus.core.types import Message
from prunus_train.errors import DataBroken, TrainError

Row = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")
SECONDS = 600.0
"""Time limit of one reply."""


@dataclass(slots=True)
class SampleUnit:
    """What became of one unit.

    :param kept: its samples.
    :param left_out: reasons for which something of it is no sample.
    :param counts: what the report counts, as ``language: de``.
    """

    id: str
    kept: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)


class SampleFile:
    """The units of one maker; a context manager.

    :param path: file of the samples.
    :param settings: what all units must share.
    :raises DataBroken: the file was made with other settings, or is damaged.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        if not path.parent.is_dir():
            raise DataBroken(f"there is no folder {path.parent}")
        same_settings(path, dict(settings))
        self.path = path
        self._settings = settings
        self._units = path.with_name(f"{path.name}.units")
        self.units = [SampleUnit(**row) for row in rows_of(self._units)]
        self.done = {unit.id for unit in self.units}
        self._file = self._units.open("a", encoding="utf-8")

    def __enter__(self) -> SampleFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, unit: SampleUnit) -> None:
        """Write a unit that is done."""
        row = {"id": unit.id, "kept": unit.kept, "left_out": unit.left_out, "counts": unit.counts}
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._file.flush()
        self.units.append(unit)
        self.done.add(unit.id)

    def finish(
        self, choose: Callable[[list[Row]], tuple[list[Row], dict[str, int]]] = lambda rows: (rows, {}), **more: Any
    ) -> dict[str, Any]:
        """Write the samples and the report; return the report.

        :param choose: returns which of all samples are written, and how many are left out by reason.
        :param more: further numbers of the report.
        """
        rows, dropped = choose([row for unit in self.units for row in unit.kept])
        reasons = Counter(reason for unit in self.units for reason in unit.left_out) + Counter(dropped)
        counts = Counter(count for unit in self.units for count in unit.counts)
        report = {
            "units": len(self.units),
            "samples": len(rows),
            "left_out": dict(sorted(reasons.items())),
            "counts": dict(sorted(counts.items())),
            **more,
            "settings": dict(self._settings),
        }
        write_lines(self.path, rows)
        write_whole(self.path.with_name(f"{self.path.name}.report.json"), json.dumps(report, indent=1) + "\n")
        return report


class TooLong(TrainError):
    """A prompt is longer than a model's window."""


class KeptReplies:
    """Asks models, and keeps every reply; threads may share it.

    :param path: file of the replies, JSON lines; a torn last line is dropped.
    :param at_once: how many questions are asked at the same time.
    """

    def __init__(self, path: Path, at_once: int = 1) -> None:
        self._known: dict[str, str] = {row["key"]: row["text"] for row in rows_of(path)}
        self._path = path
        self._lock = threading.Lock()
        self._at_once = at_once
        self.asked = self.kept = 0

    def reply(self, spec: str, llm: LLM, messages: Sequence[Message], **options: Any) -> str:
        """Return a model's reply to a conversation.

        :param spec: name of the model, of which the key of the reply is made.
        :param options: of ``LLM.stream``: ``temperature``, ``seed``, ``max_tokens``, ``schema``.
        :raises TooLong: the prompt is over the model's window.
        :raises TrainError: the model cannot be reached or failed.
        """
        turns = [[message.role, message.content] for message in messages]
        return self.made([spec, turns, options], spec, lambda: _text(llm, messages, options))

    def made(self, about: Any, spec: str, make: Callable[[], Any]) -> str:
        """Return a text that a model makes, from the file where it is known.

        :param about: all that the text depends on, ready for JSON.
        :param make: returns the coroutine that makes it.
        """
        key = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()
        with self._lock:
            if key in self._known:
                self.kept += 1
                return self._known[key]
        try:
            text = str(asyncio.run(asyncio.wait_for(make(), SECONDS)))
        except (BadBudget, OverWindow) as error:
            raise TooLong(f"{spec}: {error}") from error
        except TimeoutError as error:
            raise TrainError(f"{spec} did not answer within {SECONDS:.0f} s; run the same command to go on") from error
        except PrunusError as error:
            raise TrainError(f"{spec}: {error}; replies are kept: run the same command to go on") from error
        with self._lock:
            self.asked += 1
            self._known[key] = text
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "text": text}, ensure_ascii=False) + "\n")
        return text

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Yield ``work(item)`` for each item in their order, some at the same time."""
        with ThreadPoolExecutor(self._at_once) as pool:
            waiting = iter(items)
            while group := list(islice(waiting, self._at_once)):
                yield from pool.map(work, group)


async def _text(llm: LLM, messages: Sequence[Message], options: dict[str, Any]) -> str:
    events = llm.stream(messages, **options)
    return "".join([event.text async for event in events if isinstance(event, TokenEvent)])


def same_settings(path: Path, settings: dict[str, Any]) -> None:
    """Write the settings beside a file of samples, or check that they are the same as before.

    :raises DataBroken: the samples were made with other settings.
    """
    beside = path.with_name(f"{path.name}.settings")
    if not beside.exists():
        if path.exists():
            raise DataBroken(f"{path} holds samples of unknown settings; name another file")
        write_whole(beside, json.dumps(settings) + "\n")
    elif json.loads(beside.read_text(encoding="utf-8")) != json.loads(json.dumps(settings)):
        raise DataBroken(f"{path} was made with other settings (see {beside.name}); name another file")


def rows_of(path: Path) -> list[Row]:
    """Return the rows that a stopped run has written; an incomplete last line is cut off the file.

    :raises DataBroken: a line before the last is damaged; the message names it.
    """
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
    return list(_parsed(path, content[:whole].splitlines()))


def _parsed(path: Path, lines: Iterable[bytes]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DataBroken(f"{path}, line {number}: not JSON ({error}); remove the file to start anew") from error


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines, whole or not at all."""
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_whole(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
