"""``latex``: LaTeX sources: sections, formulas as TeX, tables, figures, footnotes, citations."""

from __future__ import annotations

import html
import re
import time
from pathlib import PurePath
from typing import Final

from ....core.types import Page
from .._common.write import document, page_error, text_of
from .bib import as_latex
from .commands import HANDLERS
from .files import ReadBeside, read_beside
from .reader import TexReader
from .source import Macros, TexSource
from .state import TexState

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
