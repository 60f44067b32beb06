"""Whole numbers of foreign text: limits, and what is no number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.text.numbers import bounded_int


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
