"""`prunus.Index`: adding and removing documents, retrieval and answers, summaries and their cost."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.index.library import SUBJECTS, page

import prunus
from prunus import BadInput, Index, NothingFound, Options, Retrieval, Settings
from prunus.core.options import Limits
from prunus.core.settings import load_settings
from prunus.index.nodes import version_of
from prunus.index.verify import Judge

QUESTION = "Where do passengers of the night train sleep?"


@pytest.fixture
def index(tmp_path: Path) -> Index:
    found = Index.open(tmp_path / "index")
    found.add({name: page(name) for name in SUBJECTS})
    return found


def test_documents_of_every_kind_have_an_id(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "a.html").write_text(page("bees"), "utf-8")
    index = Index.open("I")
    report = index.add([folder / "docs", page("glass"), prunus.Page(page("tides"), url="https://x.org/t")])
    assert report.added[0] == str(folder / "docs" / "a.html") and report.added[2] == "https://x.org/t"
    assert len(report.added[1]) == 64
    assert index.add(Path("docs/a.html")).unchanged == report.added[:1]
    assert index.remove("docs/a.html") == report.added[:1]


def test_what_cannot_be_read_is_named_and_the_rest_goes_in(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index")
    many: dict[str, Any] = {f"{n:04}": f"<p>Note {n} about {n * 7}." for n in range(60)}
    many["0030"] = b"\x89PNG\r\n\x1a\n\0\0\0\0"
    report = index.add(many, strict=False)
    assert list(report.failures) == ["0030"] and len(report.added) == 59
    with pytest.raises(prunus.BadPage):
        index.add({"0030": many["0030"]})
    assert len(index.store.documents()) == 59


def test_what_changes_nothing_makes_no_new_state(folder: Path) -> None:
    docs = folder / "docs"
    docs.mkdir()
    for name in SUBJECTS:
        (docs / f"{name}.html").write_text(page(name), "utf-8")
    index = Index.open("I")
    index.sync(docs)
    state = version_of(index.store)
    assert index.sync(docs).unchanged and index.add(docs).unchanged
    assert version_of(index.store) == state


def test_sync_follows_a_folder_and_leaves_the_rest_alone(folder: Path) -> None:
    docs = folder / "docs"
    docs.mkdir()
    for name in ("bees", "glass", "tides"):
        (docs / f"{name}.html").write_text(page(name), "utf-8")
    index = Index.open("I")
    index.add({"elsewhere": page("bread")})
    assert len(index.sync("docs").added) == 3
    (docs / "bees.html").write_text(page("trains"), "utf-8")
    (docs / "glass.html").unlink()
    report = index.sync(docs)
    assert [len(report.added), len(report.unchanged), len(report.removed)] == [1, 1, 1]
    assert {Path(document.id).name for document in index.store.documents()} == {"elsewhere", "bees.html", "tides.html"}
    with pytest.raises(BadInput, match="no such folder"):
        index.sync("nowhere")


def test_an_answer_is_cited_to_the_documents(index: Index) -> None:
    answer = index.ask(QUESTION)
    assert answer.citations[0].document == "trains" and "second carriage" in answer.citations[0].quote
    assert all(citation.found for citation in answer.citations)


def test_indexes_and_pages_answer_together_within_one_budget(index: Index, tmp_path: Path) -> None:
    other = Index.open(tmp_path / "other")
    other.add({"moon": "<p>The moon rises fifty minutes later each day."})
    given = "<p>The captain of the ferry sleeps in the wheelhouse."
    for question, document in (
        ("Where does the captain sleep?", ""), ("How much later does the moon rise?", "moon"), (QUESTION, "trains"),
    ):  # fmt: skip
        answer = prunus.ask(question, given, index=[index, tmp_path / "other"], budget=300)
        assert document in ("", answer.citations[0].document), question
    assert "wheelhouse" in prunus.ask("Where does the captain sleep?", given, index=index).text
    [kept] = [
        one.tokens
        for one in _events("Where does the captain sleep?", given, [index, other], 120)
        if one.event == "kept"
    ]
    assert kept <= 120


def _events(question: str, pages: Any, indexes: Any, budget: int) -> list[Any]:
    async def all_of() -> list[Any]:
        return [one async for one in prunus.astream(question, pages, index=indexes, budget=budget)]

    return asyncio.run(all_of())


def test_a_page_that_is_given_and_in_the_index_is_told_once(index: Index) -> None:
    answer = prunus.ask(QUESTION, page("trains"), index=index)
    assert len({citation.quote for citation in answer.citations}) == len(answer.citations)


def test_retrieval_keeps_to_the_chosen_documents(index: Index) -> None:
    for way in ("hybrid", "collapsed", "traversal", "flat"):
        found = index.retrieved(QUESTION, 200, Retrieval(way, documents=("bees",)))  # type: ignore[arg-type]
        assert {node.document for node in found.nodes} == {"bees"}, way
    with pytest.raises(BadInput, match="no document 'wasps'"):
        index.retrieve(QUESTION, retrieval=Retrieval(documents=("wasps",)))


def test_layers_can_be_studied(index: Index) -> None:
    assert {node.layer for node in index.retrieved(QUESTION, 500, Retrieval("collapsed", layers=(1,))).nodes} == {1}
    started = index.retrieved(QUESTION, 500, Retrieval("traversal", start_layer=1, top=1))
    assert [node.layer for node in started.nodes] == [1, 0]


def test_an_empty_index_has_nothing_to_say(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index")
    with pytest.raises(NothingFound):
        index.ask(QUESTION)


def test_a_summarys_words_are_cited_to_its_leaves_and_never_quoted_as_a_page(index: Index) -> None:
    """Summaries are retrieved for a broad question, but every quote in the answer is from a page."""
    question = "What is all of it about: the tide, bread, the night train, honey bees and glass?"
    answer = prunus.ask(question, index=index, budget=400, options=Options(min_confidence=0.0))
    assert answer.citations
    texts = [one.text for one in map(index.store.document, SUBJECTS)]
    for citation in answer.citations:
        assert citation.found and citation.document in SUBJECTS
        assert any(citation.quote in text for text in texts)


@pytest.mark.parametrize("question", ["What is the whole document about?", "Summarize it."])
def test_a_question_about_the_whole_is_answered_though_it_shares_no_word_with_the_page(
    tmp_path: Path, question: str
) -> None:
    index = Index.open(tmp_path / "index")
    index.add({"trains": page("trains", 40)})
    answer = index.ask(question, 300)
    assert answer.citations and all(citation.found and citation.document == "trains" for citation in answer.citations)
    with pytest.raises(NothingFound):
        index.ask("Who won the cup?", 300)


def test_what_a_model_has_written_is_led_back_to_the_nearest_leaves(tmp_path: Path) -> None:
    settings = load_settings(
        {"summarizer": "llm", "llm": "scripted:Travellers on the night train rest behind the engine."}
    )
    index = Index.open(tmp_path / "index", settings=settings)
    index.add({"trains": page("trains", 12)})
    assert index.store.unsummarised() and index.bill().calls and index.bill().usd == 0.0
    assert index.summarize() and not index.store.unsummarised()
    assert index.info()["cost"]["completion_tokens"] > 0
    question = "Which travellers rest on the night train behind the engine?"
    without_a_model = Index.open(tmp_path / "index")  # answers by quotes
    answer = without_a_model.ask(question, 300, Retrieval("collapsed", layers=(1, 2)))
    assert all(citation.found for citation in answer.citations)
    nearest = [citation for citation in answer.citations if citation.support < 1]
    assert nearest and nearest[0].document == "trains" and 0 < nearest[0].support < 1


def test_a_limit_stops_summaries_and_the_next_run_goes_on(tmp_path: Path) -> None:
    settings = load_settings({"summarizer": "llm", "llm": "scripted:A short summary."})
    Index.open(tmp_path / "index", settings=settings).add({name: page(name) for name in SUBJECTS})
    tight = Index.open(tmp_path / "index", settings=settings, options=Options(limits=Limits(tokens=900)))
    assert tight.bill().prompt_tokens > 900
    with pytest.raises(BadInput, match="over the limit of 900"):
        tight.summarize()
    index = Index.open(tmp_path / "index", settings=settings)
    index.summarize()
    assert not index.store.unsummarised()


def test_summaries_can_be_written_anew(index: Index, tmp_path: Path) -> None:
    before = {node: index.store.get([node])[0].children for node in index.store.edges()}
    settings = load_settings({"summarizer": "llm", "llm": "scripted:Other words."})
    again = Index.open(index.location, settings=settings)
    again.forget_summaries()
    again.summarize()
    nodes = again.store.get(list(before))
    assert {node.text for node in nodes} == {"Other words."}
    assert {node.id: node.children for node in nodes} == before


def test_an_index_is_asked_as_it_was_built_whatever_the_settings_say(tmp_path: Path) -> None:
    made = load_settings({"chunk_tokens": 30, "tree": "document", "clusterer": "contiguous"})
    Index.open(tmp_path / "index", settings=made).add({name: page(name) for name in SUBJECTS})
    index = Index.open(tmp_path / "index", settings=Settings())
    assert (index.built.chunk_tokens, index.built.tree, index.built.clusterer) == (30, "document", "contiguous")
    index.add({"more": page("bees", 3)})
    roots = [one for one in index.store.edges() if one not in {c for cs in index.store.edges().values() for c in cs}]
    assert len(roots) == 6  # one of each document


def test_wrong_folders_and_other_embedders_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear", "utf-8")
    for place in ("full", "nowhere"):
        with pytest.raises(BadInput, match="there is no index"):
            Index.open(tmp_path / place, create=False)
    with pytest.raises(BadInput, match="there is no index"):
        Index.open(tmp_path / "full")  # a folder of something else is not written into
    index = Index.open(tmp_path / "index")
    index.add({"a": page("bees")})
    index = Index.open(tmp_path / "index")
    index.store.embedder = "another"
    with pytest.raises(BadInput, match="embedder another"):
        index.ask(QUESTION)
    with pytest.raises(BadInput, match="unknown preset"):
        Index.open(tmp_path / "index", preset="none")
    with pytest.raises(BadInput, match="not built with the preset"):
        Index.open(tmp_path / "index", preset="raptor")


def test_notes_are_kept_with_the_index(index: Index) -> None:
    index.store.put_notes({"a:1": "x", "a:2": "y", "b": "z"})
    index.store.put_notes({"a:1": ""})
    assert index.store.notes("a:") == {"a:2": "y"}
    assert json.loads(index.store.notes("built")["built"])["clusterer"] == "ward"


@pytest.mark.slow
def test_thousands_of_small_documents_come_go_and_change(tmp_path: Path) -> None:
    """10,000 added, 5,000 removed, 2,500 replaced: the index stays small, and the other documents are still found."""

    def note(n: int, turn: int = 0) -> str:
        return f"<p>Note {n} of turn {turn}: the {n * 7919 % 10007} boats of bay {n % 97} carry cargo {n * 31 % 1009}."

    index = Index.open(tmp_path / "index")
    report = index.add({f"n{n}": note(n) for n in range(10_000)})
    assert len(report.added) == 10_000
    size = index.info()["bytes"]
    asked = range(7_501, 10_000, 250)

    def hits() -> list[list[str]]:
        return [
            [node.text for node in index.retrieved(note(n)[3:], 60, Retrieval("collapsed", layers=(0,))).nodes][:1]
            for n in asked
        ]

    before = hits()
    index.remove([f"n{n}" for n in range(5_000)])
    index.add({f"n{n}": note(n, 1) for n in range(5_000, 7_500)})
    assert hits() == before
    info = index.info()
    assert info["documents"] == 5_000 and info["unsummarised"] == 0 and info["bytes"] < 1.5 * size
    assert info["layers"][0]["nodes"] == 5_000
    roots = {*index.store.edges()} - {child for children in index.store.edges().values() for child in children}
    assert len(roots) == 1
    [found] = index.retrieved(note(6_000, 1)[3:], 40, Retrieval("flat")).nodes[:1]
    assert found.document == "n6000" and "turn 1" in found.text


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # umap and numba warn when they are loaded
def test_the_papers_preset_builds_plain_chunks_and_is_asked_with_collapsed(tmp_path: Path) -> None:
    need("umap")
    need("sklearn")
    options = Options(embedder="static")  # in place of the paper's, which would be downloaded
    index = Index.open(tmp_path / "index", preset="raptor", options=options)
    index.add({name: page(name, 20) for name in SUBJECTS})
    again = Index.open(tmp_path / "index", options=options)
    assert (again.built.preset, again.built.clusterer, again.way(None)) == ("raptor", "raptor", "collapsed")
    assert again.budget == 2000
    layers = again.info()["layers"]
    assert len(layers) > 1 and layers[-1]["nodes"] <= 11  # it may end in several roots
    assert not any(node.above for node in again.store.get(again.store.view().ids.tolist()))
    assert again.ask(QUESTION).citations[0].document == "trains"


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_the_papers_tree_waits_for_a_model_that_is_paid(tmp_path: Path) -> None:
    need("umap")
    settings = load_settings({"summarizer": "llm", "llm": "scripted:A short summary."})
    index = Index.open(tmp_path / "index", preset="raptor", settings=settings, options=Options(embedder="static"))
    index.add({name: page(name, 20) for name in SUBJECTS})
    assert not index.store.edges()
    bill = index.bill()
    assert bill.calls and not bill.exact
    index.summarize()
    assert index.store.edges() and not index.store.unsummarised()
    assert index.info()["cost"]["prompt_tokens"] <= bill.prompt_tokens
    assert index.bill().calls == 0


def test_a_cross_encoder_judges_what_no_child_says(index: Index) -> None:
    class Words:
        def rerank(self, query: str, texts: Any) -> Any:
            return np.asarray([float("carriage" in query) for _ in texts])

    node = next(index.store.get([one])[0] for one in index.store.edges())
    children = index.store.get(node.children)
    said = replace(node, text="They sleep in a carriage of gold. The loaf was made of sand.")
    found = asyncio.run(Judge(reranker=Words(), threshold=0.5).check(said, children))
    assert [(one.verdict, one.by, one.score) for one in found] == [
        ("supported", "reranker", 1.0), ("unsupported", "reranker", 0.0),
    ]  # fmt: skip
    literal = asyncio.run(Judge().check(node, children))
    assert {one.by for one in literal} == {"words"}


@pytest.mark.parametrize(
    ("sentence", "by"),
    [
        ("Levels Month cm: May – July.", "rows"),
        ("Levels Month cm: July – May.", ""),  # not in this order
        ("Levels Month cm: May – August.", ""),  # no such row
        ("Depths Month cm: May – July.", ""),  # another table
        ("Levels Month cm: June – October.", "rows"),  # the end of a range that a child states
        ("Opened: 1932", "rows"),
        ("Opened: 1933", ""),
        ("Levels: 12 – 14.", ""),  # no row begins so
    ],
)
def test_sentences_that_name_rows_are_checked_against_the_rows(index: Index, sentence: str, by: str) -> None:
    node = next(index.store.get([one])[0] for one in index.store.edges())
    texts = ("Levels\nMonth\tcm\nMay\t12\nJune\t13\nJuly\t14\nOpened\t1932", "Levels Month cm: September – October.")
    children = [replace(node, text=text) for text in texts]
    [found] = asyncio.run(Judge().check(replace(node, text=sentence), children))
    assert (found.by, found.verdict) == (by, "supported" if by else "unchecked")


def test_an_index_follows_no_address_and_no_code_as_its_embedder(index: Index) -> None:
    for spec in ("http://10.0.0.1/v1#m", "stranger.py:Engine", "unknown", 7, None):
        index.store.put_notes({"built": json.dumps({"embedder": spec})})
        assert Index.open(index.location).built.named_embedder == ""


def test_an_index_names_the_embedder_it_was_made_with(index: Index, tmp_path: Path) -> None:
    settings = replace(load_settings(), embedder="onnx:/no/such/folder")
    again = Index.open(tmp_path / "index", settings=settings)
    assert again.built.embedder == "static"
    assert again.ask(QUESTION).citations[0].document == "trains"


def test_where_the_embedder_that_an_index_names_has_moved_the_settings_name_it(index: Index, tmp_path: Path) -> None:
    index.store.put_notes({"built": json.dumps({"embedder": "onnx:/no/such/folder"})})
    assert Index.open(tmp_path / "index").ask(QUESTION).citations[0].document == "trains"
    elsewhere = replace(load_settings(), embedder="onnx:/nor/this")
    with pytest.raises(BadInput, match="/no/such/folder"):
        Index.open(tmp_path / "index", settings=elsewhere).ask(QUESTION)


def test_a_process_with_another_embedder_cuts_nothing_for_an_index(index: Index) -> None:
    cutting = index.cutting()
    assert cutting.cutter().dimension == index.store.dimension
    with pytest.raises(BadInput, match=r"built with the embedder other .*, and this process has"):
        replace(cutting, embedder="other").cutter()
