"""Abbreviations of a question, and the labels of rows that they stand for: "What was the average PP&E?" """

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

_MOST: Final = 8
"""Abbreviations of a question that are looked for, the first."""

_LONGEST: Final = 120
"""Letters of a label; what is longer is text."""

_ABBREVIATION: Final = re.compile(r"\b[A-Z](?:&?[A-Z]){1,5}\b")
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*|&")
_SMALL: Final = frozenset({"a", "and", "for", "in", "of", "on", "the", "to", "&"})
_AFTER: Final = frozenset({"gross", "net", "total"})
"""Words behind a long form that an abbreviation leaves out: "Property, plant and equipment, net"."""


def with_long_forms(query: str, texts: Sequence[str]) -> str:
    """Return a question with the labels that its abbreviations stand for on a page: PP&E, R&D, SG&A, EPS.

    Of several labels the most frequent one is taken. An abbreviation of two letters needs an "&". One that the page
    itself has stays, and the label stands behind the question.

    :param texts: the page's blocks or segments; rows have tabs between their cells.
    """
    short = [word for word in dict.fromkeys(_ABBREVIATION.findall(query)) if len(word) > 2][:_MOST]
    if not short:
        return query
    labels = Counter(label.strip(" :*").lower() for label in _labels(texts))
    for word in short:
        near = [label for label in labels if label[:1] == word[0].lower()]
        found = [label for label in near if _stands_for(word.lower(), _WORD.findall(label))]
        if not found:
            continue
        long = max(found, key=lambda label: labels[label])
        if any(word in text for text in texts):
            query = f"{query} {long}"
        else:
            query = query.replace(word, long)
    return query


def _labels(texts: Sequence[str]) -> Iterator[str]:
    """Yield the label of each row with a number: its first cell."""
    for text in texts:
        label, tab, cells = text.partition("\t")
        if tab and "\n" not in text and len(label) <= _LONGEST and any(letter.isdigit() for letter in cells):
            yield label


def _stands_for(short: str, words: Sequence[str]) -> bool:
    """Tell whether the letters of an abbreviation are the initials of some words; "&", and "n", mean "and"."""
    place = 0
    for number, word in enumerate(words):
        letter = short[place : place + 1]
        if not letter:
            return set(words[number:]) <= _AFTER
        if word[0] == letter or (word == "and" and letter in ("&", "n")):
            place += 1
        elif word not in _SMALL or not number:
            return False
    return place == len(short)
