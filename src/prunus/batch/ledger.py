"""The output file of a batch: one JSON line per job, written whole or not at all, and read again by a later run."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from ..core.errors import BadInput, NothingFound, OutsideFailed

Fate: TypeAlias = Literal["done", "nothing found", "failed"]
"""How a job ended."""

_BEGINS: Final = b'{"id": '
"""The first bytes of every record; a file that starts otherwise is not an output of a batch."""
_TAIL: Final = 1 << 16
"""Bytes to read at once when looking for the last line end."""
_SYNC: Final = 1.0
"""Seconds between two syncs to the disk: after a power failure at most the jobs of one second run again."""


def key_of(record: Mapping[str, Any]) -> bytes:
    """Return the key of a record, 16 bytes: from its id, or from number and digest of a line that is not a job."""
    identity = [record["line"], record["digest"]] if "digest" in record else record.get("id")
    return digest_of(json.dumps(identity, ensure_ascii=True, sort_keys=True).encode())


def fate_of(record: Mapping[str, Any]) -> Fate:
    """Return how the job of a record ended; that nothing relevant was found is an outcome, and no failure."""
    if "error" not in record:
        return "done"
    return "nothing found" if record.get("code") == NothingFound.exit_code else "failed"


def digest_of(data: bytes) -> bytes:
    """Return the BLAKE2 digest of bytes, 16 bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()


class Ledger:
    """The records of a batch, on disk; a context manager.

    ``answered`` and ``failed`` hold the keys of the jobs with a record, and of those that failed; ``repaired`` says
    that a last line was cut off.

    :param path: the file; its records stay, except a last line without its end.
    :param retry_failed: remove the records of failed jobs, so that these jobs run again.
    :raises BadInput: the file cannot be written, is not the output of a batch, or another run is writing it.
    """

    def __init__(self, path: Path, retry_failed: bool = False) -> None:
        self.path = path
        self.answered: set[bytes] = set()
        self.failed: set[bytes] = set()
        self.repaired = False
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
            if retry_failed and self.failed:
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

    def add(self, line: bytes, key: bytes, failed: bool) -> None:
        """Append a record; when this returns, the record survives the end of the process.

        :raises OutsideFailed: the file cannot be written, as on a full disk.
        """
        left = memoryview(line + b"\n")
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
            if time.monotonic() - self._synced > _SYNC:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise OutsideFailed(f"{self.path}: cannot be written ({error.strerror})", subject=str(self.path)) from error
        self.answered.add(key)
        if failed:
            self.failed.add(key)

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
                place = self._file.read(end - start).rfind(b"\n")
                if place >= 0:
                    end = start + place + 1
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
                    key = key_of(record)
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise BadInput(
                        f"{self.path}: line {number} is not a record of a batch; repair it or give another -o",
                        subject=str(self.path),
                    ) from error
                self.answered.add(key)
                if fate_of(record) == "failed":
                    self.failed.add(key)

    def _drop_failed(self) -> None:
        """Rewrite the file without the records of failed jobs, through a temporary file beside it."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        with self._errors_as_bad_input():
            try:
                with self.path.open("rb") as lines, beside.open("wb") as kept:
                    for line in lines:
                        if key_of(json.loads(line)) not in self.failed:
                            kept.write(line)
                    kept.flush()
                    os.fsync(kept.fileno())
                os.replace(beside, self.path)
            finally:
                beside.unlink(missing_ok=True)
            self._file.close()
            self._file = self.path.open("ab+", buffering=0)
            lock(self._file, self.path)  # the lock was on the replaced file
        self.answered -= self.failed
        self.failed = set()

    @contextmanager
    def _errors_as_bad_input(self) -> Iterator[None]:
        """Turn an error of the file system into a one-line BadInput."""
        try:
            yield
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be written ({error.strerror})", subject=str(self.path)) from error


def lock(file: BinaryIO, path: Path) -> None:
    """Lock the file against other runs, where the system has locks.

    :raises BadInput: another run holds the lock.
    """
    try:
        import fcntl
    except ImportError:  # Windows: nothing prevents two runs at once there
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BadInput(f"{path}: another run is writing this file; wait for it", subject=str(path)) from error
