"""The parts of an Excel workbook: its sheets, shared strings, styles and cells (ECMA-376, part 1, chapter 18)."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from ....core.text.numbers import bounded_float, bounded_int
from .._common.allowance import Allowance
from .._common.symbols import is_symbol_font, symbols
from .._common.xml import whole_number
from .numbers import BUILT_IN, Code, plain
from .regions import Place, Sheet, unsaved_formulas
from .rich import CellLook, RunCollector, Runs, is_on, rich_markup

_REFERENCE: Final = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
_ESCAPE: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MAX_COLUMNS: Final = 16_384  # the limits of Excel
_MAX_ROWS: Final = 1_048_576
_MAX_SPANS: Final = 50_000  # merges, filters and links of a sheet, each
_MAX_TABLES: Final = 500  # declared tables of a sheet that are read
_MAX_STYLES: Final = 70_000
_MAX_HIDDEN: Final = 4 << 20  # letters of hidden cells that are kept
_TEXTS: Final = ("s", "str", "inlineStr")  # types of cells with text
_LONG: Final = 32_768  # characters of a cell; Excel itself stops at 32,767


class _TextListener:
    """Base of the listeners: collects the text between elements, as far as a cell shows it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Enter an element; by default do nothing."""

    def end(self, name: str) -> None:
        """Leave an element; by default do nothing."""

    def data(self, text: str) -> None:
        """Collect text."""
        if self._size < _LONG:
            self._pieces.append(text)
            self._size += len(text)

    def take(self) -> str:
        """Return the text since the last call."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return text


class Book(_TextListener):
    """The sheets in order, as (title, relation id, whether hidden), and the epoch of dates.

    A sheet that no menu shows (``veryHidden``) is left out.
    """

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance
        self.sheets: list[tuple[str, str, bool]] = []
        self.epoch_1904 = False

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Record the epoch, or a sheet."""
        if name == "workbookPr":
            self.epoch_1904 = attrs.get("date1904", "0") in ("1", "true")
        elif name == "sheet" and attrs.get("state", "visible") in ("visible", "hidden"):
            self._allowance.spend("sheets")
            self.sheets.append((attrs.get("name", ""), attrs.get("id", ""), attrs.get("state") == "hidden"))


class SharedTexts(_TextListener):
    """The shared strings, without phonetic readings; ``rich`` holds the parts of those with a look of their own."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self.found: list[str] = []
        self.rich: dict[int, Runs] = {}
        self._allowance = allowance
        self._parts = RunCollector()
        self._phonetic = False

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Begin a string, a phonetic reading or a run. Text between elements is dropped."""
        if name == "si":
            self._parts.clear()
        elif name == "rPh":
            self._phonetic = True
        elif name == "t":
            self.take()
        else:
            self._parts.start(name, attrs)

    def end(self, name: str) -> None:
        """Record a run, or a whole string."""
        if name == "t" and not self._phonetic:
            self._parts.add(self.take())
        elif name == "rPh":
            self._phonetic = False
        elif name == "si":
            runs = self._parts.runs
            text = decode_escapes("".join(part for part, _ in runs))[:_LONG]
            self._allowance.spend("shared_letters", len(text) + 1)
            if len(text) < _LONG and any(look is not None for _, look in runs):
                self.rich[len(self.found)] = [(decode_escapes(part), look) for part, look in runs]
            self.found.append(text)


class CellStyles(_TextListener):
    """The number format and the look of each cell style."""

    def __init__(self, epoch_1904: bool) -> None:
        super().__init__()
        self._epoch_1904 = epoch_1904
        self._codes: dict[int, str] = dict(BUILT_IN)
        self._formats: list[int] = []
        self._fonts: list[int] = []  # of the cell styles
        self._struck: set[int] = set()  # fonts
        self._symbols: dict[int, str] = {}  # fonts whose letters are signs, and their names
        self._font = -1
        self._list = ""  # the list that is read
        self._made: dict[int, Code | None] = {}

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Record a format code, or the format id of a cell style."""
        if name == "numFmt" and len(self._codes) < _MAX_STYLES:
            self._codes[whole_number(attrs.get("numFmtId"))] = attrs.get("formatCode", "")
        elif name in ("cellXfs", "fonts"):
            self._list = name
        elif name == "font" and self._list == "fonts":
            self._font += 1
        elif name == "strike" and self._list == "fonts" and is_on(attrs) and self._font < _MAX_STYLES:
            self._struck.add(self._font)
        elif name == "name" and self._list == "fonts" and self._font < _MAX_STYLES:
            if is_symbol_font(attrs.get("val", "")):
                self._symbols[self._font] = attrs["val"]
        elif name == "xf" and self._list == "cellXfs" and len(self._formats) < _MAX_STYLES:
            self._formats.append(whole_number(attrs.get("numFmtId")))
            self._fonts.append(whole_number(attrs.get("fontId")))

    def end(self, name: str) -> None:
        """Leave the list of cell styles or fonts."""
        if name == self._list:
            self._list = ""

    def look(self, style: int) -> CellLook:
        """Return how the words of a cell of this style look."""
        return CellLook(struck=0 <= style < len(self._fonts) and self._fonts[style] in self._struck)

    def in_signs(self, text: str, style: int) -> str:
        """Return a text as a cell of this style shows it if its font has signs for letters; else unchanged."""
        font = self._symbols.get(self._fonts[style]) if self._symbols and 0 <= style < len(self._fonts) else None
        return text if font is None else symbols(font, text)

    def format_number(self, number: float, style: int) -> str:
        """Return a number as a cell of this style shows it."""
        parsed = self._code(style)
        return parsed.format_number(number) if parsed else plain(number)

    def format_text(self, text: str, style: int) -> str:
        """Return a text as a cell of this style shows it."""
        parsed = self._code(style)
        return parsed.format_text(text) if parsed else text

    def _code(self, style: int) -> Code | None:
        """Return the number format of a style; None for General."""
        format_id = self._formats[style] if 0 <= style < len(self._formats) else 0
        if format_id not in self._made:
            code = self._codes.get(format_id, "")
            self._made[format_id] = Code(code, self._epoch_1904) if code and code != "General" else None
        return self._made[format_id]


