"""BM25 gives the scores of a slow, plain implementation; tokens of several scripts."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.text.bm25 import BM25, QUERY_NOISE, query_terms, stem, tokens

WORDS = (
    "harbour",
    "harbours",
    "ferry",
    "ferries",
    "tide",
    "tides",
    "the",
    "of",
    "1932",
    "3.50",
    "水位",
    "潮汐站",
    "ระดับน้ำ",
    "Größe",
)
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=8)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def slow_scores(items: list[str], above: list[str], query: str, weight: float, k1: float, b: float) -> list[float]:
    """BM25F by its definition, word by word."""
    counts: list[Counter[str]] = []
    for number, text in enumerate(items):
        frequencies: Counter[str] = Counter()
        for term in stem(tokens(text)):
            frequencies[term] += 1.0  # type: ignore[assignment]
        for term in stem(tokens(above[number])) if above else []:
            frequencies[term] += weight  # type: ignore[assignment]
        counts.append(frequencies)
    lengths = [sum(frequencies.values()) for frequencies in counts]
    average = sum(lengths) / len(items) if any(lengths) else 1.0
    scores = [0.0] * len(items)
    for term in dict.fromkeys(query_terms(query)):
        holding = sum(term in frequencies for frequencies in counts)
        idf = math.log(1 + (len(items) - holding + 0.5) / (holding + 0.5))
        for number, frequencies in enumerate(counts):
            if term in frequencies:
                frequency = frequencies[term]
                norm = k1 * (1 - b + b * lengths[number] / average)
                scores[number] += idf * frequency * (k1 + 1) / (frequency + norm)
    return scores


@given(texts, queries)
def test_scores_are_those_of_the_slow_implementation(items: list[str], query: str) -> None:
    fast = BM25(items).scores(query)
    assert fast.shape == (len(items),)
    assert np.allclose(fast, slow_scores(items, [], query, 0.5, 1.2, 0.75))


@given(st.lists(st.tuples(texts.map(" ".join), texts.map(" ".join)), min_size=1, max_size=6), queries)
def test_headings_count_less(pairs: list[tuple[str, str]], query: str) -> None:
    items, above = [text for text, _ in pairs], [heading for _, heading in pairs]
    fast = BM25(items, above, above_weight=0.3, k1=0.9, b=0.4).scores(query)
    assert np.allclose(fast, slow_scores(items, above, query, 0.3, 0.9, 0.4))


@given(texts, queries)
def test_scores_are_never_negative_and_zero_without_a_shared_term(items: list[str], query: str) -> None:
    scores = BM25(items).scores(query)
    assert (scores >= 0).all()
    terms = set(query_terms(query))
    for score, item in zip(scores, items, strict=True):
        assert (score > 0) == bool(terms & set(stem(tokens(item))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Ferry leaves", ["the", "ferry", "leaves"]),
        ("1,914 rolls at 3.50", ["1,914", "rolls", "at", "3.50"]),
        ("潮汐站", ["潮", "汐", "站", "潮汐", "汐站"]),
        ("e-mail_address", ["e", "mail", "address"]),
        ("Größe naïve", ["größe", "naïve"]),
        ("", []),
        ("--- !!", []),
    ],
)
def test_tokens_of_every_script(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_forms_of_one_word_meet_in_their_stem() -> None:
    assert BM25(["the ferries are leaving"]).scores("when does the ferry leave?")[0] > 0
    assert BM25(["die Häfen sind geschlossen"], language="de").scores("geschlossene Häfen")[0] > 0


def test_a_language_without_stemmer_leaves_words_as_they_are() -> None:
    assert stem(["ferries"], "xx") == ["ferries"]


def test_words_that_say_nothing_are_left_out_of_questions_only() -> None:
    assert query_terms("When does the ferry leave?") == stem(["ferry", "leave"])
    assert query_terms("who is it") == stem(["who", "is", "it"])  # nothing else is left
    assert "ferry" not in QUERY_NOISE


def test_idf_and_membership() -> None:
    index = BM25(["tide tide", "ferry", "ferry tide"])
    ferry, tide = stem(["ferry", "tide"])
    assert index.holds(1, ferry)
    assert not index.holds(0, ferry)
    assert index.items(tide).tolist() == [0, 2]
    assert index.items("nowhere").tolist() == []
    assert index.idf("nowhere") > index.idf(ferry) > 0


def test_an_empty_index_answers() -> None:
    assert BM25([]).scores("anything").tolist() == []
    assert BM25(["", ""]).scores("anything").tolist() == [0.0, 0.0]
