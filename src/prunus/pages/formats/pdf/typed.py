"""Read what was typed into and onto a PDF page: values of form fields, text annotations (FreeText), and comments.

They stand in no content of the page. Fields and text become words at their place, and follow the label on their line.
This module runs in the reading process, see :mod:`.reader`. It imports only ``drawn`` from this package.
"""

from __future__ import annotations

import ctypes
import re

from .drawn import read_utf16, rotated_box

TYPE_CHECKING = False  # typing takes a tenth of the process's time to load
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

_MAX_LINES: Final = 200  # lines of text that one annotation marks
_MAX_FIELDS: Final = 5_000  # fields and annotations of a page
_FREE_TEXT, _STRIKE_OUT, _STAMP, _WIDGET = 3, 12, 13, 20  # kinds of annotation
_COMMENTED: Final = frozenset({1, *range(4, 16)})  # notes, highlights, stamps and others that a comment may be on
_CHECK_BOX, _RADIO, _COMBO, _LIST, _TEXT = 2, 3, 4, 5, 6  # kinds of field
_UNSEEN: Final = 2 | 32  # flags of an annotation: hidden, no view
_EMPTY: Final = 2  # bytes of an appearance that is missing
_FLATTENED: Final = 1  # pdfium's result where there was something to make part of the page
_PASSWORD: Final = 1 << 13  # flag of a text field
_USUAL: Final = 10.0  # points; size of letters where nothing tells it
_WIDTH: Final = 0.5  # em; width of a letter
_TAG: Final = re.compile(r"<[^<>]*>")


