"""A limit of seconds ends long computations."""

from __future__ import annotations

import pytest

import prunus
from prunus.answer import gather
from prunus.core.deadline import TooLong, limited
from prunus.core.options import Limits, Options

LONG = "<h1>Levels</h1>" + "<p>The river rose in the night and fell in the morning.</p>" * 4_000


def test_cleaning_ends_at_the_limit() -> None:
    with pytest.raises(TooLong, match=r"longer than 0\.001 seconds"), limited(0.001):
        prunus.read(LONG)
    assert prunus.read("<p>Words.").words == 1  # the limit is gone


def test_pruning_for_an_answer_ends_at_the_limit_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_LEAST_SECONDS", 0.0)
    documents = prunus.read(LONG)
    with pytest.raises(TooLong):
        prunus.ask("When did the river fall?", documents, options=Options(limits=Limits(seconds=0.001)))


def test_an_inner_limit_does_not_outlast_an_outer_one() -> None:
    with pytest.raises(TooLong, match=r"0\.001"), limited(0.001), limited(60):
        prunus.read(LONG)
