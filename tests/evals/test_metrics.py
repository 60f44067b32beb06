"""Metrics of survival, on cases that a simple scorer gets wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus_evals.errors import MetricError
from prunus_evals.metrics.matching import (
    answers_survive,
    body_survives,
    element_text,
    gold_table,
    lcs_length,
    lcs_pick,
    normalise,
    table_survives,
)
from prunus_evals.visible import html_text, markdown_text


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("12", "about 12 of them", True),
        ("12", "1,012 of them", False),
        ("12", "12,000 of them", False),
        ("12", "12.5 of them", False),
        ("12", "3.12", False),
        ("12", "In 12. Then", True),
        ("12", "12, 13", True),
        ("12", "112", False),
        ("0:19", "1:0:19", False),
        ("0:19", "took 0:19.", True),
        ("Ann", "Anna", False),
        ("Ann", "ANN!", True),
        ("O\u2019Brien", "o'brien", True),
        ("1990\u201395", "1990-95", True),
        ('"Hush"', "“Hush”", True),
        ("New York", "new\n  york", True),
        ("Straße", "STRASSE", True),
        ("ﬁne", "fine", True),
        ("$5", "costs $5 now", True),
        ("soft", "so\u00adft", True),
    ],
)
def test_answer(answer: str, text: str, expected: bool) -> None:
    assert answers_survive([answer], text) is expected


def test_every_answer_must_survive() -> None:
    assert answers_survive(["a", "b"], "b a")
    assert not answers_survive(["a", "c"], "b a")


@pytest.mark.parametrize("answers", [[], [""], ["  "]])
def test_what_cannot_be_computed_raises(answers: list[str]) -> None:
    with pytest.raises(MetricError):
        answers_survive(answers, "text")


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<table><tr><td>A<td>12<tr><td>B<td>7</table>", "| A | 12 |\n|---|---|\n| B | 7 |"),
        ("<p>3 * 4 = <b>12</b>", r"3 \* 4 = **12**"),
        ("<p>the <a href=/x>12</a> men", "the [12](/x) men"),
    ],
)
def test_formats_score_alike(html: str, markdown: str) -> None:
    for text in (html_text(html), markdown_text(markdown)):
        assert answers_survive(["12"], text)
        assert not answers_survive(["1"], text)


TABLE = """<table><caption>Cap</caption><tr><th>Year<th>Who
<tr><td><span style="display:none">0001</span>1990<td>Ann<tr><td>1991<td>Bob</table>"""


@pytest.mark.parametrize(
    ("output", "whole", "share"),
    [
        ("Cap\nYear Who\n1990 Ann\n1991 Bob", True, 1.0),
        ("x Cap y Year Who z 1990 Ann 1991 Bob", True, 1.0),
        ("Cap Year Who 00011990 Ann 1991 Bob", True, 1.0),
        ("Cap Year Who 1991 Bob 1990 Ann", False, 1.0),
        ("Year Who 1991 Bob", False, 4 / 7),
        ("1990 and Ann", False, 0.0),
        ("", False, 0.0),
    ],
)
def test_gold_table(output: str, whole: bool, share: float) -> None:
    found, part = table_survives(gold_table(TABLE), output)
    assert (found, part) == (whole, share)


@pytest.mark.parametrize("html", ["<p>no table", "<table></table>", "<table hidden><tr><td>x"])
def test_gold_table_that_cannot_be_read(html: str) -> None:
    with pytest.raises(MetricError):
        gold_table(html)


def test_element() -> None:
    html = "<div tid=1><p tid=2>a <b tid=3>b</b></p>c</div>"
    assert element_text(html, "tid", "2") == "a b"
    with pytest.raises(MetricError):
        element_text(html, "tid", "4")


def test_body() -> None:
    seen = "menu one two three four footer"
    body = "one two unseen three four"
    assert body_survives(body, seen, "one two three four") == (4, 4)
    assert body_survives(body, seen, "one three two four") == (3, 4)
    assert body_survives(body, seen, "onetwo three four") == (2, 4)
    with pytest.raises(MetricError):
        body_survives("nothing", seen, seen)


WORDS = st.lists(st.sampled_from("abcd"), max_size=12)


def slow_lcs(first: list[str], second: list[str]) -> int:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            best = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else best
    return table[-1][-1]


@given(WORDS, WORDS)
def test_lcs_is_the_slow_one(first: list[str], second: list[str]) -> None:
    picked = lcs_pick(first, second)
    assert lcs_length(first, second) == len(picked) == slow_lcs(first, second)
    for whole in (first, second):
        rest = iter(whole)
        assert all(word in rest for word in picked)


@given(st.text())
def test_normalise_is_idempotent_enough(text: str) -> None:
    once = normalise(text)
    assert once == once.strip()
    assert "  " not in once
