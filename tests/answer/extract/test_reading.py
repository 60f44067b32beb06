"""Segments that a cross-encoder reads: what it is shown, when it is asked, and what its scores change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import prunus
from prunus.answer.extract.sentences import READ, pair_texts
from prunus.core.options import Options
from prunus.core.ports import Segment
from prunus.core.registry import make_engine
from prunus.core.settings import Settings
from prunus.core.types import Span
from prunus.engines import EngineSet

PAGE = """<title>Harbour book</title><h1>Harbour</h1><h2>Ferries</h2>
<table><tr><th>Boat<th>Leaves<th>Seats<tr><td>Marta<td>7:40<td>60<tr><td>Elster<td><td>48</table>
<h2>History</h2><p>The first pier was built in 1871. It burned down eight years later."""


@dataclass
class Reader:
    """Prefers texts with a word; it keeps what it was shown."""

    wanted: str
    added: float = 5.0
    languages: Sequence[str] = ("en",)
    shown: list[str] = field(default_factory=list)

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        self.shown += texts
        return np.asarray([float(self.wanted in text) for text in texts])


def segments_of(page: str) -> list[Segment]:
    from prunus.evidence.segments import segments

    documents = prunus.read(page)
    kept = prunus.prune(documents, "harbour", 4000).kept
    return segments(kept, {tree.document: tree for tree in documents.trees})


def shown(page: str) -> list[str]:
    tagged = segments_of(page)
    return pair_texts(tagged, range(len(tagged)))


def test_a_cell_stands_behind_the_head_of_its_column_and_an_empty_one_keeps_its_place() -> None:
    texts = shown(PAGE)
    assert any(text.endswith("Boat: Marta; Leaves: 7:40; Seats: 60") for text in texts)
    assert any(text.endswith("Boat: Elster; Leaves: ; Seats: 48") for text in texts)


def test_a_plain_first_row_names_the_columns_where_there_is_no_header() -> None:
    rows = "<table><tr><td>Boat<td>Seats<tr><td>Marta<td>60<tr><td>Elster<td>48<tr><td>Ada<td>12</table>"
    assert any(text.endswith("Boat: Elster; Seats: 48") for text in shown(f"<h1>Harbour</h1>{rows}"))


def test_a_text_is_shown_below_its_title_and_heading_and_behind_the_sentence_before() -> None:
    (text,) = [text for text in shown(PAGE) if text.endswith("eight years later.")]
    assert text.split("\n") == [
        "Harbour book › History",
        "The first pier was built in 1871.",
        "It burned down eight years later.",
    ]


def extracted(reader: Reader | None, query: str, texts: Sequence[str]) -> str:
    tagged = [Segment(i, text, Span("d", 1000 * i, 1000 * i + len(text)), 0.5, "Boats") for i, text in enumerate(texts)]
    engine = make_engine("extractor", "sentences", embedder=make_engine("embedder", "static"), reranker=reader)
    chosen = asyncio.run(engine.extract(query, tagged)) or []
    return texts[chosen[0].tag] if chosen else ""


ENGLISH = [
    "The ferry to the island leaves at noon.",
    "The ferry to the mainland leaves at nine.",
    "Tickets are sold here.",
]


def test_its_score_decides_between_segments_that_the_words_do_not_tell_apart() -> None:
    question = "When does the ferry leave?"
    assert extracted(Reader("nine"), question, ENGLISH) == ENGLISH[1]
    assert extracted(Reader("noon"), question, ENGLISH) == ENGLISH[0]


def test_it_reads_few_segments_of_a_long_page() -> None:
    reader = Reader("nine")
    extracted(
        reader, "When does the ferry leave?", [f"The ferry number {number} leaves at noon." for number in range(90)]
    )
    assert len(reader.shown) == READ


@pytest.mark.parametrize(
    "reader", [Reader("neun", languages=("en",)), Reader("neun", added=0.0, languages=())], ids=["language", "weight"]
)
def test_one_that_does_not_know_the_language_or_declares_no_weight_is_not_asked(reader: Reader) -> None:
    german = [
        "Die Fähre auf die Insel fährt um zwölf ab.",
        "Die Fähre ans Festland fährt um neun ab.",
        "Hier gibt es die Karten.",
    ]
    plain = extracted(None, "Wann fährt die Fähre ab?", german)
    assert extracted(reader, "Wann fährt die Fähre ab?", german) == plain
    assert reader.shown == []


def test_the_installed_one_is_used_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.engines.find_spec", lambda name: object())
    assert EngineSet(Settings(), Options()).named("reranker") == "prunus"
    assert EngineSet(Settings(reranker="none"), Options()).named("reranker") == ""
    assert EngineSet(Settings(reranker="onnx:x"), Options()).named("reranker") == "onnx:x"
    monkeypatch.setattr("prunus.engines.find_spec", lambda name: None)
    assert EngineSet(Settings(), Options()).named("reranker") == ""
