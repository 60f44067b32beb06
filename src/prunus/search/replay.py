"""``replay:FILE``: results that were recorded, found by the digest of the request; nothing else is asked.

The file is JSON Lines, one answer a line: digest, request, results. It holds no key.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from ..errors import BadInput
from ..ports import SearchProvider
from ..types import Hit, Results, SearchRequest
from ._wire import check

_LARGEST: Final = 256 << 20
"""Bytes of a recording that are read."""

_KINDS: Final = {"rank": int}


class Engine:
    """Replays recorded results; with ``record``, asks that provider for what is not in the file and keeps it.

    :param model: the file.
    :param record: the provider that is asked and recorded; None: a request that is not in the file fails.
    """

    name = "replay"

    def __init__(self, model: str = "", record: SearchProvider | None = None) -> None:
        if not model:
            raise BadInput("search replay needs the file of recorded results: replay:results.jsonl", subject="replay")
        self._path = Path(model).expanduser()
        self._record = record
        self._lock = threading.Lock()
        self._known: dict[str, Results] | None = None

    async def search(self, request: SearchRequest) -> Results:
        """Return the recorded results of exactly this request.

        :raises BadInput: the file is missing or malformed, or the request is not in it.
        """
        check(request)
        key = digest(request)
        found = self._load().get(key)
        if found is not None:
            return found
        if self._record is None:
            raise BadInput(
                f"replay:{self._path}: no results are recorded for {_shown(request.query)}; record them anew",
                subject=key,
            )
        results = await self._record.search(request)
        self._keep(key, request, results)
        return results

    def _keep(self, key: str, request: SearchRequest, results: Results) -> None:
        """Append results; they are on the disk when this returns."""
        line = {"digest": key, "request": asdict(request), "results": asdict(results)}
        data = json.dumps(line, ensure_ascii=True).encode("ascii") + b"\n"
        known = self._load()
        with self._lock:
            if key in known:
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            broken = self._path.is_file() and not _ends_whole(self._path)
            with self._path.open("ab") as file:
                file.write(b"\n" + data if broken else data)  # what a killed writer left is a line of its own
                file.flush()
                os.fsync(file.fileno())
            known[key] = results

    def _load(self) -> dict[str, Results]:
        with self._lock:
            if self._known is None:
                self._known = self._read()
            return self._known

    def _read(self) -> dict[str, Results]:
        if not self._path.is_file():
            if self._record is not None:
                return {}
            raise BadInput(f"replay:{self._path}: no such file; give one that was recorded", subject=str(self._path))
        if self._path.stat().st_size > _LARGEST:
            raise BadInput(f"replay:{self._path}: over the limit of {_LARGEST >> 20} MiB", subject=str(self._path))
        known: dict[str, Results] = {}
        lines = self._path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                key, results = _parsed(line)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                if self._record is not None or number == len(lines):
                    continue  # a line that was not acknowledged
                raise BadInput(
                    f"replay:{self._path}: line {number} holds no recorded results", subject=str(self._path)
                ) from error
            known.setdefault(key, results)
        return known


def digest(request: SearchRequest) -> str:
    """Return the sha256 of a request, every field of it, hex."""
    whole = json.dumps(asdict(request), ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(whole.encode("ascii")).hexdigest()


def _parsed(line: bytes) -> tuple[str, Results]:
    row = json.loads(line)
    results = row["results"]
    hits = tuple(_hit(one) for one in results["hits"])
    warnings = tuple(str(one) for one in results["warnings"])
    if not isinstance(row["digest"], str):
        raise TypeError("a digest is text")
    return row["digest"], Results(hits, warnings, float(results["usd"]), int(results["remaining"]))


def _hit(row: Mapping[str, Any]) -> Hit:
    for field in fields(Hit):
        if field.name in row and not isinstance(row[field.name], _KINDS.get(field.name, str)):
            raise TypeError(f"{field.name} is of another type")
    return Hit(**row)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _shown(query: str) -> str:
    return repr(" ".join(query.split())[:60])