class DeclaredTable(_TextListener):
    """The place ranges of declared tables that have a header row."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Place, Place]] = []

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Record the range of the table."""
        if name == "table" and attrs.get("headerRowCount", "1") != "0" and len(self.found) < _MAX_TABLES:
            span = range_of(attrs.get("ref", ""))
            self.found += [span] if span else []


class Comments(_TextListener):
    """The comments on a sheet as (cell, author, text), of one part: threads of comments, or comments of before."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance
        self.found: list[tuple[str, str, str]] = []
        self._authors: list[str] = []
        self._cell = self._author = ""

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Begin a comment, or drop the text between elements."""
        if name in ("comment", "threadedComment"):
            self._cell = attrs.get("ref", "") if place_of(attrs.get("ref", "")) else ""
            number = whole_number(attrs.get("authorId"), -1)
            self._author = self._authors[number] if 0 <= number < len(self._authors) else ""
        if name in ("author", "comment", "threadedComment", "text"):
            self.take()

    def end(self, name: str) -> None:
        """Record an author or a comment."""
        if name == "author":
            self._allowance.spend("items")
            self._authors.append(decode_escapes(self.take())[:100])
        elif name in ("comment", "threadedComment"):
            text = decode_escapes(self.take())
            if self._cell and self._allowance.take("letters", len(text) + len(self._author)):
                self.found.append((self._cell, self._author, text))


