"""``trees``: its features are what they say, for odd pages too, and its trees rank evidence first."""

from __future__ import annotations

import numpy as np
import pytest

import prunus
from prunus.core.registry import make_engine
from prunus.core.text.bm25 import BM25, stem, tokens
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score import trees
from prunus.evidence.score._block_features import (
    ASKED,
    LAYOUT,
    NAMES,
    features,
    held_terms,
    layout,
    log_ranks,
    places,
    window_means,
)
from prunus.pages.clean.walk import clean_tree

PAGE = """<title>Harbour</title><h1>Harbour of Withy</h1><p>The ferry leaves at noon on 5 May 1911. Why? It is late!
<h2>Lighthouse</h2><p>The lighthouse was built in 1871 by Ann Orrel and her brother.
<h2>Fares</h2><table><tr><th>Zone<th>Coins<tr><td>inner<td>2<tr><td>outer<td>3<tr><td>far<td>7</table>
<ul><li><a href="/a">tide tables</a><li><a href="/b">charts</a></ul><p>潮汐站每天记录水位。"""

ODD = ["<br>", "<p>", "<p>x", "<table></table>", "<p>\ud800 broken", "<h1>Only a heading</h1>", "<p>" + "a" * 5000]


def blocks_of(*pages: str, words: int = 8) -> Blocks:
    return cut([clean_tree(page) for page in pages], words)


@pytest.fixture
def embedder() -> object:
    return make_engine("embedder", "static")


def column(found: np.ndarray, name: str) -> list[float]:
    return [round(float(value), 4) for value in found[:, NAMES.index(name)]]


def test_features_of_layout_are_what_a_plain_count_gives() -> None:
    blocks = blocks_of(PAGE, words=3)
    found = dict(zip(LAYOUT, layout(blocks).T, strict=True))
    for place, text in enumerate(blocks.texts):
        words = max(1, blocks.blocks[place].words)
        assert found["digits"][place] == pytest.approx(sum(c in "0123456789" for c in text) / (len(text) + 1))
        assert found["capitals"][place] == pytest.approx(sum("A" <= c <= "Z" for c in text) / words)
        assert found["cells"][place] == pytest.approx(text.count("\t") / words)
        assert found["foreign"][place] == pytest.approx(sum(ord(c) > 127 for c in text) / (len(text) + 1))
    rows = [place for place, context in enumerate(blocks.contexts) if context.table >= 0]
    assert found["table_place"][rows].tolist() == pytest.approx(np.linspace(0, 1, len(rows)).tolist())
    assert found["header_row"][rows[0]] == 1 and found["header_row"].sum() == 1


def test_coverage_is_the_share_of_terms_that_a_block_holds(embedder: object) -> None:
    blocks = blocks_of(PAGE)
    query = "When was the lighthouse built by Ann Orrel in 1871?"
    found = features(query, blocks, embedder)  # type: ignore[arg-type]
    best = next(place for place, text in enumerate(blocks.texts) if "1871" in text)
    assert column(found, "numbers_own")[best] == 1.0
    assert column(found, "names_own")[best] > 0
    assert column(found, "fits")[best] == 1.0  # a date
    assert int(np.argmax(found[:, NAMES.index("covered")])) == best
    named = [place for place, context in enumerate(blocks.contexts) if context.headings]
    assert all(column(found, "last_heading")[place] <= column(found, "headings_named")[place] for place in named)


def test_held_terms_equal_a_search_in_every_text() -> None:
    texts = ["a ferry at noon", "the boats", "ferries and boats", ""]
    above = ["boat times", "boat times", "", "ferry"]
    terms = stem(["ferry", "boats", "noon"], "en")
    anywhere, own = held_terms(BM25(texts, above), terms)
    for place, (text, over) in enumerate(zip(texts, above, strict=True)):
        in_text, in_both = set(stem(tokens(text))), set(stem(tokens(f"{text} {over}")))
        assert own[place].tolist() == [term in in_text for term in terms]
        assert anywhere[place].tolist() == [term in in_both for term in terms]


