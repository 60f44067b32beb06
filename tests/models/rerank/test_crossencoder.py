"""The scorer ``crossencoder``: the reranker orders the best candidates, the other blocks follow in the cheap order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.errors import BadInput
from prunus.core.registry import make_engine
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score import bm25
from prunus.evidence.score.crossencoder import Engine
from prunus.pages.clean.walk import clean_tree

WORDS = "ferry harbour lighthouse keeper tide chart noon zone coin level diary stone".split()


def page(count: int = 40) -> Blocks:
    parts = [f"<p>The {WORDS[n % 12]} and the {WORDS[n * 5 % 12]} of day {n}.</p>" for n in range(count)]
    return cut([clean_tree("<h1>Harbour</h1><h2>Ferries</h2>" + "".join(parts))], 8)


class Reranker:
    """Scores by the length of a text, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def rerank(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(list(texts))
        return np.asarray([float(len(text)) - 30 for text in texts])


class Fixed:
    """A scorer of given numbers."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self.numbers = np.asarray(numbers, float)

    def score(self, query: str, blocks: Blocks) -> np.ndarray:
        return self.numbers[: len(blocks)]


def test_only_the_candidates_reach_the_reranker_with_what_stands_above_them() -> None:
    blocks, reranker = page(), Reranker()
    Engine(reranker, scorer=bm25.Engine(), model="7").score("ferry", blocks)
    (asked,) = reranker.asked
    assert len(asked) == 7
    assert any(text.startswith("Harbour\nFerries\nThe ferry") for text in asked)


def test_candidates_come_first_in_the_rerankers_order_and_the_rest_keep_theirs() -> None:
    blocks = page()
    cheap = bm25.Engine().score("ferry keeper", blocks)
    found = Engine(Reranker(), scorer=bm25.Engine(), model="10").score("ferry keeper", blocks)
    best = np.argsort(-cheap, kind="stable")[:10]
    rest = np.setdiff1d(np.arange(len(blocks)), best)
    assert found[best].min() > found[rest].max()
    assert (np.diff(found[rest][np.argsort(cheap[rest], kind="stable")]) >= 0).all()
    assert np.unique(found[best]).size > 2


@given(st.lists(st.floats(-1e6, 1e6), min_size=30, max_size=30), st.integers(1, 60))
def test_the_cascade_holds_for_any_cheap_scores(numbers: list[float], count: int) -> None:
    blocks = page(25)
    cheap = np.asarray(numbers)[: len(blocks)]
    found = Engine(Reranker(), scorer=Fixed(numbers), model=str(count)).score("x", blocks)
    assert found.shape == (len(blocks),)
    assert np.isfinite(found).all()
    best = np.argsort(-cheap, kind="stable")[:count]
    rest = np.setdiff1d(np.arange(len(blocks)), best)
    if len(rest):
        assert found[best].min() > found[rest].max()


def test_by_default_learned_trees_choose_the_candidates() -> None:
    blocks, reranker = page(100), Reranker()
    engine = make_engine("scorer", "crossencoder", reranker=reranker, embedder=make_engine("embedder", "static"))
    engine.score("when does the ferry leave", blocks)
    assert engine.scorer.name == "trees"
    assert len(reranker.asked[0]) == 64


def test_a_header_row_stays_behind_its_rows() -> None:
    html = "<table><tr><th>Zone, with a long explanation of it<th>Coins<tr><td>inner<td>2<tr><td>outer<td>3</table>"
    blocks = cut([clean_tree(html)], 4)
    needed = {index for block in blocks.blocks for index in block.requires}
    assert needed
    found = Engine(Reranker(), scorer=bm25.Engine()).score("zone", blocks)
    assert all(found[index] < found.max() for index in needed)


def test_texts_for_the_reranker_are_bounded() -> None:
    blocks, reranker = cut([clean_tree("<h1>" + "head " * 900 + "</h1><p>" + "ferry " * 9000)], 100_000), Reranker()
    Engine(reranker, scorer=bm25.Engine()).score("ferry", blocks)
    assert max(len(text) for text in reranker.asked[0]) <= 4000


def test_nothing_gets_no_scores() -> None:
    reranker = Reranker()
    assert Engine(reranker, scorer=bm25.Engine()).score("x", cut([], 10)).shape == (0,)
    assert reranker.asked == []


@pytest.mark.parametrize("model", ["0", "-3", "many", "²", "99999"])
def test_an_odd_number_of_candidates_is_one_line(model: str) -> None:
    with pytest.raises(BadInput, match="number of candidates"):
        Engine(Reranker(), scorer=bm25.Engine(), model=model)


def test_without_a_cheap_scorer_it_says_so() -> None:
    with pytest.raises(BadInput, match="needs a cheap scorer"):
        Engine(Reranker())


def test_a_reranker_may_say_how_much_the_cheap_score_counts_beside_its_own() -> None:
    blocks, numbers = page(20), [float(number) for number in range(60)]

    class Undecided(Reranker):
        beside = 2.0

        def rerank(self, query: str, texts: Sequence[str]) -> np.ndarray:
            return np.zeros(len(texts))

    found = Engine(Undecided(), scorer=Fixed(numbers), model="8").score("x", blocks)
    assert np.argsort(-found)[:8].tolist() == list(range(len(blocks) - 1, len(blocks) - 9, -1))


def test_a_reranker_may_want_less_of_what_stands_above() -> None:
    class Short(Reranker):
        above = 5

    reranker = Short()
    Engine(reranker, scorer=bm25.Engine()).score("ferry", page())
    assert all(text.startswith(("Harbo\n", "Harbour")) for text in reranker.asked[0])
    assert any(text.startswith("Harbo\nThe") for text in reranker.asked[0])
