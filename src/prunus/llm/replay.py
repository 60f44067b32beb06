"""``replay:FILE``: replies that were recorded, found by the digest of the request; nothing else is asked.

The file is JSON Lines, one reply a line: digest, model, messages, options, pieces as they were streamed,
usage. It holds the prompts, page text included: keep it where the pages may lie.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from ..events import Event, TokenEvent, UsageEvent
from ..ports import LLM, TokenCounter
from ..types import Message, Usage
from ._shared import Asked, as_plain, check_messages, digest, one_line

_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a recording that are read."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    pieces: tuple[str, ...]
    usage: Usage


class Engine:
    """Replays recorded replies; with ``record``, asks that model for what is not in the file and keeps it.

    :param model: the file.
    :param record: the model that is asked and recorded; None: a request that is not in the file fails.
    :param tokenizer: counts tokens where no model is recorded.
    """

    name = "replay"
    real = False

    def __init__(self, model: str = "", record: LLM | None = None, tokenizer: TokenCounter | None = None) -> None:
        if not model:
            raise BadInput("llm replay: give the file of recorded replies, as replay:replies.jsonl", subject="replay")
        self._path = Path(model)
        self._record = record
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._known: dict[str, _Recorded] | None = None
        self.model = str(getattr(record, "model", "")) or "replay"
        self.context_window = int(getattr(record, "context_window", 0))
        self.free = record is None

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count tokens with the recorded model, or with the tokenizer that was given.

        :raises BadInput: there is neither.
        """
        counter = self._record if hasattr(self._record, "count") else self._tokenizer
        if counter is None:
            raise BadInput(f"replay:{self._path}: no tokenizer was given to count with", subject="tokenizer")
        return cast(Any, counter).count(texts)  # type: ignore[no-any-return]

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the recorded pieces and usage; the model's name is no part of the digest.

        :raises BadInput: the file is missing or malformed, or the request is not in it.
        """
        asked = Asked.of(options)
        check_messages(messages)
        key = digest(messages, asked, "")
        found = self._load().get(key)
        if found is None:
            if self._record is None:
                begin = one_line(messages[-1].content, longest=60)
                raise BadInput(
                    f"replay:{self._path}: no reply is recorded for the request {key[:12]} ({begin}); record it anew",
                    subject=key,
                )
            async for event in self._recorded(key, messages, asked):
                yield event
            return
        for piece in found.pieces:
            yield TokenEvent(piece)
        yield UsageEvent(found.usage)

    async def _recorded(self, key: str, messages: Sequence[Message], asked: Asked) -> AsyncIterator[Event]:
        """Ask the model, pass its events on, and keep the reply when it is whole."""
        assert self._record is not None
        pieces: list[str] = []
        usage = Usage()
        given = {name: value for name, value in asdict(asked).items() if value not in (None, ())}
        async with aclosing(cast(Any, self._record.stream(messages, **given))) as events:
            async for event in events:
                if isinstance(event, TokenEvent):
                    pieces.append(event.text)
                elif isinstance(event, UsageEvent):
                    usage = event.usage
                yield event
        line = {
            "digest": key,
            "model": self.model,
            "messages": [as_plain(message) for message in messages],
            "options": given,
            "pieces": pieces,
            "usage": asdict(usage),
        }
        self._keep(key, line, _Recorded(tuple(pieces), usage))

    def _keep(self, key: str, line: dict[str, Any], reply: _Recorded) -> None:
        """Append a reply; it is on the disk when this returns."""
        known = self._load()
        with self._lock:
            if key in known:
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
            with self._path.open("rb+") as file:
                file.seek(_end_of_whole_lines(file))
                file.truncate()
                file.write(json.dumps(line, ensure_ascii=True).encode("ascii") + b"\n")
                file.flush()
                os.fsync(file.fileno())
            known[key] = reply

    def _load(self) -> dict[str, _Recorded]:
        with self._lock:
            if self._known is None:
                self._known = self._read()
            return self._known

    def _read(self) -> dict[str, _Recorded]:
        if not self._path.is_file():
            if self._record is not None:
                return {}
            raise BadInput(f"replay:{self._path}: no such file; give one that was recorded", subject=str(self._path))
        if self._path.stat().st_size > _LARGEST:
            raise BadInput(f"replay:{self._path}: over the limit of 256 MiB; record fewer replies in one file")
        known: dict[str, _Recorded] = {}
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and line.endswith(b"\n"):  # a line without its end was never acknowledged
                    key, reply = self._parse(line, number)
                    known.setdefault(key, reply)
        return known

    def _parse(self, line: bytes, number: int) -> tuple[str, _Recorded]:
        try:
            row = json.loads(line)
            usage = Usage(**row["usage"])
            pieces = tuple(row["pieces"])
            if not isinstance(row["digest"], str) or not all(isinstance(piece, str) for piece in pieces):
                raise TypeError("digest and pieces are text")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise BadInput(
                f"replay:{self._path}: line {number} is no recorded reply ({one_line(str(error), longest=80)})",
                subject=str(self._path),
            ) from error
        return row["digest"], _Recorded(pieces, usage)


def _end_of_whole_lines(file: BinaryIO) -> int:
    """Return where the last whole line ends; a writer that was killed leaves a line without its end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65_536)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0
