"""Order the words of lines in which one script runs left to right and another right to left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .lines import Word
from .rtl import is_backwards


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
