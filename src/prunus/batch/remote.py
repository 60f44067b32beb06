"""Files and folders behind an address, as ``s3://bucket/crawl``: any file system that Arrow or fsspec reaches.

Arrow's own clients are taken for S3, Google Cloud Storage, Azure and HDFS, and fsspec for every other scheme. Keys come
from where these clients look for them: variables of the environment, files of the user, the machine's role.
"""

from __future__ import annotations

import errno
import io
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, TypeVar, cast
from urllib.parse import parse_qsl

from ..core.errors import BadInput, MissingExtra, OutsideFailed, PrunusError, one_line
from ..core.installation import pip_install

T = TypeVar("T")

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^?]*)(\?.*)?$", re.DOTALL)
_NOT_FILES: Final = frozenset({"http", "https", "postgres", "postgresql"})
_BY_ARROW: Final = frozenset({"gs", "gcs", "hdfs", "viewfs", "abfs", "abfss", "file"})
_OBJECTS: Final = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "az", "memory"})
"""Schemes of stores in which a file is there whole or not at all, as soon as it has its name."""
_OF_S3: Final = frozenset({"endpoint_override", "scheme", "region"})

_KEY: Final = re.compile(r"(?:key|token|secret|password|passwd|pwd|sig|signature)=", re.IGNORECASE)
"""The end of the name of a secret in a query."""

CONNECT: Final = 10.0
"""Seconds to connect to S3; it is tried three times."""
SECONDS: Final = 60.0
"""Seconds for one request, as listing a folder or reading a MiB."""
_UPLOAD: Final = 600.0
_BUFFER: Final = 1 << 20


def is_remote(name: str) -> bool:
    """Tell whether a name is the address of a file or folder in another file system than this machine's."""
    match = _ADDRESS.match(name)
    return match is not None and match[1].lower() not in _NOT_FILES


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder behind an address; it behaves as a path where files are read.

    Errors of the store are an OSError where a file is opened, and OutsideFailed where it ends in the middle.

    :param path: bucket and key, or host and path.
    :param query: options of the client with their question mark, as ``?region=eu-north-1``.
    """

    scheme: str
    path: str
    query: str = ""

    @classmethod
    def of(cls, address: str) -> Remote:
        """Return the file or folder of an address.

        :raises BadInput: it holds a password or a key, which messages and records would show.
        """
        match = _ADDRESS.match(address)
        if match is None:
            raise BadInput(f"{address}: not an address of files", subject=address)
        scheme, path = match[1].lower(), match[2]
        login = ":" in path.split("/")[0].rpartition("@")[0]
        if login or _KEY.search(match[3] or ""):
            shown = f"{scheme}://…@{path.rpartition('@')[2]}" if login else f"{scheme}://{path}"
            raise BadInput(f"{shown}: leave the key out of the address; the client finds it itself", subject=shown)
        return cls(scheme, path.rstrip("/") or "/", match[3] or "")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}{self.query}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name, as ``.gz``."""
        return PurePosixPath(self.path).suffix

    @property
    def whole(self) -> bool:
        """Whether the store shows a file only when it is whole."""
        return self.scheme in _OBJECTS

    def below(self, name: str) -> Remote:
        """Return a file in this folder."""
        return Remote(self.scheme, f"{self.path.rstrip('/')}/{name}", self.query)

    def info(self) -> RemoteFile | None:
        """Return what is here; None for nothing.

        :raises OSError: the store does not answer.
        """
        fs, path = self._reach()
        with self._errors():
            info = limited(lambda: fs.get_file_info(path), self)
        return None if info.type.name == "NotFound" else RemoteFile.of(self, info)

    def files(self) -> list[RemoteFile]:
        """Return all files in this folder and below it, sorted.

        :raises OSError: the store does not answer.
        """
        fs, path = self._reach()
        selector = _arrow_fs().FileSelector(path, allow_not_found=True, recursive=True)
        with self._errors():
            infos = limited(lambda: fs.get_file_info(selector), self)
        start = len(path.rstrip("/")) + 1
        files = [RemoteFile.of(self.below(info.path[start:]), info) for info in infos if info.type.name == "File"]
        return sorted(files, key=lambda one: one.remote.path)

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file for reading.

        :raises OSError: there is none, or the store does not answer.
        """
        fs, path = self._reach()
        with self._errors():
            native = limited(lambda: fs.open_input_file(path), self)
        return cast(BinaryIO, io.BufferedReader(_Raw(native, self), _BUFFER))

    def read(self, most: int) -> bytes:
        """Return the content of the file, cut off after ``most`` bytes.

        :raises OSError: there is none, or the store does not answer.
        """
        with self.open() as file:
            return file.read(most)

    def put(self, path: Path) -> None:
        """Write the content of a local file here.

        :raises OSError: the store cannot be written.
        """
        fs, there = self._reach()

        def write(to: str) -> None:
            with path.open("rb") as file, fs.open_output_stream(to, compression=None) as out:
                while piece := file.read(_BUFFER):
                    out.write(piece)

        with self._errors():
            if self.whole:
                limited(lambda: write(there), self, _UPLOAD)
                return
            folder, _, name = there.rpartition("/")
            limited(lambda: fs.create_dir(folder, recursive=True), self)
            beside = f"{folder}/.{name}.tmp"
            limited(lambda: write(beside), self, _UPLOAD)
            limited(lambda: fs.move(beside, there), self)

    def remove(self) -> None:
        """Remove the file.

        :raises OSError: the store cannot be written.
        """
        fs, path = self._reach()
        with self._errors():
            limited(lambda: fs.delete_file(path), self)

    def _reach(self) -> tuple[Any, str]:
        """Return the client, and the path as the client takes it."""
        with self._errors():
            if self.scheme == "s3":
                return _s3(self.query), self.path
            if self.scheme in _BY_ARROW:
                return _by_arrow(str(self))
            return _by_fsspec(str(self))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what the clients raise into an OSError whose ``strerror`` is one line."""
        try:
            yield
        except PrunusError:
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", str(self)) from error
        except Exception as error:  # each client has exceptions of its own
            raise OSError(errno.EIO, one_line(str(error) or repr(error)), str(self)) from error


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file or folder with what its store says of it.

    :param changed: nanoseconds since 1970; 0 where the store does not say.
    """

    remote: Remote
    folder: bool
    size: int
    changed: int

    @classmethod
    def of(cls, remote: Remote, info: Any) -> RemoteFile:
        """Return it from Arrow's FileInfo."""
        return cls(remote, info.type.name == "Directory", info.size or 0, info.mtime_ns or 0)


