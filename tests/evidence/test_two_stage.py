"""Pruning in two stages: dropped blocks stay out, the second stage ranks the rest, budgets hold, spans are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import Made, worded_documents

import prunus
from prunus.core.errors import BadBudget, BadInput, OverWindow
from prunus.core.options import Options
from prunus.core.registry import make_engine
from prunus.core.settings import Settings
from prunus.engines import prune_engines, stages_of
from prunus.evidence.blocks import Blocks, coarse_budget_for, coarse_words_for, fine_words_for
from prunus.evidence.context import Context
from prunus.evidence.documents import Documents
from prunus.evidence.prune import prune as prune_with
from prunus.evidence.two_stage import sizes_for

QUESTION = "When does the ferry to Pell leave?"


@dataclass
class Letters:
    """A fine scorer that counts an ``e``, notes what it read, and has a window of blocks."""

    tree: None = None
    window: int = 10**9
    read: list[list[str]] = field(default_factory=list)

    def score(self, query: str, blocks: Blocks) -> np.ndarray:
        if len(blocks) > self.window:
            raise OverWindow("too long", window=self.window, needed=len(blocks))
        self.read.append([blocks.path(index) for index in range(len(blocks))])
        return np.asarray([float(text.count("e")) for text in blocks.texts])


def page(sections: int = 40) -> str:
    parts = [
        f"<h2>Route {number}</h2><p>The boat of route {number} runs daily. {'Every pier has a lamp. ' * 6}</p>"
        f"<ul><li>Deck {number}<li>Lamp {number}</ul>"
        for number in range(sections)
    ]
    parts[sections // 2] += "<p>The ferry to Pell leaves at noon from the stone quay.</p>"
    return "<h1>Harbour</h1>" + "".join(parts)


def two(fine: Letters, documents: Documents, budget: int = 300, when: str = "always", **options: object) -> Context:
    engines = replace(
        prune_engines(Settings()),
        second_scorer=fine,
        first=when,
        names={"scorer": "hybrid", "second_scorer": "letters"},
    )
    return prune_with(documents, QUESTION, budget, "html", Options(**options), engines)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def documents() -> Documents:
    return prunus.read([page(), "<p>A second page about ferries to Pell.</p>"])


# --- the two stages ------------------------------------------------------------------------------


def test_what_the_first_stage_drops_stays_out(documents: Documents) -> None:
    fine = Letters()
    context = two(fine, documents, coarse_budget=900)
    first, second = context.trace
    assert (first.stage, second.stage) == ("first", "second")
    assert first.detail["tokens"] <= 900 < context.tokens_before()
    assert {block.path for block in context.kept} <= set(fine.read[0])
    assert len(fine.read[0]) < len(context.blocks)
    assert {block.path for block in context.blocks if block.stage == 2} == set(fine.read[0])


def test_the_second_stage_decides_among_what_is_left(documents: Documents) -> None:
    context = two(Letters(), documents, coarse_budget=900)
    scored = sorted((block for block in context.blocks if block.stage == 2), key=lambda block: -block.score)
    assert scored[0].kept
    assert scored[0].score == max(float(block.text.count("e")) for block in context.blocks if block.stage == 2)


def test_the_first_stage_reads_coarse_blocks_and_the_second_finer_ones(documents: Documents) -> None:
    context = two(Letters(), documents, coarse_budget=900, coarse_words=60, max_words=12)
    assert [stage.detail["max_words"] for stage in context.trace] == [60, 12]
    assert max(block.words for block in context.blocks) <= 12
    assert context.trace[0].detail["blocks"] < len(context.blocks)


@given(worded_documents, st.integers(20, 400), st.integers(1, 4), st.booleans())
def test_both_budgets_hold_and_places_are_true(made: Made, budget: int, times: int, crumbs: bool) -> None:
    documents = prunus.read([made.html, "<h2>Ferry</h2><p>One more page about the ferry to Pell.</p>"])
    fine = Letters()
    try:
        context = two(
            fine, documents, budget, coarse_budget=budget * times, max_words=9, coarse_words=20, breadcrumbs=crumbs
        )
    except BadBudget:
        return
    count = make_engine("tokenizer", "smollm2").count([context.output])[0]
    assert context.tokens == count <= budget
    assert context.trace[0].detail["tokens"] <= budget * times
    trees = {tree.document: tree for tree in documents.trees}
    for block in context.blocks:
        assert trees[block.span.document].canonical[block.span.start : block.span.end] == block.text
    assert {block.index for block in context.kept} == {block.index for block in context.blocks if block.kept}
    cut = documents.expanded(20, 9).blocks
    if not any(block.role == "cut" for block in context.blocks):
        assert [block.path for block in context.blocks] == [cut.path(index) for index in range(len(cut))]
        assert {block.path for block in context.kept} <= set(fine.read[0])


def test_paths_do_not_depend_on_what_was_dropped(documents: Documents) -> None:
    small, large = Letters(), Letters()
    two(small, documents, 200, coarse_budget=400, coarse_words=60, max_words=12)
    two(large, documents, 200, coarse_budget=4000, coarse_words=60, max_words=12)
    cut = documents.expanded(60, 12).blocks
    paths = [cut.path(index) for index in range(len(cut))]
    assert len(small.read[0]) < len(large.read[0])
    assert set(small.read[0]) <= set(large.read[0]) <= set(paths)


def test_marks_and_citations_lead_into_the_page(documents: Documents) -> None:
    context = two(Letters(), documents, coarse_budget=900)
    assert 'data-prunus="kept' in context.mark(0)
    answer = prunus.ask(
        "When does the ferry to Pell leave?", documents, budget=300,
        options=Options(second_scorer="bm25", stages=2, coarse_budget=900),
    )  # fmt: skip
    assert answer.citations
    assert all(citation.found and citation.xpath for citation in answer.citations)
    assert answer.engines["second_scorer"] == "bm25"


def test_a_best_block_over_the_budget_is_cut(documents: Documents) -> None:
    context = two(Letters(), documents, 30, coarse_budget=900, max_words=200, coarse_words=400)
    assert 0 < context.tokens <= 30
    assert any(block.role == "cut" for block in context.blocks)


# --- when there are two, and when one ------------------------------------------------------------


def test_small_pages_need_no_first_stage(documents: Documents) -> None:
    fine = Letters()
    context = two(fine, documents, when="large", coarse_budget=100_000)
    assert [stage.stage for stage in context.trace] == ["second"]
    assert len(fine.read[0]) == len(context.blocks)
    assert context.engines == {"scorer": "letters"}


def test_large_pages_get_one(documents: Documents) -> None:
    context = two(Letters(), documents, when="large", coarse_budget=900)
    assert [stage.stage for stage in context.trace] == ["first", "second"]
    assert context.engines == {"scorer": "hybrid", "second_scorer": "letters"}


def test_a_fine_scorer_works_alone(documents: Documents) -> None:
    fine = Letters()
    context = two(fine, documents, when="never", coarse_budget=900)
    assert [stage.stage for stage in context.trace] == ["second"]
    assert len(fine.read[0]) == len(context.blocks)


def test_one_stage_is_as_it_was(documents: Documents) -> None:
    context = prunus.prune(documents, QUESTION, 300)
    assert (context.trace, context.warnings) == ((), ())
    assert {block.stage for block in context.blocks} == {1}


# --- windows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["always", "never", "large"])
def test_over_the_window_the_first_stage_chooses_what_is_read_and_says_so(documents: Documents, when: str) -> None:
    fine = Letters(window=12)
    context = two(fine, documents, when=when, coarse_budget=4000, coarse_words=60, max_words=12)
    assert len(fine.read) == 1
    assert 0 < len(fine.read[0]) <= 12
    assert "window of 12 tokens" in context.warnings[0]
    assert context.trace[-2].stage == "window"
    read = [block for block in context.blocks if block.stage == 2]
    assert {block.path for block in read} == set(fine.read[0])
    behind = [block for block in context.blocks if block.stage == 1 and block.kept and block.role == "scored"]
    left = [block for block in read if not block.kept and block.path.rpartition("/")[2][:1] != "h"]  # no heading
    assert not left or not behind


def test_the_budget_is_filled_although_the_window_is_small(documents: Documents) -> None:
    context = two(Letters(window=4), documents, 600, coarse_budget=2000, coarse_words=40, max_words=12)
    assert context.tokens > 400
    assert any(block.kept and block.stage == 1 for block in context.blocks)


def test_a_window_that_holds_nothing_is_an_error(documents: Documents) -> None:
    with pytest.raises(OverWindow):
        two(Letters(window=0), documents)


# --- sizes ---------------------------------------------------------------------------------------


def test_the_published_sizes_are_those_at_the_published_budget() -> None:
    sizes = sizes_for("Who won?", 4096, Options())
    assert (sizes.coarse_words, sizes.words, sizes.coarse_budget) == (256, 128, 8192)


@given(st.integers(1, 200_000), st.sampled_from(["Who won?", "Describe the harbour."]))
def test_sizes_are_always_in_order(budget: int, query: str) -> None:
    sizes = sizes_for(query, budget, Options())
    assert sizes.coarse_words >= sizes.words >= 1
    assert sizes.coarse_budget >= 2 * budget
    assert (sizes.coarse_budget, sizes.words) == (coarse_budget_for(budget), fine_words_for(budget, query))
    assert sizes.coarse_words == coarse_words_for(sizes.coarse_budget, sizes.words)


def test_an_overview_gets_coarser_blocks_than_a_fact() -> None:
    assert fine_words_for(2048, "Describe the harbour.") > fine_words_for(2048, "Who won?")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"coarse_budget": 100}, "coarse_budget"),
        ({"coarse_words": 10, "max_words": 20}, "coarse_words"),
        ({"coarse_budget": -1}, "coarse_budget"),
        ({"coarse_words": -1}, "coarse_words"),
    ],
)
def test_sizes_that_cannot_be_are_one_line(documents: Documents, options: dict[str, int], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        prunus.prune(documents, QUESTION, 300, options=Options(second_scorer="bm25", **options))  # type: ignore[arg-type]


# --- engines -------------------------------------------------------------------------------------


def chosen(settings: Sequence[str] = (), **options: object) -> tuple[str, str, str]:
    known = dict(one.split("=") for one in settings)
    return stages_of(replace(Settings(), **known), Options(**options))  # type: ignore[arg-type]


def test_engines_of_the_stages() -> None:
    assert chosen() == ("trees", "", "large")
    assert chosen(second_scorer="bm25") == ("trees", "bm25", "large")
    assert chosen(second_scorer="bm25", stages=2, scorer="embedding") == ("embedding", "bm25", "always")
    assert chosen(second_scorer="bm25", stages=1) == ("trees", "bm25", "never")
    assert chosen(scorer="generative:M") == ("trees", "generative:M", "large")
    assert chosen(scorer="generative:M", stages=1) == ("trees", "generative:M", "never")
    assert chosen(scorer="generative:M", stages=2) == ("trees", "generative:M", "always")
    assert chosen(scorer="crossencoder") == ("crossencoder", "", "large")
    assert chosen(scorer="crossencoder", stages=2) == ("trees", "crossencoder", "always")
    assert chosen(stages=2, reranker="onnx:X") == ("trees", "crossencoder", "always")
    assert chosen(["second_scorer=bm25"]) == ("trees", "bm25", "large")
    assert chosen(["second_scorer=bm25"], stages=1) == ("trees", "", "never")


def test_two_stages_have_models_of_their_own_and_a_server_its_key() -> None:
    settings, fine = Settings(path_key="secret"), "generative:vllm:http://localhost:8000/v1#b"
    engines = prune_engines(settings, Options(scorer="generative:/models/a", second_scorer=fine))
    assert engines.scorer.path_scorer.model == "/models/a"  # type: ignore[attr-defined]
    assert engines.second_scorer.path_scorer._key == "secret"  # type: ignore[union-attr]
    assert "secret" not in repr(settings)


def test_a_server_is_not_asked_where_model_calls_are_switched_off() -> None:
    with pytest.raises(BadInput, match="switched off"):
        prune_engines(Settings(model_calls=False), Options(second_scorer="generative:vllm:http://localhost:8000/v1#b"))


def test_two_stages_need_a_fine_scorer() -> None:
    with pytest.raises(BadInput, match="two stages need a second scorer"):
        chosen(stages=2, reranker="none")


@pytest.mark.parametrize("stages", [-1, 3])
def test_there_are_one_or_two_stages(stages: int) -> None:
    with pytest.raises(BadInput, match="1 or 2 stages"):
        chosen(stages=stages)
