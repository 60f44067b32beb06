"""Every system obeys the budget, in every variant."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.extras import ALL

from prunus_evals import readers, systems
from prunus_evals.errors import DataMissing, EvalError, UnknownName
from prunus_evals.records import Document, Question, Reply, System, one_page
from prunus_evals.store import Store
from prunus_evals.systems import _embed
from prunus_evals.systems._embed import CachedEmbedder
from prunus_evals.systems.chunks import heading_chunks, token_chunks, word_chunks
from prunus_evals.systems.readerlm import bare
from prunus_evals.tokens import TokenizerCounter, llama2
from prunus_evals.visible import html_text, visible_text

BUDGETS = (1, 7, 64, 200, 512, 100_000)

MORE = (
    "prunus:hybrid:html@words=64",
    "prunus:hybrid:html@units=leaves@costs=yes",
    "prunus:bm25:markdown@from=markdown",
    "prunus:bm25:text@from=text",
    "prunus:bm25:html@then=markdown@main=yes",
    "prunus:bm25>static:html@coarse=2000@coarse_words=256@costs=yes",
    "prunus:embedding+static:html@links=yes@breadcrumbs=yes",
    "chunks:fixed:static@words=20@pack=whole@costs=yes",
    "whole:html@costs=yes",
    "vectors:static@top=2@words=5@costs=yes",
    "tree:ward@start=1@count=1@costs=yes",
    "tree:contiguous@ranker=hybrid@way=flat",
    "tree:random@llm=scripted:A pier and trams.",
)
"""Variants that are not listed."""


def make(name: str, counter: TokenizerCounter) -> System:
    lacking = systems.missing(name)
    if lacking and ALL and not name.startswith(NEVER):
        pytest.fail(f"{name}: {lacking}")
    if lacking:
        pytest.skip(lacking)
    return systems.make(name, counter)


NEVER = ("reference", "tags:MODEL", "readerlm", "longllmlingua")
"""Systems that need what no extra installs: another environment, or a model."""

BASELINES = [
    pytest.param(name, marks=pytest.mark.slow) if name == "tree:raptor" else name  # umap compiles for a minute
    for name in systems.names()
    if not name.startswith("prunus")
]


@pytest.mark.parametrize("name", BASELINES)
def test_budget_is_obeyed(name: str, page: str, counter: TokenizerCounter) -> None:
    asker = make(name, counter).prepare(one_page(page))
    for budget in BUDGETS:
        reply = asker.ask("How many visitors came to City 17?", budget)
        assert counter.count([reply.text])[0] <= budget
    assert isinstance(reply, Reply)
    if not name.startswith(EXTRACTS):
        assert "City 17" in visible_text(reply.text, reply.format)


def test_markdown_is_shown_in_three_ways(counter: TokenizerCounter) -> None:
    rows = "".join(f"<tr><td>R{number}<td>{number} km" for number in range(40))
    page = f"<h1>Rivers</h1><p>Nothing.</p><table><tr><th>River<th>Length{rows}</table><h2>Pell</h2><p>R7 is long.</p>"
    way = {name: make(f"shown:{name}", counter).prepare(one_page(page)) for name in ("unmarked", "labels")}
    usual = make("prunus:trees:markdown", counter).prepare(one_page(page)).ask("How long is R7?", 60).text
    assert "\u2026" in usual and "|R7|7 km|" in usual
    assert "\u2026" not in way["unmarked"].ask("How long is R7?", 60).text
    assert "River: R7; Length: 7 km" in way["labels"].ask("How long is R7?", 60).text
    merged = page.replace("<th>Length", "<th>Length<br>(km)")  # Markdown has such a table as HTML
    labelled = make("shown:labels", counter).prepare(one_page(merged)).ask("How long is R7?", 60).text
    assert "River: R7; Length (km): 7 km" in labelled and "<" not in labelled
    late = f"<p>{'The council met. ' * 90}<h2>Pell</h2><p>The river Pell is 99 km long. {'It flows on. ' * 90}"
    ordered = make("shown:score", counter).prepare(one_page(late)).ask("How long is the river Pell?", 2000).text
    assert ordered.index("## Pell") < ordered.index("99 km") < ordered.index("The council met.")


EXTRACTS = ("main_text", "results", "tree:ward@way=root")
"""Systems that leave out parts of the page at any budget."""


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("html", ["", "plain words", "<p>one</p><p>two</p>"])
def test_small_pages(name: str, html: str, counter: TokenizerCounter) -> None:
    if name.startswith("reference") and not html.startswith("<"):
        pytest.skip("the reference crashes on what has no tags")
    budget = 40 if name.startswith("htmlrag") else 10  # it writes all end tags
    reply = make(name, counter).prepare(one_page(html)).ask("one?", budget)
    if not name.startswith(EXTRACTS):
        assert visible_text(reply.text, reply.format).split() == html_text(html).split()


TEXT = "The pier opened in 1932.\n\nTrams run daily. They stop at the pier.\n\n" * 8
SEVERAL = (
    Document("a", "<h1>Pier</h1><p>The pier opened in 1932.</p><p>It is long.</p>", title="Pier", snippet="A pier."),
    Document("b", TEXT, "text/plain", title="Trams"),
    Document("c", ""),
    Document("d", "<p>Nothing about it.", url="https://example.org/d"),
)


@pytest.mark.parametrize("name", [*systems.names(), *MORE])
def test_several_documents_texts_and_empty_pages_obey_the_budget(name: str) -> None:
    if name.startswith("reference"):
        pytest.skip("the reference crashes on what has no tags")
    counter = llama2()
    asker = make(name, counter).prepare(SEVERAL)
    for budget in (1, 3, 9, 40, 1000):
        reply = asker.ask("When did the pier open?", budget)
        assert counter.count([reply.text])[0] <= budget
        json.dumps(dict(reply.facts))


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
    assert systems.expand("all") == [name for name in systems.names() if not systems.missing(name)]
    assert systems.expand("chunks:fixed:static@words=64") == ["chunks:fixed:static@words=64"]
    for unknown in ("nothing", "chunks_bm25:", "_chunks"):
        with pytest.raises(UnknownName):
            systems.expand(unknown)


@pytest.mark.parametrize("name", systems.expand("prunus"))
def test_prunus_obeys_the_common_counter(name: str, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_MIN_CONFIDENCE", "0")  # the system `sentences` knows no heads of columns
    counter = llama2()
    asker = systems.make(name, counter).prepare(one_page(page))
    for budget in (64, 200, 512):
        reply = asker.ask("How many visitors came to City 17?", budget)
        assert counter.count([reply.text])[0] <= budget
    assert "17,017" in visible_text(reply.text, reply.format)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("prunus:hybrid:pdf", "pdf is no format; the formats are: html"),
        ("prunus:hybrid:html@word=64", "unknown option word of hybrid:html@word=64; the options are: words"),
        ("prunus:hybrid:html@words=many", "@words=many is no whole number"),
        ("prunus:hybrid:html@units=pages", "@units=pages is not known; choose one of: blocks, leaves"),
        ("prunus:hybrid:html@words=1@words=2", "the option words stands twice"),
        ("prunus:nothing:html", "unknown system prunus:nothing:html"),
        ("chunks:fixed:nothing", "unknown system chunks:fixed:nothing"),
        ("chunks:pages:bm25", "unknown system chunks:pages:bm25"),
        ("whole:html@words=3", "unknown option words"),
        ("readerlm:nothing", "no llm is called 'nothing'"),
        ("tags", "tags needs a language model"),
        ("tags:nothing", "no llm is called 'nothing'"),
        ("prunus:tags", "prunus:tags@llm=SPEC"),
        ("prunus:ask@words=3", "unknown option words"),
        ("tree:oak", "unknown system tree:oak"),
        ("tree:ward@way=down", "@way=down is not known; choose one of: collapsed, flat"),
        ("tree:ward@count=0", "at least one layer"),
        ("tree:ward@llm=nothing", "nothing"),
        ("vectors:nothing", "unknown system vectors:nothing"),
        ("main_text:newspaper", "unknown system main_text:newspaper"),
    ],
)
def test_an_unknown_variant_is_one_line_that_says_what_there_is(name: str, said: str) -> None:
    with pytest.raises(UnknownName) as caught:
        systems.make(name, llama2())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_system_that_lacks_a_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus_evals.systems._embed.find_spec", lambda name: None)
    with pytest.raises(DataMissing, match=r"chunks:fixed:minilm: minilm needs onnxruntime: pip install .*\[onnx\]'"):
        systems.make("chunks:fixed:minilm", llama2())


def test_a_text_is_embedded_once_for_all_budgets() -> None:
    asked: list[str] = []

    class Engine:
        identity, dimension = "counts", 2

        def embed(self, texts: Sequence[str], kind: str = "document") -> NDArray[np.float32]:
            asked.extend(texts)
            return np.asarray([[1, 0]] * len(texts), np.float32)

    embedder = CachedEmbedder(Engine(), "counts")
    for _ in range(3):
        assert embedder.embed(["a", "b", "a"]).shape == (3, 2)
    embedder.embed(["b", "c"], "document")
    embedder.embed(["a"], "query")
    assert asked == ["a", "b", "c", "a"]


COUNTING = """
import numpy as np

