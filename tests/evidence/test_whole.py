"""Questions about a whole page: its own content is the evidence, its opening before all."""

from __future__ import annotations

import numpy as np

import prunus
from prunus.core.ports import Segment
from prunus.core.types import Span
from prunus.evidence.segments import segments_of
from prunus.evidence.whole import of_main_content
from prunus.pages.clean.walk import clean_tree

STORY = "".join(
    f"<p>The {place} of the lighthouse was restored by volunteers over {years} years, and visitors can see how the "
    f"keeper lived there with his family, his books and his boat.</p>"
    for place, years in (("kitchen", "two"), ("lamp room", "three"), ("cellar", "four"), ("garden", "five"))
)
PAGE = f"""<title>The lighthouse of Eddy Point</title>
<nav><ul><li><a href=/>Home</a><li><a href=/about>About this page</a><li><a href=/s>Summary of services</a></ul></nav>
<main><article><h1>The lighthouse of Eddy Point</h1>
<p>Eddy Point is a lighthouse of 1861 that a society of volunteers keeps open as a museum of the life on the coast.</p>
{STORY}</article></main>
<footer><p>For what this page is about, see our overview page. <a href=/p>Privacy</a> <a href=/t>Terms</a></p></footer>"""
LEAD = "Eddy Point is a lighthouse of 1861"
QUESTIONS = ("What is this page about?", "Summarize the page.", "tl;dr", "Worum geht es auf dieser Seite?")


def test_the_opening_of_the_content_is_kept_first_and_menus_are_not() -> None:
    for question in QUESTIONS:
        for budget in (80, 300):
            text = prunus.prune(PAGE, question, budget, "text").text
            assert LEAD in text and "overview page" not in text and "Summary of services" not in text, question


def test_a_question_about_a_part_finds_it_outside_the_content_too() -> None:
    assert "Privacy" in prunus.prune(PAGE, "Where is the privacy link?", 60, "text").text


def test_the_opening_is_quoted_for_a_question_about_the_whole() -> None:
    for question in QUESTIONS:
        answer = prunus.ask(question, PAGE)
        assert answer.citations[0].quote.startswith(LEAD), question
        assert all("overview page" not in citation.quote for citation in answer.citations)


def test_as_many_openings_as_asked_for_and_each_page_has_one() -> None:
    other = PAGE.replace("Eddy Point", "Cape Race").replace("1861", "1856")
    one = prunus.ask(QUESTIONS[0], PAGE, options=prunus.Options(extractor="sentences:1"))
    assert len(one.citations) == 1
    both = prunus.ask("What are these pages about?", [PAGE, other])
    assert [citation.quote[:9] for citation in both.citations if "is a lighthouse" in citation.quote] == [
        "Eddy Poin",
        "Cape Race",
    ]


def test_a_page_without_sentences_is_told_by_its_longest_lines() -> None:
    page = "<main><h1>Socks</h1><ul><li>Warm socks of merino wool<li>Thin socks for running fast<li>Sale</ul></main>"
    assert "merino" in str([citation.quote for citation in prunus.ask(QUESTIONS[0], page).citations])


def test_segments_of_main_content_are_told_from_others_and_all_are_kept_where_none_is() -> None:
    tree = clean_tree(PAGE)
    tree.document = "page"
    tagged = segments_of(tree, [(0, len(tree.canonical))])
    kept = [segment.text for segment in of_main_content(tagged, {"page": tree})]
    assert any(LEAD in text for text in kept) and not any("Privacy" in text for text in kept)
    end = tree.canonical.index("Privacy")
    alone = Segment(1, "Privacy", Span("page", end, end + 7))
    assert of_main_content([alone], {"page": tree}) == [alone]
    assert of_main_content(tagged, {}) == tagged


def test_several_pages_count_alike_and_scores_are_finite() -> None:
    other = PAGE.replace("lighthouse", "windmill")
    context = prunus.prune([PAGE, other], "What are the pages about?", 200, "text")
    assert "lighthouse" in context.text and "windmill" in context.text
    assert np.isfinite([block.score for block in context.blocks]).all()
