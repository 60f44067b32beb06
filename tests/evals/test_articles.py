"""Task ``articles`` with the built-in cleaners."""

from __future__ import annotations

import pytest

from prunus_evals import articles
from prunus_evals.errors import UnknownName
from prunus_evals.records import Article


def run(monkeypatch: pytest.MonkeyPatch, output: str) -> dict[str, object]:
    monkeypatch.setattr(articles, "cleaner", lambda name: (lambda html: output, "html"))
    page = Article("p", "<p>one two<br>three</p><nav>menu</nav>", "one two three unseen")
    return articles.summary(articles.run([page], ["mine"]), "dev")


def test_everything_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "<p>one two three")
    assert "1.00000 of 3 words" in articles.table(result)


def test_fused_words_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "<p>one twothree")
    assert "0.33333 of 3 words" in articles.table(result)


def test_the_report_half_names_no_page() -> None:
    kept = [articles.Kept("mine", "secret", 1, 2)]
    assert "secret" in articles.table(articles.summary(kept, "dev"))
    assert "secret" not in articles.table(articles.summary(kept, "report"))


def test_unknown_cleaner() -> None:
    with pytest.raises(UnknownName):
        articles.cleaner("prunus:pdf")