class Counting:
    identity, dimension = "counting", 4
    texts = []

    def embed(self, texts, kind="document"):
        self.texts.extend(texts)
        found = np.asarray([[len(text) % 7 + 1, text.count("e"), text.count("a"), 1] for text in texts], np.float32)
        return found.reshape(-1, 4) / np.linalg.norm(found.reshape(-1, 4), axis=1, keepdims=True)
"""


@pytest.mark.parametrize(
    "name",
    [
        *("chunks:fixed:{}", "vectors:{}", "tree:ward@embedder={}"),
        *("prunus:embedding+{}:html", "prunus:hybrid:html@embedder={}"),
    ],
)
def test_where_costs_are_measured_every_text_is_embedded_again(name: str, page: str, tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text(COUNTING)
    spec = f"{file}:Counting"
    texts = _embed.embedder(spec)._engine.texts  # type: ignore[attr-defined]

    def embedded(system: System) -> int:
        before = len(texts)
        system.prepare(one_page(page)).ask("Who was the host?", 200)
        return len(texts) - before

    plain, costs = (systems.make(name.format(spec) + end, llama2()) for end in ("", "@costs=yes"))
    first = embedded(plain)
    assert first > 1
    assert embedded(plain) == 0
    assert embedded(costs) >= first
    assert embedded(costs) >= first


def test_a_reranker_that_holds_nothing_scores_every_pair_again() -> None:
    asked: list[str] = []

    class Engine:
        def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
            asked.extend(texts)
            return np.ones(len(texts))

    for hold, wanted in ((True, ["a", "b"]), (False, ["a", "b", "a", "b"])):
        asked.clear()
        reranker = _embed.CachedReranker(Engine(), "ones", hold)
        for _ in range(2):
            assert reranker.rerank("?", ["a", "b"]).tolist() == [1, 1]
        assert asked == wanted


def test_stages_count_original_cleaned_and_pruned_tokens(page: str) -> None:
    counter = llama2()
    reply = systems.make("prunus:bm25:html@costs=yes", counter).prepare(one_page(page)).ask("City 17?", 64)
    clean, *rest, last = reply.stages
    assert (clean.name, clean.tokens_in) == ("clean", counter.count([page])[0])
    assert clean.tokens_in > clean.tokens_out == rest[0].tokens_in
    assert last.tokens_out == counter.count([reply.text])[0] <= 64
    assert systems.make("prunus:bm25:html", counter).prepare(one_page(page)).ask("City 17?", 64).stages == ()


def asked(question: str, sentences: Sequence[str], tags: tuple[int, ...] | None) -> Question:
    return Question("q", "t", "p", (), question, kind="tags", sentences=tuple(sentences), tags=tags)


@pytest.mark.parametrize(
    ("reply", "tags", "facts"),
    [
        ("TAG-1", (1,), {"nonsense": 0, "unknown": 0}),
        ("None", None, {"nonsense": 0, "unknown": 0}),
        ("TAG-0 and TAG-7", (0, -1), {"nonsense": 0, "unknown": 1}),
        ("I am a pier.", (-1,), {"nonsense": 1, "unknown": 0}),
    ],
)
def test_a_model_by_prompt_alone_names_tags_and_its_nonsense_is_counted(
    reply: str, tags: tuple[int, ...] | None, facts: dict[str, int]
) -> None:
    asker = systems.make(f"tags:scripted:{reply}", llama2()).prepare(())
    found = asker.ask_question(asked("When?", ["A tram.", "It opened in 1932."], (1,)), 50)  # type: ignore[attr-defined]
    assert (found.tags, found.facts) == (tags, facts)


def test_extractors_of_prunus_name_tags_of_the_question_or_of_the_documents() -> None:
    sentences = ["Trams run daily.", "The Harrow pier opened in 1932.", "Bread is baked at night."]
    question = asked("When did the Harrow pier open?", sentences, (1,))
    for name in ("prunus:sentences", "prunus:sentences@count=1", "prunus:tags@llm=scripted:TAG-1"):
        asker = systems.make(name, llama2()).prepare([Document("a", "<p>" + "<p>".join(sentences))])
        assert asker.ask_question(question, 50).tags == (1,)  # type: ignore[attr-defined]
        assert asker.ask(question.question, 50).text == sentences[1]
    nonsense = systems.make("prunus:tags@llm=scripted:A pier.", llama2()).prepare(SEVERAL).ask("Pier?", 50)
    assert (nonsense.tags, nonsense.facts["nonsense"]) == ((-1,), 1)


def test_a_model_that_writes_markdown_is_cut_at_the_budget_and_its_fence_is_dropped(page: str) -> None:
    name = "readerlm:scripted:```markdown\n# Games\n\nThey took place every year.\n```@html=100"
    asker = systems.make(name, llama2()).prepare([*one_page(page), Document("b", "")])
    reply = asker.ask("When?", 200)
    assert (reply.text, reply.format) == ("# Games\n\nThey took place every year.", "markdown")
    assert reply.facts == {"cut": 1} and reply.stages[0].name == "convert by the model"
    assert asker.ask("When?", 2).text == "# Games"[: len(asker.ask("When?", 2).text)]


def test_a_page_for_a_model_has_no_scripts() -> None:
    assert bare("<p>A<script>x</script> <!-- c --><style>y</style>\n b") == "<html><body><p>A b</p></body></html>"


def test_compression_gets_question_and_budget_and_never_exceeds_it(
    monkeypatch: pytest.MonkeyPatch, page: str, tmp_path: Path
) -> None:
    calls: list[dict[str, object]] = []

    class PromptCompressor:
        def __init__(self, model: str, device_map: str, model_config: dict[str, bool]) -> None:
            assert (model, device_map, model_config) == (str(tmp_path), "cpu", {"trust_remote_code": False})

        def compress_prompt(self, context: list[str], **settings: object) -> dict[str, str]:
            if settings["question"] == "broken":
                raise RuntimeError("out of\nmemory")
            calls.append(settings)
            return {"compressed_prompt": "\n\n".join(context)}

    module = ModuleType("llmlingua")
    module.PromptCompressor = PromptCompressor  # type: ignore[attr-defined]
    module.__spec__ = ModuleSpec("llmlingua", None)
    monkeypatch.setitem(sys.modules, "llmlingua", module)
    counter = llama2()
    asker = systems.make(f"longllmlingua:{tmp_path}@costs=yes", counter).prepare(one_page(page))
    reply = asker.ask("Who won?", 30)
    assert counter.count([reply.text])[0] <= 30 < reply.stages[0].tokens_out
    assert (calls[0]["question"], calls[0]["target_token"], calls[0]["concate_question"]) == ("Who won?", 30, False)
    with pytest.raises(EvalError, match=r"llmlingua failed \(RuntimeError: out of memory\)"):
        asker.ask("broken", 30)
    with pytest.raises(UnknownName, match="is no folder of a model"):
        systems.make("longllmlingua:nowhere", counter)


def test_answers_of_prunus_are_quotes(page: str) -> None:
    asker = systems.make("prunus:ask", llama2()).prepare(one_page(page))
    reply = asker.ask("How many visitors came to City 17?", 500)
    assert any("17,017" in quote for quote in reply.quotes)
    assert reply.stages and reply.facts["answer"]
    assert asker.ask("Who painted the ceiling of the opera in Lisbon?", 500).quotes == ()


def test_a_tree_tells_the_layers_of_its_nodes(page: str) -> None:
    counter = llama2()
    layers = {}
    for options in ("", "@way=flat", "@way=root", "@start=1@count=1", "@start=1@count=2"):
        asker = systems.make(f"tree:ward{options}", counter).prepare(one_page(page * 3))
        facts = asker.ask("Who visited City 17?", 2000).facts
        layers[options] = {*facts["layers"]}
    height = str(facts["height"])
    assert height != "0"
    assert (layers["@way=flat"], layers["@way=root"]) == ({"0"}, {height})
    assert layers["@start=1@count=1"] == {"1"}
    assert "0" in layers["@start=1@count=2"]


@pytest.mark.parametrize("options", ["", "@ranker=bm25", "@way=hybrid", "@way=traversal", "@way=beam", "@way=flat"])
def test_a_tree_that_is_held_answers_like_one_that_is_read_anew(options: str, page: str) -> None:
    held, anew = (
        systems.make(f"tree:ward{options}{costs}", llama2()).prepare(one_page(page * 3)) for costs in ("", "@costs=yes")
    )
    for question in ("Who visited City 17?", "Which mascots were there?"):
        for budget in (300, 900, 300):
            assert replace(anew.ask(question, budget), stages=()) == held.ask(question, budget)


def test_results_without_a_snippet_say_so() -> None:
    documents = [Document("a", "<p>A pier.", title="Pier", snippet="Opened in 1932."), Document("b", "<p>A tram.")]
    reply = systems.make("results:snippets", llama2()).prepare(documents).ask("?", 100)
    assert (reply.text, reply.facts) == ("Pier\nOpened in 1932.\n\nA tram.", {"proxies": 1})


def test_an_abstract_is_the_section_of_that_name_or_the_first_paragraph() -> None:
    paragraph = "It opened in 1932 and was the longest pier of the whole coast."
    for body in (f"<p>{paragraph}</p><p>More.</p>", f"<p>Menu</p><h2>Abstract</h2><p>{paragraph}</p><h2>More</h2>Text"):
        document = Document("a", f"<title>Pier</title><h1>Pier</h1>{body}")
        assert systems.make("results:title_abstract", llama2()).prepare([document]).ask("?", 99).text == (
            f"Pier\n{paragraph}"
        )


def test_vectors_are_the_nearest_first(page: str) -> None:
    system = systems.make("vectors:static@words=12@top=1", llama2())
    reply = system.prepare(one_page(page)).ask("mascots: Otter of Riverton", 50)
    assert "Otter" in reply.text and reply.facts["index"] in ("faiss", "matrix")


def test_vector_rag_of_the_paper_takes_the_chunks_beside_the_best_of_the_same_document() -> None:
    words = [f"word{n}" for n in range(400)]
    documents = [Document("a", " ".join(words), "text/plain"), Document("b", "The otter of Riverton.", "text/plain")]
    system = systems.make("vectors:static@tokens=64@overlap=16@top=1", llama2())
    beside = systems.make("vectors:static@tokens=64@overlap=16@top=1@beside=1", llama2())
    question = "otter of Riverton"
    assert beside.prepare(documents).ask(question, 500).text == "The otter of Riverton."
    alone, around = (one.prepare(documents[:1]).ask("word200", 500).text for one in (system, beside))
    assert alone in around and around.count("word") > 2 * alone.count("word")
    for wrong in ("@overlap=9", "@tokens=8@overlap=8", "@tokens=0"):
        with pytest.raises(UnknownName, match="tokens"):
            systems.make(f"vectors:static{wrong}", llama2())


def test_chunks_of_tokens_overlap_and_hold_the_whole_text() -> None:
    text, counter = " ".join(f"word{n}" for n in range(200)), llama2()
    chunks = token_chunks(text, 64, 16, counter)
    assert all(counter.count([chunk])[0] <= 64 for chunk in chunks)
    places = [text.index(chunk) for chunk in chunks]
    ends = [place + len(chunk) for place, chunk in zip(places, chunks, strict=True)]
    assert places[0] == 0 and ends[-1] == len(text)
    assert all(start < end for start, end in zip(places[1:], ends, strict=False))


def test_converted_pages_are_read_as_they_were_written() -> None:
    document = Document("a", "<h1>Pier</h1><p>It <b>opened</b> in 1932.</p>")
    reply = systems.make("prunus:bm25:markdown@from=markdown", llama2()).prepare([document]).ask("opened", 100)
    assert reply.text == "# Pier\n\nIt opened in 1932."


def test_two_stages_are_a_system_of_their_own() -> None:
    from prunus_evals.systems.prunus import Prunus, accepts

    assert (
        accepts("bm25>hybrid:html")
        and accepts("hybrid>crossencoder:markdown")
        and accepts("bm25>embedding+minilm:html")
        and accepts("hybrid>generative:some/model:html@stages=2")
    )
    assert not accepts("bm25>:html") and not accepts("nothing>bm25:html")
    assert not accepts("bm25>hybrid+:html")
    page = "".join(f"<p>Pier {number} opens at {number}.</p>" for number in range(40))
    reply = Prunus("bm25>static", "html").prepare(one_page(page)).ask("When does pier 7 open?", 60)
    assert "Pier 7 opens" in reply.text


@pytest.mark.parametrize(
    "name", ["tags:{}", "readerlm:{}", "prunus:tags@llm={}", "prunus:extract@llm={}", "prunus:ask@llm={}",
             "tree:ward@llm={}"],
)  # fmt: skip
def test_what_another_model_behind_the_same_name_makes_is_measured_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
    store, made = Store(None), systems.make(name.format("http://127.0.0.1:9/v1#m"), llama2())
    keys = []
    for parameters in (7_000_000_000, 135_000_000, 7_000_000_000):
        monkeypatch.setattr(readers, "served", lambda spec, size=parameters: {"id": "m", "n_params": size})
        keys.append(readers.made_of(made, store))
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize("name", ["vectors:onnx:{}", "chunks:fixed:onnx:{}", "prunus:embedding+onnx:{}:html"])
def test_changed_files_of_an_embedder_are_another_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_embed, "missing", lambda name: "")
    store, weights = Store(None), tmp_path / "model.onnx"
    weights.write_bytes(b"1")
    made = systems.make(name.format(tmp_path), llama2())
    before = readers.made_of(made, store)
    weights.write_bytes(b"22")
    assert readers.made_of(made, store) != before
