"""Read sources of pages (bytes, HTML text, files, folders, addresses) into :class:`~prunus.core.types.Page`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from os.path import exists, splitext
from pathlib import Path
from typing import Final, TypeAlias

from ..core.errors import BadInput, BadPage, LargePage, PrunusError
from ..core.types import Page

Source: TypeAlias = "Page | str | bytes | Path"

_URL: Final = re.compile(r"\s*https?://\S+\s*$", re.IGNORECASE)
_MIB: Final = 1024 * 1024
_LONGEST_PATH: Final = 4096


Fetch: TypeAlias = "Callable[[Sequence[str]], Iterator[Page | PrunusError]]"
"""A function that yields a page, or the error, for each address, in order."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Options and limits of reading sources.

    :param suffixes: returns file name endings of pages, as ``.html``; only called for a folder or for text like a path.
    :param max_files: pages that a folder may hold at most.
    :param max_file_mb: size of one file at most, in MiB.
    :param fetch: fetches addresses; without it addresses are refused.
    """

    suffixes: Callable[[], Sequence[str]]
    max_files: int = 10_000
    max_file_mb: int = 64
    fetch: Fetch | None = None


def each_source(sources: Source | Iterable[Source], reading: Reading) -> Generator[Page | PrunusError, None, None]:
    """Yield a page, or the error, for each source; a folder yields each of its pages.

    Addresses are fetched while the caller works on earlier pages. Closing the generator stops the fetching.

    :raises BadInput: no source was given.
    """
    given = listed(sources)
    addresses = [source.strip() for source in given if isinstance(source, str) and is_address(source)]
    fetched = reading.fetch(addresses) if addresses and reading.fetch else iter(())
    with closing(fetched) if isinstance(fetched, Generator) else nullcontext():
        for source in given:
            if reading.fetch and isinstance(source, str) and is_address(source):
                yield next(fetched)
            else:
                yield from _each_file(source, reading)


def listed(sources: Source | Iterable[Source]) -> list[Source]:
    """Return one source or several as a list.

    :raises BadInput: no source was given.
    """
    given = list(sources) if isinstance(sources, Iterable) and not isinstance(sources, str | bytes) else [sources]
    if not given:
        raise BadInput("no page was given; name a file, a folder or an address", subject="pages")
    return given


def _each_file(source: Source, reading: Reading) -> Iterator[Page | PrunusError]:
    files: list[Source] = [source]
    try:
        if isinstance(source, Path) and is_folder(source):
            files = [*pages_of(source, reading.suffixes(), reading.max_files)]
    except BadInput as error:
        yield error
        return
    for file in files:
        try:
            page: Page | PrunusError = as_page(file, reading.max_file_mb, reading.suffixes)
        except BadInput as error:
            page = error
        yield page


def source_text(page: Page) -> str:
    """Return what was received of a page of text, decoded: its source, not its words."""
    from .clean.parse import decode  # here: most calls need no text of a page

    return page.content if isinstance(page.content, str) else decode(page.content, page.charset)


def is_address(text: str) -> bool:
    """Tell whether text is an http or https address, and not HTML."""
    return bool(_URL.match(text))


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder. False where access fails: reading the path then raises the error."""
    try:
        return path.is_dir()
    except OSError:
        return False


def pages_of(folder: Path, suffixes: Sequence[str], max_files: int) -> list[Path]:
    """Return the page files of a folder and its subfolders in sorted order.

    :raises BadInput: the folder holds none, or more than ``max_files``.
    """
    files = list(files_in(folder, suffixes, max_files))
    if not files:
        raise BadInput(
            f"{folder}: no page in this folder; looked for {', '.join(sorted(suffixes))}", subject=str(folder)
        )
    return files


def as_page(source: Source, max_file_mb: int = 64, suffixes: Callable[[], Sequence[str]] = tuple) -> Page:
    """Turn one source into a page.

    :param suffixes: see :class:`Reading`.
    :raises BadInput: the source is an address, which only ``Reading.fetch`` can read, text like a path, or of another
        type.
    :raises BadPage: a file cannot be read.
    """
    if isinstance(source, Page):
        return source
    if isinstance(source, Path):
        return read_file(source, max_file_mb)
    if isinstance(source, str) and is_address(source):
        raise BadInput(
            f"{source.strip()}: addresses cannot be fetched here; save the page and give its path",
            subject=source.strip(),
        )
    if isinstance(source, str) and "<" not in source and len(source) < _LONGEST_PATH:
        is_one_word = not any(letter.isspace() for letter in source.strip())
        named = is_one_word and splitext(source.strip())[1].lower() in suffixes()
        if named or exists(source):
            said = "is a file or folder" if exists(source) else "looks like a path, but there is no such file"
            raise BadInput(f"{source!r} {said}; text is read as HTML, so give Path({source!r})", subject=source)
    if isinstance(source, str | bytes):
        return Page(source)
    raise BadInput(
        f"a page is str (HTML), bytes, Path or Page, not {type(source).__name__}", subject=type(source).__name__
    )


def files_in(folder: Path, suffixes: Sequence[str], max_files: int) -> Iterator[Path]:
    """Yield the page files of a folder in sorted order; symbolic links out of the folder are not followed."""
    root = folder.resolve()
    count = 0
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in suffixes or not path.is_file():
            continue
        if not path.resolve().is_relative_to(root):
            continue
        count += 1
        if count > max_files:
            raise BadInput(f"{folder}: more than {max_files} pages; raise max_files or give less", subject=str(folder))
        yield path


def read_file(path: Path, max_file_mb: int = 64) -> Page:
    """Read a file as a page.

    :raises BadPage: the file is missing, unreadable, not a file, or too large.
    """
    try:
        size = path.stat().st_size
        if path.exists() and not path.is_file() and not path.is_fifo() and not path.is_char_device():
            raise BadPage(f"{path}: not a file", subject=str(path))
        if size > max_file_mb * _MIB:
            raise LargePage(f"{path}: {size // _MIB} MiB is over the limit of {max_file_mb} MiB", subject=str(path))
        with path.open("rb") as file:
            content = file.read(max_file_mb * _MIB + 1)  # a device or a pipe has no size to check before
        if len(content) > max_file_mb * _MIB:
            raise LargePage(f"{path}: over the limit of {max_file_mb} MiB", subject=str(path))
    except FileNotFoundError as error:
        raise BadPage(f"{path}: no such file", subject=str(path)) from error
    except OSError as error:
        raise BadPage(f"{path}: cannot be read ({error.strerror})", subject=str(path)) from error
    except ValueError as error:
        raise BadPage(f"{str(path)[:80]!r}: not a valid path ({error})", subject=str(path)[:80]) from error
    name = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # a file's name need not be Unicode
    return Page(content, url=name)
