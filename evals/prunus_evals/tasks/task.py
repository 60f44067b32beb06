"""What a task is: a function that yields questions, with all that is known of it, registered by its name."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prunus_evals.records import LeftOut, Question
from prunus_evals.split import Wanted, digest

Record = Question | LeftOut
"""What a task yields."""

Use = Callable[[str], bool]
"""Whether the page of a key is wanted."""

Page = tuple[str, Callable[[], Sequence[Record]]]
"""The key of a page, and a function that reads its questions."""

Read = Callable[[Use, str], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Task:
    """A set of questions.

    :param title: one line.
    :param metrics: what the task is scored by, unless a run names others; ``variant_metrics``: those of some variants.
    :param files: the data that it reads, relative to the data folder; any of a group separated by ``|``.
    :param source: where the data comes from, and its licence.
    :param read: yields the questions of the pages for whose key its first argument is true; the second is one of
        ``variants``, or ''.
    :param by_page: ``read`` yields the key of each page with a function that reads the page's questions, because the
        pages do not fit into memory together.
    :param variants: the names after the colon, as ``quality:hard``; the first is the default.
    :param half: the half that a run takes unless it names one; ``all`` for sets that Prunus was never tuned on.
    :param checked: leave out questions that are not fair; see :func:`prunus_evals.tasks.checked`.
    :param path: what stands after the colon in place of a variant: the path of a file, as ``FILE``.
    :param check: yields all questions of that file before anything is run.
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    files: tuple[str, ...]
    source: str
    read: Read
    by_page: bool = False
    variants: tuple[str, ...] = ()
    half: Wanted = "dev"
    checked: bool = False
    variant_metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    path: str = ""
    check: Callable[[str], Iterator[Question]] | None = None


TASKS: dict[str, Task] = {}
"""All tasks by name."""

Reader = TypeVar("Reader", bound=Read)


def task(name: str, title: str, **about: Any) -> Callable[[Reader], Reader]:
    """Register the function that reads a task; ``about`` are other fields of :class:`Task`."""

    def register(read: Reader) -> Reader:
        TASKS[name] = Task(name, title, read=read, **about)
        return read

    return register


def sample(keys: Iterable[str], number: int) -> set[str]:
    """Return a sample of keys that depends on nothing but the keys: those with the smallest digests.

    The digests are not those that decide halves and order, so that halves are drawn alike.
    """
    return set(heapq.nsmallest(number, set(keys), key=lambda key: digest(f"sample\0{key}")))


def seeded_by(key: str) -> random.Random:
    """Return a source of random numbers that depends on nothing but the key."""
    return random.Random(digest(key))