class _Raw(io.RawIOBase):
    """A file of Arrow as a raw file of Python; a store that fails in the middle is not a damaged file."""

    def __init__(self, native: Any, remote: Remote) -> None:
        self._native, self._remote = native, remote

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the position can be changed."""
        return bool(self._native.seekable())

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        try:
            data = limited(lambda: self._native.read(len(buffer)), self._remote)
        except Exception as error:  # each client has exceptions of its own
            raise OutsideFailed(f"{self._remote}: {one_line(str(error))}", subject=str(self._remote)) from error
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position."""
        self._native.seek(offset, whence)
        return int(self._native.tell())

    def tell(self) -> int:
        """Return the position."""
        return int(self._native.tell())

    def close(self) -> None:
        """Close the file."""
        self._native.close()
        super().close()


def limited(work: Callable[[], T], remote: Remote, seconds: float = SECONDS) -> T:
    """Return what a call of a client returns, within a limit of time.

    A client that hangs is left behind in its thread.

    :raises TimeoutError: it took too long.
    """
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:  # the caller's thread raises it
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = done.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} seconds", str(remote)) from None
    if error is not None:
        raise error
    return cast(T, value)


def _arrow_fs() -> Any:
    """Return the module ``pyarrow.fs``.

    :raises MissingExtra: it is not installed.
    """
    try:
        import pyarrow.fs
    except ImportError as error:
        raise MissingExtra(
            f"addresses of files need the package pyarrow; run: {pip_install('parquet')}", subject="pyarrow"
        ) from error
    return pyarrow.fs


@lru_cache(maxsize=16)
def _s3(query: str) -> Any:
    options = dict(parse_qsl(query.lstrip("?")))
    if unknown := options.keys() - _OF_S3:
        raise BadInput(f"?{min(unknown)}: an address of s3 takes {', '.join(sorted(_OF_S3))}", subject="s3")
    fs = _arrow_fs()
    tries = fs.AwsStandardS3RetryStrategy(max_attempts=3)
    return fs.S3FileSystem(connect_timeout=CONNECT, request_timeout=SECONDS, retry_strategy=tries, **options)


@lru_cache(maxsize=256)
def _by_arrow(address: str) -> tuple[Any, str]:
    client: tuple[Any, str] = _arrow_fs().FileSystem.from_uri(address)
    return client


@lru_cache(maxsize=256)
def _by_fsspec(address: str) -> tuple[Any, str]:
    fs = _arrow_fs()
    scheme = address.partition(":")[0]
    try:
        import fsspec.core
    except ImportError as error:
        raise MissingExtra(
            f"{scheme}:// needs the package fsspec; run: pip install fsspec", subject="fsspec"
        ) from error
    try:
        inner, path = fsspec.core.url_to_fs(address)
    except ImportError as error:  # fsspec says which package the scheme needs
        raise MissingExtra(f"{scheme}://: {one_line(str(error))}", subject=scheme) from error
    except ValueError as error:
        raise BadInput(f"{address}: {one_line(str(error))}", subject=address) from error
    return fs.PyFileSystem(fs.FSSpecHandler(inner)), path
