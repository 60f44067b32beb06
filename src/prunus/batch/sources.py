"""The inputs of a batch: files, folders, lists of addresses, rows and web archives become sources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from ..core.errors import BadInput, Failures, OutsideFailed
from ..engines import formats
from ..pages.sources import is_address, is_folder
from ..web.warc import SUFFIXES as ARCHIVES
from .folder import OWN
from .read import STDIN, path_of
from .remote import Remote, RemoteFile, is_remote
from .rows import BatchSource, Kind, digest_of

_LINES: Final = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_HEAD: Final = 1 << 16


def sources_of(inputs: Sequence[str], failures: Failures) -> list[BatchSource]:
    """Return the sources that the inputs stand for, in their order.

    A folder gives a source for each archive, file of rows and Parquet file in it, and one for all documents in it.
    Documents that are named one by one are one source together.

    :param failures: collects the inputs that cannot be used.
    """
    sources: list[BatchSource] = []
    documents: list[_File] = []
    for given in dict.fromkeys(inputs):
        try:
            if is_address(given):
                raise BadInput(f"{given}: write addresses into a .txt file, one a line, and name it", subject=given)
            if is_remote(given):
                sources += _at_address(given)
                continue
            path = Path(given)
            if is_folder(path):
                sources += _in_folder(path, failures)
                continue
            kind = _kind_of(path)
            if kind == "files":
                documents.append(_local(path))
            else:
                sources.append(_source(kind, _local(path)))
        except FileNotFoundError:
            failures.note(BadInput(f"{given}: no such file or folder", subject=given))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            failures.note(BadInput(f"{given}: cannot be read ({reason})", subject=given))
        except (BadInput, OutsideFailed) as error:
            failures.note(error)
    if documents:
        sources.append(_documents("(documents)", documents))
    return sources


def jobs_source(name: str) -> BatchSource:
    """Return the source of a file of jobs.

    :param name: a path, an address, or ``-`` for standard input.
    :raises BadInput: the file cannot be read.
    """
    if name != STDIN:
        if not is_remote(name) and is_folder(Path(name)):
            raise BadInput(
                f"{name}: a folder holds no jobs; say what to do with its pages, as --do clean", subject=name
            )
        try:
            path_of(name).open("rb").close()
        except FileNotFoundError as error:
            raise BadInput(f"{name}: no such file", subject=name) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInput(f"{name}: cannot be read ({reason})", subject=name) from error
    return BatchSource(name, "jobs", "", 0)


def kind_by_name(path: Path | Remote) -> Kind:
    """Return what a file is by its name."""
    name = path.name.lower()
    if name.endswith(ARCHIVES):
        return "warc"
    if name.endswith(_LINES):
        return "jsonl"
    return "parquet" if name.endswith(".parquet") else "files"


def _kind_of(path: Path | Remote) -> Kind:
    """Return what a named file is; a ``.txt`` file is a list of addresses where its first line is one."""
    kind = kind_by_name(path)
    if kind == "files" and path.suffix.lower() == ".txt":
        with path.open("rb") as file:
            lines = file.read(_HEAD).decode("utf-8-sig", "replace").splitlines()
        first = next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")
        return "urls" if is_address(first) else "files"
    return kind


def _at_address(given: str) -> list[BatchSource]:
    """Return the sources behind an address: of a file, or of a folder with all that is below it.

    :raises BadInput: nothing there can be read.
    :raises OSError: the store does not answer.
    """
    remote = Remote.of(given)
    here = remote.info()
    if here is None:
        raise FileNotFoundError
    if not here.folder:
        kind = _kind_of(remote)
        return [_documents(str(remote), [_stored(here)]) if kind == "files" else _source(kind, _stored(here))]
    inside = len(PurePosixPath(here.remote.path).parts)
    files = [file for file in remote.files() if OWN not in PurePosixPath(file.remote.path).parts[inside:]]
    kinds = [kind_by_name(file.remote) for file in files]
    sources = [_source(kind, _stored(file)) for kind, file in zip(kinds, files, strict=True) if kind != "files"]
    suffixes = formats().suffixes
    documents = [
        _stored(file)
        for kind, file in zip(kinds, files, strict=True)
        if kind == "files" and file.remote.suffix.lower() in suffixes
    ]
    if documents:
        sources.append(_documents(str(remote), documents))
    if not sources:
        raise BadInput(f"{remote}: nothing in this folder can be read", subject=str(remote))
    return sources


def _in_folder(folder: Path, failures: Failures) -> Iterator[BatchSource]:
    """Yield the sources in a folder and its subfolders; symbolic links out of it are not followed."""
    documents: list[_File] = []
    empty = True
    for path in _files(folder, failures):
        kind = kind_by_name(path)
        if kind != "files":
            yield _source(kind, _local(path))
        elif path.suffix.lower() in formats().suffixes:
            documents.append(_local(path))
        else:
            continue
        empty = False
    if documents:
        yield _documents(str(folder), documents)
    elif empty:
        raise BadInput(f"{folder}: nothing in this folder can be read", subject=str(folder))


def _files(folder: Path, failures: Failures) -> Iterator[Path]:
    """Yield the files of a folder in sorted order; a subfolder that cannot be read is a failure.

    Notes of a batch are left out, so that the output of one batch may be the input of another.
    """

    def note(error: OSError) -> None:
        name = str(error.filename)
        failures.note(BadInput(f"{name}: cannot be read ({error.strerror})", subject=name))

    root = folder.resolve()
    for where, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if name != OWN)
        for name in sorted(names):
            path = Path(where, name)
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path


class _File(NamedTuple):
    """A file here or in a store.

    :param changed: nanoseconds since 1970; 0 where a store does not say.
    """

    name: str
    size: int
    changed: int


def _local(path: Path) -> _File:
    state = path.stat()
    return _File(str(path), state.st_size, state.st_mtime_ns)


def _stored(file: RemoteFile) -> _File:
    return _File(str(file.remote), file.size, file.changed)


def _source(kind: Kind, file: _File) -> BatchSource:
    return BatchSource(file.name, kind, _stamp([file]), file.size)


def _documents(name: str, files: Sequence[_File]) -> BatchSource:
    size = sum(file.size for file in files)
    return BatchSource(name, "files", _stamp(files), size, tuple(file.name for file in files))


def _stamp(files: Sequence[_File]) -> str:
    lines = [f"{file.name}\0{file.size}\0{file.changed}" for file in files]
    return digest_of("\n".join(lines).encode("utf-8", "surrogateescape")).hex()
