"""Join the words of a PDF page to pieces of lines, each in its direction of reading."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from .reader import LEVEL, SYMBOL
from .rtl import is_backwards

_JUMP: Final = 0.95  # em; widest gap between words of one piece of a line
_STITCH: Final = 0.6  # em; widest gap between pieces that are not adjacent in the file
_SPACED: Final = 5  # letters that stand apart, at least, to be words
BULLETS: Final = "•‣◦▪▫●○■□◆◇▶►–—∙·⁃*‐-\uf0b7\uf0a7\uf0d8\uf0fc\uf076\uf06e\u2713\u2714\u27a2\u25b8"
_SIGNS: Final = frozenset("✓✔✕✖✗✘☐☑☒☎★☆①②③④⑤⑥⑦⑧⑨⑩❶❷❸❹❺❻❼❽❾❿➀➁➂➃➄➅➆➇➈➉➊➋➌➍➎➏➐➑➒➓")
"""Letters of symbol fonts that say something; the others are bullets."""

_MARKER: Final = re.compile(rf"(?:[{re.escape(BULLETS)}]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivxIVX]{{1,5}})[.)]|\[\d{{1,3}}\])$")
_CELLS: Final = "-‐–—("
_AMOUNT: Final = re.compile(r"[$€£¥(\s]*+(?:\d[\d.,]*|[-‐–—]?)[\s)%]*+")
_LEADER: Final = re.compile(r"(?<![.·…_])[.·…_]{4,}+$")


class Word:
    """Adjacent letters without a space, in one style. ``order`` is the position in the file.

    ``script`` is ``sup`` or ``sub`` where the word stood off its line, and ``y`` is that of the line.
    """

    __slots__ = (
        "flags",
        "href",
        "level",
        "order",
        "page",
        "script",
        "size",
        "space",
        "struck",
        "text",
        "x0",
        "x1",
        "y",
    )

    def __init__(self, raw: Sequence[Any], order: int, page: int) -> None:
        self.x0, self.x1, self.y, self.size, flags, space, self.text = raw
        self.flags = flags % LEVEL
        self.level = flags // LEVEL
        self.space = bool(space)
        self.order = order
        self.page = page
        self.href = self.script = ""
        self.struck = False
        if self.flags & SYMBOL and len(self.text) == 1 and self.text not in _SIGNS:
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
        # a bullet may be larger than its text
        main = max(
            [word for word in words if word.text not in BULLETS] or words, key=lambda word: (word.size, len(word.text))
        )
        self.x0 = min(word.x0 for word in words)
        self.x1 = max(word.x1 for word in words)
        self.y, self.size = main.y, main.size
        self.top, self.bottom = self.y - 0.8 * self.size, self.y + 0.22 * self.size

    @property
    def text(self) -> str:
        """The words, with their spaces."""
        return "".join((" " if word.space and at else "") + word.text for at, word in enumerate(self.words))


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


def join_spaced(words: Sequence[Word]) -> list[Word]:
    """Return words with those joined whose letters stand apart, as in A N N U A L   R E P O R T."""
    joined: list[Word] = []
    at = 0
    while at < len(words):
        stop = at + 1
        while stop < len(words) and _is_next_letter(words[stop - 1], words[stop]):
            stop += 1
        letters = words[at:stop]
        at = stop
        text = "".join(word.text for word in letters).lower()
        steps = {ord(right) - ord(left) for left, right in pairwise(text)}
        if len(letters) < _SPACED or steps == {1}:  # few letters are names, and the letters of the alphabet an index
            joined += letters
            continue
        gaps = [right.x0 - left.x1 for left, right in pairwise(letters)]
        usual = sorted(gaps)[len(gaps) // 2]
        if sum(abs(gap - usual) < 0.05 * usual for gap in gaps) < 0.6 * len(gaps):  # letters at equal steps
            gaps = [right.x0 - left.x0 for left, right in pairwise(letters)]
            usual = sorted(gaps)[len(gaps) // 2]
        joined.append(letters[0])
        for gap, word in zip(gaps, letters[1:], strict=True):
            if gap > 1.6 * usual:
                joined.append(word)
            else:
                joined[-1].text += word.text
                joined[-1].x1 = word.x1
    return joined


def _is_next_letter(before: Word, word: Word) -> bool:
    """Tell whether two words are single letters of one line and style, with a gap as between spaced letters."""
    if len(before.text) + len(word.text) != 2 or not (before.text + word.text).isalpha() or before.flags != word.flags:
        return False
    level = abs(before.y - word.y) < 0.1 * word.size and before.size == word.size
    return level and bool(0.05 * word.size < word.x0 - before.x1 < 1.5 * word.size)


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
            # a dash or (105) before a number is a cell of a table
            is_item = is_marker(current.text) and not (current.text[0] in _CELLS and _AMOUNT.fullmatch(piece.text))
            reach = 4.0 if is_item else _STITCH
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


def directions(texts: Iterable[str]) -> tuple[bool, bool]:
    """Tell whether any text runs right to left, and whether most letters do."""
    backwards = forwards = 0
    for text in texts:
        if is_backwards(text):
            backwards += len(text)
        elif text[0].isalpha():
            forwards += len(text)
    return backwards > 0, backwards > forwards


def by_place(words: Sequence[Word]) -> list[Word]:
    """Return words with those of each line sorted from the left; one of two scripts stands in the opposite order."""
    sorted_words: list[Word] = []
    at = 0
    while at < len(words):
        stop = at + 1
        while stop < len(words) and abs(words[stop].y - words[at].y) < 0.3 * words[at].size:
            stop += 1
        line = sorted(words[at:stop], key=lambda word: word.x0)
        spaces = [_is_apart(left, right) for left, right in pairwise(line)]
        for word, space in zip(line[1:], spaces, strict=True):
            word.space = space
        line[0].space = True
        sorted_words += line
        at = stop
    for order, word in enumerate(sorted_words):
        word.order = order
    return sorted_words


def _is_apart(left: Word, right: Word) -> bool:
    """Tell whether there is a space between two neighbours on a line."""
    if is_backwards(left.text) == is_backwards(right.text):
        if abs(left.order - right.order) == 1:
            return max(left, right, key=lambda word: word.order).space
    elif all(_is_against(word.text, True) is not None for word in (left, right)):
        return True  # words of two scripts, which files often part by no more than the change of script
    return bool(right.x0 - left.x1 > 0.12 * max(left.size, right.size))


def reading_order(words: Sequence[Word], mirrored: bool) -> list[Word]:
    """Return the words of a line, sorted by place, as they are read: runs against its direction are turned round.

    :param mirrored: whether the line runs right to left, and its places are mirrored.
    """
    against = [_is_against(word.text, mirrored) for word in words]
    ordered: list[Word] = []
    at = 0
    while at < len(words):
        # "Python 3" and "3 Python" look the same in a line that runs right to left; the first is far more frequent
        numbered = mirrored and words[at].text.isdigit() and any(against[at + 1 : at + 2])
        stop = at + 1 + numbered
        if against[stop - 1]:
            while stop < len(words) and against[stop] is not False:  # numbers and signs inside belong to the run
                stop += 1
            while not against[stop - 1]:
                stop -= 1
        run = list(words[at:stop])
        if len(run) > 1:
            spaces = [run[0].space, *(word.space for word in reversed(run[1:]))]
            run.reverse()
            for word, space in zip(run, spaces, strict=True):
                word.space = space
        ordered += run
        at = stop
    return ordered


def _is_against(text: str, mirrored: bool) -> bool | None:
    """Tell whether a word runs against the direction of its line; None for numbers and signs, which have none."""
    if is_backwards(text):
        return not mirrored
    return mirrored if text[0].isalpha() else None
