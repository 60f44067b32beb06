"""LangChain: its own standard tests of retrievers, over pages, over an index and over a search; and the loader."""

from __future__ import annotations

import asyncio
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import quoted
from tests.conftest import SITE
from tests.extras import need

import prunus


def _standard_tests() -> Any:
    """Import LangChain's tests of retrievers alone; its other tests need marks and plugins of pytest."""
    folder = Path(need("langchain_tests").__path__[0])
    spec = spec_from_file_location("langchain_tests.retrievers", folder / "integration_tests" / "retrievers.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


need("langchain_core")
suite = _standard_tests()
adapter = need("prunus.adapters.langchain")

pytestmark = pytest.mark.full

QUESTION = "How is the water level of the tide gauge measured?"


class Standard(suite.RetrieversIntegrationTests):  # type: ignore[misc]
    """The suite, run as asynchronous tests run here: by anyio's plugin."""

    __test__ = False
    choices: dict[str, Any] = {}

    @property
    def retriever_constructor(self) -> Any:
        return adapter.PrunusRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.choices

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


@pytest.mark.anyio
class TestOverPages(Standard):
    __test__ = True
    choices = {"pages": str(SITE)}


@pytest.mark.anyio
class TestOverASearch(Standard):
    __test__ = True
    choices = {"search": f"local:{SITE}"}


@pytest.mark.anyio
class TestOverAnIndex(Standard):
    __test__ = True

    @pytest.fixture(autouse=True)
    def _opened(self, site_index: str) -> None:
        self.choices = {"index": site_index}


def test_a_retriever_works_inside_a_chain() -> None:
    runnables = need("langchain_core.runnables")
    question = "What was the average water level at Withy Bend in November 2024?"
    retriever = adapter.PrunusRetriever(pages=str(SITE), k=2, budget=600)
    chain = retriever | runnables.RunnableLambda(lambda documents: documents[0])
    for document in (chain.invoke(question), asyncio.run(chain.ainvoke(question))):
        assert document.metadata["source"] == document.metadata["url"]
        assert any("1.307" in text for text in quoted(document.metadata))
    assert len(retriever.batch([question, QUESTION])) == 2


def test_wrong_choices_are_refused_when_the_retriever_is_made() -> None:
    with pytest.raises(prunus.BadInput, match="one of pages, index and search"):
        adapter.PrunusRetriever()


def test_the_loader_loads_pages_and_folders(folder: Path) -> None:
    (folder / "a.html").write_text("<p>Quinces are yellow.")
    loader = adapter.PrunusLoader([str(folder), prunus.Page("<p>Medlars.", url="https://example.org/m")], "text")
    documents = loader.load()
    assert [document.page_content for document in documents] == ["Quinces are yellow.", "Medlars."]
    assert documents[1].metadata["source"] == "https://example.org/m"
    assert asyncio.run(loader.aload()) == documents
