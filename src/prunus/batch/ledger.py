"""The file that a batch writes: one JSON line a job, whole or not at all, and known again when the run goes on."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..core.errors import BadInput, OutsideFailed

_BEGINS: Final = b'{"id": '
_TAIL: Final = 1 << 16
_SYNC: Final = 1.0  # seconds between two moments at which all is surely on the disk


def key_of(record: Mapping[str, Any]) -> bytes:
    """Return what a record answers, in 16 bytes: its id, or the very line that has no id of its own."""
    named = [record["line"], record["digest"]] if "digest" in record else record.get("id")
    return digest_of(json.dumps(named, ensure_ascii=True, sort_keys=True).encode())


def digest_of(data: bytes) -> bytes:
    """Return 16 bytes that stand for others."""
    return hashlib.blake2b(data, digest_size=16).digest()


class Ledger:
    """The answered jobs of a batch.

    :param path: the file; what is in it already stays, but for a last line that was cut off.
    :param retry_failed: take out the records of jobs that failed, so that they are tried again.
    :raises BadInput: the file cannot be written, is no such file, or another run is writing it.
    """

    def __init__(self, path: Path, retry_failed: bool = False) -> None:
        self.path = path
        self.answered: set[bytes] = set()
        self.failed: set[bytes] = set()
        self.repaired = False
        self._synced = time.monotonic()
        with self._said():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise BadInput(f"{path}: this is not a file", subject=str(path))
            self._file: BinaryIO = path.open("ab+", buffering=0)
        try:
            _lock(self._file, path)
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
        """Put everything on the disk and let the file go."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def add(self, line: bytes, key: bytes, failed: bool) -> None:
        """Write a record in one go; once this returns, the end of the process does not undo it.

        :raises OutsideFailed: the disk takes no more.
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
        """Cut off a last line without its end: its job was not acknowledged, and is done again."""
        with self._said():
            size = self._file.seek(0, os.SEEK_END)
            if not size:
                return
            self._file.seek(0)
            if self._file.read(len(_BEGINS)) != _BEGINS[:size]:
                raise BadInput(f"{self.path}: this is no output of a batch; give another -o", subject=str(self.path))
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
        """Read which jobs are answered.

        :raises BadInput: a line is no record.
        """
        self._file.seek(0)
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    key = key_of(record)
                except (ValueError, TypeError, KeyError, AttributeError) as error:
                    raise BadInput(
                        f"{self.path}: line {number} is no record of a batch; mend it or give another -o",
                        subject=str(self.path),
                    ) from error
                self.answered.add(key)
                if "error" in record:
                    self.failed.add(key)

    def _drop_failed(self) -> None:
        """Write the file anew without the records of failures, beside it first."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        with self._said():
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
            _lock(self._file, self.path)
        self.answered -= self.failed
        self.failed = set()

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Turn what the system says of the file into one line."""
        try:
            yield
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be written ({error.strerror})", subject=str(self.path)) from error


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs from writing the same file, where the system has locks."""
    try:
        import fcntl
    except ImportError:  # another system; two runs at once are then the user's own care
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BadInput(f"{path}: another run is writing this file; wait for it", subject=str(path)) from error
