"""Read the files that a LaTeX document includes, only from its folder and below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from ....core.types import Page
from ...clean.parse import decode, is_binary

ReadBeside: TypeAlias = Callable[[Page, str], "str | None"]
"""Returns the text of a file that a page names, or None where the file is missing or may not be read."""

_SUFFIXES: Final = (".tex", ".ltx", ".bib", ".bbl")
_MAX_BYTES: Final = 16 << 20


def read_beside(page: Page, name: str) -> str | None:
    """Return the text of a file in the folder of a local page, or below that folder.

    Return None for absolute paths, paths and links that leave the folder, other suffixes, files over 16 MiB, and
    pages that are no local file.

    :param name: the path as written in the document, with its suffix.
    """
    if "://" in page.url or not page.url or "\0" in name or "\\" in name:
        return None
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts or inside.suffix.lower() not in _SUFFIXES:
        return None
    try:
        main = Path(page.url)
        if not main.is_file() or not _is_same_content(main, page):
            return None
        folder = main.resolve().parent
        path = (folder / inside).resolve()
        if not path.is_relative_to(folder) or not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        content = path.read_bytes()
    except (OSError, ValueError):
        return None
    return None if is_binary(content) else decode(content)


def _is_same_content(path: Path, page: Page) -> bool:
    """Tell whether a page equals the file at its path.

    Without this check, a page from elsewhere could open a local folder by its URL.
    """
    content = page.content if isinstance(page.content, bytes) else page.content.encode("utf-8", "surrogatepass")
    return path.stat().st_size == len(content) and path.read_bytes() == content
