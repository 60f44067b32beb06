"""Planning without a model: which questions need no search, and the queries of the others. The clock is an input."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import within

from prunus.answer.plan.rules import Engine
from prunus.core.errors import BadInput
from prunus.core.types import Message, Plan

NOW = datetime(2026, 3, 14, 9, 30)


def plan(*turns: str, limit: int = 4, now: datetime = NOW) -> Plan:
    """Plan the last of some turns; between them stand answers."""
    conversation = [Message("system", "Be brief.")]
    for turn in turns:
        conversation += [Message("user", turn), Message("assistant", "So it is.")]
    return asyncio.run(Engine(limit).plan(conversation[:-1], now))


def texts(found: Plan) -> list[str]:
    return [query.text for query in found.queries]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("What is 12 * 7?", "arithmetic"),
        ("2+2", "arithmetic"),
        ("please calculate 15% * (80 - 3)", "arithmetic"),
        ("How much is 3.5 times 4?", "arithmetic"),
        ("Hello!", "small talk"),
        ("Thank you very much.", "small talk"),
        ("Hi, how are you?", "small talk"),
        ("Danke!", "small talk"),
        ("你好", "small talk"),
        ("Thanks, that was all!", "small talk"),
        ("Translate this into German: The tide is high.", "given"),
        ("Translate 'cat' into French", "given"),
        ("Can you summarise the following text?\nThe tide is high and the quay is wet.", "given"),
        ("Fix this code:\n```python\nprint(1\n```", "given"),
        ("Write a short poem about the sea", "made up"),
        ("?", "nothing"),
    ],
)
def test_what_needs_no_search_gets_none_and_says_why(question: str, why: str) -> None:
    found = plan(question)
    assert not found.needs_search
    assert why in found.reason
    assert found.queries == ()


@pytest.mark.parametrize(
    "question",
    ["Who wrote the poem Sea Fever?", "Explain how tides work", "What happened on 2024-05-01?", "1871 flood",
     "Who translated the Odyssey into German?", "Who translated 'Faust'?", "Translate the bridge's name", "Hello World was first printed in which book?", "Is 7 a lucky number?",
     "How do I write a letter to a judge?", "Why does 0.1 + 0.2 differ from 0.3 in Python?"],
)  # fmt: skip
def test_what_asks_for_facts_is_searched_for(question: str) -> None:
    assert plan(question).needs_search


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Please tell me who wrote the first tide tables?", "wrote first tide tables"),
        ("Hi, who won the football cup in 1998?", "won football cup 1998"),
        ('Who wrote "The Rolls of Tide"?', 'wrote "The Rolls of Tide"'),
        ("Wer hat die Gezeitentafeln geschrieben?", "hat Gezeitentafeln geschrieben"),
        ("请问北京的人口是多少？", "北京的人口是多少"),
        ("How's C++ different from C#?", "C++ different C#"),
    ],
)
def test_queries_are_keywords_in_the_order_of_the_question(question: str, words: str) -> None:
    assert texts(plan(question)) == [words]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who founded Xylo Verdant Systems?", '"Xylo Verdant Systems"'),
        ("What does the GX-9000 measure?", '"GX-9000"'),
        ("Where did Wilma van Prewett-Kestermouth live?", '"Wilma van Prewett-Kestermouth"'),
    ],
)
def test_a_name_never_seen_is_quoted_whole(question: str, name: str) -> None:
    assert name in texts(plan(question))[0]


def test_a_name_that_everybody_knows_is_not_quoted() -> None:
    assert '"' not in texts(plan("What is the population of New York?"))[0]


@pytest.mark.parametrize(
    ("question", "text", "range_"),
    [
        ("What's the weather in Oslo today?", "weather Oslo today 2026-03-14", ""),
        ("What is the latest version of Python?", "latest version Python 2026", "year"),
        ("Any news about the harbour this week?", "news harbour week 2026", "week"),
        ("Who won the match yesterday?", "won match yesterday March 2026", ""),
        ("Who won the cup in 1998?", "won cup 1998", ""),
        ("What was the latest model in 2019?", "latest model 2019", ""),
        ("What is the best weight loss method of 2025?", "best weight loss method", ""),
        ("How high is Everest?", "high Everest", ""),
    ],
)
def test_the_date_is_added_where_the_answer_depends_on_it(question: str, text: str, range_: str) -> None:
    query = plan(question).queries[0]
    assert (query.text.replace('"', ""), query.time_range) == (text, range_)


def test_the_clock_is_an_input() -> None:
    assert "1999-12-31" in texts(plan("weather in Oslo today", now=datetime(1999, 12, 31)))[0]


def test_several_questions_are_several_queries() -> None:
    assert texts(plan("Who built the Saltern Gate and when was the flood of 1928?")) == [
        "built Saltern Gate",
        "flood 1928",
    ]
    assert len(plan("Who is A? Who is B? Who is C? Who is D? Who is E?", limit=2).queries) == 2


def test_the_second_part_of_a_question_stands_alone() -> None:
    assert texts(plan("Who founded Xylo Verdant Systems and when was it sold?"))[1] == '"Xylo Verdant Systems" sold'


def test_what_is_compared_is_searched_for_each_by_itself() -> None:
    assert texts(plan("What is the difference between TCP and UDP?")) == ["TCP UDP", "TCP", "UDP"]


@pytest.mark.parametrize("follow_up", ["And when was it sold?", "When did they move?", "What about its owner?", "why?"])
def test_a_follow_up_is_made_to_stand_alone(follow_up: str) -> None:
    found = plan("Who founded Xylo Verdant Systems?", "Thanks!", follow_up)
    assert all('"Xylo Verdant Systems"' in text for text in texts(found))
    assert "follows an earlier" in found.reason


def test_a_new_question_is_not_mixed_with_the_old_one() -> None:
    assert "Xylo" not in texts(plan("Who founded Xylo Verdant Systems?", "How high is Mount Everest in metres?"))[0]


def test_latin_names_in_another_script_are_searched_for_in_english_too() -> None:
    found = plan("请问Kestermouth在哪里？")
    assert [(query.text, query.language) for query in found.queries] == [
        ("Kestermouth在哪里", "zh"),
        ("Kestermouth", "en"),
    ]


def test_without_a_question_there_is_no_plan() -> None:
    with pytest.raises(BadInput, match="no question"):
        asyncio.run(Engine().plan([Message("assistant", "Hello.")], NOW))
    with pytest.raises(BadInput, match="limit"):
        Engine(0)


@given(st.text(max_size=300))
def test_any_question_has_a_plan_with_queries_or_a_reason(text: str) -> None:
    if text.strip():
        found = plan(text)
        assert found.reason
        assert found.needs_search == bool(found.queries)
        assert all(0 < len(query.text) <= 330 and query.text.strip() for query in found.queries)
        assert len(found.queries) <= 4


@pytest.mark.parametrize(
    "piece", ["1-", "(", "best ways ", "please ", "A", '"a', "what and what ", "- ", "compare a and "]
)
def test_a_long_question_is_planned_in_time(piece: str) -> None:
    assert within(2, lambda: plan(piece * 20_000))
