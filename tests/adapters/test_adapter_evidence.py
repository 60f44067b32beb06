"""What all adapters share: evidence by page with places that can be checked, and whole pages."""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import quoted
from tests.conftest import SITE

import prunus
from prunus.adapters.evidence import Evidence, whole_pages

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "src" / "prunus" / "adapters"
QUESTION = "What was the average water level at Withy Bend in November 2024?"
PAGES = [
    prunus.Page("<title>Bridge</title><h1>Bridge</h1><p>The bridge opened in 1932.", url="https://example.org/bridge"),
    prunus.Page(
        '<title>Trams</title><meta property="article:published_time" content="2024-03-06"><p>Trams run daily.',
        url="https://example.org/trams",
    ),
]


def found(question: str, most: int = 4, **choices: Any) -> Any:
    return asyncio.run(Evidence(**choices).find(question, most))


@pytest.mark.parametrize("source", ["pages", "index", "search"])
def test_evidence_from_everywhere_names_its_page_and_its_places(source: str, site_index: str) -> None:
    choices: dict[str, Any] = {"pages": {"pages": str(SITE)}, "index": {"index": site_index},
                               "search": {"search": f"local:{SITE}"}}[source]  # fmt: skip
    best, *others = found(QUESTION, 3, budget=600, **choices)
    assert best.metadata["url"].endswith("station-data.html")
    assert best.metadata["title"] == "Station data 2024"
    assert "<th>Withy Bend" in best.text and "1.307" in best.text  # the row has its header
    assert any("1.307" in text for text in quoted(best.metadata))
    assert [text.score for text in (best, *others)] == sorted((text.score for text in (best, *others)), reverse=True)
    assert len(others) < 3
    json.dumps(best.metadata)


def test_evidence_says_on_which_page_it_stands() -> None:
    text = "<p><data value=page-1>The pier is long.</data><p><data value=page-2>The pier</data> opened in 1911."
    [found_text] = found("When did the pier open?", pages=[prunus.Page(text)], budget=12)
    assert "page 2" in [block["place"] for block in found_text.metadata["blocks"]]


@pytest.mark.parametrize("source", ["pages", "index"])
def test_what_hardly_answers_is_no_evidence(source: str, site_index: str) -> None:
    choices: dict[str, Any] = {"pages": str(SITE)} if source == "pages" else {"index": site_index}
    assert found("Who discovered penicillin?", budget=600, **choices) == []
    assert found("Who discovered penicillin?", budget=600, min_confidence=0, **choices)
    assert found("What is it all about?", budget=600, **choices)  # an overview is in no one passage


def test_the_budget_holds_for_all_documents_together() -> None:
    counter = prunus.prune("<p>x", "x", 10)._count
    for budget in (80, 300, 1000):
        texts = found(QUESTION, 5, pages=str(SITE), budget=budget)
        assert 0 < sum(counter(text.text) for text in texts) <= budget


def test_the_whole_budget_goes_to_the_pages_that_are_returned() -> None:
    several = "How accurate is the Pell 2 radar gauge, and how long does slack water last at Dunnock Quay?"
    assert len(found(several, 9, pages=str(SITE), budget=2000)) > 1
    [one] = found(several, 1, pages=str(SITE), budget=2000)
    alone = prunus.prune(Path(one.metadata["url"]), several, 2000, "markdown")
    assert one.text == alone.output


def test_a_document_says_its_date_and_nothing_that_it_does_not_know() -> None:
    bridge, trams = found("When did the bridge open?", pages=PAGES)
    assert bridge.text == "Bridge\n\n# Bridge\n\nThe bridge opened in 1932."
    assert bridge.metadata | {"score": 0, "blocks": 0} == {
        "url": "https://example.org/bridge", "title": "Bridge", "published": "", "authors": "", "site": "",
        "document": prunus.read(PAGES[0]).trees[0].document, "score": 0, "blocks": 0,
    }  # fmt: skip
    assert trams.metadata["published"].startswith("2024-03-06")


def test_documents_that_were_read_before_are_taken() -> None:
    documents = prunus.read(PAGES)
    assert found("When did the bridge open?", pages=documents) == found("When did the bridge open?", pages=PAGES)


