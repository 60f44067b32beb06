"""``latex``: LaTeX sources: sections, formulas as TeX, tables, figures, footnotes, citations.

Included files are read only from the document's folder and below.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, TypeAlias

from ....core.types import Page
from ...clean.parse import decode, is_binary
from .._common.write import document, page_error, text_of
from .bib import as_latex
from .commands import HANDLERS
from .reader import TexReader, TexState
from .source import Macros, TexSource

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


_PRIVATE: Final = re.compile("[\ue000-\ue002\0]")
_TAG: Final = re.compile(r"<sup>\[\d+\]</sup>|<[^<>]*>")
_CHAPTERS: Final = re.compile(r"^[^%\n]*\\chapter\b", re.M)
_LANGUAGES: Final = re.compile(r"\\usepackage\[([^\]]{0,200})\]\{babel\}")
_CODES: Final = {
    "english": "en", "british": "en", "american": "en", "german": "de", "ngerman": "de", "french": "fr",
    "spanish": "es", "italian": "it", "portuguese": "pt", "dutch": "nl", "russian": "ru", "polish": "pl",
}  # fmt: skip


class Engine:
    """The text of a LaTeX document without its layout. No command is executed. Formulas stay TeX.

    Where the page is a local file, included files are read from its folder and below.

    :param read: reads included files; default :func:`read_beside`.
    :param max_chars: limit on the characters of the document with its files; default 16 Mi.
    :param max_growth: limit on the characters that the document's macros add; default 2 Mi.
    :param max_cells: cells of tables that are shown; default 200,000.
    :param seconds: time limit for reading; default 30. The rest is left out, with a note.
    """

    name = "latex"
    media_types = ("application/x-tex", "text/x-tex", "application/x-latex", "text/x-latex")
    suffixes = (".tex", ".ltx", ".latex")

    def __init__(
        self,
        read: ReadBeside = read_beside,
        max_chars: int = 16 << 20,
        max_growth: int = 2 << 20,
        max_cells: int = 200_000,
        seconds: float = 30.0,
    ) -> None:
        self._read, self._max_chars, self._max_growth = read, max_chars, max_growth
        self._max_cells, self._seconds = max_cells, seconds

    def to_html(self, page: Page) -> str:
        """Return the document as HTML.

        :raises BadPage: the content is empty or binary, or is longer than ``max_chars``.
        """
        text = text_of(page, "LaTeX").replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > self._max_chars:
            raise page_error(
                page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the document"
            )
        state = TexState(
            lambda name: self._read_clean(page, name),
            HANDLERS,
            Macros(self._max_growth),
            time.monotonic() + self._seconds,
            self._max_chars - len(text),
            self._max_cells,
            job=PurePath(page.url).stem if page.url and "://" not in page.url else "",
            chapters=bool(_CHAPTERS.search(text)),
        )
        reader = TexReader(state)
        reader.run(TexSource(_PRIVATE.sub("", text)))
        body = reader.markup()
        if state.title and not state.shown_title and state.began:
            body = f"<h1>{state.title}</h1>{body}"
        shown = state.finish(body, reader.inline, as_latex)
        babel = _LANGUAGES.search(text[:20_000])
        names = [name.strip().removeprefix("main=") for name in babel[1].split(",")] if babel else []
        lang = next((_CODES[name] for name in reversed(names) if name in _CODES), "")
        title = html.unescape(_TAG.sub("", state.title))
        return document([shown], title, lang)

    def _read_clean(self, page: Page, name: str) -> str | None:
        text = self._read(page, name)
        return None if text is None else _PRIVATE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
