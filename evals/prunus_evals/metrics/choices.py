"""Accuracy over choices: reads the letter, or the text, of one choice out of a reply.

A reply that names no choice, or several, is counted as wrong, and apart: ``readable`` is the share of replies that name
exactly one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import normalise, occurs
from prunus_evals.records import Output, Question

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NOT_ON = r"(?!\w)(?!,?\s{0,9}(?:or|and)\b)"
_LETTER = (
    re.compile(r"\A[\W_]*([A-Za-z])[\W_]*\Z"),  # alone
    re.compile(
        r"\A[\s*_\"'\[(]{0,9}([A-Za-z])[*_\"'\])]{0,9}(?:[.):]|\n|\Z)(?!\s{0,9}(?:or|and)\b)"
    ),  # first, with a mark
    re.compile(r"\b(?i:answer|choice|option)(?i: is)?[\s:*_\"'\[(]{1,9}([A-Z])\b(?!['\u2019])"),
    re.compile(r"[\[(]([A-Za-z])[\])]"),
)


def read_choice(reply: str, choices: Sequence[str], letters: bool = True) -> int | None:
    """Return the place of the choice that a reply names, from 0; None where it names none, or several.

    The first of these that finds something decides: the whole reply is a choice's text, or a letter; the reply begins
    with a letter and a mark, as ``B.``; it says ``the answer is B``; it has a letter in brackets; it begins with the
    text of a choice, and does not go on with ``or`` or ``and``; it contains the text of a choice that is not a part of
    another choice in it.

    :param letters: whether the choices were shown with letters.
    """
    plain, texts = _trimmed(reply), [_trimmed(choice) for choice in choices]
    if plain in texts:
        return _one([place for place, text in enumerate(texts) if text == plain])
    for pattern in _LETTER if letters else ():
        places = {LETTERS.index(letter.upper()) for letter in pattern.findall(reply)}
        if places := {place for place in places if place < len(choices)}:
            return _one([*places])
    begun = [text for text in texts if text and re.match(re.escape(text) + _NOT_ON, plain)]
    if begun:
        return _one([place for place, text in enumerate(texts) if text == max(begun, key=len)])
    found = [place for place, text in enumerate(texts) if text and occurs(text, plain)]
    return _one([a for a in found if not any(a != b and texts[a] in texts[b] != texts[a] for b in found)])


def _trimmed(text: str) -> str:
    return normalise(text).strip(" .*_\"'")


def _one(places: Sequence[int]) -> int | None:
    return places[0] if len(places) == 1 else None


def _read(question: Question, output: Output) -> int | None:
    """Return the place that the answer names; None where it cannot be read.

    :raises MetricError: the right choice is none of the choices, or is not published.
    """
    if question.correct == -1:
        raise MetricError("the right choice is not published: take another part of the set, or other metrics")
    if not 0 <= question.correct < len(question.choices):
        raise MetricError(f"choice number {question.correct + 1} is right, of {len(question.choices)}")
    return read_choice(output.answer or "", question.choices, letters=question.kind == "choice")


def _applies(question: Question, output: Output) -> bool:
    return output.answer is not None and bool(question.choices)


def _accuracy(question: Question, output: Output) -> float | None:
    return float(_read(question, output) == question.correct) if _applies(question, output) else None


def _readable(question: Question, output: Output) -> float | None:
    if not _applies(question, output):
        return None
    return float(read_choice(output.answer or "", question.choices, letters=question.kind == "choice") is not None)


METRICS = (
    Metric("accuracy", "answer", "right choice; a reply that cannot be read is wrong", _accuracy),
    Metric("readable", "answer", "reply names exactly one choice", _readable),
)
