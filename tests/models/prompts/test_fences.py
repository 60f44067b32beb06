"""Fence lines of prompts do not reach an answer, however the model's text is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.models.prompts.fences import FenceFilter, without_fences

MARK = "0123456789abcdef0123456789abcdef"
WRITTEN = [
    (f"BEGIN {MARK} [1] | Bridge | 1932 | example.org\nIt opened in 1932.\nEND {MARK}\nTrams run.", "It opened in 1932.\nTrams run."),
    (f"It opened. BEGIN {MARK} [1] It was built. END {MARK}", "It opened. It was built. "),
    (f"> END {MARK}\n\nTrams run.", "> \nTrams run."),
    (f"BEGIN {MARK[:14]} the question\nWhen?", "When?"),  # a digest that is cut short
    ("END", "END"),
    ("BEGIN add the flour, and END the day at 0123456789", "BEGIN add the flour, and END the day at 0123456789"),
    (f"sha256 {MARK} and {MARK}", f"sha256 {MARK} and {MARK}"),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("said", "shown"), WRITTEN)
def test_fence_lines_are_removed_and_nothing_else(said: str, shown: str) -> None:
    assert without_fences(said) == shown


@given(st.sampled_from(WRITTEN), st.lists(st.integers(1, 20), min_size=1, max_size=40))
def test_pieces_of_a_stream_give_what_the_whole_gives(written: tuple[str, str], sizes: list[int]) -> None:
    said, shown = written
    fences, found, place = FenceFilter(), "", 0
    for size in (sizes * len(said))[: len(said) + 1]:
        found += fences.feed(said[place : place + size])
        place += size
    assert found + fences.rest() == shown


def test_text_is_held_back_only_where_it_may_become_a_fence() -> None:
    fences = FenceFilter()
    assert fences.feed("The BEGINNING ") == "The BEGINNING "
    assert fences.feed("E") == ""
    assert fences.feed("very") == "Every"
    assert fences.feed(f"\nBEGIN {MARK} " + "x" * 500)[-3:] == "xxx"  # no label is that long
