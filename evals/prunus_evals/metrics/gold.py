"""How much of the gold evidence, whose places in the documents are known, stands in the evidence that was kept."""

from __future__ import annotations

import re

from prunus.core.text.words import UNSPACED
from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import normalise
from prunus_evals.records import Output, Question
from prunus_evals.visible import html_text

RUN = 4
"""Words of a run; gold evidence with fewer words is one run."""

_WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+")
"""A word; every letter of a script that is written without spaces."""


def _recall(question: Question, output: Output) -> float | None:
    if not question.gold and not question.evidence:
        return None
    contents = {document.id: document for document in question.documents}
    wanted: set[tuple[str, ...]] = {run for text in question.evidence for run in runs(text)}
    for span in question.gold:
        document = contents.get(span.document)
        if document is None or not 0 <= span.start < span.end <= len(document.content):
            raise MetricError(f"gold evidence from {span.start} to {span.end} is not in document {span.document}")
        text = document.content[span.start : span.end]
        wanted |= runs(html_text(text) if document.media_type == "text/html" else text)
    if not wanted:
        raise MetricError("the gold evidence has no words")
    kept = _WORD.findall(normalise(output.visible))
    held = {tuple(kept[place : place + size]) for size in {*map(len, wanted)} for place in range(len(kept))}
    return len(wanted & held) / len(wanted)


def runs(text: str) -> set[tuple[str, ...]]:
    """Return the runs of four words of a text; all of its words where it has fewer."""
    found = _WORD.findall(normalise(text))
    return {tuple(found[place : place + RUN]) for place in range(max(1, len(found) - RUN + 1))} - {()}


METRICS = (
    Metric(
        "gold_recall_4grams", "evidence", "runs of four words of the gold evidence that stand in the evidence", _recall
    ),
)
