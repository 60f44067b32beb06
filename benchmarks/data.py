"""The real pages that the benchmarks run over, from the folder that PRUNUS_DATA names."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.workers import BenchError

VARIABLE = "PRUNUS_DATA"
CLEAN_SETS = ("articles", "readability")
"""The 181 news pages and the 130 pages of messy markup of the folder `clean/`."""

T = TypeVar("T")


class MissingDataError(BenchError):
    """The folder of real pages is not there."""


@dataclass(frozen=True, slots=True)
class RealPage:
    """One saved web page."""

    key: str
    html: str


def _folder() -> Path:
    named = os.environ.get(VARIABLE)
    if not named:
        raise MissingDataError(f"{VARIABLE} is not set: it names the folder that holds clean/*.jsonl.xz")
    return Path(named)


def evenly(items: Sequence[T], number: int | None) -> list[T]:
    """A sample of `number` items at even distances: the same one on every run."""
    if number is None or number >= len(items):
        return list(items)
    return [items[i * len(items) // number] for i in range(number)]


def load(sets: Sequence[str] = CLEAN_SETS, number: int | None = None) -> list[RealPage]:
    """The pages of some sets in their own order, all of them or an even sample."""
    pages: list[RealPage] = []
    for name in sets:
        path = _folder() / "clean" / f"{name}.jsonl.xz"
        if not path.exists():
            raise MissingDataError(f"{path} is missing")
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                pages.append(RealPage(f"{name}/{record['id']}", record["html"]))
    return evenly(pages, number)


def stamped(html: str, visit: int) -> str:
    """The page with a comment of its own per visit, so that no cache can answer for a tool."""
    return f"{html}\n<!-- visit {visit} -->"
