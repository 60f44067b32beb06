"""``pdf``: PDF files with a text layer, laid out again as headings, paragraphs, lists and tables."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ..errors import BadPage, MissingExtra
from ..types import Page
from ._pdf_blocks import Block, Style, blocks_of
from ._pdf_columns import flows
from ._pdf_html import document
from ._pdf_inline import Writer
from ._pdf_lines import PageWords, Piece, Word, pieces
from ._pdf_margins import without_running
from ._pdf_reader import COMMAND
from ._pdf_tables import ruled_tables

_HEAD: Final = 1024  # bytes in which a PDF begins
_TAIL: Final = 4096  # bytes in which it ends


class Engine:
    """PDF files. A process of its own reads each, so that none can hang, crash or fill this one.

    The first words of page N stand in ``<data value="page-N">``, counted from 1.

    :param max_pages: pages of a file.
    :param max_chars: letters of a file.
    :param seconds: wall time for one file, reading and laying out together.
    :param memory_mb: memory of the reading process, in MiB, where the system can limit it.
    """

    name = "pdf"
    media_types = ("application/pdf", "application/x-pdf")
    suffixes = (".pdf",)

    def __init__(
        self, max_pages: int = 3000, max_chars: int = 5_000_000, seconds: float = 120.0, memory_mb: int = 1024
    ) -> None:
        self.max_pages = max_pages
        self.max_chars = max_chars
        self.seconds = seconds
        self.memory_mb = memory_mb

    def matches(self, content: bytes | str) -> bool:
        """Tell whether content is a PDF file, whatever it is called."""
        return isinstance(content, bytes) and b"%PDF-" in content[:_HEAD]

    def to_html(self, page: Page) -> str:
        """Return what the PDF shows as HTML.

        :raises BadPage: it is no PDF, damaged, cut off, encrypted, over a limit, or has no text layer.
        :raises MissingExtra: pypdfium2 is not installed.
        """
        name = page.url or "page"
        content = page.content
        if isinstance(content, str) or not self.matches(content):
            raise BadPage(f"{name}: this is no PDF file", subject=page.url)
        if b"%%EOF" not in content[-_TAIL:]:
            raise BadPage(f"{name}: the PDF is cut off before its end; fetch or copy it again", subject=page.url)
        ends = time.monotonic() + self.seconds
        about, *raw = self._read(content, name)
        seen = [PageWords(one) for one in raw]
        if not any(one.words or any(one.turned) for one in seen):
            self._refuse_wordless(seen, name)
        return self._lay_out(seen, about, ends, name)

    def _read(self, content: bytes, name: str) -> list[dict[str, Any]]:
        """Have the file read by a process of its own."""
        spec = find_spec("pypdfium2_raw")
        if spec is None or not spec.origin:
            raise MissingExtra(
                "the package pypdfium2 is not installed; run: pip install pypdfium2", subject="pypdfium2"
            )
        folders = (str(Path(__file__).parents[1]), str(Path(spec.origin).parents[1]))
        limits = (self.max_pages, self.max_chars, self.seconds, self.memory_mb)
        command = [sys.executable, "-I", "-S", "-c", COMMAND, *folders, *map(str, limits)]
        try:
            done = subprocess.run(command, input=content, capture_output=True, timeout=self.seconds + 1, check=False)  # noqa: S603 - our own interpreter and file, no shell
        except subprocess.TimeoutExpired as error:
            raise BadPage(f"{name}: reading the PDF takes over {self.seconds:g} s; split it", subject=name) from error
        lines = done.stdout.decode().splitlines()
        last = json.loads(lines[-1]) if lines and lines[-1].endswith("}") else {}
        if "end" in last and not done.returncode:
            return [json.loads(line) for line in lines[:-1]]
        reason = last.get("error", "damaged")
        if reason == "password":
            raise BadPage(f"{name}: the PDF is encrypted; save it without its password", subject=name)
        if reason == "damaged":
            raise BadPage(f"{name}: the PDF is damaged and cannot be read; fetch or save it again", subject=name)
        raise BadPage(f"{name}: the PDF is too large: {reason}; split it", subject=name)

    def _refuse_wordless(self, seen: list[PageWords], name: str) -> None:
        if any(page.images for page in seen):
            raise BadPage(
                f"{name}: the PDF holds pictures of pages and no text; run OCR over it first (for example ocrmypdf)",
                subject=name,
            )
        raise BadPage(f"{name}: the PDF shows no text", subject=name)

    def _lay_out(self, seen: list[PageWords], about: dict[str, Any], ends: float, name: str) -> str:
        """Lay the pages out: tables, running headers, columns, blocks, HTML."""
        words: list[Word] = [word for page in seen for word in page.words]
        style = Style.of(words)
        writer = Writer(words, style.bold)
        pages: list[tuple[PageWords, list[Piece]]] = []
        atoms: list[list[Piece]] = []
        for page in seen:
            self._check_time(ends, name)
            atoms.append(_atoms(page))
            pages.append((page, pieces(page.words)))
        blocks: list[Block] = []
        for (page, _), kept, whole in zip(pages, without_running(pages), atoms, strict=True):
            bottom = page.box[1] + 0.6 * page.height
            for flow in [*flows([*kept, *whole]), *(pieces(group) for group in page.turned)]:
                self._check_time(ends, name)
                if flow:
                    blocks += blocks_of(flow, style, page.number, bottom)
            blocks += [Block("figure", [], page.number, alt=alt) for alt in page.alts]
        return document(blocks, about, style, writer)

    def _check_time(self, ends: float, name: str) -> None:
        if time.monotonic() > ends:
            raise BadPage(f"{name}: reading the PDF takes over {self.seconds:g} s; split it", subject=name)


def _atoms(page: PageWords) -> list[Piece]:
    """Return what is laid out as a whole: tables with rulings (their words leave the page), pictures with alt text."""
    tables = ruled_tables(page.rules, page.fills, page.words)
    found = [Piece([], table, table.box) for table in tables]
    return [*found, *(Piece([], image[4], image[:4]) for image in page.images if image[4])]
