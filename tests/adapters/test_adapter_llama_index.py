"""LlamaIndex: the retriever inside a query engine with LlamaIndex's mock model, and the reader inside an index."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import quoted
from tests.conftest import SITE
from tests.extras import need

import prunus

core = need("llama_index.core")
adapter = need("prunus.adapters.llama_index")

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

QUESTION = "What was the average water level at Withy Bend in November 2024?"


def choices(source: str, site_index: str) -> dict[str, Any]:
    return {"pages": {"pages": str(SITE)}, "index": {"index": site_index}, "search": {"search": f"local:{SITE}"}}[
        source
    ]


@pytest.mark.parametrize("source", ["pages", "index", "search"])
def test_the_retriever_gives_scored_nodes(source: str, site_index: str) -> None:
    retriever = adapter.PrunusRetriever(top_k=2, budget=600, **choices(source, site_index))
    nodes = retriever.retrieve(QUESTION)
    assert 1 <= len(nodes) <= 2
    assert nodes[0].score == nodes[0].metadata["score"] >= nodes[-1].score
    assert any("1.307" in text for text in quoted(nodes[0].metadata))
    later = asyncio.run(retriever.aretrieve(QUESTION))
    assert [node.text for node in later] == [node.text for node in nodes]


def test_a_query_engine_answers_with_the_evidence() -> None:
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    retriever = adapter.PrunusRetriever(pages=str(SITE), top_k=2, budget=600)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())  # it says what it is asked
    reply = engine.query(QUESTION)
    assert "1.307" in str(reply)
    assert "Station data 2024" in str(reply)
    assert "'path'" not in str(reply), "the model is shown no places of blocks"
    assert reply.source_nodes[0].metadata["url"].endswith("station-data.html")


def test_the_reader_fills_an_index(folder: Path) -> None:
    (folder / "a.html").write_text("<p>Quinces are yellow.")
    reader = adapter.PrunusReader("text")
    documents = reader.load_data([str(folder), prunus.Page("<p>Medlars.")])
    assert [document.text for document in documents] == ["Quinces are yellow.", "Medlars."]
    assert documents[0].doc_id == documents[0].metadata["url"] == str(folder / "a.html")
    assert documents[1].doc_id == documents[1].metadata["document"]
    index = core.SummaryIndex.from_documents(documents)
    assert [node.text for node in index.as_retriever().retrieve("quinces")] == ["Quinces are yellow.", "Medlars."]


def test_a_model_is_shown_no_empty_lines_of_metadata() -> None:
    [node] = adapter.PrunusRetriever([prunus.Page("<p>Quinces are yellow.")]).retrieve("Which fruit is yellow?")
    assert node.node.get_content(core.schema.MetadataMode.LLM) == "Quinces are yellow."
