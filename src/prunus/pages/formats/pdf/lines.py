"""Select the visible words of a PDF page, and join them to pieces of lines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final

from .reader import INVISIBLE, LEVEL, SYMBOL, WHITE

TINY: Final = 2.0
"""Points. Nobody reads smaller letters, but hidden instructions have used them, so they are left out."""

_JUMP: Final = 0.95  # em; widest gap between words of one piece of a line
_STITCH: Final = 0.6  # em; widest gap between pieces that are not adjacent in the file
BULLETS: Final = "•‣◦▪▫●○■□◆◇▶►–—∙·⁃*‐-\uf0b7\uf0a7\uf0d8\uf0fc\uf076\uf06e\u2713\u2714\u27a2\u25b8"
_MARKER: Final = re.compile(rf"(?:[{re.escape(BULLETS)}]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivxIVX]{{1,5}})[.)]|\[\d{{1,3}}\])$")
_LEADER: Final = re.compile(r"(?<![.·…_])[.·…_]{4,}+$")


class Word:
    """Adjacent letters without a space, in one style. ``order`` is the position in the file."""

    __slots__ = ("flags", "href", "level", "order", "page", "size", "space", "text", "x0", "x1", "y")

    def __init__(self, raw: Sequence[Any], order: int, page: int) -> None:
        self.x0, self.x1, self.y, self.size, flags, space, self.text = raw
        self.flags = flags % LEVEL
        self.level = flags // LEVEL
        self.space = bool(space)
        self.order = order
        self.page = page
        self.href = ""
        if self.flags & SYMBOL and len(self.text) == 1:
            self.text = "•"


class PdfPiece:
    """A piece of a line: adjacent words, or an ``atom`` (a table or an alt text) that is laid out as a whole.

    :param box: [x0, top, x1, bottom] of an atom.
    """

    __slots__ = ("atom", "bottom", "leader", "size", "top", "words", "x0", "x1", "y")

    def __init__(self, words: list[Word], atom: Any = None, box: Sequence[float] = ()) -> None:
        self.words = words
        self.atom = atom
        self.leader = False
        if box:
            self.x0, self.top, self.x1, self.bottom = box
            self.y, self.size = self.bottom, 0.0
            return
        main = max(words, key=lambda word: (word.size, len(word.text)))
        self.x0 = min(word.x0 for word in words)
        self.x1 = max(word.x1 for word in words)
        self.y, self.size = main.y, main.size
        self.top, self.bottom = self.y - 0.8 * self.size, self.y + 0.22 * self.size

    @property
    def text(self) -> str:
        """The words, with their spaces."""
        return "".join((" " if word.space and at else "") + word.text for at, word in enumerate(self.words))


class PageWords:
    """The visible content of one page, before layout.

    :param raw: content of the page, as :meth:`.reader.PdfReader.page` returns it.
    """

    __slots__ = ("alts", "box", "fills", "images", "number", "rules", "turned", "words")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.number: int = raw["page"]
        self.box: list[float] = raw.get("box") or [0.0, 0.0, 0.0, 0.0]
        self.rules: list[list[float]] = raw.get("rules", [])
        self.fills: list[list[float]] = raw.get("fills", [])
        self.images: list[list[Any]] = raw.get("images", [])
        self.alts: list[str] = raw.get("alts", [])
        words = [Word(entry, order, self.number) for order, entry in enumerate(raw.get("words", []))]
        self.words = self._visible(words)
        _add_drawn_bullets(self.words, raw.get("dots", []))
        _set_links(self.words, raw.get("links", []))
        self.turned = [
            [word for order, entry in enumerate(group) if self._readable(word := Word(entry, order, self.number))]
            for group in raw.get("turned", [])
        ]

    @property
    def height(self) -> float:
        """Height of the page in points."""
        return self.box[3] - self.box[1]

    def _readable(self, word: Word) -> bool:
        return word.size >= TINY and not word.flags & (INVISIBLE | WHITE)

    def _visible(self, words: list[Word]) -> list[Word]:
        """Return the words that a reader of the page can see.

        Invisible text is kept where a page has pictures and all its text is invisible: it is the OCR of a scan.
        """
        x0, y0, x1, y1 = self.box
        backgrounds = Boxes([*self.fills, *self.images])
        scanned = bool(self.images) and all(word.flags & INVISIBLE for word in words)
        visible = []
        for word in words:
            x, y = (word.x0 + word.x1) / 2, word.y - 0.3 * word.size  # about the middle of the letters
            if not (x0 - 1 <= x <= x1 + 1 and y0 - 1 <= y <= y1 + 1) or word.size < TINY:
                continue
            if word.flags & INVISIBLE and not scanned:
                continue
            if word.flags & WHITE and not scanned and backgrounds.at(x, y) is None:
                continue
            visible.append(word)
        return visible


class Boxes:
    """An index of boxes by horizontal bands, for fast lookup of the box at a point."""

    _BAND: Final = 20.0  # points
    _TALL: Final = 200  # bands that one box is entered into; a bound for hostile boxes

    def __init__(self, boxes: Iterable[Sequence[Any]]) -> None:
        self.bands: dict[int, list[Sequence[Any]]] = {}
        for box in boxes:
            first = int(box[1] // self._BAND)
            for band in range(first, min(int(box[3] // self._BAND), first + self._TALL) + 1):
                held = self.bands.setdefault(band, [])
                if len(held) < 100:  # a hundred overlapping boxes are a drawing
                    held.append(box)

    def at(self, x: float, y: float) -> Sequence[Any] | None:
        """Return a box that contains a point, or None."""
        for box in self.bands.get(int(y // self._BAND), ()):
            if box[0] - 1 <= x <= box[2] + 1 and box[1] - 1 <= y <= box[3] + 1:
                return box
        return None


def _add_drawn_bullets(words: list[Word], dots: Sequence[Sequence[float]]) -> None:
    """Add a bullet before each line that follows a drawn dot: browsers draw list bullets when they print to PDF."""
    if not dots or len(dots) >= 400:
        return
    lines = sorted(words, key=lambda word: word.y)
    heights = [word.y for word in lines]
    bullets: dict[int, Word] = {}
    for x0, y0, x1, y1 in dots:
        middle = (y0 + y1) / 2
        beside = [
            word
            for word in lines[bisect_left(heights, middle) : bisect_right(heights, middle + 20)]
            if word.y - 0.75 * word.size < middle and max(x1 - x0, y1 - y0) < 0.7 * word.size
        ]
        after = min((word for word in beside if word.x0 >= x1 - 1), key=lambda word: word.x0, default=None)
        close_before = any(x0 - 2 * word.size < word.x1 <= x0 + 1 for word in beside)
        if after is None or close_before or after.x0 - x1 > 2.5 * after.size or x1 - x0 < 0.15 * after.size:
            continue
        bullet = Word([x0, x1, after.y, after.size, after.flags, 1, "•"], after.order, after.page)
        after.space = True
        bullets[id(after)] = bullet
    words[:] = [entry for word in words for entry in (bullets.get(id(word)), word) if entry is not None]


def _set_links(words: Iterable[Word], links: Sequence[Sequence[Any]]) -> None:
    """Set the URL of the words under each link."""
    boxes = Boxes(links)
    for word in words if links else ():
        under = boxes.at((word.x0 + word.x1) / 2, word.y - 0.3 * word.size)
        word.href = under[4] if under else ""


def group_words(words: Sequence[Word]) -> list[PdfPiece]:
    """Group words into pieces of lines: first words adjacent in the file, then pieces that touch on the same line."""
    groups: list[list[Word]] = []
    for word in words:
        if groups:
            last = groups[-1][-1]
            em = max(word.size, last.size)
            gap = word.x0 - last.x1
            if abs(word.y - last.y) < 0.45 * em and -0.5 * em < gap < (_JUMP if word.space else 0.5) * em:
                groups[-1].append(word)
                continue
        groups.append([word])
    unjoined = [PdfPiece(group) for group in groups]
    _level_bullets(unjoined)
    stitched = _stitch(unjoined)
    for piece in stitched:
        _drop_leader(piece)
    return [piece for piece in stitched if piece.words]


def rows_of(pieces: Iterable[PdfPiece]) -> list[list[PdfPiece]]:
    """Group pieces by line, from the top; each line is sorted from the left."""
    rows: list[list[PdfPiece]] = []
    for piece in sorted(pieces, key=lambda piece: (piece.y, piece.x0)):
        is_alone = piece.atom is not None or (rows and rows[-1][0].atom is not None)
        if rows and not is_alone and abs(piece.y - rows[-1][0].y) <= 0.3 * min(piece.size or 4, rows[-1][0].size or 4):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    for row in rows:
        row.sort(key=lambda piece: piece.x0)
    return rows


def is_marker(text: str) -> bool:
    """Tell whether a text is a list marker: a bullet, a number, a letter."""
    return bool(_MARKER.match(text))


def _level_bullets(pieces: Sequence[PdfPiece]) -> None:
    """Move bullets that are slightly above or below their line onto that line."""
    bullets = [piece for piece in pieces if len(piece.words) == 1 and piece.text in BULLETS]
    others = sorted((piece for piece in pieces if piece.text not in BULLETS), key=lambda piece: piece.y)
    heights = [piece.y for piece in others]
    for bullet in bullets[:400]:  # a bound for hostile pages
        reach = 0.5 * bullet.size
        beside = others[bisect_left(heights, bullet.y - reach) : bisect_right(heights, bullet.y + reach)]
        after = [piece for piece in beside if 0 < piece.x0 - bullet.x1 < 5 * bullet.size]
        if after:
            line = min(after, key=lambda piece: piece.x0)
            bullet.y = bullet.words[0].y = line.y
            bullet.size = bullet.words[0].size = line.size


def _stitch(pieces: list[PdfPiece]) -> list[PdfPiece]:
    """Join pieces that touch on the same line, and list markers with the text of their item."""
    stitched = []
    for row in rows_of(pieces):
        current = row[0]
        for piece in row[1:]:
            em = max(min(piece.size, current.size), 1.0)
            gap = piece.x0 - current.x1
            reach = 4.0 if is_marker(current.text) else _STITCH
            if -0.5 * em < gap < reach * em:
                first = piece.words[0]
                first.space = first.space if first.order == current.words[-1].order + 1 else gap > 0.12 * em
                first.space = first.space or reach > 1
                current = PdfPiece([*current.words, *piece.words])
            else:
                stitched.append(current)
                current = piece
        stitched.append(current)
    return stitched


def _drop_leader(piece: PdfPiece) -> None:
    """Remove the leader dots between an entry of a table of contents and its page number."""
    words = piece.words
    kept: list[Word] = []
    at = 0
    while at < len(words):
        stop = at
        while stop < len(words) and set(words[stop].text) <= {".", "·", "_"}:
            stop += 1
        if sum(len(word.text) for word in words[at:stop]) >= 4:
            piece.leader = True
            at = stop
            continue
        if _LEADER.search(words[at].text):
            words[at].text = _LEADER.sub("", words[at].text)
            piece.leader = True
        kept.append(words[at])
        at += 1
    if piece.leader:
        for word in kept[1:]:
            word.space = True
        piece.words = kept
