"""Metrics of the evidence: survival, gold evidence, and quotes.

Survival: whether the answers, the gold table or the gold element are in the evidence.

How much of the gold evidence, whose places in the documents are known, stands in the evidence that was kept.

The recall of gold evidence, by place: for systems that tell which places of the documents they kept.

Quotes: whether they hold a gold answer, and whether questions of a wrong page are turned away.

A quote holds an answer by the rules of :func:`.matching.holds`. A question that is asked of a wrong page has the label
``{"page": "wrong"}``: no quote of it is right, and the best answer is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from prunus.core.text.words import UNSPACED
from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import (
    any_spelling_occurs,
    element_text,
    gold_table,
    holds,
    normalise,
    occurs,
    table_survives,
)
from prunus_evals.records import Output, Question
from prunus_evals.visible import html_text

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


SURVIVAL_METRICS = (
    Metric("answer", "evidence", "answer survives", _answer),
    Metric("gold_whole", "evidence", "whole gold table (or gold element) survives", _whole),
    Metric("gold_share", "evidence", "share of the gold table's words that survives", _share),
)


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


GOLD_METRICS = (
    Metric(
        "gold_recall_4grams", "evidence", "runs of four words of the gold evidence that stand in the evidence", _recall
    ),
)


_PART_OF_WORD = re.compile(r"\d[\d.,]*\d|\d|[^\W\d_]+")
"""A number, or letters between anything else."""


def _triples(question: Question, output: Output) -> tuple[int, int] | None:
    """Return how many runs of three words of the evidence stand in the output, and how many there are.

    Spaces between letters do not count: text that was copied out of a PDF lacks some, and apostrophes.
    """
    wanted = {run for text in question.evidence for run in _runs_of_three(text)}
    text = _joined(_words(output.visible))
    return (sum(_joined(run) in text for run in wanted), len(wanted)) if wanted else None


def _words(text: str) -> list[str]:
    return _PART_OF_WORD.findall(normalise(text).replace("'", ""))


def _runs_of_three(text: str) -> set[tuple[str, ...]]:
    words = _words(text)
    return set(zip(words, words[1:], words[2:], strict=False))


def _joined(words: Iterable[str]) -> str:
    """Return words without spaces, but for those around numbers."""
    return "".join(f" {word} " if word[0].isdigit() else word for word in words)


def _line_items(question: Question, output: Output) -> tuple[int, int] | None:
    """Return how many of the needed rows stand in the output, and how many there are."""
    rows = question.table_rows
    lines = [_words(line) for line in output.visible.split("\n")]
    return (sum(row_survives(row, lines) for row in rows), len(rows)) if rows else None


def row_survives(row: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
    """Return whether each number of a row stands in a line with its label: in a row of a table, or in a sentence.

    :param row: the label, and its numbers.
    :param lines: the words of an output by line.
    """
    label = _only_letters(_words(row[0]))
    found = {word for line in lines if label in _only_letters(line) for word in line}
    return found.issuperset(_words(" ".join(row[1:])))


def _only_letters(words: Iterable[str]) -> str:
    return "".join(filter(str.isalpha, words))


def _pooled(name: str, title: str, count: Callable[[Question, Output], tuple[int, int] | None]) -> Metric:
    """Return a metric that counts over all questions together."""

    def score(question: Question, output: Output) -> float | None:
        found = count(question, output)
        return None if found is None else found[0] / found[1]

    return Metric(name, "evidence", title, score, counts=count, combine=lambda sums: sums[0] / sums[1])


ROW_METRICS = (
    _pooled("line_items", "rows of tables that the answer needs, with label and numbers", _line_items),
    _pooled("gold_recall_3grams", "runs of three words of the gold evidence that stand in the evidence", _triples),
)


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


SPANS_METRICS = (
    Metric("span_recall", "evidence", "share of the letters of the gold evidence that were kept", span_recall),
)


def is_wrong_page(question: Question) -> bool:
    """Return whether a question is asked of a page without its answer."""
    return question.labels.get("page") == "wrong"


def holding(question: Question, quotes: Sequence[str]) -> list[bool]:
    """Return of each quote whether it holds a gold answer, in any spelling."""
    spellings = [spelling for answer in question.answers for spelling in question.spellings(answer)]
    return [holds(quote, spellings) for quote in quotes]


def scores(question: Question, quotes: Sequence[str]) -> dict[str, float]:
    """Return the metrics of the quotes of a question; a share only where there are quotes."""
    if is_wrong_page(question):
        return {"turned_away": float(not quotes)}
    found = holding(question, quotes) if question.answers else []
    numbers = {"quote_answered": float(bool(quotes)), "quotes": float(len(quotes))}
    if question.answers:
        numbers |= {"quote_first": float(found[:1] == [True]), "quote_any": float(any(found))}
    if found:
        numbers["quote_share"] = sum(found) / len(found)
    return numbers


def _of(name: str) -> Callable[[Question, Output], float | None]:
    def score(question: Question, output: Output) -> float | None:
        quotes = output.reply.quotes
        return None if quotes is None else scores(question, quotes).get(name)

    return score


QUOTED_METRICS = (
    Metric("quote_first", "quotes", "first quote holds a gold answer", _of("quote_first")),
    Metric("quote_any", "quotes", "any quote holds a gold answer", _of("quote_any")),
    Metric("quote_share", "quotes", "share of an answer's quotes that hold a gold answer", _of("quote_share")),
    Metric("quote_answered", "quotes", "page of the question gets an answer", _of("quote_answered")),
    Metric("turned_away", "quotes", "wrong page gets no answer", _of("turned_away")),
)

METRICS = (*SURVIVAL_METRICS, *GOLD_METRICS, *ROW_METRICS, *SPANS_METRICS, *QUOTED_METRICS)
