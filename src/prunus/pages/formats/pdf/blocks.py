"""Divide the flows of a PDF page into blocks: headings, paragraphs, list items, code, tables, captions."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .lines import PdfPiece, Word, is_marker, rows_of
from .reader import BOLD, ITALIC, MONO
from .tables import PdfTable, aligned_table

Kind = Literal["p", "h", "li", "pre", "table", "figure", "caption", "note", "comment"]

_LONG: Final = 220  # code points; limit for a heading
_CAPTION: Final = re.compile(
    r"(?:(?:supplementary |extended data )?(?:fig(?:ure|\.)?|table|tab\.|scheme|chart|abbildung|abb\.|tabelle|figura"
    r"|tableau|tabla|tabella))\s*(?:[A-Z]?\d+(?:[.\-]\d+)*|[IVX]+)\s*(?:[.:|—–]|$)",
    re.IGNORECASE,
)
_NOTE: Final = re.compile(r"(?:\d{1,3}|[*†‡§¶]|\[\d+\])(?=\D|$)")
_NUMBERED: Final = re.compile(
    r"(?:(?:chapter|section|part|appendix|kapitel)\s+)?(?:\d+(?:\.\d+)*\.?|[A-Z]\.|[IVX]+\.)\s"
)
_CODE: Final = re.compile(r"[_=<>{}|;]|\w\(")  # signs that headings in capitals lack, and code in capitals has
_TITLE: Final = 10  # words; limit for a heading in italics
_RUNNING: Final = 0.15  # share of a document's letters of which a size is running text
_RUNNING_LETTERS: Final = 400  # and their least number
_ENDS: Final = tuple('.!?:;"”’)]…。！？')


@dataclass(slots=True)
class PdfBlock:
    """A part of the document, in reading order.

    :param lines: words by line.
    :param x0: left edge of the text; of a list item, left edge of the marker.
    :param size: font size in points.
    :param level: heading level from the file's tags; 0 without tags.
    :param indent: distance of ``x0`` from the left edge of most lines of the column, in points.
    :param mark: bullet or number of a list item.
    :param alt: alt text of a figure.
    :param first: whether the block begins a column or a page.
    :param ends_early: whether the last line ends well before the right edge.
    """

    kind: Kind
    lines: list[list[Word]]
    page: int
    x0: float = 0.0
    size: float = 0.0
    bold: bool = False
    level: int = 0
    indent: float = 0.0
    mark: Word | None = None
    alt: str = ""
    table: PdfTable | None = None
    first: bool = False
    ends_early: bool = False

    @property
    def marker(self) -> str:
        """The bullet or number of a list item, or ''."""
        return self.mark.text if self.mark else ""

    @property
    def text(self) -> str:
        """The words with a space between any two; hyphens are not undone."""
        return " ".join(word.text for line in self.lines for word in line)


@dataclass(slots=True)
class PdfStyle:
    """The usual text size of a document in points, whether its usual text is bold, and other sizes of running text."""

    size: float = 10.0
    bold: bool = False
    others: frozenset[float] = frozenset()

    @classmethod
    def of(cls, words: Sequence[Word]) -> PdfStyle:
        """Return the size and weight of most letters, and the sizes of too many letters for headings."""
        sizes: Counter[tuple[float, bool]] = Counter()
        exact: Counter[float] = Counter()
        for word in words:
            sizes[round(word.size * 2) / 2, bool(word.flags & BOLD)] += len(word.text)
            exact[word.size] += len(word.text)
        (size, bold), _ = sizes.most_common(1)[0] if sizes else ((10.0, False), 0)
        least = max(_RUNNING * exact.total(), _RUNNING_LETTERS)
        return cls(size, bold, frozenset(value for value, letters in exact.items() if letters >= least))


def blocks_of(flow: Sequence[PdfPiece], style: PdfStyle, page: int, bottom: float) -> list[PdfBlock]:
    """Return the blocks of one flow.

    :param bottom: y below which small print counts as notes.
    """
    rows = rows_of(flow)
    shape = _Shape(rows)
    blocks: list[PdfBlock] = []
    at = 0
    previous: PdfPiece | None = None
    while at < len(rows):
        row = rows[at]
        if row[0].atom is not None:
            atom = row[0].atom
            is_table = isinstance(atom, PdfTable)
            block_of_atom = PdfBlock("table" if is_table else "figure", [], page, row[0].x0)
            block_of_atom.table, block_of_atom.alt = (atom, "") if is_table else (None, str(atom))
            blocks.append(block_of_atom)
            previous = None
            at += 1
            continue
        aligned = aligned_table(rows, at) if not _is_code(row) else None
        if aligned:
            blocks.append(PdfBlock("table", [], page, aligned[0].box[0], table=aligned[0]))
            previous, at = None, aligned[1]
            continue
        line = row[0] if len(row) == 1 else _join_pieces(row)
        after = next((below[0] for below in rows[at + 1 : at + 2] if below[0].atom is None), None)
        _add_line(blocks, line, previous, after, _Place(style, shape, page, bottom))
        previous = line
        at += 1
    for block in blocks:
        block.indent = block.x0 - shape.left
    blocks[0].first = True
    return blocks


class _Shape:
    """The left and right edge of the lines of a flow, and their usual distance (``leading``)."""

    def __init__(self, rows: Sequence[Sequence[PdfPiece]]) -> None:
        lines = [row for row in rows if row[0].atom is None]
        starts = sorted(row[0].x0 for row in lines)
        ends = sorted(row[-1].x1 for row in lines)
        # the 10 % outermost lines are ignored: hanging numbers and overlong lines
        self.left = starts[len(starts) // 10] if starts else 0.0
        self.right = ends[-1 - len(ends) // 10] if ends else 0.0
        gaps = Counter(
            round(lower[0].y - upper[0].y, 0)
            for upper, lower in itertools.pairwise(lines)
            if 0 < lower[0].y - upper[0].y < 2.5 * max(upper[0].size, 4)
        )
        self.leading = min(gaps.most_common(3), key=lambda item: (-item[1], item[0]))[0] if gaps else 0.0


@dataclass(slots=True)
class _Place:
    """The surroundings of a line: document style, shape of the flow, page number, start of the notes."""

    style: PdfStyle
    shape: _Shape
    page: int
    bottom: float


def _join_pieces(row: Sequence[PdfPiece]) -> PdfPiece:
    """Return the pieces of a line as one piece."""
    for piece in row[1:]:
        piece.words[0].space = True
    whole = PdfPiece([word for piece in row for word in piece.words])
    whole.leader = any(piece.leader for piece in row)
    return whole


def _add_line(
    blocks: list[PdfBlock], line: PdfPiece, before: PdfPiece | None, after: PdfPiece | None, place: _Place
) -> None:
    """Add a line to the latest block, or begin a new block with it."""
    while len(line.words) > 2 and _has_marker(line) and is_marker(line.words[1].text):
        line = PdfPiece(line.words[1:])  # an item that begins with a list; only the inner item is kept
    latest = blocks[-1] if blocks and before is not None else None
    gap = line.y - before.y if before is not None else 0.0
    marker = line.words[0].text if _has_marker(line) else ""
    kind = _kind(line, before, after, place, marker)
    if latest is not None and before is not None and _continues(latest, line, before, gap, kind, place):
        latest.lines.append(line.words)
        latest.ends_early = _ends_early(line, place)
        return
    bold = all(word.flags & BOLD for word in line.words)
    level = line.words[0].level
    block = PdfBlock(
        kind, [line.words], place.page, line.x0, line.size, bold, level, ends_early=_ends_early(line, place)
    )
    if kind == "li":
        block.mark = line.words[0]
        block.lines = [line.words[1:]]
    blocks.append(block)


def _has_marker(line: PdfPiece) -> bool:
    """Tell whether a line begins with a list marker and a gap after it."""
    words = line.words
    if len(words) < 2 or not is_marker(words[0].text) or not words[1].space:
        return False
    gap: float = words[1].x0 - words[0].x1
    if words[0].text[-1] in "-–—" and gap < 0.2 * line.size:
        return False
    return gap > 0.1 * line.size


def _kind(line: PdfPiece, before: PdfPiece | None, after: PdfPiece | None, place: _Place, marker: str) -> Kind:
    """Return the kind of block that a line would begin."""
    text = line.text
    if _is_heading(line, before, after, place, text):
        return "h"
    if _CAPTION.match(text):
        return "caption"
    small = line.size <= 0.93 * place.style.size  # footnotes are set at least 7 % smaller
    if small and line.y > place.bottom and _NOTE.match(text):
        return "note"
    if marker and not line.leader:
        return "li"
    return "pre" if _is_code([line]) else "p"


def _is_heading(line: PdfPiece, before: PdfPiece | None, after: PdfPiece | None, place: _Place, text: str) -> bool:
    """Tell whether a line is a heading, from the file's tags, its size, or its weight and the space above it."""
    if line.words[0].level:
        return True
    style = place.style
    letters = sum(letter.isalpha() for letter in text)
    if not letters or len(text) > _LONG or line.leader or _CAPTION.match(text):
        return False
    code = _is_code([line])
    if line.size >= 1.12 * style.size and line.size >= style.size + 0.8 and not code and line.size not in style.others:
        return len(text) > 1
    bold = all(word.flags & BOLD for word in line.words if word.text[0].isalnum())
    capitals = text.isupper() and letters >= 4 and not code and not _CODE.search(text)
    titled = not bold and _is_italic_title(line, after)
    if line.size < 0.95 * style.size or not ((bold and not style.bold) or capitals or titled):
        return False
    if len(text) > 120 or text.endswith((".", ",", ";")) or text[0].islower() or not text[0].isalnum():
        return False
    apart = before is None or line.y - before.y >= 1.2 * max(place.shape.leading, line.size)
    if after is not None and after.y - line.y < 1.6 * line.size and line.x1 > place.shape.right - line.size:
        return False  # a full line with more below it is emphasis in running text
    numbered = bool(_NUMBERED.match(text))
    if capitals and not bold:
        return apart and (numbered or before is None or line.y - before.y >= 1.35 * place.shape.leading)
    return apart or numbered


