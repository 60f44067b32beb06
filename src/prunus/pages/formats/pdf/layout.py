"""The layout of a whole PDF: from what its pages show to HTML."""

from __future__ import annotations

import time
from typing import Any

from ....core.errors import BadPage
from .blocks import PdfBlock, PdfStyle, blocks_of
from .columns import flows
from .html import document
from .inline import PdfInlineWriter
from .lines import PageWords, PdfPiece, Word, pieces
from .margins import without_running
from .tables import ruled_tables


def html_of(about: dict[str, Any], raw: list[dict[str, Any]], ends: float, name: str) -> str:
    """Return a document as HTML: tables, running headers, columns, blocks.

    :param about: what the document says of itself.
    :param raw: what each page shows, as :mod:`._pdf_reader` writes it.
    :param ends: when to give up, on the monotonic clock.
    :param name: how errors call the document.
    :raises BadPage: it shows no text, or takes too long.
    """
    seen = [PageWords(one) for one in raw]
    if not any(one.words or any(one.turned) for one in seen):
        if any(page.images for page in seen):
            raise BadPage(
                f"{name}: the PDF holds pictures of pages and no text; run OCR over it first (for example ocrmypdf)",
                subject=name,
            )
        raise BadPage(f"{name}: the PDF shows no text", subject=name)
    words: list[Word] = [word for page in seen for word in page.words]
    style = PdfStyle.of(words)
    writer = PdfInlineWriter(words, style.bold)
    pages: list[tuple[PageWords, list[PdfPiece]]] = []
    atoms: list[list[PdfPiece]] = []
    for page in seen:
        _check_time(ends, name)
        atoms.append(_atoms(page))
        pages.append((page, pieces(page.words)))
    blocks: list[PdfBlock] = []
    for (page, _), kept, whole in zip(pages, without_running(pages), atoms, strict=True):
        bottom = page.box[1] + 0.6 * page.height
        for flow in [*flows([*kept, *whole]), *(pieces(group) for group in page.turned)]:
            _check_time(ends, name)
            if flow:
                blocks += blocks_of(flow, style, page.number, bottom)
        blocks += [PdfBlock("figure", [], page.number, alt=alt) for alt in page.alts]
    return document(blocks, about, style, writer)


def _check_time(ends: float, name: str) -> None:
    if time.monotonic() > ends:
        raise BadPage(f"{name}: laying out the PDF takes too long; split it", subject=name)


def _atoms(page: PageWords) -> list[PdfPiece]:
    """Return what is laid out as a whole: tables with rulings (their words leave the page), pictures with alt text."""
    tables = ruled_tables(page.rules, page.fills, page.words)
    found = [PdfPiece([], table, table.box) for table in tables]
    return [*found, *(PdfPiece([], image[4], image[:4]) for image in page.images if image[4])]
