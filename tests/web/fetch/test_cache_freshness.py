"""Freshness lifetimes and ages by RFC 9111, with the cases of the RFC."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.web.fetch.cache import age, directives, lifetime

NOW = 1_800_000_000.0


def at(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


LIFETIMES = {
    "max-age wins over Expires": ({"cache-control": "max-age=60", "expires": at(900), "date": at(0)}, 60),
    "a private cache passes s-maxage over": ({"cache-control": "s-maxage=9000, max-age=60"}, 60),
    "s-maxage alone says nothing to a private cache": ({"cache-control": "s-maxage=9000"}, 0),
    "Expires counts from Date": ({"expires": at(900), "date": at(300)}, 600),
    "Expires counts from the answer where Date is missing": ({"expires": at(900)}, 900),
    "an Expires that is no date has expired": ({"expires": "0", "last-modified": at(-90_000)}, 0),
    "an Expires in the past has expired": ({"expires": at(-5), "date": at(0)}, 0),
    "no-cache is never fresh": ({"cache-control": "no-cache, max-age=60"}, 0),
    "no-cache with fields is read as no-cache": ({"cache-control": 'no-cache="set-cookie", max-age=60'}, 0),
    "a max-age that is no number is stale": ({"cache-control": "max-age=soon", "expires": at(900)}, 0),
    "a negative max-age is stale": ({"cache-control": "max-age=-5"}, 0),
    "the first of two counts": ({"cache-control": "max-age=60, max-age=600"}, 60),
    "a quoted number is read": ({"cache-control": 'max-age="60"'}, 60),
    "names in any case": ({"cache-control": "Max-Age=60"}, 60),
    "a number too large is very long": ({"cache-control": "max-age=99999999999999999999999999"}, 2_147_483_648),
    "a comma inside quotes ends nothing": ({"cache-control": 'x="max-age=5, no-cache", max-age=60'}, 60),
    "a tenth of the time since the last change": ({"last-modified": at(-5_000), "date": at(0)}, 500),
    "but a day at most": ({"last-modified": at(-90_000_000), "date": at(0)}, 86_400),
    "a last change in the future": ({"last-modified": at(5_000), "date": at(0)}, 0),
    "nothing said": ({}, 0),
}  # fmt: skip


@pytest.mark.parametrize(("headers", "expected"), LIFETIMES.values(), ids=LIFETIMES)
def test_how_long_a_response_is_fresh(headers: dict[str, str], expected: float) -> None:
    assert lifetime(headers, 200, NOW) == pytest.approx(expected)


def test_a_status_that_may_not_be_guessed_about_has_no_heuristic_lifetime() -> None:
    headers = {"last-modified": at(-5_000), "date": at(0)}
    assert lifetime(headers, 302, NOW) == 0
    assert lifetime({**headers, "cache-control": "max-age=9"}, 302, NOW) == 9


AGES = {
    "fresh from its origin": ({"date": at(0)}, 0, 0),
    "the time in our cache": ({"date": at(0)}, 30, 30),
    "the age that caches on the way report": ({"date": at(0), "age": "100"}, 30, 130),
    "a Date long before the answer": ({"date": at(-200), "age": "100"}, 30, 230),
    "an Age that is no number": ({"age": "old"}, 30, 30),
}


@pytest.mark.parametrize(("headers", "later", "expected"), AGES.values(), ids=AGES)
def test_how_old_a_response_is(headers: dict[str, str], later: float, expected: float) -> None:
    assert age(headers, NOW, NOW, NOW + later) == pytest.approx(expected)


def test_the_time_that_the_answer_took_counts() -> None:
    assert age({"age": "10"}, NOW - 7, NOW, NOW) == pytest.approx(17)


def test_a_clock_that_was_set_back_makes_everything_old() -> None:
    assert age({}, NOW, NOW, NOW - 3600) > 1e9


@given(st.text(max_size=300))
def test_any_header_is_read_without_an_error(value: str) -> None:
    headers = {"cache-control": value, "expires": value, "date": value, "age": value, "last-modified": value}
    assert all(name == name.lower() for name in directives(headers))
    assert lifetime(headers, 200, NOW) >= 0
    assert age(headers, NOW, NOW, NOW) >= 0


def test_a_hostile_header_is_read_in_linear_time() -> None:
    assert directives({"cache-control": 'a="' + '\\"' * 500_000}) is not None
    assert directives({"cache-control": ", " * 500_000}) == {}
