"""The files that a LaTeX document names: read beside it and below, nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from ....core.types import Page
from ...clean.parse import decode, is_binary

ReadBeside: TypeAlias = Callable[[Page, str], "str | None"]
"""Returns the text of a file that a page names, None where it is not there or not to be read."""

_SUFFIXES: Final = (".tex", ".ltx", ".bib", ".bbl")
_MAX_BYTES: Final = 16 << 20


def read_beside(page: Page, name: str) -> str | None:
    """Read a file in the folder of a page that is itself a local file, or below it.

    Absolute paths, paths that leave the folder, links out of it, other kinds of files, and pages that do not
    come from a file are answered with None.

    :param name: the path as the document writes it, with its suffix.
    """
    if "://" in page.url or not page.url or "\0" in name or "\\" in name:
        return None
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts or inside.suffix.lower() not in _SUFFIXES:
        return None
    try:
        main = Path(page.url)
        if not main.is_file() or not _is_its_content(main, page):
            return None
        folder = main.resolve().parent
        path = (folder / inside).resolve()
        if not path.is_relative_to(folder) or not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        content = path.read_bytes()
    except (OSError, ValueError):
        return None
    return None if is_binary(content) else decode(content)


def _is_its_content(path: Path, page: Page) -> bool:
    """Tell whether a page is what the file holds: the address of a page from elsewhere opens no folder."""
    content = page.content if isinstance(page.content, bytes) else page.content.encode("utf-8", "surrogatepass")
    return path.stat().st_size == len(content) and path.read_bytes() == content
