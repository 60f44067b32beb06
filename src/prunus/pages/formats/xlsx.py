"""``xlsx``: Excel workbooks: one section per sheet, tables with merged cells, numbers as Excel shows them.

The package (ECMA-376, part 1, chapter 18) is read in one pass and within limits. Macros, formulas, and hidden rows
and columns are left out. A formula shows the value that was saved with it.
"""

from __future__ import annotations

from ...core.types import Page
from ._common.allowance import Allowance
from ._common.ooxml import main_part, relations
from ._common.write import document
from ._common.xml import attribute, children, find_path
from ._common.zip import Archive
from ._sheets.regions import Sheet, to_markup
from ._sheets.workbook import Book, Cells, CellStyles, Comments, DeclaredTable, SharedTexts
from .pptx.slides import inline


class Engine:
    """Excel workbooks. Macros are never run, and links are never followed.

    :param max_cells: cells of the workbook that are shown; default 300,000. A note marks a sheet that is cut.
    :param max_mb: unpacked size of the parts that are read, in MiB; default 256.
    :param max_chars: characters of the workbook that are shown; default 16 Mi.
    :param seconds: time limit for reading; default 60.
    """

    name = "xlsx"
    media_types = (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
        "application/vnd.ms-excel.sheet.macroenabled.12",
    )
    suffixes = (".xlsx", ".xlsm", ".xltx", ".xltm")

    def __init__(
        self, max_cells: int = 300_000, max_mb: int = 256, max_chars: int = 16 << 20, seconds: float = 60.0
    ) -> None:
        self._max_cells, self._max_mb, self._max_chars, self._seconds = max_cells, max_mb, max_chars, seconds

    def to_html(self, page: Page) -> str:
        """Return the sheets as sections; a hidden sheet and comments are asides.

        :raises BadPage: the page is no workbook, is damaged or password-protected, or exceeds a limit.
        """
        limits = {"bytes": self._max_mb << 20, "cells": self._max_cells}
        letters = {"letters": self._max_chars, "shared_letters": self._max_chars}
        allowance = Allowance(page.url, self._seconds, **limits, **letters)
        archive = Archive(page.content, "Excel workbook", allowance)
        book = Book(allowance)
        name = main_part(archive, "xl/workbook.xml")
        archive.walk(name, book)
        links = relations(archive, name)
        parts = {link.kind: link.target for link in links.values()}
        texts, styles = SharedTexts(allowance), CellStyles(book.epoch_1904)
        if parts.get("sharedStrings", "") in archive:
            archive.walk(parts["sharedStrings"], texts)
        if parts.get("styles", "") in archive:
            archive.walk(parts["styles"], styles)
        sections = []
        for title, id, is_hidden in book.sheets:
            link = links.get(id)
            if link is not None and link.kind == "worksheet" and link.target in archive:
                sheet = _read_sheet(archive, link.target, title, texts, styles)
                sheet.is_hidden = is_hidden
                sections.append(to_markup(sheet, allowance))
        if not any(sections):
            raise archive.fault("this workbook shows no sheet with cells; make its sheets visible and save it again")
        return document(sections)


def _read_sheet(archive: Archive, part: str, title: str, texts: SharedTexts, styles: CellStyles) -> Sheet:
    """Read one sheet with its declared tables, links and comments."""
    reader = Cells(texts, styles, archive.allowance)
    archive.walk(part, reader, lambda: reader.cut_at >= 0)
    links = relations(archive, part)
    headers = list(reader.filters)
    for link in links.values():
        if link.kind == "table" and link.target in archive:
            declared = DeclaredTable()
            archive.walk(link.target, declared)
            headers += declared.found
    for kind in ("threadedComment", "comments"):  # the latter repeats each thread for old programs
        for link in links.values():
            if link.kind == kind and link.target in archive:
                told = Comments(archive.allowance)
                archive.walk(link.target, told)
                known = {cell for cell, _, _ in reader.comments} if kind == "comments" else ()
                reader.comments += [said for said in told.found if said[0] not in known]
    for place, id in reader.link_ids.items():
        if id in links and "://" in links[id].target:
            archive.allowance.spend("letters", len(links[id].target))
            reader.targets[place] = links[id].target
    sheet = reader.to_sheet(title, headers)
    for link in links.values():
        if link.kind == "drawing" and link.target in archive:
            sheet.boxes += _boxes(archive, link.target)
    return sheet


def _boxes(archive: Archive, part: str) -> list[str]:
    """Return the texts of the shapes that lie on a sheet, one paragraph for each of theirs."""
    links, found = relations(archive, part), []
    for shape in archive.xml(part).iter("xdr:sp"):
        if attribute(find_path(shape, "xdr:nvSpPr", "xdr:cNvPr"), "hidden") not in ("1", "true"):
            texts = (
                inline(p, links, archive.allowance).strip() for p in children(find_path(shape, "xdr:txBody"), "a:p")
            )
            found += [f"<p>{text}</p>" for text in texts if text]
    return found
