"""Questions to language models whose replies are kept in a file: a maker that was stopped asks nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from prunus.core.errors import BadBudget, OverWindow, PrunusError
from prunus.core.ports import LLM
from prunus.core.settings import load_settings
from prunus.core.types import Message
from prunus_train.data.sheet import rows_of
from prunus_train.errors import TrainError

T = TypeVar("T")
R = TypeVar("R")
SECONDS = 600.0
"""Time limit of one reply."""


class TooLong(TrainError):
    """A prompt is longer than a model's window."""


class Asked:
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
        whole = [load_settings().llm_endpoint, about]
        key = hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()
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
    from prunus.core.events import TokenEvent

    events = llm.stream(messages, **options)
    return "".join([event.text async for event in events if isinstance(event, TokenEvent)])
