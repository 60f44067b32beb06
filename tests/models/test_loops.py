"""A model in a loop is found, and what it repeats is kept once."""

from __future__ import annotations

import pytest

from prunus.models.loops import repeats_itself, without_loop

SAID = "The lighthouse was built in 1871. "


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        (SAID + "It stands. " * 8, True),
        (SAID + "It stands. " * 7, False),
        (SAID + "-" * 60, True),
        (SAID + "x" * 201 * 2, True),
        (SAID, False),
        ("", False),
    ],
)
def test_eight_times_the_same_is_a_loop(text: str, loop: bool) -> None:
    assert repeats_itself(text) is loop


@pytest.mark.parametrize(
    ("text", "once"),
    [
        (SAID + "It stands. " * 30, SAID + "It stands."),
        (SAID + "It stands. " * 30 + "It st", SAID + "It stands."),  # stopped in the middle
        (SAID * 8, SAID.strip()),
        (SAID + "- " * 90, SAID + "- -"),
        (SAID, SAID),
    ],
)
def test_what_is_repeated_is_kept_once(text: str, once: str) -> None:
    assert without_loop(text).strip().startswith(once.strip())
    assert len(without_loop(text)) < len(once) + 8
