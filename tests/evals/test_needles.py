"""Needles stand at their depth, in a text of the wanted length, and the tags point at them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prunus_evals import tasks
from prunus_evals.errors import EvalError
from prunus_evals.metrics.matching import answers_survive
from prunus_evals.split import half
from prunus_evals.tasks import needle
from prunus_evals.tokens import TokenizerCounter

STORIES = [
    "\n\n".join(
        f'Captain {name} looked at dial {n} of the ship, and sighed. It said nothing new. "Well?" said {name}.'
        for n in range(200)
    )
    for name in ("Orr", "Vane", "Lisk")
]


@pytest.mark.parametrize("variant", tasks.about("needle").variants)
def test_needles_stand_at_their_depth_in_a_text_of_their_length(variant: str, counter: TokenizerCounter) -> None:
    for number, hidden in enumerate(needle.needles(variant)):
        key = f"needle:{variant}:{number}"
        for question in needle.grid(key, variant, hidden, STORIES, counter, (500, 2000), (0, 50, 100)):
            length, depth = int(question.labels["length"]), int(question.labels["depth"])
            [document] = question.documents
            assert length - 60 <= counter.count([document.content])[0] <= length
            assert question.tags is not None
            assert [question.sentences[tag] for tag in question.tags] == [*hidden.sentences]
            texts = [document.content[span.start : span.end] for span in question.gold]
            assert texts == [*hidden.sentences]
            before = counter.count([document.content[: question.gold[0].start]])[0]
            own = sum(counter.count(list(hidden.sentences)))
            assert abs(before - (length - own) * depth / 100) <= 60
            assert answers_survive(question.answers, document.content)


def test_the_text_without_the_needles_is_the_same_at_every_depth(counter: TokenizerCounter) -> None:
    [hidden] = needle.needles("base")[:1]
    texts = {
        question.documents[0].content.replace(hidden.sentences[0], "").replace("  ", " ").strip()
        for question in needle.grid("k", "base", hidden, STORIES, counter, (1000,), (0, 10, 50, 100))
    }
    assert len(texts) == 1


@settings(max_examples=30, deadline=None)
@given(length=st.integers(150, 3000), depth=st.integers(0, 100), number=st.integers(0, 7))
def test_needles_of_any_length_and_depth_keep_their_order(
    counter: TokenizerCounter, length: int, depth: int, number: int
) -> None:
    hidden = needle.needles("multi_answer")[number]
    [question] = needle.grid("k", "multi_answer", hidden, STORIES, counter, (length,), (depth,))
    assert question.tags is not None
    assert [*question.tags] == sorted({*question.tags})
    assert counter.count([question.documents[0].content])[0] <= length


def test_stories_differ_from_needle_to_needle_and_never_from_run_to_run(counter: TokenizerCounter) -> None:
    [hidden] = needle.needles("base")[:1]
    one, two, other = (needle.grid(key, "base", hidden, STORIES, counter, (500,), (0,))[0] for key in ("a", "a", "b"))
    assert one.documents[0].content == two.documents[0].content != other.documents[0].content


def test_no_needle_is_answered_by_another(counter: TokenizerCounter) -> None:
    for variant in ("base", "reasoning", "multi_answer"):
        for one, other in itertools.permutations(needle.needles(variant), 2):
            assert not any(answers_survive([answer], " ".join(other.sentences)) for answer in one.answers)
            assert not any(answers_survive([answer], one.question) for answer in one.answers)


def test_stories_that_are_too_short_and_needles_that_are_too_long_are_errors(counter: TokenizerCounter) -> None:
    [hidden] = needle.needles("base")[:1]
    with pytest.raises(EvalError, match="fewer than 90000"):
        needle.grid("k", "base", hidden, STORIES, counter, (90000,), (0,))
    with pytest.raises(EvalError, match="do not fit into 10"):
        needle.grid("k", "base", hidden, STORIES, counter, (10,), (0,))


def test_both_halves_have_needles_of_every_variant() -> None:
    for variant in tasks.about("needle").variants:
        halves = [half(f"needle:{variant}:{number}") for number in range(len(needle.needles(variant)))]
        assert min(halves.count("dev"), halves.count("report")) >= 2
