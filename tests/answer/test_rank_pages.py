"""Mixed ranking: 2n items, the better of a page's two items, and no influence of the providers' order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.answer.rank_pages import Candidate, by_embedder, by_hybrid, by_reranker, rank
from prunus.core.errors import BadInput
from prunus.core.registry import make_engine
from prunus.core.types import Hit

NOW = datetime(2026, 3, 14)


def page(name: str, snippet: str = "", content: str = "", published: str = "", site: str = "") -> Candidate:
    return Candidate(Hit(f"https://{site or name}.org/{name}", name, snippet, published=published), content)


def counted(query: str, texts: Sequence[str]) -> Any:
    """A scorer that a reader can follow: how often the query stands in a text, per word."""
    return np.asarray([text.split().count(query) / len(text.split()) for text in texts])


def names(found: Any) -> list[str]:
    return [ranked.hit.title for ranked in found]


def test_a_page_counts_as_the_better_of_its_snippet_and_its_content() -> None:
    found = rank(
        ["tide"],
        [page("a", "tide x", "x x x x"), page("b", "x x", "tide tide tide x"), page("c", "x", "x tide x x")],
        counted,
    )
    assert [(ranked.hit.title, ranked.by, ranked.score) for ranked in found] == [
        ("b", "content", 0.75), ("a", "snippet", 0.5), ("c", "content", 0.25),
    ]  # fmt: skip
    assert [ranked.place for ranked in found] == [1, 2, 3]


def test_each_snippet_and_each_content_is_an_item_of_its_own() -> None:
    seen: list[str] = []

    def scores(query: str, texts: Sequence[str]) -> Any:
        seen.extend(texts)
        return np.zeros(len(texts))

    rank(["x"], [page("a", "s1", "c1"), page("b", "s2", "c2"), page("c", "s3", "")], scores)
    assert sorted(seen) == ["c1", "c2", "s1", "s2", "s3"]


def test_keyword_lists_count_together() -> None:
    pages = [page("a", "tide x"), page("b", "x Gezeiten Gezeiten Gezeiten"), page("c", "x")]
    assert names(rank(["tide", "Gezeiten"], pages, counted)) == ["b", "a", "c"]


def test_a_page_without_a_snippet_has_its_title_and_one_without_anything_is_left_out() -> None:
    nothing = Candidate(Hit("https://x.org/", ""))
    assert names(rank(["tide"], [page("tide"), nothing, page("other")], counted)) == ["tide", "other"]


def test_a_page_that_came_twice_is_ranked_once() -> None:
    double = Candidate(Hit("https://a.org/a", "a", "tide"), "tide tide")
    assert len(rank(["tide"], [page("a", "tide"), double], counted)) == 1


def test_only_the_best_pages_are_returned() -> None:
    assert len(rank(["x"], [page(str(number), "x") for number in range(9)], counted, top=4)) == 4
    assert rank(["x"], [], counted) == []


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["tide", "tide x", "x", ""])), max_size=8),
    st.randoms(),
)
def test_the_order_of_the_providers_never_enters(given_: list[tuple[str, str]], chance: random.Random) -> None:
    pages = [page(name, text, text * 2) for name, text in given_]
    shuffled = [*pages]
    chance.shuffle(shuffled)
    assert rank(["tide"], pages, counted, 5) == rank(["tide"], shuffled, counted, 5)


# --- scorers -------------------------------------------------------------------------------------

FERRY = "The ferry leaves the quay at noon."
PAGES = [
    page("ferry", FERRY, FERRY * 3),
    page("light", "The lighthouse is old.", "Built in 1871."),
    page("tax", "Tax forms."),
]


class Letters:
    """A reranker of shared words."""

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        return np.asarray([len({*query.lower().split()} & {*text.lower().split()}) for text in texts], np.float64)


@pytest.mark.parametrize("way", ["embedder", "hybrid", "reranker"])
def test_each_way_finds_the_page(way: str) -> None:
    embedder = make_engine("embedder", "static")
    scores = {
        "embedder": lambda: by_embedder(embedder),
        "hybrid": lambda: by_hybrid(embedder),
        "reranker": lambda: by_reranker(Letters()),
    }[way]()
    found = rank(["ferry leaves noon"], PAGES, scores)
    assert names(found)[0] == "ferry"
    assert all(np.isfinite(ranked.score) for ranked in found)


def test_what_cannot_be_ranked_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no keywords"):
        rank([" "], PAGES, counted)
    with pytest.raises(BadInput, match="one finite number"):
        rank(["x"], PAGES, lambda query, texts: np.full(len(texts), np.nan))
