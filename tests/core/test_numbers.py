"""Whole numbers of foreign text: limits, and what is no number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.text.numbers import bounded_float, bounded_int, in_ascii


@pytest.mark.parametrize("text", ["", None, "²", "٣", "1.5", "1 2", "--1", "0x10", "1_000", "\u00a05"])
def test_text_that_states_no_number_gives_the_default(text: str | None) -> None:
    assert bounded_int(text, "none", most=100) == "none"


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), (" 7\n", 7), ("+7", 7), ("-7", 0), ("007", 7), ("9" * 5_000, 100), ("0" * 5_000, 0)]
)
def test_a_number_is_moved_into_the_limits(text: str, number: int) -> None:
    assert bounded_int(text, None, most=100) == number


@given(st.integers(min_value=-(10**17), max_value=10**17))
def test_every_number_within_the_limits_is_read(number: int) -> None:
    assert bounded_int(str(number), None, least=-(10**17), most=10**17) == number


@pytest.mark.parametrize(("text", "number"), [("ff", 255), ("00FF", 255), ("F" * 5_000, 300), ("g", -1), ("-1", -1)])
def test_a_number_of_base_16(text: str, number: int) -> None:
    assert bounded_int(text, -1, most=300, base=16) == number


@pytest.mark.parametrize(
    ("value", "number"), [(7, 7), (7.0, 7), (10**400, 100), (1e300, 100), (7.5, None), (True, None), (math.nan, None)]
)
def test_a_whole_number_of_json_is_read_too(value: object, number: int | None) -> None:
    assert bounded_int(value, None, most=100) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [("1.5", 1.5), (" -2e3 ", -9.0), (".5", 0.5), ("1e999", 9.0), ("9" * 399, 9.0), (10**400, 9.0), (3, 3.0)],
)
def test_a_decimal_number_is_moved_into_the_limits(value: object, number: float) -> None:
    assert bounded_float(value, None, least=-9.0, most=9.0) == number


def test_a_number_too_large_for_a_float_is_infinite() -> None:
    assert bounded_float(10**400, None) == math.inf


@pytest.mark.parametrize(
    "value", ["", None, "²", "٣", "nan", "inf", "1_0", "1.2.3", "e5", "9" * 500, math.nan, [], True]
)
def test_what_is_no_decimal_number_gives_the_default(value: object) -> None:
    assert bounded_float(value, "none") == "none"


def test_decimal_digits_of_every_script_become_ascii() -> None:
    assert in_ascii("٣१5") == "315"
    assert in_ascii("x²") == "x²"
