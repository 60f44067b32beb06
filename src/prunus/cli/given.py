"""The pages on a command line: files, folders, addresses, and ``-`` for standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..api.pages import read, reading_with
from ..core.errors import BadInput, OutsideFailed
from ..core.settings import Settings
from ..core.types import Page
from ..evidence.documents import Documents
from ..pages.sources import Source, is_folder, pages_of
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


def pages_given(arguments: Sequence[str], settings: Settings, out: Path | None = None) -> list[Given]:
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
            inside = pages_of(path, reading_with(settings).suffixes, settings.max_files)
            if out is not None and out.resolve() != path.resolve() and out.resolve().is_relative_to(path.resolve()):
                inside = [file for file in inside if not file.resolve().is_relative_to(out.resolve())]
            found.extend(Given(file, str(file), path) for file in inside)
        else:
            found.append(Given(path, argument))
    return found


def read_given(
    pages: Sequence[Given],
    settings: Settings,
    quiet: bool,
    keep: bool = False,
    done: Callable[[Page], None] | None = None,
) -> Documents:
    """Clean the pages of a command line; those that cannot be read are noted in the documents' failures.

    :param keep: keep a snapshot of each page.
    :param done: called with each page before it is cleaned.
    :raises BadPage: none can be read.
    """
    with progress(len(pages), "reading", quiet) as step:

        def arrived(page: Page) -> None:
            step()
            if done is not None:
                done(page)

        sources = [one.source for one in pages]
        try:
            return read(sources, strict=False, keep=keep, done=arrived, settings=settings)
        except (BadInput, OutsideFailed) as error:
            for line in getattr(error, "__notes__", ()):
                say(f"prunus: {one_line(line)}")
            raise


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
