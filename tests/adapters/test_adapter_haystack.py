"""Haystack: both components inside real pipelines, saved and loaded again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import quoted
from tests.conftest import SITE
from tests.extras import need

haystack = need("haystack")
adapter = need("prunus.adapters.haystack")

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

QUESTION = "What was the average water level at Withy Bend in November 2024?"


def pipeline(**choices: Any) -> Any:
    from haystack.components.builders import PromptBuilder

    made = haystack.Pipeline()
    made.add_component("retriever", adapter.PrunusRetriever(top_k=2, budget=600, **choices))
    template = "{% for document in documents %}{{ document.content }}\n{% endfor %}{{ query }}"
    made.add_component("prompt", PromptBuilder(template=template, required_variables=["documents", "query"]))
    made.connect("retriever.documents", "prompt.documents")
    return made


@pytest.mark.parametrize("source", ["pages", "index", "search"])
def test_a_pipeline_builds_a_prompt_from_evidence(source: str, site_index: str) -> None:
    choices: dict[str, Any] = {"pages": {"pages": [str(SITE)]}, "index": {"index": site_index},
                               "search": {"search": f"local:{SITE}"}}[source]  # fmt: skip
    made = pipeline(**choices)
    given = {"retriever": {"query": QUESTION}, "prompt": {"query": QUESTION}}
    found = made.run(given, include_outputs_from={"retriever"})
    assert "1.307" in found["prompt"]["prompt"]
    documents = found["retriever"]["documents"]
    assert documents[0].score >= documents[-1].score
    assert any("1.307" in text for text in quoted(documents[0].meta))
    again = haystack.Pipeline.loads(made.dumps(), allowed_modules=[adapter.__name__])
    assert again.run(given)["prompt"] == found["prompt"]


def test_the_retriever_runs_beside_an_event_loop() -> None:
    component = adapter.PrunusRetriever(pages=[str(SITE)], budget=600)
    found = asyncio.run(component.run_async(query=QUESTION, top_k=1))
    assert found == component.run(query=QUESTION, top_k=1)
    assert len(found["documents"]) == 1


def test_the_converter_fills_a_store(folder: Path) -> None:
    from haystack.components.writers import DocumentWriter
    from haystack.dataclasses import ByteStream
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    (folder / "a.html").write_text("<p>Quinces are yellow.")
    store = InMemoryDocumentStore()
    made = haystack.Pipeline()
    made.add_component("converter", adapter.PrunusConverter("text"))
    made.add_component("writer", DocumentWriter(store))
    made.connect("converter", "writer")
    fetched = ByteStream(b"<p>Medlars.", mime_type="text/html", meta={"url": "https://example.org/m"})
    made.run({"converter": {"sources": [folder / "a.html", fetched]}})
    documents = sorted(store.filter_documents(), key=lambda document: document.content)
    assert [document.content for document in documents] == ["Medlars.", "Quinces are yellow."]
    assert documents[0].meta["url"] == "https://example.org/m"
    assert documents[1].score is None and "score" not in documents[1].meta
