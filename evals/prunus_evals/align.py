"""The exact longest common subsequence of two word lists, computed on the bits of Python integers."""

from __future__ import annotations

from collections.abc import Sequence


def _rows(short: Sequence[str], long: Sequence[str]) -> list[int]:
    """Return the bit rows of Hyyrö's algorithm: the start row, then a row for each word of ``long``.

    A zero bit ``i`` in row ``j`` says that word ``i`` of ``short`` lengthens the common subsequence with the first
    ``j`` words of ``long``.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(short):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(short)) - 1
    row = full
    rows = [row]
    for word in long:
        match = places.get(word)
        if match is not None:
            both = row & match
            row = ((row + both) | (row - both)) & full
        rows.append(row)
    return rows


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    return len(first) - _rows(first, second)[-1].bit_count()


def lcs_pick(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return one longest common subsequence."""
    rows = _rows(first, second)
    picked: list[str] = []
    at = len(first) - 1
    row = len(second)
    while at >= 0 and row > 0:
        bit = 1 << at
        if rows[row] & bit:
            at -= 1  # word `at` lengthens nothing here
        elif not rows[row - 1] & bit:
            row -= 1  # it already did before this word
        else:
            picked.append(first[at])
            at -= 1
            row -= 1
    picked.reverse()
    return picked