class PdfTyped:
    """Reads the fields and typed annotations of one document.

    :param raw: the bindings of pdfium.
    """

    def __init__(self, raw: Any, document: Any) -> None:
        self.raw = raw
        self.form = None
        self.strikes: list[list[float]] = []  # places of struck text on the page that was read last
        self.stamps: list[list[float]] = []  # and of its stamps
        if raw.FPDF_GetFormType(document):
            self.info = ctypes.create_string_buffer(512)  # pdfium's callbacks, none of them set
            self.info[0] = b"\x01"  # its version
            self.form = raw.FPDFDOC_InitFormFillEnvironment(document, self.info)

    def add(self, page: Any, words: list[list[Any]], quarter: int) -> list[tuple[str, str]]:
        """Add the words typed into and onto a page to its words.

        :param quarter: rotation of the page's text in quarter turns.
        :returns: the (author, text) of the comments on the page.
        """
        self.strikes, self.stamps = [], []
        comments = []
        raw, box, size = self.raw, self.raw.FS_RECTF(), ctypes.c_float()
        for at in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_FIELDS)):
            annotation = raw.FPDFPage_GetAnnot(page, at)
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if kind in (_FREE_TEXT, _WIDGET) and not raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                text = self._value(annotation) if kind == _WIDGET else self._contents(annotation)
                if text.strip() and raw.FPDFAnnot_GetRect(annotation, ctypes.byref(box)):
                    low, high = sorted((box.bottom, box.top))
                    size.value = 0.0
                    if self.form and kind == _WIDGET:
                        raw.FPDFAnnot_GetFontSize(self.form, annotation, ctypes.byref(size))
                    _place(text, rotated_box((box.left, low, box.right, high), quarter), size.value, words)
            elif kind == _STRIKE_OUT and not raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                self.strikes += [rotated_box(place, quarter) for place in self._places(annotation)]
            elif kind == _STAMP and self._has_appearance(annotation):
                raw.FPDFAnnot_GetRect(annotation, ctypes.byref(box))
                low, high = sorted((box.bottom, box.top))
                self.stamps.append(rotated_box((box.left, low, box.right, high), quarter))
            if kind in _COMMENTED and not raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                said = self._contents(annotation)
                author = read_utf16(raw.FPDFAnnot_GetStringValue, annotation, b"T\0")
                comments += [(author, said)] if said.strip() else []
            raw.FPDFPage_CloseAnnot(annotation)
        return comments

    def _has_appearance(self, annotation: Any) -> bool:
        """Tell whether an annotation is seen as the file draws it."""
        seen = not self.raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN
        return seen and self.raw.FPDFAnnot_GetAP(annotation, 0, None, 0) > _EMPTY

    def flatten(self, page: Any) -> bool:
        """Make the stamps of a page part of its content, and remove its other annotations; tell whether that is done.

        The page must be loaded anew to show them.
        """
        raw = self.raw
        for at in reversed(range(raw.FPDFPage_GetAnnotCount(page))):
            annotation = raw.FPDFPage_GetAnnot(page, at)
            stays = raw.FPDFAnnot_GetSubtype(annotation) == _STAMP and self._has_appearance(annotation)
            raw.FPDFPage_CloseAnnot(annotation)
            if not stays and not raw.FPDFPage_RemoveAnnot(page, at):
                return False
        return bool(raw.FPDFPage_Flatten(page, 0) == _FLATTENED)

    def is_stamped(self, word: list[Any]) -> bool:
        """Tell whether a word of the page that was read last stands in a stamp."""
        x, y = (word[0] + word[1]) / 2, word[2] - 0.3 * word[3]
        return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in self.stamps)

    def _places(self, annotation: Any) -> Iterator[tuple[float, float, float, float]]:
        """Yield the boxes of the text that an annotation marks: left, bottom, right, top."""
        raw, corners = self.raw, (ctypes.c_float * 8)()
        for at in range(min(raw.FPDFAnnot_CountAttachmentPoints(annotation), _MAX_LINES)):
            if raw.FPDFAnnot_GetAttachmentPoints(annotation, at, corners):
                xs, ys = corners[::2], corners[1::2]
                yield (min(xs), min(ys), max(xs), max(ys))

    def _contents(self, annotation: Any) -> str:
        """Return the text of an annotation, which some programs write with tags only."""
        plain = read_utf16(self.raw.FPDFAnnot_GetStringValue, annotation, b"Contents\0")
        return plain or _TAG.sub(" ", read_utf16(self.raw.FPDFAnnot_GetStringValue, annotation, b"RC\0"))

    def _value(self, annotation: Any) -> str:
        """Return what a field shows; '' for buttons and passwords."""
        raw, form = self.raw, self.form
        kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else 0
        if kind in (_CHECK_BOX, _RADIO):
            state = read_utf16(raw.FPDFAnnot_GetStringValue, annotation, b"AS\0")
            return "☒" if state not in ("", "Off") or raw.FPDFAnnot_IsChecked(form, annotation) else "☐"
        if kind in (_COMBO, _LIST):
            count = min(raw.FPDFAnnot_GetOptionCount(form, annotation), _MAX_FIELDS)
            chosen = [at for at in range(count) if raw.FPDFAnnot_IsOptionSelected(form, annotation, at)]
            if chosen:
                return ", ".join(read_utf16(raw.FPDFAnnot_GetOptionLabel, form, annotation, at) for at in chosen)
        if kind in (_COMBO, _LIST, _TEXT) and not raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
            return read_utf16(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
        return ""


def _place(text: str, box: list[float], size: float, words: list[list[Any]]) -> None:
    """Insert a text into the words of a page, after the label on the line of its box."""
    left, top, right, bottom = box
    lines = text.splitlines()
    beside = [word for word in words if top < word[2] <= bottom + 1 and top < word[2] - 0.3 * word[3]]
    if not size:
        usual = beside[0][3] if beside else _USUAL
        size = max(min(usual, 0.8 * (bottom - top)), 4.0)
    several = len(lines) > 1 or bottom - top > 2.5 * size
    base = top + 1.1 * size if several else (top + bottom) / 2 + 0.35 * size
    label = min(beside, key=lambda word: abs(word[2] - base), default=None)
    if label is not None and abs(label[2] - base) < 0.8 * size:
        base = label[2]
    on_line = [(word[1], at) for at, word in enumerate(words) if abs(word[2] - base) < 0.3 * size and word[0] < left]
    at = max(on_line)[1] + 1 if on_line else len(words)
    words[at:at] = _words(lines, left + 2, base, right, size)


def _words(lines: list[str], left: float, base: float, right: float, size: float) -> Iterator[list[Any]]:
    """Yield the words of lines, which are wrapped at the right edge."""
    for line in lines:
        x = left
        for word in line.split():
            width = _WIDTH * size * len(word)
            if x > left and x + width > right:
                x, base = left, base + 1.2 * size
            yield [round(x, 2), round(x + width, 2), round(base, 2), round(size, 1), 0, 1, word]
            x += width + 0.3 * size
        base += 1.2 * size
