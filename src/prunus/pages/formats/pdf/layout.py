"""Convert the words and drawings of a PDF's pages to HTML."""

from __future__ import annotations

import time
from typing import Any

from ....core.errors import BadPage
from .blocks import PdfBlock, PdfStyle, blocks_of
from .columns import drop_running_lines, split_flows
from .html import PdfInlineWriter, document
from .lines import PdfPiece, Word, group_words, reading_order
from .numbers import number_tables
from .page import PageWords
from .tables import cell_lines, ruled_tables


def html_of(metadata: dict[str, Any], raw: list[dict[str, Any]], deadline: float, name: str) -> str:
    """Return a document as HTML: tables, running headers, columns, blocks.

    :param metadata: metadata of the document, as :meth:`.reader.PdfReader.metadata` returns it.
    :param raw: content of each page, as :meth:`.reader.PdfReader.page` returns it.
    :param deadline: time limit on the monotonic clock.
    :param name: name of the document in errors.
    :raises BadPage: the document shows no text, or its layout takes too long.
    """
    visible = [PageWords(page) for page in raw]
    if not any(page.words or any(page.turned) for page in visible):
        if any(page.images for page in visible):
            said = "; ".join(metadata.get("warnings", []))
            raise BadPage(f"{name}: the PDF holds pictures of pages and no text{said and f': {said}'}", subject=name)
        raise BadPage(f"{name}: the PDF shows no text", subject=name)
    words: list[Word] = [word for page in visible for word in page.words]
    style = PdfStyle.of(words)
    writer = PdfInlineWriter(words, style.bold)
    pages: list[tuple[PageWords, list[PdfPiece]]] = []
    atoms: list[list[PdfPiece]] = []
    for page in visible:
        _check_time(deadline, name)
        atoms.append(_atoms(page))
        pages.append((page, group_words(page.words)))
    blocks: list[PdfBlock] = []
    directed = {page.number: page.mirrored for page in visible if page.directed}
    for (page, _), kept, whole in zip(pages, drop_running_lines(pages), atoms, strict=True):
        bottom = page.box[1] + 0.6 * page.height  # small print below this line is a note
        tables, others = number_tables([*kept, *whole])
        for flow in split_flows([*others, *(PdfPiece([], table, table.box) for table in tables)]):
            _check_time(deadline, name)
            blocks += blocks_of(flow, style, page.number, bottom)
        for group in filter(None, map(group_words, page.turned)):
            blocks += map(_beside_text, blocks_of(group, style, page.number, bottom))
        blocks += [PdfBlock("figure", [], page.number, alt=alt) for alt in page.alts]
        blocks += [PdfBlock("comment", [], page.number, alt="\n".join(said)) for said in page.comments]
    for block in blocks:
        if block.page in directed:
            _put_in_order(block, directed[block.page])
    return document(blocks, metadata, style, writer)


def _check_time(deadline: float, name: str) -> None:
    if time.monotonic() > deadline:
        raise BadPage(f"{name}: laying out the PDF takes too long; split it", subject=name)


def _beside_text(block: PdfBlock) -> PdfBlock:
    """Return a block of text that lies on its side: stamps and labels belong to no sentence and head nothing."""
    block.kind = "note" if block.kind in ("p", "h") else block.kind
    return block


def _put_in_order(block: PdfBlock, mirrored: bool) -> None:
    """Put the words of a block into the order in which they are read, on a page with two directions."""
    block.lines = [reading_order(line, mirrored) for line in block.lines]
    for row in block.table.rows if block.table else []:
        for cell in row:
            if cell:
                cell.words = [word for line in cell_lines(cell) for word in reading_order(line, mirrored)]
    if mirrored and block.kind == "pre":  # columns of code are counted from the left
        for word in (word for line in block.lines for word in line):
            word.x0, word.x1 = -word.x1, -word.x0


def _atoms(page: PageWords) -> list[PdfPiece]:
    """Return the pieces that are laid out as a whole: tables with rulings, and pictures with alt text.

    The words of those tables are removed from the page.
    """
    tables = ruled_tables(page.rules, page.fills, page.words)
    result = [PdfPiece([], table, table.box) for table in tables]
    return [*result, *(PdfPiece([], image[4], image[:4]) for image in page.images if image[4])]
