"""The name that a mistyped word was meant to be, for error messages."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str]) -> str:
    """Return the name that is most like a word, or ''.

    That is a name with nearly the same letters (``promt`` for ``prompt``), else the first name that the word
    abbreviates (``md`` for ``markdown``).
    """
    from difflib import get_close_matches  # here: only errors need it

    there = {name.lower(): name for name in names}
    wanted = word.strip().lower()[:100]
    close = get_close_matches(wanted, there, 1, 0.7) or [name for name in there if _abbreviates(wanted, name)]
    return there[close[0]] if close else ""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return the question that ends an error message, or ''."""
    name = nearest(word, names)
    return f"; did you mean {name!r}?" if name else ""


def _abbreviates(word: str, name: str) -> bool:
    """Tell whether a word begins with the first letter of a name and holds only letters of it, in their order."""
    letters = iter(name)
    return len(word) > 1 and word[0] == name[:1] and all(letter in letters for letter in word)
