"""The functions of the package `prunus`: their arguments, their results and their errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import prunus
from prunus.core.events import CitationEvent, DoneEvent, ExtractedEvent, KeptEvent, PageEvent, TokenEvent, UsageEvent

PAGE = "<h1>Harbour</h1><p>The ferry leaves at noon.</p><p>The lighthouse was built in 1871.</p>"
QUESTION = "When does the ferry leave?"


@pytest.mark.parametrize("source", [PAGE, PAGE.encode(), prunus.Page(PAGE), prunus.Page(PAGE.encode(), url="a.html")])
def test_anything_that_is_a_page_is_taken_by_all(source: Any) -> None:
    assert "ferry" in prunus.clean(source)
    assert "ferry" in prunus.prune(source, QUESTION).text
    assert "ferry" in prunus.prune([source, source], QUESTION).text
    assert "noon" in prunus.ask(QUESTION, source).text
    assert prunus.extract(QUESTION, source)


def test_paths_and_folders_are_taken(folder: Path) -> None:
    (folder / "a.html").write_text(PAGE)
    (folder / "b.txt").write_text("Charts are sold here.\n\nThe ferry is red.")
    assert prunus.clean(folder / "a.html") == prunus.clean(PAGE)
    context = prunus.prune(folder, QUESTION)
    assert [Path(document.url).name for document in context.documents] == ["a.html", "b.txt"]
    assert "noon" in prunus.ask(QUESTION, [folder]).text


def test_pages_read_once_are_questions_many_times() -> None:
    documents = prunus.read(PAGE)
    assert prunus.prune(documents, QUESTION, 30).text == prunus.prune(PAGE, QUESTION, 30).text
    assert "1871" in prunus.prune(documents, "When was the lighthouse built?", 20).text
    assert "noon" in prunus.ask(QUESTION, documents).text
    assert "1871" in prunus.ask("When was the lighthouse built?", documents).text


def test_a_context_tells_what_became_of_every_block() -> None:
    context = prunus.prune(PAGE, QUESTION, 12, options=prunus.Options(max_words=6))
    assert context.budget == 12
    assert context.question == QUESTION
    assert context.kept == [block for block in context.blocks if block.kept]
    assert [block.index for block in context.blocks] == list(range(len(context.blocks)))
    assert {block.role for block in context.blocks} <= {"scored", "header", "cut"}
    assert context.engines == {"tokenizer": "smollm2", "scorer": "trees", "embedder": "static"}
    assert set(context.seconds) >= {"blocks", "score", "prune"}
    assert str(context) == context.output == context.html


def test_formats_of_one_context_hold_the_same_evidence() -> None:
    context = prunus.prune(PAGE, QUESTION, 400, "markdown")
    assert (
        context.output
        == context.markdown
        == "# Harbour\n\nThe ferry leaves at noon.\n\nThe lighthouse was built in 1871."
    )
    assert context.text == "Harbour\nThe ferry leaves at noon.\nThe lighthouse was built in 1871."
    assert context.html.startswith("<h1>Harbour</h1>")


def test_a_context_gives_the_evidence_of_each_document_alone() -> None:
    dated = '<title>Trams</title><meta property="article:published_time" content="2024-03-06"><p>The ferry is no tram.'
    context = prunus.prune([PAGE, dated, "<p>Charts"], QUESTION, 400, "text")
    parts = [context.of(number) for number in range(3)]
    assert parts[0] == "Harbour\nThe ferry leaves at noon.\nThe lighthouse was built in 1871."
    assert [line for line in context.output.splitlines() if line and line[0] != "["] == "\n".join(parts).splitlines()
    assert context.of(1, "html").endswith("<p>The ferry is no tram.")
    assert context.metadata(1).published.startswith("2024-03-06") and context.metadata(0).published == ""
    assert prunus.prune([PAGE, "<p>Charts are sold."], QUESTION, 30).of(1) == ""
    for number in (-1, 3):
        with pytest.raises(prunus.BadInput, match="there are 3"):
            context.of(number)


def test_passages_come_with_their_places() -> None:
    documents = prunus.read(PAGE)
    (tree,) = documents.trees
    passages = prunus.extract(QUESTION, documents)
    assert passages[0].text == "The ferry leaves at noon."
    for passage in passages:
        (span,) = passage.spans
        assert tree.canonical[span.start : span.end] == passage.text
    assert prunus.extract("photosynthesis enzymes?", documents) == []


def test_options_choose_engines_and_shape() -> None:
    context = prunus.prune(PAGE, QUESTION, options=prunus.Options(scorer="bm25", tokenizer="approx", full=True))
    assert context.engines["scorer"] == "bm25"
    assert context.html.endswith("</html>")
    leaves = prunus.prune("<div>lead <b>bold</b> tail</div>", "bold?", options=prunus.Options(units="leaves"))
    assert len(leaves.blocks) == 3


# --- streams -------------------------------------------------------------------------------------


def events() -> list[Any]:
    async def collect() -> list[Any]:
        return [event async for event in prunus.astream(QUESTION, PAGE)]

    return asyncio.run(collect())


def test_an_answer_streams_as_events_that_end_in_done() -> None:
    found = events()
    kinds = [type(event) for event in found]
    order = [PageEvent, KeptEvent, ExtractedEvent, TokenEvent, CitationEvent, UsageEvent, DoneEvent]
    assert list(dict.fromkeys(kinds)) == order
    assert kinds[-1] is DoneEvent
    answer = found[-1].answer
    assert "".join(event.text for event in found if isinstance(event, TokenEvent)) == answer.text
    assert [event.citation for event in found if isinstance(event, CitationEvent)] == list(answer.citations)


def test_each_event_carries_its_name() -> None:
    assert [event.event for event in events()][:2] == ["page", "kept"]


def test_asking_works_where_an_event_loop_runs() -> None:
    async def inside() -> prunus.Answer:
        return prunus.ask(QUESTION, PAGE)

    assert asyncio.run(inside()).text == prunus.ask(QUESTION, PAGE).text

    async def extract_inside() -> list[prunus.Passage]:
        return prunus.extract(QUESTION, PAGE)

    assert asyncio.run(extract_inside()) == prunus.extract(QUESTION, PAGE)


def test_errors_cross_an_event_loop_that_runs() -> None:
    async def inside() -> None:
        prunus.ask("Which enzyme drives photosynthesis?", PAGE)

    with pytest.raises(prunus.NothingFound):
        asyncio.run(inside())


def test_asking_leaves_no_thread_behind() -> None:
    async def inside() -> None:
        prunus.ask(QUESTION, PAGE)

    before = threading.active_count()
    asyncio.run(inside())
    assert threading.active_count() <= before


def test_threads_may_prune_the_same_documents() -> None:
    documents = prunus.read(PAGE * 20)
    questions = [QUESTION, "When was the lighthouse built?"] * 6
    expected = [prunus.prune(PAGE * 20, question, 60).output for question in questions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda question: prunus.prune(documents, question, 60).output, questions)) == expected


# --- bad input -----------------------------------------------------------------------------------

BAD: dict[str, tuple[type[prunus.PrunusError], Callable[[], object]]] = {
    "unknown format": (prunus.BadInput, lambda: prunus.clean(PAGE, "pdf")),  # type: ignore[arg-type]
    "unknown format to prune": (prunus.BadInput, lambda: prunus.prune(PAGE, QUESTION, format="xml")),  # type: ignore[arg-type]
    "empty question": (prunus.BadInput, lambda: prunus.prune(PAGE, " \n")),
    "empty question to ask": (prunus.BadInput, lambda: prunus.ask("", PAGE)),
    "budget of nothing": (prunus.BadBudget, lambda: prunus.prune(PAGE, QUESTION, 0)),
    "negative budget": (prunus.BadBudget, lambda: prunus.ask(QUESTION, PAGE, budget=-5)),
    "no page": (prunus.BadInput, lambda: prunus.prune([], QUESTION)),
    "empty page": (prunus.BadPage, lambda: prunus.clean("")),
    "white page": (prunus.BadPage, lambda: prunus.clean(" \n\t")),
    "page without words": (prunus.BadPage, lambda: prunus.prune("<script>x</script>", QUESTION)),
    "binary page": (prunus.BadPage, lambda: prunus.clean(b"\x89PNG\r\n\x1a\n\0\0")),
    "missing file": (prunus.BadPage, lambda: prunus.clean(Path("no-such-file.html"))),
    "no page at all": (prunus.BadInput, lambda: prunus.clean(42)),  # type: ignore[arg-type]
    "an address": (prunus.BadInput, lambda: prunus.clean("http://127.0.0.1/")),
    "negative granularity": (
        prunus.BadInput,
        lambda: prunus.prune(PAGE, QUESTION, options=prunus.Options(max_words=-1)),
    ),
    "unknown engine": (prunus.UnknownEngine, lambda: prunus.prune(PAGE, QUESTION, options=prunus.Options(scorer="x"))),
    "unknown units": (prunus.BadInput, lambda: prunus.prune(PAGE, QUESTION, options=prunus.Options(units="x"))),  # type: ignore[arg-type]
    "nothing relevant": (prunus.NothingFound, lambda: prunus.ask("Which enzyme drives photosynthesis?", PAGE)),
}


@pytest.mark.parametrize(("error", "call"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_of_the_right_kind(error: type[prunus.PrunusError], call: Callable[[], object]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_errors_carry_exit_codes_of_the_command_line() -> None:
    assert prunus.BadInput.exit_code == prunus.BadPage.exit_code == prunus.MissingExtra.exit_code == 2
    assert prunus.OutsideFailed.exit_code == 3
    assert prunus.NothingFound.exit_code == 4


# --- the example site ----------------------------------------------------------------------------


def test_hidden_text_of_the_example_site_never_comes_out(site: dict[str, str], questions: list[dict[str, Any]]) -> None:
    """Text that only a style sheet hides is not tested here."""
    checked = 0
    for row in questions:
        html = "".join(site[name] for name in row["pages"])
        secrets = [
            secret for secret in row.get("must_not", []) if f'<div class="vt-seo-x7">Class rule: {secret}' not in html
        ]
        context = prunus.prune([site[name] for name in row["pages"]], row["question"], 1500)
        for shown in (context.html, context.markdown, context.text):
            assert not [secret for secret in secrets if secret in shown]
        checked += len(secrets)
    assert checked > 5


def test_answers_on_the_example_site_survive_pruning(site: dict[str, str], questions: list[dict[str, Any]]) -> None:
    """A floor over all example pages; the quality gate measures real pages."""
    documents = prunus.read(list(site.values()))
    lost = []
    for row in questions:
        shown = " ".join(prunus.prune(documents, row["question"], 1024, "text").text.split())
        if not any(" ".join(answer.split()) in shown for answer in row["answers"]):
            lost.append(row["id"])
    assert len(questions) >= 20
    assert len(lost) <= len(questions) // 4, lost


# --- settings, and pages that are given twice ------------------------------------------------------


def test_the_budget_of_the_settings_holds_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE * 40
    assert prunus.prune(page, QUESTION).budget == 4096
    monkeypatch.setenv("PRUNUS_BUDGET", "70")
    assert prunus.prune(page, QUESTION).budget == 70
    assert prunus.prune(page, QUESTION, 80).budget == 80
    few = prunus.ask(QUESTION, page).citations
    monkeypatch.setenv("PRUNUS_BUDGET", "0")
    for refused in (prunus.prune, lambda page, question: prunus.ask(question, page)):
        with pytest.raises(prunus.BadBudget):
            refused(page, QUESTION)
    with pytest.raises(prunus.BadBudget):
        prunus.extract(QUESTION, page)
    assert few


def test_a_file_is_cleaned_up_to_the_size_of_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.html").write_text("<p>" + "words " * 200_000, "utf-8")
    assert prunus.clean(folder / "a.html").startswith("<p>words")
    monkeypatch.setenv("PRUNUS_MAX_FILE_MB", "1")
    with pytest.raises(prunus.BadPage, match="over the limit of 1 MiB"):
        prunus.clean(folder / "a.html")


def test_twins_are_documents_of_their_own() -> None:
    """Two addresses with the same bytes: a citation names the page that it comes from."""
    pages = [prunus.Page(f"<p>{name}") for name in ("other words", "the bridge opened in 1932.")]
    twins = [prunus.Page("<p>The bridge opened in 1932.", url=f"https://example.org/{name}") for name in "ab"]
    documents = prunus.read([*twins, *pages])
    assert len({tree.document for tree in documents.trees}) == 4
    first, second = documents.trees[:2]
    assert first.snapshot == second.snapshot == first.document
    context = prunus.prune(documents, "When did the bridge open?", 60)
    assert {block.span.document for block in context.blocks} == {tree.document for tree in documents.trees}
    for citation in prunus.ask("When did the bridge open?", documents).citations:
        assert citation.url == {tree.document: tree.url for tree in documents.trees}[citation.document]


def test_tokens_before_are_those_of_the_cleaned_documents() -> None:
    context = prunus.prune([PAGE, PAGE * 3], QUESTION, 40, "text")
    assert context.tokens_before() > context.tokens
    assert context.tokens_before() == sum(
        prunus.prune(page, QUESTION, 100_000, "text").tokens for page in (PAGE, PAGE * 3)
    )
