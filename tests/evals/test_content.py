"""Task ``content``: runs of four words of main content and of the marked article."""

from __future__ import annotations

import pytest

from prunus_evals import content
from prunus_evals.errors import UnknownName


def test_precision_and_recall_count_runs_of_four_words() -> None:
    assert content.precision_recall("a b c d e", "a b c d e") == (1.0, 1.0)
    assert content.precision_recall("a b c d", "a b c d e") == (0.5, 1.0)
    assert content.precision_recall("a b c d e", "") == (0.0, 0.0)


def test_a_body_has_no_title_heading_and_no_caption(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "<h1>Title</h1><p>one two</p><figure><img src=a><figcaption>Caption</figcaption></figure>"
    monkeypatch.setattr(content.prunus, "clean", lambda html, main: output)
    assert content.cleaner("prunus:body")("").split() == ["one", "two"]
    assert "Title" in content.cleaner("prunus:main")("")


def test_a_summary_has_an_interval_and_names_no_page() -> None:
    scored = [content.Scored("mine", f"secret{number}", 0.9, 1 - number / 20) for number in range(12)]
    result = content.summary(scored, "report")
    low, high = result["systems"]["mine"]["f"][1:]
    assert low <= result["systems"]["mine"]["f"][0] <= high
    assert "secret" not in content.table(result)


def test_an_unknown_system_is_refused() -> None:
    with pytest.raises(UnknownName):
        content.cleaner("prunus:best")
