"""The project's own examples: without a model, the first quote answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import prunus
from prunus.core.text.words import normalise

EXAMPLES = Path(__file__).parents[2] / "examples"
SITE = EXAMPLES / "site"


def first_quote(question: str, pages: Any) -> str:
    try:
        return prunus.ask(question, pages).citations[0].quote
    except prunus.NothingFound:
        return ""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How deep is the stilling well?", "9.6 metres deep"),
        ("How long does slack water last at Dunnock Quay?", "22 minutes"),
        ("What does Harbour come to per month if I settle a whole year at once?", "€11.90"),
        ("How much did the Linden Trust pay towards reading the rolls?", "€74,400"),
        ("红灯常亮是什么意思？", "电池电量低于百分之十"),
    ],
)
def test_questions_of_the_help_and_the_demo_are_answered_by_the_first_quote_of_the_site(
    question: str, answer: str
) -> None:
    assert answer in first_quote(question, SITE)


def test_most_answers_to_example_questions_are_right_in_the_first_quote() -> None:
    rows = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]
    answered = right = 0
    for row in rows:
        quote = "".join(normalise(first_quote(row["question"], SITE / row["pages"][0])).split())
        answered += quote != ""
        right += any("".join(normalise(answer).split()) in quote for answer in row["answers"])
    assert right >= 28
    assert right > 0.6 * answered
