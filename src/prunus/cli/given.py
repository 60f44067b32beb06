"""The pages on a command line: files, folders, addresses, and ``-`` for standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..core.errors import BadInput, BadPage, Failures, OutsideFailed
from ..core.options import Options
from ..core.settings import Settings
from ..core.types import Page
from ..engines import Formats, Maker
from ..evidence.documents import Documents, read_pages
from ..pages.read import read_page
from ..pages.sources import Source, arrived, as_page, each_page, is_folder, pages_of
from ..web.reader import fetch_with
from .output import one_line, progress, say

STDIN: Final = "-"
_MIB: Final = 1024 * 1024
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Given:
    """One page of a command line.

    :param source: the page itself, or where it lies.
    :param name: how it is called in messages.
    :param folder: the folder that was given, for a page that was found in one.
    """

    source: Source
    name: str
    folder: Path | None = None


def pages_given(arguments: Sequence[str], settings: Settings, formats: Formats, out: Path | None = None) -> list[Given]:
    """List the pages of a command line; folders stand for their pages.

    :param out: a folder that is written to; what lies in it is not a page to read.
    :raises BadInput: a folder holds no page, or standard input is too large.
    """
    found: list[Given] = []
    for argument in arguments:
        path = Path(argument)
        if not argument:
            raise BadInput("a page with an empty name was given", subject="pages")
        if argument == STDIN:
            if not any(given.name == "stdin" for given in found):
                found.append(Given(_stdin(settings.max_file_mb), "stdin"))
        elif _ADDRESS.match(argument):
            found.append(Given(argument, argument))
        elif is_folder(path):
            inside = pages_of(path, formats.suffixes, settings.max_files)
            if out is not None and out.resolve() != path.resolve() and out.resolve().is_relative_to(path.resolve()):
                inside = [file for file in inside if not file.resolve().is_relative_to(out.resolve())]
            found.extend(Given(file, str(file), path) for file in inside)
        else:
            found.append(Given(path, argument))
    return found


def read_given(
    pages: Sequence[Given], settings: Settings, formats: Formats, quiet: bool, keep: bool = False
) -> Documents:
    """Clean the pages of a command line; those that cannot be read are noted in the documents' failures.

    :param keep: keep a snapshot of each page.
    :raises BadPage: none can be read.
    """
    failures = Failures()
    with progress(len(pages), "reading", quiet) as step:
        given = each_page(
            [one.source for one in pages],
            formats.suffixes,
            settings.max_files,
            settings.max_file_mb,
            failures,
            fetch_with(settings),
        )
        if keep:
            from ..web.reader import keep_each

            given = keep_each(settings, given)
        try:
            return read_pages(_stepping(given, step), formats.to_html, strict=False, failures=failures)
        except (BadPage, OutsideFailed):
            for line in list(failures.values())[1:]:
                say(f"prunus: {one_line(line)}")
            raise


def _stepping(pages: Iterator[Page], step: Callable[[], None]) -> Iterator[Page]:
    for page in pages:
        yield page
        step()


def with_links(documents: Documents, question: str, count: int, settings: Settings, formats: Formats) -> Documents:
    """Return documents with the pages that their most promising links lead to.

    :param count: links to follow; those that cannot be read are noted in the documents' failures.
    """
    from ..web.reader import follow

    trees, failures = list(documents.trees), Failures(documents.failures)
    known = {tree.snapshot for tree in trees}
    embedder = Maker(settings, Options()).make("embedder")
    for page in follow(settings, trees, question, count, embedder):
        try:
            tree = read_page(arrived(page), formats.to_html)
        except (BadInput, OutsideFailed) as error:
            failures.note(error)
            continue
        if tree.snapshot not in known:  # another address of a page that is there
            known.add(tree.snapshot)
            trees.append(tree)
    return Documents(trees, failures)


class Reading:
    """Reads the pages of a command line one by one; addresses are fetched meanwhile.

    Used as a context manager, so that what is still being fetched ends with it.
    """

    def __init__(self, pages: Sequence[Given], settings: Settings) -> None:
        addresses = [one.source for one in pages if isinstance(one.source, str)]
        self._fetched = fetch_with(settings)(addresses) if addresses else iter(())
        self._max_file_mb = settings.max_file_mb

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._fetched, Generator):
            self._fetched.close()

    def page(self, given: Given) -> Page:
        """Return the next page; pages are asked for in their order.

        :raises BadInput: it cannot be read, or its address is refused.
        :raises OutsideFailed: it cannot be fetched.
        """
        if not isinstance(given.source, str):
            return as_page(given.source, self._max_file_mb)
        return arrived(next(self._fetched))


def _stdin(max_file_mb: int) -> Page:
    """Read standard input as a page.

    :raises BadInput: it is closed, or larger than a file may be.
    """
    if sys.stdin is None:
        raise BadInput("standard input is closed", subject=STDIN)
    content = sys.stdin.buffer.read(max_file_mb * _MIB + 1)
    if len(content) > max_file_mb * _MIB:
        raise BadInput(f"stdin: over the limit of {max_file_mb} MiB", subject=STDIN)
    return Page(content, url="stdin")
