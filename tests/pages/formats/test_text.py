"""Plain text: which lines are lines, and which a program wrapped."""

from __future__ import annotations

import pytest

import prunus

WRAPPED = """The harbour was built in 1880 by
men who came from the north and
stayed. They were paid by the day
and lived in huts beside the quay
until the war came."""
LINES = {
    "a: 1\nb: 2\nc: 3": 3,
    WRAPPED: 1,
    f"{WRAPPED}\n- Ann\n- Bob": 3,
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\nRough winds do shake the buds": 3,
    "2026-07-04 10:00 INFO " + "word " * 20 + "\n2026-07-04 10:01 WARN disk full\n2026-07-04 10:02 INFO done": 3,
    "word " * 14 + "word\n" + "word " * 14 + "word\nhttps://example.org/" + "x" * 200 + "\nword": 2,
    "中" * 40 + "\n" + "文" * 40 + "\n" + "字" * 20: 1,
}


@pytest.mark.parametrize("text", LINES)
def test_lines_that_their_writer_ended_stay_lines(text: str) -> None:
    shown = prunus.clean(prunus.Page(content=text.encode(), url="a.txt"), "text")
    assert len(shown.split("\n")) == LINES[text]
