"""How sure an answer without a model is, and rows that a question asks for by a number or a place."""

from __future__ import annotations

import pytest

import prunus
from prunus import BadInput, NothingFound, Options

HANDBOOK = "<h1>Staff handbook</h1><p>Our firm has 30 employees.</p><p>Holidays are 25 days a year.</p>"


def pumps(rows: str) -> str:
    return f"<table><caption>Pumps</caption><tr><th>Name<th>Capacity (l)<th>Built<th>Best lap</tr>{rows}</table>"


PUMPS = pumps(
    "<tr><td>Alpha<td>30<td>1 May 1999<td>1:02.5<tr><td>Beta<td>1,120<td>3 March 2004<td>58.4"
    "<tr><td>Gamma<td>80<td>2 July 2001<td>1:10.0<tr><td>Total<td>1,230<td><td>"
)


@pytest.mark.parametrize(
    ("question", "row", "how"),
    [
        ("Which pump has the largest capacity?", "Beta", "largest of Capacity (l)"),
        ("Which pump has the smallest capacity?", "Alpha", "smallest of Capacity (l)"),
        ("Which is the oldest pump?", "Alpha", "smallest of Built"),
        ("Which pump was built last?", "Beta", "last by Built"),
        ("What was the first pump?", "Alpha", "first by Built"),
        ("Which pump comes after Alpha?", "Beta", "after Alpha"),
        ("Which pump comes before Gamma?", "Beta", "before Gamma"),
        ("What is the capacity of Gamma?", "Gamma", ""),
    ],
)
def test_a_row_is_found_by_its_number_or_its_place_and_the_answer_says_how(question: str, row: str, how: str) -> None:
    answer = prunus.ask(question, PUMPS)
    first = answer.citations[0]
    assert (first.quote.split("\t")[0], first.how) == (row, how)
    assert how in answer.text


def test_a_sum_is_no_row_and_a_question_for_several_is_not_answered_by_one() -> None:
    assert prunus.ask("Which pump has the highest capacity?", PUMPS).citations[0].quote.startswith("Beta")
    asked = prunus.ask("How many pumps have a capacity of more than 50?", PUMPS, options=Options(min_confidence=0.0))
    assert not any(citation.how for citation in asked.citations)


def test_confidence_is_a_chance_and_the_best_citation_is_the_surest() -> None:
    answer = prunus.ask("How many days of holidays are there?", HANDBOOK)
    chances = [citation.confidence for citation in answer.citations]
    assert all(chance is not None and 0 <= chance <= 1 for chance in chances)
    assert answer.confidence is not None and answer.confidence >= max(chance or 0 for chance in chances) > 0.5


def test_what_a_page_does_not_say_is_refused_unless_any_chance_is_enough() -> None:
    question = "Who discovered penicillin?"
    with pytest.raises(NothingFound):
        prunus.ask(question, HANDBOOK)
    assert prunus.extract(question, HANDBOOK) == []
    answer = prunus.ask(question, HANDBOOK, options=Options(min_confidence=0.0))
    assert answer.confidence is not None and answer.confidence < 0.2


def test_the_only_sentence_of_a_page_is_not_likely_by_itself() -> None:
    with pytest.raises(NothingFound):
        prunus.ask("When did the Orrel bridge open?", "<p>Quarterly dividends of listed companies.</p>")


@pytest.mark.parametrize("chance", [-0.1, 1.5, 20])
def test_a_chance_is_from_0_to_1(chance: float) -> None:
    with pytest.raises(BadInput, match="min_confidence"):
        prunus.ask("When?", HANDBOOK, options=Options(min_confidence=chance))
