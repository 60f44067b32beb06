"""The output file of a batch: one JSON line per job, written whole or not at all, and read again by a later run."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from ..core.errors import BadInput, NothingFound, OutsideFailed
from .folder import lock
from .jobs import as_bytes, key_of, refused_job
from .output import Counts
from .rows import Part, Row

Fate: TypeAlias = Literal["done", "nothing found", "failed"]
"""How a job ended."""

_BEGINS: Final = b'{"id": '
"""The first bytes of every record; a file that starts otherwise is not an output of a batch."""
_TAIL: Final = 1 << 16
"""Bytes to read at once when looking for the last line end."""
_SYNC: Final = 1.0
"""Seconds between two syncs to the disk: after a power failure at most the jobs of one second run again."""


def fate_of(record: Mapping[str, Any]) -> Fate:
    """Return how the job of a record ended; that nothing relevant was found is an outcome, and no failure."""
    if "error" not in record:
        return "done"
    return "nothing found" if record.get("code") == NothingFound.exit_code else "failed"


def earlier_fate(fates: Mapping[bytes, Fate], row: Row) -> str:
    """Return how an earlier run ended the job of a row; '' where there is no record of it.

    :param fates: see :class:`Ledger`.
    """
    return fates.get(key_of(refused_job(row) if row.error else {"id": json.loads(row.id)}), "")


class Ledger:
    """Writes the records of jobs to one file, which says what is done to a later run; a context manager.

    ``fates`` holds how the jobs of earlier runs ended, by key; ``repaired`` says that a last line was cut off;
    ``bugs`` holds line and traceback of each job that met a bug.

    :param path: the file; its records stay, except a last line without its end.
    :param retry_failed: remove the records of failed jobs, so that these jobs run again.
    :raises BadInput: the file cannot be written, is not the output of a batch, or another run is writing it.
    """

    def __init__(self, path: Path, retry_failed: bool = False) -> None:
        self.path = path
        self.fates: dict[bytes, Fate] = {}
        self.repaired = False
        self.bugs: list[tuple[int, str]] = []
        self._synced = time.monotonic()
        with self._errors_as_bad_input():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise BadInput(f"{path}: this is not a file", subject=str(path))
            self._file: BinaryIO = path.open("ab+", buffering=0)
        try:
            lock(self._file, path)
            self._mend()
            self._load()
            if retry_failed and "failed" in self.fates.values():
                self._drop_failed()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Sync the file to the disk and close it."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def write(self, part: Part, records: Sequence[Mapping[str, Any]]) -> Counts:
        """Append the records of jobs; when this returns, they survive the end of the process.

        :raises OutsideFailed: the file cannot be written, as on a full disk.
        """
        counts = Counts(1, skipped=Counter(part.skipped))
        for record in records:
            written = dict(record)
            if bug := written.pop("traceback", ""):
                self.bugs.append((written["line"], bug))
            try:
                line = as_bytes(written)
            except ValueError:  # a foreign scorer returned infinities or NaN, which JSON cannot hold
                error = "the scores of this job are not finite"
                written = {"id": written["id"], "line": written["line"], "error": error, "code": 1}
                line = as_bytes(written)
            self._append(line)
            fate = fate_of(written)
            counts.done += fate == "done"
            counts.nothing += fate == "nothing found"
            counts.failed.update([fate] if fate == "failed" else [])
        return counts

    def _append(self, line: bytes) -> None:
        left = memoryview(line + b"\n")
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
            if time.monotonic() - self._synced > _SYNC:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise OutsideFailed(f"{self.path}: cannot be written ({error.strerror})", subject=str(self.path)) from error

    def _mend(self) -> None:
        """Cut off a last line without its end; its job was never reported as done, and runs again."""
        with self._errors_as_bad_input():
            size = self._file.seek(0, os.SEEK_END)
            if not size:
                return
            self._file.seek(0)
            if self._file.read(len(_BEGINS)) != _BEGINS[:size]:
                raise BadInput(
                    f"{self.path}: this is not the output of a batch; give another -o", subject=str(self.path)
                )
            end = size
            while end:
                start = max(0, end - _TAIL)
                self._file.seek(start)
                index = self._file.read(end - start).rfind(b"\n")
                if index >= 0:
                    end = start + index + 1
                    break
                end = start
            if end < size:
                self._file.truncate(end)
                self.repaired = True

    def _load(self) -> None:
        """Read the keys of the jobs that have a record.

        :raises BadInput: a line is not a record.
        """
        self._file.seek(0)
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    self.fates[key_of(record)] = fate_of(record)
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise BadInput(
                        f"{self.path}: line {number} is not a record of a batch; repair it or give another -o",
                        subject=str(self.path),
                    ) from error

    def _drop_failed(self) -> None:
        """Rewrite the file without the records of failed jobs, through a temporary file beside it."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        with self._errors_as_bad_input():
            try:
                with self.path.open("rb") as lines, beside.open("wb") as kept:
                    for line in lines:
                        if self.fates[key_of(json.loads(line))] != "failed":
                            kept.write(line)
                    kept.flush()
                    os.fsync(kept.fileno())
                os.replace(beside, self.path)
            finally:
                beside.unlink(missing_ok=True)
            self._file.close()
            self._file = self.path.open("ab+", buffering=0)
            lock(self._file, self.path)  # the lock was on the replaced file
        self.fates = {key: fate for key, fate in self.fates.items() if fate != "failed"}

    @contextmanager
    def _errors_as_bad_input(self) -> Iterator[None]:
        """Turn an error of the file system into a one-line BadInput."""
        try:
            yield
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be written ({error.strerror})", subject=str(self.path)) from error
