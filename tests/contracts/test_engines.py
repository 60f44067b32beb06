"""What every engine promises, over every engine that is registered: a new file is under test the moment it exists."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import prunus
from prunus.core.confidence import chosen_segments
from prunus.core.errors import BadPage
from prunus.core.ports import Segment
from prunus.core.registry import KINDS, engine_class, engine_names, is_built_in, make_engine, needs_of
from prunus.core.settings import Settings
from prunus.core.types import Page, Passage, Span
from prunus.evidence.blocks import Blocks, cut
from prunus.pages.clean.walk import clean_tree

TEXTS = ["", "The ferry leaves at noon.", "潮汐站每天记录水位", "a" * 3000, "x\n\n  y\t", "\U0001f600 <b>&amp;</b>"]
PAGE = """<h1>Harbour</h1><p>The ferry leaves at noon.<p>The lighthouse was built in 1871.
<table><tr><th>Zone<th>Coins<tr><td>inner<td>2<tr><td>outer<td>3</table><ul><li>tide tables<li>charts</ul>"""


@pytest.fixture(scope="session")
def tiny_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "ferry": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="session")
def make(tiny_tokenizer: Path) -> Any:
    """Make an engine with all that it asks for."""

    def build(kind: str, name: str) -> Any:
        spec = f"{name}:{tiny_tokenizer}" if (kind, name) == ("tokenizer", "hf") else name
        if kind == "reranker":
            return Overlap()
        others = {"embedder": "static", "tokenizer": "approx", "scorer": "bm25", "reranker": ""}
        return make_engine(kind, spec, **{need: build(need, others[need]) for need in needs_of(kind, spec)})

    return build


class Overlap:
    """A reranker that counts shared words."""

    def rerank(self, query: str, texts: Sequence[str]) -> np.ndarray:
        asked = set(query.lower().replace("?", "").split())
        return np.asarray([float(len(asked & set(text.lower().split()))) for text in texts])


NEED_A_MODEL = {
    "embedder": {"http", "minilm", "multilingual", "onnx", "sentence_transformers"},  # tests/embed
    "tokenizer": {"tiktoken"},  # tests/tokens
    "extractor": {"tags"},  # tests/extract
    "generator": {"llm"},  # tests/generate
    "scorer": {"generative"},  # tests/generative
}
"""Engines that cannot be made of a name alone: their own tests hold them to the same promises."""


OLD_DEFAULTS = {"llama2", "wordllama"}
"""Engines that read the package wordllama, which the base installation lacks."""


def all_of(kind: str) -> Any:
    names = [name for name in engine_names(kind) if name not in NEED_A_MODEL.get(kind, set())]
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.full) if name in OLD_DEFAULTS else name for name in names]
    )


def blocks(max_words: int = 8) -> Blocks:
    return cut([clean_tree(PAGE), clean_tree("<p>Another page about ferries.")], max_words)


# --- every engine --------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in engine_names(kind)])
def test_an_engine_is_called_what_its_file_is_called(kind: str, name: str) -> None:
    built = engine_class(kind, name)
    assert built.name == name
    assert inspect.getdoc(built)
    if is_built_in(kind, name):  # a stranger's engine may stand in any module of its own
        module = f"prunus.{KINDS[kind].folder}.{name}".replace("/", ".")
        assert built.__module__ in (module, f"{module}.engine")
        assert inspect.getmodule(built).__doc__.startswith(f"``{name}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_room_has_an_engine(kind: str) -> None:
    assert engine_names(kind)


# --- tokenizers ----------------------------------------------------------------------------------


@all_of("tokenizer")
def test_a_tokenizer_counts_each_text(make: Any, name: str) -> None:
    engine = make("tokenizer", name)
    found = engine.count(TEXTS)
    assert found.shape == (len(TEXTS),)
    assert np.issubdtype(found.dtype, np.integer)
    assert found[0] == 0
    assert (found[1:] > 0).all()
    assert engine.count([]).shape == (0,)


@all_of("tokenizer")
def test_a_tokenizer_counts_a_batch_as_each_text_alone(make: Any, name: str) -> None:
    engine = make("tokenizer", name)
    assert engine.count(TEXTS).tolist() == [int(engine.count([text])[0]) for text in TEXTS]


@all_of("tokenizer")
def test_threads_may_share_a_tokenizer(make: Any, name: str) -> None:
    engine = make("tokenizer", name)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: engine.count(TEXTS).tolist(), range(12)))
    assert all(one == found[0] for one in found)


@all_of("tokenizer")
def test_more_text_costs_no_fewer_tokens_by_much(make: Any, name: str) -> None:
    engine = make("tokenizer", name)
    counts = engine.count(["tide tables " * number for number in range(1, 30)])
    assert (np.diff(counts) > 0).all()


# --- embedders -----------------------------------------------------------------------------------


@all_of("embedder")
@pytest.mark.parametrize("kind", ["query", "document"])
def test_an_embedder_gives_unit_vectors(make: Any, name: str, kind: str) -> None:
    engine = make("embedder", name)
    found = engine.embed(TEXTS, kind)
    assert found.dtype == np.float32
    assert found.ndim == 2
    assert len(found) == len(TEXTS)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-4)
    assert np.allclose(found, np.concatenate([engine.embed([text], kind) for text in TEXTS]), atol=1e-4)
    assert engine.embed([], kind).shape[0] == 0


@all_of("embedder")
def test_an_embedder_knows_what_is_alike(make: Any, name: str) -> None:
    ferry, boat, tax = make("embedder", name).embed(["the ferry leaves", "the boat departs", "income tax form"])
    assert ferry @ boat > ferry @ tax


# --- scorers -------------------------------------------------------------------------------------


@all_of("scorer")
@pytest.mark.parametrize("max_words", [1, 8, 500])
def test_a_scorer_gives_each_block_a_number(make: Any, name: str, max_words: int) -> None:
    cut_up = blocks(max_words)
    found = np.asarray(make("scorer", name).score("When does the ferry leave?", cut_up))
    assert found.shape == (len(cut_up),)
    assert np.isfinite(found).all()


@all_of("scorer")
def test_a_scorer_puts_the_answer_first(make: Any, name: str) -> None:
    cut_up = cut(
        [clean_tree("<p>The ferry leaves at noon.<p>The lighthouse was built in 1871.<p>Charts are sold here.")], 8
    )
    engine = make("scorer", name)
    assert int(np.argmax(engine.score("When does the ferry leave?", cut_up))) == 0
    assert int(np.argmax(engine.score("When was the lighthouse built?", cut_up))) == 1


@all_of("scorer")
def test_a_scorer_says_the_same_twice_and_from_other_cuts_of_the_same_page(make: Any, name: str) -> None:
    engine, cut_up = make("scorer", name), blocks()
    first = engine.score("ferry", cut_up)
    engine.score("something else", cut_up)
    assert np.array_equal(first, engine.score("ferry", cut_up))
    assert np.array_equal(first, make("scorer", name).score("ferry", blocks()))


@all_of("scorer")
def test_a_scorer_changes_nothing_in_the_blocks(make: Any, name: str) -> None:
    cut_up = blocks()
    before = (list(cut_up.blocks), list(cut_up.texts))
    make("scorer", name).score("ferry", cut_up)
    assert (cut_up.blocks, cut_up.texts) == before


@all_of("scorer")
@pytest.mark.parametrize("query", ["?!", "\u0e00", "the", "x" * 5000, "\U0001f600", "潮汐"])
def test_a_scorer_answers_odd_questions(make: Any, name: str, query: str) -> None:
    assert np.isfinite(make("scorer", name).score(query, blocks())).all()


@all_of("scorer")
def test_a_scorer_scores_nothing_where_there_is_nothing(make: Any, name: str) -> None:
    assert len(make("scorer", name).score("ferry", cut([], 10))) == 0


# --- extractors and generators -------------------------------------------------------------------


def tagged(*texts: str) -> list[Segment]:
    return [Segment(number, text, Span("d", 10 * number, 10 * number + 9), 0.5) for number, text in enumerate(texts, 5)]


@all_of("extractor")
def test_an_extractor_names_tags_that_it_was_given(make: Any, name: str) -> None:
    given = tagged("The ferry leaves at noon.", "The lighthouse was built in 1871.", "Charts are sold here.")
    found = asyncio.run(make("extractor", name).extract("When does the ferry leave?", given))
    assert found is not None
    tags = [chosen.tag for chosen in found]
    assert tags[0] == 5
    assert len(set(tags)) == len(tags)
    assert set(tags) <= {one.tag for one in given}


@all_of("extractor")
def test_an_extractor_chooses_nothing_or_is_not_sure(make: Any, name: str) -> None:
    engine = make("extractor", name)
    assert asyncio.run(engine.extract("anything?", [])) is None
    found = asyncio.run(engine.extract("photosynthesis enzymes?", tagged("Charts are sold here.", "Opening hours")))
    assert chosen_segments(found, tagged("Charts are sold here.", "Opening hours"), Settings().min_confidence) == []


@all_of("generator")
def test_a_generator_marks_every_passage(make: Any, name: str) -> None:
    passages = [Passage("The ferry leaves at noon.", (Span("d", 0, 25),)), Passage("inner\t2", (Span("d", 30, 37),))]
    found = asyncio.run(make("generator", name).generate("When?", passages))
    assert "[1]" in found
    assert "[2]" in found
    assert "leaves at noon" in found


# --- formats -------------------------------------------------------------------------------------


@all_of("format")
def test_a_format_says_what_it_reads(make: Any, name: str) -> None:
    engine = make("format", name)
    assert engine.media_types or engine.suffixes
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in engine.suffixes)
    assert all("/" in kind and kind == kind.lower() for kind in engine.media_types)


def test_no_two_formats_claim_the_same_files(make: Any) -> None:
    engines = [make("format", name) for name in engine_names("format")]
    for claims in ([s for e in engines for s in e.suffixes], [m for e in engines for m in e.media_types]):
        assert len(set(claims)) == len(claims)


@all_of("format")
@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02\x03" * 50, b"\xff\xfe", bytes(range(256)), b"%PDF-1.4 ...", "text", "\ud800"]
)
def test_a_format_answers_any_content_with_html_or_one_clear_error(make: Any, name: str, content: bytes | str) -> None:
    message = ""
    try:
        found = make("format", name).to_html(Page(content, url="x.txt"))
        assert isinstance(found, str | bytes)
        prunus.clean(found)
    except BadPage as error:
        message = str(error)
    assert "\n" not in message
