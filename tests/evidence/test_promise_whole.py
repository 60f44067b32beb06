"""Promise: no output holds a part of a sentence or of a row without a mark, and says where something was left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracle

import prunus
from prunus.core.registry import make_engine
from prunus.core.types import OutputFormat
from prunus.pages.write.selection import MARK

COUNTER = make_engine("tokenizer", "smollm2")


@dataclass(frozen=True)
class Stated:
    """A page of statements: sentences of paragraphs, items of lists, rows of tables.

    Word ``k`` of statement ``s`` in place ``p`` (a paragraph, a list, a table) is ``p.s.k``.
    """

    html: str
    sizes: dict[tuple[int, int], int]
    kinds: list[str]


@st.composite
def stated(draw: Any) -> Stated:
    places = draw(
        st.lists(
            st.tuples(
                st.sampled_from(("p", "ul", "ol", "table")), st.lists(st.integers(1, 40), min_size=1, max_size=9)
            ),
            min_size=1,
            max_size=5,
        )
    )
    html, sizes = [], {}
    for place, (kind, statements) in enumerate(places):
        written = []
        for number, most in enumerate(statements):
            size = min(most, 6) if kind == "table" else most
            words = [f"p{place}s{number}w{word}" for word in range(size)]
            sizes[place, number] = size
            written.append(
                {"p": "A " + " ".join(words) + ". ", "table": "<tr><td>" + "<td>".join(words)}.get(
                    kind, "<li>" + " ".join(words)
                )
            )
        html.append(f"<{kind}>{''.join(written)}</{kind}>")
    return Stated("".join(html), sizes, [kind for kind, _ in places])


def shown_words(context: prunus.Context, format: OutputFormat) -> list[str]:
    """Return the words of an output and its marks, in order."""
    if format == "html":
        return list(oracle.words(context.output))
    return re.findall(rf"p\d+s\d+w\d+|{MARK}", context.output)


@given(stated(), st.integers(90, 900), st.integers(0, 8), st.sampled_from(get_args(OutputFormat)))
def test_a_statement_is_shown_whole_or_marked_as_cut(
    page: Stated, budget: int, asked: int, format: OutputFormat
) -> None:
    context = prunus.prune(page.html, f"what of p0s{asked}w0 and p1s{asked}w1?", budget, format)
    assert int(COUNTER.count([context.output])[0]) <= budget
    shown = [word for word in shown_words(context, format) if word == MARK or word.startswith("p")]
    for (place, number), size in page.sizes.items():
        held = [index for index, word in enumerate(shown) if word.startswith(f"p{place}s{number}w")]
        if held and len(held) < size:
            alone = make_alone(page, place, number)
            assert int(COUNTER.count([alone])[0]) > budget or size > 128
            assert MARK in shown[max(0, held[0] - 1) : held[-1] + 2], f"{place}, {number} is cut without a mark"


def make_alone(page: Stated, place: int, number: int) -> str:
    """Return one statement as a page of its own."""
    words = [f"p{place}s{number}w{word}" for word in range(page.sizes[place, number])]
    kind = page.kinds[place]
    if kind == "table":
        return "<table><tr><td>" + "<td>".join(words) + f"<tr><td>{MARK}</table>"
    return f"<ul><li>{' '.join(words)}</ul>"


@given(stated(), st.integers(90, 900), st.integers(0, 8), st.sampled_from(get_args(OutputFormat)))
def test_what_is_left_out_between_two_statements_is_marked(
    page: Stated, budget: int, asked: int, format: OutputFormat
) -> None:
    context = prunus.prune(page.html, f"what of p0s{asked}w0 and p1s{asked}w1?", budget, format)
    shown = [word for word in shown_words(context, format) if word == MARK or word.startswith("p")]
    for place, kind in enumerate(page.kinds):
        held = [index for index, word in enumerate(shown) if word.startswith(f"p{place}s")]
        if not held:
            continue
        numbers = {int(shown[index].partition("s")[2].partition("w")[0]) for index in held}
        if kind == "table" and len(numbers) < sum(1 for at, _ in page.sizes if at == place):
            assert shown[held[-1] + 1 : held[-1] + 2] == [MARK]
        elif kind != "table" and len(numbers) < max(numbers) - min(numbers) + 1:
            assert MARK in shown[held[0] : held[-1]]


@pytest.mark.parametrize("format", get_args(OutputFormat))
def test_a_whole_page_holds_no_mark(format: OutputFormat) -> None:
    assert (
        MARK not in prunus.prune("<p>One. Two.<ul><li>a<li>b</ul><table><tr><td>c<td></table>", "b", 500, format).output
    )


@pytest.mark.parametrize("budget", [60, 90, 120])
def test_cleaning_what_was_pruned_again_changes_nothing(budget: int) -> None:
    page = (
        "".join(
            f"<p>Gate {number} opens at {number}. It closes late. The guard of gate {number} sleeps.</p>"
            f"<ol><li>first {number}<li>second {number}<li>third {number}</ol>"
            for number in range(9)
        )
        + "<table>"
        + "".join(f"<tr><td>gate {number}<td>{number} coins" for number in range(9))
        + "</table>"
    )
    html = prunus.prune(page, "who sleeps at gate 4?", budget).html
    assert MARK in html
    assert prunus.clean(html) == html
