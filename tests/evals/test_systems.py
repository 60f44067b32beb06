"""Every system obeys the budget, in every variant."""

from __future__ import annotations

import importlib.util

import pytest

from prunus_evals import systems
from prunus_evals.data import reference_folder
from prunus_evals.errors import UnknownName
from prunus_evals.records import Reply, System, one_page
from prunus_evals.reference import python_of
from prunus_evals.systems._chunks import word_chunks
from prunus_evals.systems.markdown_chunks_bm25 import heading_chunks
from prunus_evals.tokens import TokenizerCounter, llama2
from prunus_evals.visible import html_text, visible_text

BUDGETS = (1, 7, 64, 200, 512, 100_000)


def make(name: str, counter: TokenizerCounter) -> System:
    if name.startswith("markdown"):
        pytest.importorskip("markdownify")
    if name.startswith("reference") and not python_of(reference_folder()).is_file():
        pytest.skip("the reference's environment is not made: prunus eval reference FOLDER")
    return systems.make(name, counter)


BASELINES = [name for name in systems.names() if not name.startswith("prunus")]


@pytest.mark.parametrize("name", BASELINES)
def test_budget_is_obeyed(name: str, page: str, counter: TokenizerCounter) -> None:
    asker = make(name, counter).prepare(one_page(page))
    for budget in BUDGETS:
        reply = asker.ask("How many visitors came to City 17?", budget)
        assert counter.count([reply.text])[0] <= budget
    assert isinstance(reply, Reply)
    assert "City 17" in visible_text(reply.text, reply.format)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("html", ["", "plain words", "<p>one</p><p>two</p>"])
def test_small_pages(name: str, html: str, counter: TokenizerCounter) -> None:
    if name.startswith("clean_cut") and not html:
        pytest.skip("Prunus answers an empty page with an error")
    if name.startswith("reference") and not html.startswith("<"):
        pytest.skip("the reference crashes on what has no tags")
    reply = make(name, counter).prepare(one_page(html)).ask("one?", 10)
    assert visible_text(reply.text, reply.format).split() == html_text(html).split()


@pytest.mark.parametrize("name", ["chunks_bm25:whole", "chunks_bm25:filled"])
def test_best_chunk_is_kept(name: str, page: str, counter: TokenizerCounter) -> None:
    reply = systems.make(name, counter).prepare(one_page(page)).ask("Who is the mascot of Riverton?", 500)
    assert "Otter" in reply.text


def test_chunks_hold_every_word() -> None:
    text = "a b c\nd e\n\nf g h i j"
    chunks = word_chunks(text, 4)
    assert " ".join(chunks).split() == text.split()
    assert [len(chunk.split()) for chunk in chunks] == [4, 4, 2]


def test_markdown_is_cut_at_headings() -> None:
    chunks = heading_chunks("a\n\n# B\n\nb\n\n## C\nc d e", 3)
    assert chunks == ["a", "# B\nb", "## C\nc", "d e"]


@pytest.mark.parametrize("budget", range(12))
def test_head(budget: int, counter: TokenizerCounter) -> None:
    text = "The year 1984, and more"
    head = counter.head(text, budget)
    assert text.startswith(head)
    assert counter.count([head])[0] == min(budget, counter.count([text])[0])


def test_head_of_the_llama_tokenizer() -> None:
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip("the Llama-2 tokenizer comes with wordllama")
    counter = llama2()
    text = "Ünïcode 漢字 and   spaces\n\n<table> 😀 1,234 " * 30
    for budget in (1, 2, 3, 50, 51, 52, 53):
        head = counter.head(text, budget)
        assert text.startswith(head)
        assert budget - 4 < counter.count([head])[0] <= budget


def test_names() -> None:
    assert systems.DEFAULT in systems.names()
    assert systems.expand("text_cut,chunks_bm25") == [
        "text_cut",
        "chunks_bm25:whole",
        "chunks_bm25:filled",
    ]
    assert systems.expand("all") == systems.names()
    for unknown in ("nothing", "chunks_bm25:", "_chunks"):
        with pytest.raises(UnknownName):
            systems.expand(unknown)


@pytest.mark.parametrize("name", systems.expand("prunus"))
def test_prunus_obeys_the_common_counter(name: str, page: str) -> None:
    counter = llama2()
    asker = systems.make(name, counter).prepare(one_page(page))
    for budget in (64, 200, 512):
        reply = asker.ask("How many visitors came to City 17?", budget)
        assert counter.count([reply.text])[0] <= budget
    assert "17,017" in visible_text(reply.text, reply.format)


def test_two_stages_are_a_system_of_their_own() -> None:
    from prunus_evals.systems.prunus import Prunus, accepts

    assert (
        accepts("bm25>hybrid:html")
        and accepts("hybrid>crossencoder:markdown")
        and accepts("bm25>embedding+minilm:html")
    )
    assert not accepts("bm25>:html") and not accepts("nothing>bm25:html") and not accepts("bm25>hybrid:pdf")
    assert not accepts("bm25>hybrid+:html")
    page = "".join(f"<p>Pier {number} opens at {number}.</p>" for number in range(40))
    reply = Prunus("bm25>static", "html").prepare(one_page(page)).ask("When does pier 7 open?", 60)
    assert "Pier 7 opens" in reply.text