class Cells(_TextListener):
    """The cells of a sheet, and its hidden rows and columns."""

    def __init__(self, texts: SharedTexts, styles: CellStyles, allowance: Allowance) -> None:
        super().__init__()
        self._texts, self._styles, self._allowance = texts, styles, allowance
        self._parts = RunCollector()  # of a text inside a cell
        self._markup: dict[Place, str] = {}
        self._unseen: dict[Place, tuple[str, str]] = {}  # text and HTML of hidden cells, which may be merged
        self._hidden_letters = 0
        self.filters: list[tuple[Place, Place]] = []
        self.link_ids: dict[Place, str] = {}
        self.targets: dict[Place, str] = {}
        self.comments: list[tuple[str, str, str]] = []
        self._found: dict[Place, str] = {}
        self._spans: list[tuple[Place, Place]] = []
        self._hidden_rows: set[int] = set()
        self._hidden_columns: set[int] = set()
        self._row, self._column = -1, -1
        self._kind = self._value = ""
        self._style = 0
        self._is_computed = False  # the cell has a formula
        self._unsaved = 0  # visible formulas without a value
        self.cut_at = -1
        self._phonetic = False

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Enter a row or a cell, or record a range: hidden columns, a merge, a filter, a link."""
        if name == "c":
            self._row = max(0, self._row)  # a cell may stand in no row
            place = place_of(attrs.get("r", "")) or (self._row, self._column + 1)
            self._column = place[1]
            self._kind, self._style, self._value = attrs.get("t", "n"), whole_number(attrs.get("s")), ""
            self._is_computed = False
            self._parts.clear()
        elif name in ("v", "t"):
            self.take()
        elif name == "rPh":
            self._phonetic = True
        elif name == "f":
            self._is_computed = True
        elif name == "row":
            self._row = (whole_number(attrs.get("r")) or self._row + 2) - 1  # rows count from 1
            self._column = -1
            if attrs.get("hidden") in ("1", "true") and self._row < _MAX_ROWS:
                self._hidden_rows.add(self._row)
        elif name == "col" and attrs.get("hidden") in ("1", "true"):
            first, last = whole_number(attrs.get("min"), 1), whole_number(attrs.get("max"), 1)
            self._hidden_columns.update(range(max(first, 1) - 1, min(last, _MAX_COLUMNS)))
        elif name in ("mergeCell", "autoFilter"):
            span = range_of(attrs.get("ref", ""))
            kept = self._spans if name == "mergeCell" else self.filters
            if span and len(kept) < _MAX_SPANS:
                kept.append(span)
        elif name == "hyperlink":
            start = place_of(attrs.get("ref", "").partition(":")[0])
            if start and attrs.get("id") and len(self.link_ids) < _MAX_SPANS:
                self.link_ids[start] = attrs["id"]
        else:
            self._parts.start(name, attrs)

    def end(self, name: str) -> None:
        """Record the text of a cell."""
        if name == "v" or (name == "t" and not self._phonetic):
            text = self.take()
            self._value += text if len(self._value) < _LONG else ""
            if name == "t":
                self._parts.add(decode_escapes(text))
        elif name == "rPh":
            self._phonetic = False
        elif name == "c" and (self._value or self._is_computed):
            stated = self._cell_text(self._value) if self._value else ""
            text = self._styles.format_text(stated, self._style) if self._kind in _TEXTS else stated
            if all(look is None for _, look in self._runs(stated)):
                text = self._styles.in_signs(text, self._style)
            place = (self._row, self._column)
            visible = self._row not in self._hidden_rows and self._column not in self._hidden_columns
            self._unsaved += visible and not self._value and self._kind != "str"  # a formula may give an empty text
            if visible and text.strip() and self.cut_at < 0 and 0 <= self._column < _MAX_COLUMNS:
                markup = self._markup_of(text, stated)
                if self._allowance.take("letters", len(markup or text)) and self._allowance.take("cells"):
                    self._found[place] = text
                    if markup:
                        self._markup[place] = markup
                else:
                    self.cut_at = self._row
            elif not visible and text.strip() and self.cut_at < 0 and self._hidden_letters < _MAX_HIDDEN:
                self._hidden_letters += len(text) + 100
                self._unseen[place] = (text, self._markup_of(text, stated))

    def _markup_of(self, text: str, stated: str) -> str:
        """Return the HTML of a text with a look; '' for none. A format that changes the text hides its parts."""
        return rich_markup(text, self._runs(text) if text == stated else (), self._styles.look(self._style))

    def _runs(self, text: str) -> Runs:
        """Return the parts of the text of a cell that have a look of their own; none for a text that was cut."""
        if self._kind == "s":
            return self._texts.rich.get(whole_number(self._value, -1), ())
        return self._parts.runs if self._kind == "inlineStr" and len(text) < _LONG else ()

    def _cell_text(self, text: str) -> str:
        """Return the text of a cell from its raw value and its type."""
        kind = self._kind
        if kind == "s":
            number = whole_number(text, -1)
            return self._texts.found[number] if 0 <= number < len(self._texts.found) else ""
        if kind == "b":
            return "TRUE" if text.strip() in ("1", "true") else "FALSE"
        if kind in ("str", "inlineStr"):
            return decode_escapes(text)[:_LONG]
        if kind == "n":
            stated = bounded_float(text, None, least=-math.inf)
            return text[:_LONG] if stated is None else self._styles.format_number(stated, self._style)
        return text[:_LONG]  # an error value, or an ISO 8601 date

    def to_sheet(self, name: str, headers: Iterable[tuple[Place, Place]]) -> Sheet:
        """Return the sheet with the visible rows and columns renumbered.

        :param headers: ranges whose first row is a header.
        """
        hidden_rows, hidden_columns = sorted(self._hidden_rows), sorted(self._hidden_columns)
        self._show_merged(hidden_rows, hidden_columns)
        spans = self._visible_spans(hidden_rows, hidden_columns)
        rows = _renumbered({row for row, _ in self._found}, hidden_rows)
        columns = _renumbered({column for _, column in self._found}, hidden_columns)
        sheet = Sheet(name, numbers={shown: row + 1 for row, shown in rows.items()})
        for said in self.comments:
            row, column = place_of(said[0]) or (0, 0)
            if row not in self._hidden_rows and column not in self._hidden_columns:
                sheet.comments.append(said)
        sheet.cells = {(rows[row], columns[column]): text for (row, column), text in self._found.items()}
        sheet.markup = {(rows[row], columns[column]): markup for (row, column), markup in self._markup.items()}
        for (row, column), size in spans:
            sheet.spans[rows[row], columns[column]] = size
        for place, target in self.targets.items():
            if place in self._found:
                sheet.links[rows[place[0]], columns[place[1]]] = target
        ranges = [(row, left, right) for (row, left), (_, right) in islice(headers, _MAX_TABLES)]
        in_row: dict[int, list[int]] = {row: [] for row, _, _ in ranges}
        for row, column in self._found:
            if row in in_row:
                in_row[row].append(column)
        for row, left, right in ranges:
            if self._allowance.take("looks", len(in_row[row])):
                named = (column for column in in_row[row] if left <= column <= right)
                sheet.headers.update((rows[row], columns[column]) for column in named)
        if self._unsaved:
            sheet.notes.append(unsaved_formulas(self._unsaved))
        if self.cut_at >= 0:
            sheet.notes.append(f"The sheet is cut at row {self.cut_at + 1:,}: the limit of cells is reached.")
        return sheet

    def _show_merged(self, hidden_rows: Sequence[int], hidden_columns: Sequence[int]) -> None:
        """Move the text of a merged cell, whose first row or column is hidden, to its first visible place."""
        for number, ((top, left), (bottom, right)) in enumerate(self._spans):
            if (top, left) not in self._unseen:
                continue
            row, column = _first_visible(top, hidden_rows), _first_visible(left, hidden_columns)
            text, markup = self._unseen[top, left]
            if row > bottom or column > right or (row, column) in self._found:
                continue
            if self._allowance.take("letters", len(markup or text)) and self._allowance.take("cells"):
                self._spans[number] = ((row, column), (bottom, right))
                self._found[row, column] = text
                if markup:
                    self._markup[row, column] = markup

    def _visible_spans(self, hidden_rows: Sequence[int], hidden_columns: Sequence[int]) -> list[tuple[Place, Place]]:
        """Return the merged cells with text: their first place, and their visible (rows, columns)."""
        visible: list[tuple[Place, Place]] = []
        for (top, left), (bottom, right) in self._spans:
            if (top, left) not in self._found:
                continue
            down = bottom + 1 - top - bisect_right(hidden_rows, bottom) + bisect_left(hidden_rows, top)
            across = right + 1 - left - bisect_right(hidden_columns, right) + bisect_left(hidden_columns, left)
            if down * across > 1:
                visible.append(((top, left), (down, across)))
        return visible


def _first_visible(number: int, hidden: Sequence[int]) -> int:
    """Return the first number from ``number`` that is not hidden.

    :param hidden: sorted numbers.
    """
    first = bisect_left(hidden, number)
    if first == len(hidden) or hidden[first] != number:
        return number
    # in a row of numbers without a gap, each stands as far from its position as the first does
    places = range(first, len(hidden))
    return number + bisect_right(places, hidden[first] - first, key=lambda at: hidden[at] - at)


def _renumbered(numbers: Iterable[int], hidden: Sequence[int]) -> dict[int, int]:
    """Map row or column numbers to their numbers without the hidden rows or columns.

    :param hidden: sorted numbers.
    """
    moved: dict[int, int] = {}
    position = 0
    for number in sorted(numbers):
        while position < len(hidden) and hidden[position] < number:
            position += 1
        moved[number] = number - position
    return moved


def place_of(reference: str) -> Place | None:
    """Return (row, column) from 0 of a cell reference such as B12, or None where the text is no reference."""
    match = _REFERENCE.fullmatch(reference)
    if not match:
        return None
    column = 0
    for letter in match[1].upper():
        column = column * 26 + ord(letter) - 64
    row = bounded_int(match[2], 0, most=10**7) - 1
    return (row, column - 1) if row >= 0 and column <= _MAX_COLUMNS else None


def range_of(reference: str) -> tuple[Place, Place] | None:
    """Return the first and last place of a range such as B2:D9, or None where the text is no range."""
    first, _, last = reference.partition(":")
    top, bottom = place_of(first), place_of(last or first)
    if not top or not bottom or bottom[0] < top[0] or bottom[1] < top[1]:
        return None
    return top, bottom


def decode_escapes(text: str) -> str:
    """Decode the escapes of characters that XML cannot hold, such as ``_x000D_``."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(_decoded, text)


def _decoded(escape: re.Match[str]) -> str:
    """Return the character of an escape; '' for a surrogate."""
    code = bounded_int(escape[1], 0, most=0xFFFF, base=16)
    return "" if 0xD800 <= code < 0xE000 else chr(code)
