"""Find the superscripts and subscripts of a PDF page that stand too far off their line to be taken for words of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .lines import Word

_SMALL, _TINY = 0.82, 0.35  # size of a script, as a share of its line's, at most and at least
_LEAST: Final = 0.4  # em; smaller letters closer to the line are words of it, see PdfInlineWriter
_LEAST_RAISED: Final = 0.2  # em; letters of full size closer to the line are only uneven
_MOST: Final = 0.75  # em; what is farther off is another line
_LINE: Final = 0.9  # em; words closer in height are on one line
_LETTERS: Final = 10  # letters of a script, at most
_TOUCH: Final = 0.15  # em; widest gap between a word and its script
_CLOSE: Final = 0.1  # em; a gap that is no space
_SPACE: Final = 0.5  # em; widest gap inside a script, and between the mark of a note and the note
_MARK: Final = 3  # letters of the mark of a note, at most


def mark_scripts(words: Sequence[Word]) -> None:
    """Mark the scripts among words in the order of the file, and put each on the line of its word.

    They are short and stand right after a word, or before the first word of a note.
    """
    base: Word | None = None
    at = 0
    while at < len(words):
        word = words[at]
        if base is not None and word.y == base.y and word.size == base.size:  # most words: nothing to see
            base, at = word, at + 1
            continue
        stop = _end(words, at)
        line = base if base is not None and _is_script(base, words, at, stop) else None
        if line is None and _is_mark(words, at, stop):
            line = words[stop]
        if line is None:
            base, at = word, at + 1
            continue
        kind = "sup" if word.y < line.y else "sub"
        for part in words[at:stop]:
            part.script, part.y = kind, line.y
        for last, follower in pairwise(words[max(at - 1, 0) : stop + 1]):
            if follower.y == line.y and abs(follower.x0 - last.x1) < _CLOSE * line.size:
                follower.space = False  # pdfium takes a step to another height for the end of a line
        base, at = line, stop


def _end(words: Sequence[Word], at: int) -> int:
    """Return the end of the words of one size on one line that may be a script."""
    stop = at + 1
    while stop < len(words) and stop - at < _LETTERS:
        last, word = words[stop - 1], words[stop]
        if word.y != last.y or word.size != last.size or not -_SPACE < (word.x0 - last.x1) / word.size < _SPACE:
            break
        stop += 1
    return stop


def _is_script(base: Word, words: Sequence[Word], at: int, stop: int) -> bool:
    """Tell whether words are the script of the word before, or of one whose other script stands between."""
    first, em = words[at], base.size
    before = words[at - 1]
    touches: bool = base.x1 - _TOUCH * em <= first.x0 <= max(base.x1, before.x1) + _TOUCH * em
    if not touches or sum(len(word.text) for word in words[at:stop]) > _LETTERS:
        return False
    off = abs(first.y - base.y) / em
    if _TINY * em <= first.size <= _SMALL * em:
        return bool(_LEAST <= off <= _MOST)
    is_joined = before is base and stop == at + 1 and not first.space and base.text[-1].isalnum()
    return is_joined and first.size == em and _LEAST_RAISED < off <= _MOST and _is_level(words, at)


def _is_level(words: Sequence[Word], at: int) -> bool:
    """Tell whether the words beside a word and the one before it, where on their line, are at the height of that one.

    So they are around a script of full size. The words of a line that climbs differ each from the next.
    """
    base, first = words[at - 1], words[at]
    beside = [word for word in words[max(at - 2, 0) : at + 2] if word is not first]
    return all(word.y == base.y or abs(word.y - base.y) > _LINE * base.size for word in beside)


def _is_mark(words: Sequence[Word], at: int, stop: int) -> bool:
    """Tell whether a single word is the raised mark of a note that begins with the next word."""
    if stop != at + 1 or stop >= len(words) or len(words[at].text) > _MARK:
        return False
    mark, note = words[at], words[stop]
    is_raised: bool = _LEAST * note.size <= note.y - mark.y <= _MOST * note.size
    is_small = _TINY * note.size <= mark.size <= _SMALL * note.size
    return is_raised and is_small and -_TOUCH * note.size <= note.x0 - mark.x1 <= _SPACE * note.size
