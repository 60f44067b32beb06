"""The folder that a batch writes to, on this machine or behind an address."""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from ..core.errors import BadInput
from .remote import Remote, is_remote

OWN: Final = "_batch"
"""The folder in it that holds the plan and the notes: readers of data sets skip names with ``_``."""
_NOTE: Final = 64 << 20
"""Bytes of a note or a plan at most."""


@dataclass(slots=True)
class LocalFolder:
    """A folder on this machine: files are synced and then renamed, and a lock keeps other runs out.

    :param warning: what the user should know; '' for nothing.
    """

    path: Path
    warning: str = ""
    _lock: Any = None

    def is_foreign(self) -> bool:
        """Tell whether something is here that is no output of a batch."""
        return self.path.exists() and not (self.path / OWN).exists() and any(self.path.iterdir())

    def begin(self) -> None:
        """Make the folder, lock it, and remove what a killed run left half written.

        :raises BadInput: another run is writing it.
        """
        own = self.path / OWN
        own.mkdir(parents=True, exist_ok=True)
        self._lock = (own / "lock").open("ab")
        lock(self._lock, self.path)
        for left in own.glob("*.tmp"):
            left.unlink()

    def close(self) -> None:
        """Let other runs write."""
        if self._lock is not None:
            self._lock.close()

    def names(self) -> list[str]:
        """Return the names of the files of the batch itself, sorted."""
        return sorted(path.name for path in (self.path / OWN).glob("*"))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the batch itself; None where there is none."""
        path = self.path / OWN / name
        return path.read_bytes() if path.exists() else None

    @contextmanager
    def whole(self, name: str) -> Iterator[Path]:
        """Yield a path to write to; the file then gets its name, synced to the disk."""
        beside = self.path / OWN / f"{uuid.uuid4().hex}.tmp"
        try:
            yield beside
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(beside, self.path / name)
        finally:
            beside.unlink(missing_ok=True)


@dataclass(slots=True)
class RemoteFolder:
    """A folder behind an address. Its lock is a note that warns, and keeps no other run out."""

    remote: Remote
    warning: str = ""
    _locked: bool = False

    def is_foreign(self) -> bool:
        """Tell whether something is here that is no output of a batch."""
        here = self.remote.info()
        if here is None:
            return False
        if not here.folder:
            return True
        files = self.remote.files()
        return bool(files) and not any(file.remote.path.startswith(f"{self.remote.path}/{OWN}/") for file in files)

    def begin(self) -> None:
        """Note that a run is writing here; warn where the note of another run is there."""
        left = self.read("lock.json")
        if left is not None:
            self.warning = (
                f"{self.remote}: a run that began at {_said(left)} has not ended or was killed; two runs at once would "
                "do the same work twice"
            )
        with self.whole(f"{OWN}/lock.json") as path:
            began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            path.write_text(json.dumps({"began": began, "host": platform.node(), "process": os.getpid()}), "utf-8")
        self._locked = True

    def close(self) -> None:
        """Remove the note."""
        if self._locked:
            self._locked = False
            self.remote.below(f"{OWN}/lock.json").remove()

    def names(self) -> list[str]:
        """Return the names of the files of the batch itself, sorted."""
        return [file.remote.name for file in self.remote.below(OWN).files()]

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the batch itself; None where there is none."""
        try:
            return self.remote.below(f"{OWN}/{name}").read(_NOTE)
        except FileNotFoundError:
            return None

    @contextmanager
    def whole(self, name: str) -> Iterator[Path]:
        """Yield a path of this machine to write to; the file is then sent."""
        with tempfile.TemporaryDirectory(prefix="prunus-") as folder:
            path = Path(folder) / "file"
            yield path
            self.remote.below(name).put(path)


Folder: TypeAlias = LocalFolder | RemoteFolder
"""Where a batch writes. Errors are an OSError."""


def folder_at(name: Path | str) -> Folder:
    """Return the folder of a name."""
    return RemoteFolder(Remote.of(str(name))) if is_remote(str(name)) else LocalFolder(Path(name))


def _said(left: bytes) -> str:
    try:
        note = json.loads(left)
        return f"{note['began']} on {note['host']}"
    except (ValueError, KeyError, TypeError):
        return "an unknown time"


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
