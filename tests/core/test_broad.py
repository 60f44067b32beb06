"""Which questions are about a whole document or collection."""

from __future__ import annotations

import pytest

from prunus.core.text.broad import is_broad


@pytest.mark.parametrize(
    "query",
    [
        "Summarize the whole meeting.",
        "What is the plot of the story?",
        "What were the main discussion points of the meeting?",
        "Give me an overview.",
        "Fasse den Text zusammen",
        "总结这篇文章的主要内容",
        "What is this?",
        "tl;dr",
        "What can I learn from this page?",
        "What is the topic of this website?",
        "Worum geht es auf dieser Seite?",
        "De quoi parle cette page ?",
        "¿De qué trata esta página?",
        "这个网页讲了什么？",
    ],
)
def test_a_question_about_the_whole_is_broad(query: str) -> None:
    assert is_broad(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "Who blew the whistle?",
        "Summarize the discussion about trend watching.",
        "Why did the marketing expert disagree with the project manager?",
        "What is the relationship between Lois and Lorraine?",
        "How many pages does the report have?",
        "Which books did she write?",
        "What is the price on this page?",
        "Who has the most points?",
        "Was kostet der Text von Goethe?",
        "熊猫吃什么",
    ],
)
def test_a_question_that_names_a_part_is_not(query: str) -> None:
    assert not is_broad(query)
