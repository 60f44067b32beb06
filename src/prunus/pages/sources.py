"""What callers may give where a page is: bytes, HTML, a path, a folder, an address, a Page. Nothing else.

Each becomes a :class:`~prunus.core.types.Page`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final, TypeAlias

from ..core.errors import BadInput, BadPage, Failures, OutsideFailed, PrunusError
from ..core.types import Page

Source: TypeAlias = "Page | str | bytes | Path"

_URL: Final = re.compile(r"\s*https?://\S+\s*$", re.IGNORECASE)
_MIB: Final = 1024 * 1024


Fetch: TypeAlias = "Callable[[Sequence[str]], Iterator[Page | PrunusError]]"
"""Yields the pages of addresses in their order, each failing alone."""


def as_pages(
    sources: Source | Iterable[Source], suffixes: Sequence[str], max_files: int = 10_000, max_file_mb: int = 64
) -> list[Page]:
    """Turn whatever was given into pages, in order; see :func:`each_page`."""
    return list(each_page(sources, suffixes, max_files, max_file_mb))


def each_page(
    sources: Source | Iterable[Source],
    suffixes: Sequence[str],
    max_files: int = 10_000,
    max_file_mb: int = 64,
    failures: Failures | None = None,
    fetch: Fetch | None = None,
) -> Iterator[Page]:
    """Yield whatever was given as pages, in order, reading each when its turn comes.

    :param suffixes: what a page's name ends in, for folders.
    :param failures: where a source that cannot be read is noted, by name; without it, that raises.
    :param fetch: reads addresses; without it they are refused.
    :raises BadInput: nothing was given, or a folder holds no page.
    :raises BadPage: a file cannot be read.
    :raises OutsideFailed: an address cannot be read.
    """
    given = [sources] if isinstance(sources, str | bytes | Path | Page) else list(sources)
    if not given:
        raise BadInput("no page was given", subject="pages")
    addresses = [source.strip() for source in given if isinstance(source, str) and is_address(source)]
    fetched = fetch(addresses) if addresses and fetch else iter(())
    with closing(fetched) if isinstance(fetched, Generator) else nullcontext():
        for source in given:
            with _noted(failures):
                inside = (
                    pages_of(source, suffixes, max_files)
                    if isinstance(source, Path) and is_folder(source)
                    else [source]
                )
                for one in inside:
                    with _noted(failures):
                        if fetch and isinstance(one, str) and is_address(one):
                            yield arrived(next(fetched))
                        else:
                            yield as_page(one, max_file_mb)


def is_address(text: str) -> bool:
    """Tell whether text is an http or https address rather than a page."""
    return bool(_URL.match(text))


def arrived(page: Page | PrunusError) -> Page:
    """Return a page that was fetched among others; raise what came in its place."""
    if isinstance(page, PrunusError):
        raise page
    return page


@contextmanager
def _noted(failures: Failures | None) -> Iterator[None]:
    """Note what cannot be read, where there is a place to note it."""
    try:
        yield
    except (BadInput, OutsideFailed) as error:
        if failures is None:
            raise
        failures.note(error)


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder; one that cannot be looked at is none, and reading it says why."""
    try:
        return path.is_dir()
    except OSError:
        return False


def pages_of(folder: Path, suffixes: Sequence[str], max_files: int) -> list[Path]:
    """Return a folder's pages in sorted order.

    :raises BadInput: it holds none, or more than ``max_files``.
    """
    files = list(files_in(folder, suffixes, max_files))
    if not files:
        raise BadInput(
            f"{folder}: no page in this folder; looked for {', '.join(sorted(suffixes))}", subject=str(folder)
        )
    return files


def as_page(source: Source, max_file_mb: int = 64) -> Page:
    """Turn one source into a page.

    :raises BadInput: an address (fetching is the caller's step), or a type that is no page.
    """
    if isinstance(source, Page):
        return source
    if isinstance(source, Path):
        return read_file(source, max_file_mb)
    if isinstance(source, str) and is_address(source):
        raise BadInput(
            f"{source.strip()}: addresses are not read here; save the page and give its path",
            subject=source.strip(),
        )
    if isinstance(source, str | bytes):
        return Page(source)
    raise BadInput(
        f"a page is str (HTML), bytes, Path or Page, not {type(source).__name__}", subject=type(source).__name__
    )


def files_in(folder: Path, suffixes: Sequence[str], max_files: int) -> Iterator[Path]:
    """Yield a folder's pages in sorted order; links out of it are not followed."""
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

    :raises BadPage: it is missing, unreadable, not a file, or too large.
    """
    try:
        size = path.stat().st_size
        if path.exists() and not path.is_file() and not path.is_fifo() and not path.is_char_device():
            raise BadPage(f"{path}: this is not a file", subject=str(path))
        if size > max_file_mb * _MIB:
            raise BadPage(f"{path}: {size // _MIB} MiB is over the limit of {max_file_mb} MiB", subject=str(path))
        with path.open("rb") as file:
            content = file.read(max_file_mb * _MIB + 1)  # a device or a pipe has no size to look at
        if len(content) > max_file_mb * _MIB:
            raise BadPage(f"{path}: over the limit of {max_file_mb} MiB", subject=str(path))
    except FileNotFoundError as error:
        raise BadPage(f"{path}: no such file", subject=str(path)) from error
    except OSError as error:
        raise BadPage(f"{path}: cannot be read ({error.strerror})", subject=str(path)) from error
    except ValueError as error:
        raise BadPage(f"{str(path)[:80]!r}: this is no path ({error})", subject=str(path)[:80]) from error
    name = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # a file's name need not be Unicode
    return Page(content, url=name)