def test_windows_places_and_ranks_equal_plain_loops() -> None:
    draw = np.random.default_rng(5)
    values, documents = draw.normal(size=40), np.sort(draw.integers(0, 4, 40))
    for place in range(40):
        near = [values[i] for i in range(40) if abs(i - place) <= 2 and documents[i] == documents[place]]
        assert window_means(values, documents, 2)[place] == pytest.approx(np.mean(near))
    group = draw.integers(-1, 3, 40)
    place_of, size = places(group)
    for place in range(40):
        same = [i for i in range(40) if group[i] == group[place] >= 0]
        assert (place_of[place], size[place]) == ((same.index(place), len(same)) if same else (0, 0))
    rounded = np.round(values, 1)
    assert np.expm1(log_ranks(rounded)).round().tolist() == [int((rounded > value).sum()) for value in rounded]


@pytest.mark.parametrize("page", ODD)
@pytest.mark.parametrize("query", ["what?", "Who built it in 1871?", "潮汐站", "?", "a " * 500])
def test_every_page_and_question_has_finite_scores(embedder: object, page: str, query: str) -> None:
    blocks = blocks_of(page, PAGE)
    assert features(query, blocks, embedder).shape == (len(blocks), len(NAMES))  # type: ignore[arg-type]
    scores = trees.Engine(embedder).score(query, blocks)  # type: ignore[arg-type]
    assert scores.shape == (len(blocks),) and np.isfinite(scores).all()
    assert (scores <= 1).all() and (scores > -1e-3).all()  # header rows are a step behind their rows


def test_no_blocks_have_no_scores(embedder: object) -> None:
    assert trees.Engine(embedder).score("who?", Blocks([], [], 8)).shape == (0,)  # type: ignore[arg-type]


def test_names_are_unique_and_those_of_the_trees() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(ASKED) + len(LAYOUT)
    assert trees.model().names == NAMES


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("When was the lighthouse built?", "1871"),
        ("How many coins does the outer zone cost?", "outer"),
        ("At what time does the ferry leave?", "noon"),
    ],
)
def test_the_evidence_is_ranked_first(embedder: object, query: str, wanted: str) -> None:
    blocks = blocks_of(PAGE)
    scores = trees.Engine(embedder).score(query, blocks)  # type: ignore[arg-type]
    assert wanted in blocks.texts[int(np.argmax(scores))]


def test_a_second_question_changes_nothing_of_the_first(embedder: object) -> None:
    blocks = blocks_of(PAGE)
    engine = trees.Engine(embedder)  # type: ignore[arg-type]
    first = engine.score("When was the lighthouse built?", blocks)
    engine.score("How many coins?", blocks)
    assert np.array_equal(first, engine.score("When was the lighthouse built?", blocks))
    assert np.array_equal(first, engine.score("When was the lighthouse built?", blocks_of(PAGE)))


def test_prune_takes_it_by_name() -> None:
    found = prunus.prune(PAGE, "When was the lighthouse built?", budget=60, options=prunus.Options(scorer="trees"))
    assert "1871" in found.output


@pytest.mark.parametrize("scorer", ["trees", "bm25", "hybrid", "embedding"])
def test_a_row_is_scored_with_the_label_that_spans_it_from_above(scorer: str, embedder: object) -> None:
    head = "<table><tr><th>Year<th>Quarter<th>Boats"
    once = "".join(
        f"<tr><td rowspan=2>{year}<td>Q1<td>{year % 7}12<tr><td>Q2<td>{year % 7}49" for year in range(1990, 2000)
    )
    each = "".join(
        f"<tr><td>{year}<td>Q1<td>{year % 7}12<tr><td>{year}<td>Q2<td>{year % 7}49" for year in range(1990, 2000)
    )
    spanned, repeated = blocks_of(head + once + "</table>"), blocks_of(head + each + "</table>")
    engine = make_engine("scorer", scorer, embedder=embedder)
    asked = "How many boats in Q2 of 1994?"
    assert [int(np.argmax(engine.score(asked, blocks))) for blocks in (spanned, repeated)] == [10, 10]
