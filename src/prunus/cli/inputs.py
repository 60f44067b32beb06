"""Read the pages that a command line names: files, folders, addresses, and ``-`` for standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..api.pages import read
from ..core.errors import BadInput, OutsideFailed
from ..core.settings import Settings
from ..core.types import Page
from ..engines import formats
from ..evidence.documents import Documents
from ..pages.links import make_absolute
from ..pages.sources import Source, as_page, is_address, is_folder, pages_of
from .output import one_line, progress, say, working

STDIN: Final = "-"
_MIB: Final = 1024 * 1024
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Given:
    """One page that a command line names.

    :param source: the page itself, its path or its address.
    :param name: its name in messages.
    :param folder: the folder of the command line in which the page was found; None where the page itself was named.
    :param path: the page's file; None for addresses and standard input.
    """

    source: Source
    name: str
    folder: Path | None = None
    path: Path | None = None


def pages_given(
    arguments: Sequence[str], settings: Settings, out: Path | None = None, *, url: str = "", kind: str = ""
) -> list[Given]:
    """List the pages of a command line; a folder gives all pages in it.

    :param out: the folder of the output; its files are not pages to read.
    :param url: the address that the page was saved from.
    :param kind: the page's media type, suffix or format.
    :raises BadInput: a name is empty, a folder holds no page, standard input is closed or too large, or ``url`` or
        ``kind`` cannot be used.
    """
    result = _listed(arguments, settings, out)
    return [_described(result, url, kind, settings.max_file_mb)] if url or kind else result


def _described(found: Sequence[Given], url: str, kind: str, max_file_mb: int) -> Given:
    """Return the only page with the address and the type that the command line gives.

    :raises BadInput: there are several pages, the page is an address, or the address or the type is none.
    """
    option = "--url" if url else "--type"
    if len(found) != 1 or isinstance(found[0].source, str):
        raise BadInput(f"{option} describes one saved page or standard input; give just that page", subject=option)
    if url and not is_address(url):
        raise BadInput(f"--url: {url} is no address; it begins with http:// or https://", subject="--url")
    media_type = formats().media_type(kind) if kind else ""
    page = as_page(found[0].source, max_file_mb)
    return replace(found[0], source=replace(page, final_url=url, media_type=media_type))


def _listed(arguments: Sequence[str], settings: Settings, out: Path | None) -> list[Given]:
    result: list[Given] = []
    for argument in arguments:
        path = Path(argument)
        if not argument:
            raise BadInput("a page has an empty name; name a file, a folder, an address or -", subject="pages")
        if argument == STDIN:
            if not any(page.name == "stdin" for page in result):  # standard input can be read only once
                result.append(Given(_stdin(settings.max_file_mb), "stdin"))
        elif _ADDRESS.match(argument):
            if not is_address(argument):
                raise BadInput(f"{argument}: this is no whole address; write it as https://HOST/PAGE", subject=argument)
            result.append(Given(argument, argument))
        elif is_folder(path):
            inside = pages_of(path, formats().suffixes, settings.max_files)
            if out is not None and out.resolve() != path.resolve() and out.resolve().is_relative_to(path.resolve()):
                inside = [file for file in inside if not file.resolve().is_relative_to(out.resolve())]
            result.extend(Given(file, str(file), path, file) for file in inside)
        else:
            result.append(Given(path, argument, path=path))
    return result


def read_given(
    pages: Sequence[Given],
    settings: Settings,
    quiet: bool,
    keep: bool = False,
    done: Callable[[Page], None] | None = None,
) -> Documents:
    """Clean the pages of a command line; pages that cannot be read are noted in the documents' failures.

    :param keep: store a snapshot of each page.
    :param done: called with each page before it is cleaned.
    :raises BadInput: no page can be read.
    :raises OutsideFailed: no page can be read, and fetching the first one failed.
    """
    with working("reading", quiet or len(pages) > 1), progress(len(pages), "reading", quiet) as step:

        def arrived(page: Page) -> None:
            step()
            if done is not None:
                done(page)

        sources = [page.source for page in pages]
        try:
            documents = read(sources, strict=False, keep=keep, done=arrived, settings=settings)
        except (BadInput, OutsideFailed) as error:
            for line in getattr(error, "__notes__", ()):
                say(f"prunus: {one_line(line)}")
            raise
    for tree in documents.trees if any(is_saved(page) for page in pages) else ():
        make_absolute(tree)
    return documents


def is_saved(page: Given) -> bool:
    """Tell whether the command line gives the address that a page was saved from."""
    return isinstance(page.source, Page) and bool(page.source.final_url)


def _stdin(max_file_mb: int) -> Page:
    """Read standard input as a page.

    :raises BadInput: it is closed, or larger than ``max_file_mb``.
    """
    if sys.stdin is None:
        raise BadInput("standard input is closed; name a file instead of -", subject=STDIN)
    content = sys.stdin.buffer.read(max_file_mb * _MIB + 1)
    if len(content) > max_file_mb * _MIB:
        raise BadInput(f"stdin: over the limit of {max_file_mb} MiB; raise the setting max_file_mb", subject=STDIN)
    return Page(content, url="stdin")
