"""The share of the gold evidence that stands in the evidence that was kept."""

from __future__ import annotations

import pytest

from prunus_evals.errors import MetricError
from prunus_evals.metrics import named
from prunus_evals.records import Document, Output, Question, Reply, Span

TEXT = "Trams run daily. The bridge of Harrow opened in 1932. Boats do not. 桥于一九三二年开放。"


def recall(evidence: str, *gold: str, media_type: str = "text/plain", content: str = TEXT) -> float | None:
    [metric] = named(["gold_recall_4grams"])
    spans = tuple(Span("d", content.index(part), content.index(part) + len(part)) for part in gold)
    question = Question("q", "t", "p", (Document("d", content, media_type),), "When?", gold=spans)
    return metric.score(question, Output(Reply(evidence, "text"), evidence))


def test_all_half_and_none_of_the_gold_evidence() -> None:
    gold = "The bridge of Harrow opened in 1932."
    assert recall(f"Yes. {gold.upper()}", gold) == 1
    assert recall("the bridge of Harrow opened", gold) == 2 / 4
    assert recall("the bridge opened in 1932", gold) == 0
    assert recall("", gold) == 0
    assert recall("anything") is None


def test_several_places_count_together_and_short_ones_as_a_whole() -> None:
    assert recall("boats do not", "Boats do not.", "Trams run daily.") == 1 / 2
    assert recall("在1932年,桥于一九三二年", "桥于一九三二年开放") == 4 / 6
    assert recall("a b c d", "<b>a b</b> c d", media_type="text/html", content="<p><b>a b</b> c d</p>") == 1


def test_gold_evidence_outside_the_document_is_an_error() -> None:
    [metric] = named(["gold_recall_4grams"])
    for span in (Span("d", 5, 500), Span("e", 0, 1), Span("d", 16, 16), Span("d", 15, 16)):
        question = Question("q", "t", "p", (Document("d", TEXT, "text/plain"),), "When?", gold=(span,))
        with pytest.raises(MetricError, match="gold evidence"):
            metric.score(question, Output(Reply("", "text"), ""))
