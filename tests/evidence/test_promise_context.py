"""Kept blocks stand in their own context: headings, captions, headers, and nothing that hardly bears on the question."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracle
from tests.strategies import articles

import prunus
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.headings import heading_blocks
from prunus.pages.clean.walk import clean_tree

QUESTION = "How deep is the water at pier 7?"
FILLER = "".join(f"<p>The council met on day {day} and spoke of roads and bins.</p>" for day in range(30))


def pruned(html: str, budget: int, **options: bool) -> str:
    return prunus.prune(html, QUESTION, budget, "text", options=prunus.Options(max_words=12, **options)).output


def test_a_row_comes_with_heading_caption_and_all_header_rows() -> None:
    rows = "".join(f"<tr><td>Pier {number}<td>{number}.2<td>{number}.9" for number in range(2, 30))
    head = "<tr><td rowspan=2>Place<td colspan=2>2023<tr><td>Low<td>High"
    caption = "Depth of the water in metres, below the lowest tide of the year"
    page = f"<h2>Old news</h2>{FILLER}<h2>Depths</h2><table><caption>{caption}</caption>{head}{rows}</table>"
    lines = pruned(page, 90).splitlines()
    assert lines[:4] == ["Depths", caption, "Place\t2023", "\tLow\tHigh"]
    assert "Pier 7\t7.2\t7.9" in lines


def test_a_row_comes_with_the_title_of_its_group() -> None:
    groups = ""
    for coast, depth in (("North", 7), ("South", 9)):
        numbers = range(2, 20) if coast == "North" else range(20, 40)
        piers = "".join(f"<tr><td>Pier {number}<td>{depth}.{number}" for number in numbers)
        groups += f"<tr><td colspan=2><b>{coast} coast</b>{piers}<tr><td>Total<td>18 piers"
    page = f"{FILLER}<table><tr><th>Place<th>Depth{groups}</table>"
    question = "How deep is the water at pier 27?"
    lines = prunus.prune(page, question, 40, "text", options=prunus.Options(max_words=6)).output.splitlines()
    assert lines[:2] == ["Place\tDepth", "South coast"]
    assert "Pier 27\t9.27" in lines


def test_a_row_comes_with_the_header_right_above_it() -> None:
    pets = "".join(f"<tr><td>{year}<td>{year % 97}" for year in range(1950, 2000))
    page = f"<table><tr><th>Year<th>Cats{pets}<tr><th>Year<th>Dogs{pets}</table>"
    question = "How many dogs were there in 1991?"
    lines = prunus.prune(page, question, 20, "text", options=prunus.Options(max_words=6)).output.splitlines()
    assert lines[:2] == ["Year\tDogs", "1991\t51"]


def test_a_block_without_room_for_its_context_comes_alone() -> None:
    page = "<h2>" + "A long heading of many words " * 3 + "</h2><p>The water at pier 7 is 9 metres deep.</p>" + FILLER
    assert pruned(page, 16) == "The water at pier 7 is 9 metres deep."


def test_an_outer_heading_comes_where_a_block_would_stand_in_another_section() -> None:
    page = (
        f"<h2>North</h2><p>The water at pier 7 is deep in the north.</p>{FILLER}"
        f"<h2>South</h2>{FILLER}<h3>Piers</h3><p>The water at pier 7 is 9 metres deep.</p>{FILLER}"
    )
    lines = pruned(page, 60).splitlines()
    assert lines[:2] == ["North", "The water at pier 7 is deep in the north."]
    assert lines[lines.index("Piers") - 1] == "South"


def test_the_words_of_a_heading_count_for_what_stands_under_it() -> None:
    page = f"<h2>Roads</h2>{FILLER}<h3>How deep is the water at pier 7?</h3><p>Nine metres.</p><h3>Bins</h3>{FILLER}"
    assert pruned(page, 30).splitlines()[:2] == ["How deep is the water at pier 7?", "Nine metres."]


class Piers:
    """Scores blocks by one word, and tells what bears on nothing."""

    least_share = 0.4

    def score(self, query: str, blocks: Blocks) -> np.ndarray:
        return np.array([0.9 if "pier" in text else 0.3 for text in blocks.texts])


@pytest.mark.parametrize(("fill", "least", "most"), [(False, 10, 20), (True, 250, 300)])
def test_the_budget_is_a_ceiling_unless_it_is_to_be_filled(fill: bool, least: int, most: int) -> None:
    page = f"<ul><li><a href=/>Home</a><li>Search</ul><p>The water at pier 7 is 9 metres deep.</p>{FILLER}"
    options = prunus.Options(max_words=12, fill=fill, scorer=Piers())
    assert least <= prunus.prune(page, QUESTION, 300, "text", options=options).tokens <= most


@given(articles(), st.integers(30, 300))
def test_no_heading_is_kept_without_something_under_it(html: str, budget: int) -> None:
    try:
        context = prunus.prune(html, "When did the canal open?", budget, options=prunus.Options(max_words=20))
    except prunus.BadBudget:
        return
    blocks = cut([clean_tree(html)], 20)
    headings = heading_blocks(blocks)
    if len(context.blocks) != len(blocks) or len(headings) == len(blocks):
        return  # the best block was cut, or the page has nothing but headings
    kept = [block.index for block in context.kept]
    assert not any(block.role == "scored" and block.index in headings for block in context.kept)
    assert kept[-1] not in headings
    assert oracle.words(context.output)


def test_headings_without_evidence_are_told() -> None:
    page = (
        "<h1>Harbour</h1><h2>Depths</h2><p>The water at pier 7 is 7.2 m deep.</p><h3>Anchors</h3><p>Of iron.</p>"
        "<h2>Council</h2><p>It met.</p><h3>Bins</h3><p>They are green.</p><h2>Roads</h2><p>They are long.</p>"
    )
    context = prunus.prune(["<p>Another page.</p>", page], QUESTION, 30, "text")
    assert "7.2 m" in context.output
    assert context.left_out(1) == ["Council", "Roads"]  # Bins is a part of what Council leaves out
    assert prunus.prune(page, QUESTION, 10_000, "text", options=prunus.Options(fill=True)).left_out() == []
