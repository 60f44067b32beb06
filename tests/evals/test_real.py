"""The real data has the counts and properties that the tasks state (dev half only)."""

from __future__ import annotations

import os

import pytest

from prunus_evals import parts, tasks
from prunus_evals.data import VARIABLE
from prunus_evals.metrics.matching import gold_table, table_survives
from prunus_evals.split import half
from prunus_evals.visible import html_text

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} is not set: no real data"),
]


@pytest.mark.parametrize(("name", "pages", "questions"), [("table_qa", 187, 187), ("websrc", 5, 9), ("nq", 5, 22)])
def test_sizes(name: str, pages: int, questions: int) -> None:
    found = tasks.load(name, "dev")
    assert (len(found), sum(map(len, found))) == (pages, questions)
    assert all(half(page[0].page) == "dev" for page in found)


def test_gold_tables_are_whole_in_their_pages() -> None:
    for (question,) in tasks.load("table_qa", "dev", limit=20):
        assert question.gold_table is not None
        table = gold_table(question.gold_table)
        assert table_survives(table, html_text(question.html)) == (True, 1.0)


def test_limit_is_a_sample() -> None:
    few = tasks.load("nq", "dev", limit=2)
    assert few == tasks.load("nq", "dev")[:2]
    assert len(parts.load_articles("dev", limit=3)) == 3
