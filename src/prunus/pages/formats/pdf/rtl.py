"""Letters that run right to left: their scripts, and how pdfium's letters join to words.

This module runs in the reading process, see :mod:`.reader`. It imports nothing from this package.
"""

from __future__ import annotations

from unicodedata import combining

TYPE_CHECKING = False  # typing takes a tenth of the process's time to load
if TYPE_CHECKING:
    from typing import Any, Final

_RANGES: Final = (
    *(("\u0590", "\u0900"), ("\ufb1d", "\ufe00"), ("\ufe70", "\ufeff")),
    *(("\U00010800", "\U00011000"), ("\U0001e800", "\U0001f000")),
)
_WHOLE: Final = frozenset(["\u0644\u0627", "\u0644\u0623", "\u0644\u0625", "\u0644\u0622", "\u0627\u0644\u0644\u0647"])
"""Letters of Arabic ligatures that have a code of their own: lam with alef, the name of God."""

_LONGEST: Final = 500  # letters; a longer word is written in parts, so that a hostile one takes time in proportion


def is_rtl(letter: str) -> bool:
    """Tell whether a letter is of a script that runs right to left. Digits run left to right in every script."""
    return any(low <= letter < high for low, high in _RANGES) and not letter.isdigit()


def is_backwards(text: str) -> bool:
    """Tell whether a text has letters that run right to left."""
    return not text.isascii() and any(map(is_rtl, text))


class RtlLetters:
    """Joins letters to words that run right to left, as :mod:`.reader` does for other words.

    pdfium gives such letters in the order in which they are read, except those of one glyph, and marks above letters.
    """

    def __init__(self) -> None:
        self.glyph = ""  # letters of the latest glyph, in pdfium's order
        self.place = (0.0, 0.0)  # its left and right edge
        self.marks = ""  # marks at the end of the word, which may belong to the next letter
        self.middle = 0.0  # where they stand

    def begin(self, letter: str, start: float, stop: float) -> None:
        """Note the first letter of a word."""
        self.glyph, self.place, self.marks = letter, (start, stop), ""

    def join(self, word: list[Any], letter: str, place: tuple[float, float], base: float, joins: bool) -> bool:
        """Append a letter to a word if it stands at its left end; return False where it does not.

        :param place: left and right edge of the letter.
        :param joins: whether the letter follows without a space, in the same style, on the same line.
        """
        start, stop = place
        size = word[3]
        if len(word[6]) >= _LONGEST:
            return False
        if combining(letter) and place != self.place:
            return self._mark(word, letter, place, base)
        if not joins or not (place == self.place or -0.6 * size < word[0] - stop < 0.35 * size):
            return False
        if place == self.place:  # pdfium turns a line around letter by letter, and so the letters of one glyph
            head, self.glyph = word[6][: len(word[6]) - len(self.glyph)], self.glyph + letter
            word[6] = head + (self.glyph if self.glyph in _WHOLE else self.glyph[::-1])
        elif self.marks and start <= self.middle <= stop:
            word[6] = word[6][: -len(self.marks)] + letter + self.marks
            self.begin(letter + self.marks, start, stop)
        else:
            word[6] += letter
            self.begin(letter, start, stop)
        word[0], word[1] = min(word[0], start), max(word[1], stop)
        return True

    def _mark(self, word: list[Any], letter: str, place: tuple[float, float], base: float) -> bool:
        """Append a mark that stands above, below or beside the word; pdfium puts a space before some marks."""
        middle, size = sum(place) / 2, word[3]
        if abs(word[2] - base) > 0.6 * size or not word[0] - 0.6 * size <= middle <= word[1]:
            return False
        word[6] += letter
        self.marks, self.middle, self.place, self.glyph = self.marks + letter, middle, (0.0, 0.0), ""
        return True