def test_where_nothing_is_found_there_is_no_document(folder: Path) -> None:
    prunus.Index.open(folder / "empty")
    assert found(QUESTION, index=str(folder / "empty")) == []
    (folder / "pages").mkdir()
    (folder / "pages" / "a.html").write_text("<p>Trams run daily.")
    assert found("zeppelin photosynthesis", search=f"local:{folder / 'pages'}") == []


@pytest.mark.parametrize(
    ("choices", "most", "message"),
    [
        ({}, 4, "one of pages, index and search"),
        ({"pages": PAGES, "search": "local:."}, 4, "one of pages, index and search"),
        ({"pages": PAGES, "format": "pdf"}, 4, "unknown format"),
        ({"pages": PAGES}, 0, "ask for 1 or more"),
        ({"pages": []}, 4, "no page was given"),
        ({"pages": "no-such-file.html"}, 4, "no such file"),
        ({"pages": "<p>HTML as text"}, 4, "no such file"),
        ({"index": "no-such-index"}, 4, "no-such-index"),
        ({"search": "no-such-provider"}, 4, "no-such-provider"),
    ],
)
def test_a_wrong_choice_is_one_line(choices: dict[str, Any], most: int, message: str) -> None:
    with pytest.raises(prunus.BadInput, match=message) as caught:
        found(QUESTION, most, **choices)
    assert "\n" not in str(caught.value)


def test_a_file_that_a_search_provider_names_is_read_only_in_a_searched_folder(folder: Path) -> None:
    (folder / "secret.html").write_text("<p>The bridge opened in 1932, says the secret.")
    (folder / "provider.py").write_text(
        "from prunus import Hit, Results\n"
        "class Search:\n"
        "    async def search(self, request):\n"
        f"        return Results([Hit({str(folder / 'secret.html')!r}, 'A page', 'The bridge opened')])\n"
    )
    with pytest.raises(prunus.OutsideFailed, match="not in a searched folder"):
        found("When did the bridge open?", search=f"{folder / 'provider.py'}:Search")


def test_whole_pages_come_one_by_one_and_cleaned(folder: Path) -> None:
    (folder / "a.html").write_text("<title>A</title><nav>Home</nav><p>Quinces are yellow.</p><script>x</script>")
    (folder / "b.html").write_text("")
    (folder / "c.txt").write_text("Medlars are brown.")
    texts = list(whole_pages(str(folder), "text", strict=False))
    assert [Path(text.metadata["url"]).name for text in texts] == ["a.html", "c.txt"]
    assert "Quinces are yellow." in texts[0].text and "x" not in texts[0].text.split()
    assert texts[0].score is None
    pages = whole_pages([str(folder / "a.html"), str(folder / "b.html")])
    assert next(pages).metadata["title"] == "A"
    with pytest.raises(prunus.BadPage, match=r"b\.html"):
        next(pages)


# --- without the frameworks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index", "llama-index"),
        ("haystack", "haystack", "haystack"),
    ],
)
def test_without_its_package_an_adapter_names_the_extra(module: str, package: str, extra: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\nimport prunus.adapters.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert f"[{extra}]'" in done.stderr.splitlines()[-1]


def test_every_adapter_has_its_extra_and_the_plugin_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    modules = {path.stem for path in ADAPTERS.glob("*.py")} - {"__init__", "evidence"}
    assert {module.replace("_", "-") for module in modules} <= project["optional-dependencies"].keys()
    assert project["entry-points"]["llm"] == {"prunus": "prunus.adapters.llm"}
    for module in modules:
        assert f"prunus.adapters.{module}" in (ROOT / "docs" / "adapters.md").read_text("utf-8")


def test_no_adapter_touches_telemetry_or_the_environment() -> None:
    for path in ADAPTERS.glob("*.py"):
        source = path.read_text("utf-8")
        names = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
        assert not names & {"environ", "getenv", "putenv"}
        assert "telemetry" not in source.lower()


def test_the_shared_module_needs_no_framework() -> None:
    assert import_module("prunus.adapters.evidence").Evidence is Evidence
