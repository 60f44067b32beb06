"""Precision, recall and F1 over the tags of sentences, and the exact match of all of them.

Where no sentence answers (``Question.tags`` is None), only a system that found none is right, in all four; where one
does, a system that found none has 0. The tags are those of the system, or, for a question about tags that a reader
answered, those of its reply: ``TAG-3``, ``TAG-3 to TAG-5``, or a word for none. A reply with neither is counted as
one wrong tag, and apart: ``tags_readable``. A tag that no sentence has is a wrong one, too.

``tags_micro_precision``, ``tags_micro_recall`` and ``tags_micro_f1`` add up right, named and wanted tags over all
questions that some sentence answers, as Internet-SAG's Table 5 does; ``tags_none`` is the exact match over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from prunus.answer.extract.tags import read_tags
from prunus_evals.metrics import Metric
from prunus_evals.records import Output, Question

SOURCE = "Internet-SAG (arXiv 2411.19478), section 5.2"


def precision_recall_f1(right: int, found: int, wanted: int) -> tuple[float, float, float]:
    """Return precision, recall and F1; all are 0 where nothing right was found.

    :param right: how many of the found ones are right.
    """
    if not right:
        return 0.0, 0.0, 0.0
    return right / found, right / wanted, 2 * right / (found + wanted)


def scores(found: Collection[int] | None, wanted: Collection[int] | None, unknown: int = 0) -> dict[str, float]:
    """Return precision, recall, F1 and exact match of tags; None stands for no sentence.

    :param unknown: wrong tags beside those found.
    """
    if wanted is None or found is None:
        same = float(found is wanted and not unknown)
        return dict.fromkeys(("precision", "recall", "f1", "exact"), same)
    right, size = len({*found} & {*wanted}), len({*found}) + unknown
    precision, recall, f1 = precision_recall_f1(right, size, len({*wanted}))
    return {"precision": precision, "recall": recall, "f1": f1, "exact": float(right == size == len({*wanted}))}


@dataclass(frozen=True, slots=True)
class _Named:
    """The tags of an output; None for no sentence.

    :param unknown: wrong tags beside those.
    :param readable: whether a reader's reply could be read; None for a system.
    """

    tags: Collection[int] | None
    unknown: int = 0
    readable: float | None = None


def _named(question: Question, output: Output) -> _Named | None:
    """Return what an output names; None for a question, or an output, that is not about tags."""
    if question.tags == ():
        return None
    if output.answer is not None and question.kind == "tags":
        reply = read_tags(output.answer, range(len(question.sentences)))
        readable = bool(reply.tags) or reply.unknown > 0 or reply.none
        unknown = reply.unknown if readable else 1  # as of an extractor that names neither tags nor None
        return _Named(None if reply.none else reply.tags, unknown, float(readable))
    return None if output.reply.tags == () else _Named(output.reply.tags)


def _found(question: Question, output: Output) -> dict[str, float] | None:
    named = _named(question, output)
    if named is None:
        return None
    found = scores(named.tags, question.tags, named.unknown)
    return found if named.readable is None else {**found, "readable": named.readable}


def counts(question: Question, output: Output) -> list[float] | None:
    """Return how many tags are right, named and wanted; None where no sentence answers, or nothing names tags."""
    named = _named(question, output)
    if named is None or not question.tags:
        return None
    found = {*(named.tags or ())}
    return [float(len(found & {*question.tags})), float(len(found) + named.unknown), float(len({*question.tags}))]


def _total(place: int) -> Callable[[Sequence[float]], float]:
    """Return what combines counts into precision (0), recall (1) or F1 (2)."""
    return lambda sums: precision_recall_f1(*map(round, sums))[place]


def _micro(name: str, title: str, place: int) -> Metric:
    def alone(question: Question, output: Output) -> float | None:
        own = counts(question, output)
        return None if own is None else _total(place)(own)

    return Metric(name, "tags", title, alone, SOURCE, counts=counts, combine=_total(place))


def _none(question: Question, output: Output) -> float | None:
    return (_found(question, output) or {}).get("exact") if question.tags is None else None


def _of(name: str) -> Callable[[Question, Output], float | None]:
    def score(question: Question, output: Output) -> float | None:
        return (_found(question, output) or {}).get(name)

    return score


METRICS = (
    Metric("tags_f1", "tags", "F1 of the tags", _of("f1"), SOURCE),
    Metric("tags_precision", "tags", "right tags, of those named", _of("precision"), SOURCE),
    Metric("tags_recall", "tags", "right tags that were named", _of("recall"), SOURCE),
    Metric("tags_exact", "tags", "exactly the right tags, or none where none is right", _of("exact"), SOURCE),
    Metric("tags_readable", "tags", "reply names tags, or says that there are none", _of("readable"), SOURCE),
    _micro("tags_micro_precision", "right tags, of those named for all answered questions together", 0),
    _micro("tags_micro_recall", "right tags that were named for all answered questions together", 1),
    _micro("tags_micro_f1", "F1 of the tags of all answered questions together", 2),
    Metric("tags_none", "tags", "none is named where no sentence answers", _none, SOURCE),
)
