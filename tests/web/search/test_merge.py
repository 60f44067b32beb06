"""Several search providers as one: fusion, deduplication, fail-over, circuit breakers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.types import Hit, Results, SearchRequest
from prunus.pages.links import page_key
from prunus.web.search._merge import Merged, fuse
from prunus.web.search._wire import SearchFailed

LONG = "The gauge at the mouth of the river has been read every quarter of an hour since the spring of 1871."


def hits(*names: str, engine: str = "a") -> list[Hit]:
    return [Hit(f"https://{name}.org/", name, "", engine=engine, rank=rank) for rank, name in enumerate(names, 1)]


class Fake:
    """A provider with scripted results, errors and hangs."""

    def __init__(self, name: str, *answers: Any) -> None:
        self.name, self.answers, self.asked = name, list(answers), 0

    async def search(self, request: SearchRequest) -> Results:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "hang":
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return Results(answer, (), 0.25, 9)


def ask(merged: Merged, query: str = "x", count: int = 10) -> Results:
    return asyncio.run(merged.search(SearchRequest(query, count)))


DOWN = OutsideFailed("search a: HTTP 500", subject="a")


# --- addresses and fusion ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    ["http://www.example.org/a?x=1&y=2", "https://EXAMPLE.org:443/a/?y=2&x=1#part", "https://example.org/%61?x=1&y=2",
     "https://example.org/a?utm_source=n&x=1&gclid=9&y=2", "https://example.org./a?x=1&y=2"],
)  # fmt: skip
def test_addresses_of_one_page_are_one(other: str) -> None:
    assert page_key(other) == page_key("https://example.org/a?x=1&y=2")


@pytest.mark.parametrize(
    "other", ["https://example.org/A?x=1", "https://example.org/a?x=2", "https://example.org:8080/a?x=1",
              "https://sub.example.org/a?x=1", "https://example.org/a"],
)  # fmt: skip
def test_addresses_of_other_pages_stay_apart(other: str) -> None:
    assert page_key(other) != page_key("https://example.org/a?x=1")


@given(st.text(max_size=60))
def test_any_text_has_a_canonical_address(text: str) -> None:
    assert page_key(page_key(text)) is not None
    assert page_key("https://example.org/" + text)


def test_ranks_are_summed_reciprocally() -> None:
    found = fuse([hits("one", "two", "three"), hits("two", "four", engine="b")])
    assert [hit.title for hit in found] == ["two", "one", "four", "three"]
    assert [hit.rank for hit in found] == [1, 2, 3, 4]
    assert found[0].engine == "a+b"


def test_a_page_that_one_list_names_twice_counts_once_in_it() -> None:
    found = fuse([hits("one", "two", "two", "two")])
    assert [hit.title for hit in found] == ["one", "two"]


def test_one_page_under_two_addresses_is_one_hit_with_the_most_that_is_known() -> None:
    one = Hit("https://a.org/", "Gauge", LONG, engine="a")
    two = Hit("https://mirror.org/x", "Gauge", LONG + " ", text="the whole", published="2024", engine="b")
    other = Hit(
        "https://b.org/", "Gauge", "Something else about the harbour and its ferries on winter days.", engine="b"
    )
    found = fuse([[one], [two, other]])
    assert [hit.url for hit in found] == ["https://a.org/", "https://b.org/"]
    assert (found[0].text, found[0].published, found[0].engine) == ("the whole", "2024", "a+b")


def test_short_texts_that_are_alike_are_no_doubles() -> None:
    assert len(fuse([[Hit("https://a.org/", "Home", ""), Hit("https://b.org/", "Home", "")]])) == 2


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8), max_size=4))
def test_fusion_keeps_every_page_once(lists: list[list[str]]) -> None:
    found = fuse([hits(*names) for names in lists])
    assert sorted(hit.title for hit in found) == sorted({name for names in lists for name in names})


# --- providers -----------------------------------------------------------------------------------


def test_one_provider_that_fails_is_a_warning() -> None:
    found = ask(Merged([Fake("a", DOWN), Fake("b", hits("one"))]))
    assert [hit.title for hit in found.hits] == ["one"]
    assert found.warnings == ("search a: HTTP 500",)
    assert (found.usd, found.remaining) == (0.25, 9)


def test_where_all_fail_each_is_named() -> None:
    late = OutsideFailed("search b: no answer")
    with pytest.raises(OutsideFailed, match=r"no search provider answered: search a: HTTP 500; search b: no answer"):
        ask(Merged([Fake("a", DOWN), Fake("b", late)]))


def test_settings_that_are_wrong_everywhere_are_bad_input() -> None:
    with pytest.raises(BadInput, match="needs a key"):
        ask(Merged([Fake("a", BadInput("search a needs a key")), Fake("b", BadInput("search b needs a key"))]))
    with pytest.raises(BadInput, match="no provider"):
        Merged([])


def test_a_slow_provider_is_given_up() -> None:
    found = ask(Merged([Fake("a", "hang"), Fake("b", hits("one"))], seconds=0.05))
    assert [hit.title for hit in found.hits] == ["one"]
    assert found.warnings == ("search a: no answer within 0.05 s",)


def test_in_order_the_next_is_asked_only_where_one_fails_or_finds_nothing() -> None:
    first, second, third = Fake("a", DOWN), Fake("b", ()), Fake("c", hits("one"))
    spare = Fake("d", hits("two"))
    found = ask(Merged([first, second, third, spare], "first"))
    assert [hit.title for hit in found.hits] == ["one"]
    assert (first.asked, second.asked, third.asked, spare.asked) == (1, 1, 1, 0)


def test_a_provider_that_fails_thrice_is_left_alone_and_tried_again_later() -> None:
    now = [0.0]
    bad, good = Fake("a", DOWN, DOWN, DOWN, hits("two")), Fake("b", hits("one"))
    merged = Merged([bad, good], clock=lambda: now[0])
    for _ in range(5):
        found = ask(merged)
    assert bad.asked == 3
    assert found.warnings == ("search a: paused after repeated failures",)
    now[0] = 31.0
    assert [hit.title for hit in ask(merged).hits] == ["two", "one"]


def test_a_refused_key_opens_the_breaker_at_once_and_a_wish_for_rest_is_kept() -> None:
    now = [0.0]
    limited = SearchFailed("search a: asked too often", subject="a", kind="rate", retry_after=300)
    bad = Fake("a", limited)
    merged = Merged([bad, Fake("b", hits("one"))], clock=lambda: now[0])
    for moment in (0.0, 200.0, 301.0):
        now[0] = moment
        ask(merged)
    assert bad.asked == 2


def test_no_more_hits_come_than_were_asked_for() -> None:
    assert len(ask(Merged([Fake("a", hits("one", "two")), Fake("b", hits("three"))]), count=2).hits) == 2