def _is_italic_title(line: PdfPiece, after: PdfPiece | None) -> bool:
    """Tell whether a line is in italics and the next is not, and most of its words begin with a capital."""
    words = [word for word in line.words if word.text[0].isalpha()]
    if after is None or not 1 < len(words) <= _TITLE or not all(word.flags & ITALIC for word in line.words):
        return False
    return not after.words[0].flags & ITALIC and sum(word.text[0].isupper() for word in words) > 0.6 * len(words)


def _continues(latest: PdfBlock, line: PdfPiece, before: PdfPiece, gap: float, kind: Kind, place: _Place) -> bool:
    """Tell whether a line continues the latest block."""
    em = max(line.size, 1.0)
    same_size = abs(line.size - latest.size) <= 0.12 * max(line.size, latest.size)
    if latest.kind == "h":
        level = line.words[0].level
        bold = all(word.flags & BOLD for word in line.words)
        one_line = gap < 1.5 * em and same_size and bold == latest.bold and level == latest.level
        return kind == "h" and one_line and not _NUMBERED.match(line.text) and len(latest.text) < _LONG
    if kind == "li" and not _is_wrapped(latest, line, before, gap, place):
        return False
    if kind in ("h", "caption", "note"):
        return False
    if latest.kind == "pre" or kind == "pre":
        return latest.kind == kind == "pre" and gap < 3.2 * em
    usual = max(place.shape.leading, 1.05 * em)
    if (gap > 1.3 * usual and gap > 1.25 * em) or (not same_size and abs(line.size - latest.size) > 0.9):
        return False
    if before.leader or line.leader:
        return False
    if latest.kind == "li":
        start = latest.lines[0][0].x0 if len(latest.lines) == 1 else latest.lines[1][0].x0
        hangs = line.x0 >= start - 0.5 * em
        return hangs or (line.x0 >= latest.x0 - 2.5 * em and len(latest.lines) == 1 and not latest.ends_early)
    if latest.kind in ("caption", "note"):
        return True
    indented = line.x0 > place.shape.left + 0.8 * em and before.x0 < line.x0 - 0.8 * em
    hanging = len(latest.lines) >= 2 and abs(latest.lines[-1][0].x0 - latest.lines[0][0].x0) > 0.8 * em
    if indented and (latest.ends_early or before.text.endswith(_ENDS)) and len(latest.lines) > 1:
        return False
    if hanging and before.x0 > line.x0 + 0.8 * em and abs(line.x0 - latest.x0) < 2:
        return False  # the next entry of a list with hanging indent
    return not (latest.ends_early and before.text.endswith(_ENDS))


def _is_wrapped(latest: PdfBlock, line: PdfPiece, before: PdfPiece, gap: float, place: _Place) -> bool:
    """Tell whether an apparent list marker is only a word of running text at the start of a line."""
    if latest.kind not in ("p", "li") or latest.ends_early or before.text.endswith((".", ":", ";", "?", "!")):
        return False
    beside = line.x0 > latest.x0 + 0.25 * line.size if latest.kind == "li" else True
    return beside and gap <= 1.2 * max(place.shape.leading, line.size) and abs(line.x0 - before.x0) < 0.4 * line.size


def _ends_early(line: PdfPiece, place: _Place) -> bool:
    """Tell whether a line ends well before the right edge, as the last line of a paragraph does."""
    width = place.shape.right - place.shape.left
    return line.x1 < place.shape.right - max(0.12 * width, 2 * line.size)


def _is_code(row: Sequence[PdfPiece]) -> bool:
    """Tell whether a line is set in a monospaced font."""
    words = [word for piece in row for word in piece.words]
    return bool(words) and all(word.flags & MONO for word in words)
