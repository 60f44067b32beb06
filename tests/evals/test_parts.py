"""The parts that have no questions in the harness: cleaning, main content, extraction."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from prunus_evals import parts
from prunus_evals.cli import main
from prunus_evals.errors import UnknownName
from prunus_evals.parts import Article

PAGES = (("Harrow bridge", ("The Harrow bridge opened in 1932.", " It is of steel.")), ("Trams", ("Trams run daily.",)))
ASKED = "When did the Harrow bridge open?"


@pytest.mark.parametrize(("output", "survived"), [("<p>one two three", 1), ("<p>one twothree", 1 / 3)])
def test_the_words_of_an_article_that_cleaning_keeps(
    output: str, survived: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Article("p", "<p>one two<br>three</p><nav>menu</nav>", "one two three unseen")
    monkeypatch.setattr(parts, "load_articles", lambda wanted, limit: [page])
    monkeypatch.setattr(parts, "cleaner", lambda name: (lambda html: output, "html"))
    result = parts.measure("articles", "report", ["mine"])
    row: dict[str, Any] = result["rows"]["mine"]
    assert row["survived"] == pytest.approx(survived)
    assert row["words"] == 3
    assert "mine" in parts.table(result)


def test_main_content_is_measured_in_runs_of_four_words() -> None:
    assert parts.precision_recall("a b c d e", "a b c d e") == (1.0, 1.0)
    assert parts.precision_recall("a b c d", "a b c d e") == (0.5, 1.0)
    assert parts.precision_recall("a b c d e", "") == (0.0, 0.0)


def test_a_body_has_no_title_heading_and_no_caption(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "<h1>Title</h1><p>one two</p><figure><img src=a><figcaption>Caption</figcaption></figure>"
    monkeypatch.setattr(parts.prunus, "clean", lambda html, main: output)
    assert parts.main_content("prunus:body", "").split() == ["one", "two"]
    assert "Title" in parts.main_content("prunus:main", "")


def test_a_sentence_is_chosen_when_half_of_its_letters_are() -> None:
    assert parts.covered("The Harrow bridge opened in 1932. It", PAGES[0][1]) == [0]
    assert parts.covered("bridge opened in 1932. It is of steel.", PAGES[0][1]) == [0, 1]
    assert parts.covered("Harrow bridge of old", PAGES[0][1]) == []


def test_every_extractor_chooses_sentences_and_strays_count_as_wrong() -> None:
    for name in ("prunus", "bm25:1", "bm25title:1"):
        assert (0, 0) in parts.choice(name, ASKED, PAGES)[0]
    assert parts.choice("everything", ASKED, PAGES) == ({(0, 0), (0, 1), (1, 0)}, 0)
    found = parts.score({(0, 0), (0, 1)}, 2, {(0, 0), (1, 0)})
    assert found == {"f1": pytest.approx(1 / 3), "precision": 0.25, "recall": 0.5, "chosen": 4}
    assert parts.score(set(), 0, {(0, 0)})["f1"] == 0.0


def test_unknown_systems_are_refused() -> None:
    for make in (
        lambda: parts.cleaner("prunus:pdf"),
        lambda: parts.main_content("prunus:best", ""),
        lambda: parts.choice("bm25:many", ASKED, PAGES),
    ):
        with pytest.raises(UnknownName):
            make()


@pytest.mark.parametrize("part", parts.PARTS)
def test_each_part_is_a_command(part: str) -> None:
    result = CliRunner().invoke(main, [part, "--help"])
    assert result.exit_code == 0
    assert "--half" in result.output
