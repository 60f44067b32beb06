"""Survival: whether the answers, the gold table or the gold element are in the evidence."""

from __future__ import annotations

from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import (
    any_spelling_occurs,
    element_text,
    gold_table,
    normalise,
    occurs,
    table_survives,
)
from prunus_evals.records import Output, Question

ELEMENT_ATTRIBUTE = "tid"


def _answer(question: Question, output: Output) -> float | None:
    """Whether every gold answer, in one of its spellings, is in the evidence."""
    if not question.answers:
        return None
    text = normalise(output.visible)
    return float(all(any_spelling_occurs(question.spellings(answer), text) for answer in question.answers))


def _whole(question: Question, output: Output) -> float | None:
    gold = _gold(question, output.visible)
    return None if gold is None else float(gold[0])


def _share(question: Question, output: Output) -> float | None:
    gold = _gold(question, output.visible)
    return None if gold is None else gold[1]


def _gold(question: Question, visible: str) -> tuple[bool, float] | None:
    if question.gold_table is not None:
        return table_survives(gold_table(question.gold_table), visible)
    if question.element_id is not None:
        element = element_text(question.html, ELEMENT_ATTRIBUTE, question.element_id)
        kept = occurs(normalise(element), normalise(visible))
        return kept, float(kept)
    return None


METRICS = (
    Metric("answer", "evidence", "answer survives", _answer),
    Metric("gold_whole", "evidence", "whole gold table (or gold element) survives", _whole),
    Metric("gold_share", "evidence", "share of the gold table's words that survives", _share),
)
