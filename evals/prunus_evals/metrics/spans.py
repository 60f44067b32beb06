"""The recall of gold evidence, by place: for systems that tell which places of the documents they kept."""

from __future__ import annotations

from prunus_evals.metrics import Metric
from prunus_evals.records import Output, Question


def span_recall(question: Question, output: Output) -> float | None:
    """Return the share of the letters of the gold evidence that lie in the kept places.

    Letters are all code points but white space. A place counts once, however often it was kept. None where the question
    has no gold evidence, or the system does not tell its places (``spans`` in its facts: document, start, end).
    """
    if not question.gold or "spans" not in output.reply.facts:
        return None
    texts = {document.id: document.content for document in question.documents}
    found = wanted = 0
    for document, text in texts.items():
        kept = sorted((start, end) for name, start, end in output.reply.facts["spans"] if name == document)
        gold = _merged(sorted((span.start, span.end) for span in question.gold if span.document == document))
        wanted += sum(_letters(text[start:end]) for start, end in gold)
        found += sum(_letters(text[start:end]) for start, end in _shared(gold, _merged(kept)))
    return found / wanted if wanted else None


def _letters(text: str) -> int:
    return sum(not letter.isspace() for letter in text)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join the spans that overlap or touch, of sorted spans."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _shared(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts that lie in both of two lists of merged spans; linear in their lengths."""
    found: list[tuple[int, int]] = []
    a = b = 0
    while a < len(first) and b < len(second):
        start, end = max(first[a][0], second[b][0]), min(first[a][1], second[b][1])
        if start < end:
            found.append((start, end))
        if first[a][1] < second[b][1]:
            a += 1
        else:
            b += 1
    return found


METRICS = (Metric("span_recall", "evidence", "share of the letters of the gold evidence that were kept", span_recall),)
