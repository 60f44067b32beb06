"""A passage is short, whole in itself, and a slice of the page."""

from __future__ import annotations

import random

import pytest

from prunus.core.text.words import count_words
from prunus.core.types import Passage
from prunus.evidence.passages import MOST, passages_of
from prunus.evidence.segments import WHOLE, segments_of
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree

LONG = "The old harbour was deepened again and again, because each winter brought new sand to its mouth. " * 8


def passages(html: str, *chosen: str) -> tuple[Tree, list[Passage]]:
    tree = clean_tree(html)
    segments = segments_of(tree, [(0, len(tree.canonical))])
    picked = [next(segment for segment in segments if segment.text.startswith(words)) for words in chosen]
    return tree, passages_of(picked, {tree.document: tree})


def marked(tree: Tree, passage: Passage) -> list[str]:
    return [tree.canonical[mark.start : mark.end] for mark in passage.marks]


@pytest.mark.parametrize(
    ("html", "chosen", "text", "marks"),
    [
        # a sentence among its neighbours
        (
            f"<p>{LONG}<p>It was built in 1820. A storm took it in 1905. Nobody mended it.<p>{LONG}",
            "A storm",
            "It was built in 1820. A storm took it in 1905. Nobody mended it.",
            ["A storm took it in 1905."],
        ),
        # a label with its value, in whatever elements they stand
        (f"<p>{LONG}<div>Fuel economy</div><div>20 MPG</div><p>{LONG}", "Fuel", "Fuel economy\n20 MPG", ["20 MPG"]),
        # a question with its answer
        (
            f"<p>{LONG}<h3>Do you deliver?</h3><p>Yes, within a week.<h3>Do you mend?</h3><p>{LONG}",
            "Do you deliver",
            "Do you deliver?\nYes, within a week.",
            ["Yes, within a week."],
        ),
        # a heading with the first sentences under it
        (f"<p>{LONG}<h2>The sand</h2><p>{LONG}", "The sand", f"The sand\n{LONG[: 3 * 97 - 1]}", [LONG[: 3 * 97 - 1]]),
        # an introduction with its whole list
        (
            f"<p>{LONG}<p>You need:<ul><li>3 eggs<li>flour</ul><p>{LONG}",
            "You need",
            "You need:\n3 eggs\nflour",
            [],
        ),
        # an item with its list and what introduces it
        (
            f"<p>{LONG}<p>You need:<ul><li>3 eggs<li>flour</ul><p>{LONG}",
            "3 eggs",
            "You need:\n3 eggs\nflour",
            [],
        ),
        # code with the line above it, and the line with its code
        (
            f"<p>{LONG}<p>To list all gauges, type:<pre>gauge list\ngauge show</pre><p>{LONG}",
            "gauge list",
            "To list all gauges, type:\ngauge list\ngauge show",
            ["gauge list\ngauge show"],
        ),
        # a short section is whole
        (
            f"<h2>Before</h2><p>{LONG}<h2>Steps</h2><ol><li>Open it.<li>Turn it.</ol><p>That is easy.<h2>After</h2>",
            "That is",
            "Steps\nOpen it.\nTurn it.\nThat is easy.",
            ["That is easy."],
        ),
        # an item of a long list is not a label of what follows the list
        (
            f"<ul>{'<li>reading of the old gauge by hand' * 9}<li>The last one</ul><p>Customize<p>{LONG}",
            "The last",
            "The last one",
            [],
        ),
        # a row is whole without its neighbours
        ("<table><tr><th>Day<th>Sea<tr><td>Mon<td>3<tr><td>Tue<td>4</table>", "Tue", "Tue\t4", []),
    ],
)
def test_a_passage_is_whole_in_itself(html: str, chosen: str, text: str, marks: list[str]) -> None:
    tree, [passage] = passages(html, chosen)
    assert passage.text == text
    assert marked(tree, passage) == marks


def test_passages_that_overlap_are_one_with_the_best_part_marked() -> None:
    tree, [passage] = passages(f"<p>{LONG}<p>One is red. Two is blue. Six is green.<p>{LONG}", "Six", "One")
    assert marked(tree, passage) == ["Six is green."]


def test_headings_and_questions_alone_are_left_out_where_there_is_more() -> None:
    page = f"<h2>Do you deliver?</h2><h2>Do you mend?</h2><h2>Days</h2><p>We deliver on Mondays. {LONG}"
    _, found = passages(page, "Do you deliver", "We deliver")
    assert [passage.text.startswith("We deliver on Mondays.") for passage in found] == [True]
    _, [alone] = passages(page, "Do you deliver")
    assert alone.text.startswith("Do you deliver?")


def test_every_passage_is_a_slice_of_the_page_and_short() -> None:
    draw = random.Random(7)
    words = "the ferry leaves at noon. Price: 20 € Why now? on the quay and back again!".split()
    parts = [
        "<h2>{}</h2>",
        "<p>{}",
        "<ul><li>{}<li>{}</ul>",
        "<pre>{}</pre>",
        "<table><tr><td>{}<td>{}</table>",
        "<div>{}</div>",
    ]
    for _ in range(300):
        pieces = [
            part.format(*(" ".join(draw.choices(words, k=draw.choice((1, 3, 9, 40, 90)))) for _ in range(2)))
            for part in draw.choices(parts, k=draw.randint(1, 9))
        ]
        tree = clean_tree("".join(pieces))
        segments = segments_of(tree, [(0, len(tree.canonical))])
        for segment in segments:
            [passage] = passages_of([segment], {tree.document: tree})
            [span] = passage.spans
            assert passage.text == tree.canonical[span.start : span.end]
            assert span.start <= segment.span.start and segment.span.end <= span.end
            assert all(span.start <= mark.start < mark.end <= span.end for mark in passage.marks)
            assert count_words(passage.text) <= max(MOST + WHOLE, count_words(segment.text) + MOST)
