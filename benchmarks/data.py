"""The real pages of the benchmarks, from the folder that PRUNUS_DATA names."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.workers import BenchError

VARIABLE = "PRUNUS_DATA"
CLEAN_SETS = ("articles", "readability")
"""The data sets in the folder `clean/`: 181 news pages and 130 pages of messy markup."""

T = TypeVar("T")


class MissingDataError(BenchError):
    """The folder of real pages, or a file in it, is missing."""


@dataclass(frozen=True, slots=True)
class RealPage:
    """One saved web page."""

    key: str
    html: str


def _folder() -> Path:
    named = os.environ.get(VARIABLE)
    if not named:
        raise MissingDataError(f"set {VARIABLE} to the folder that holds clean/*.jsonl.xz")
    return Path(named)


def evenly(items: Sequence[T], number: int | None) -> list[T]:
    """Return `number` items at even distances, the same on every run; all items for None."""
    if number is None or number >= len(items):
        return list(items)
    return [items[i * len(items) // number] for i in range(number)]


def load(sets: Sequence[str] = CLEAN_SETS, number: int | None = None) -> list[RealPage]:
    """Return the pages of some data sets in order: all pages, or `number` at even distances."""
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


def wcxb(urls: Collection[str]) -> dict[str, str]:
    """Return the HTML of pages of WCXB by their address.

    :raises MissingDataError: the folder or the file is missing.
    """
    path = _folder() / "clean" / "wcxb.jsonl.xz"
    if not path.is_file():
        raise MissingDataError(f"{path} is missing")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return {record["url"]: record["html"] for record in map(json.loads, lines) if record["url"] in urls}


def stamped(html: str, visit: int) -> str:
    """Return the page with a comment that differs for each visit, so that a tool cannot answer from a cache."""
    return f"{html}\n<!-- visit {visit} -->"
