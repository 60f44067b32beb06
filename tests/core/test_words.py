"""Plain-text functions: sentences, normalising, counting words, guessing the language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prunus
from prunus.core.text.words import count_words, guess_language, normalise, sentence_spans, sentences

anything = st.text(max_size=200)
prose = st.lists(
    st.sampled_from(
        ("Dr. ", "Ito ", "paid ", "3.50. ", "It ", "was ", "enough! ", "e.g. ", "the ", "U.S. ", "J. ", "\n", "\n\n",
         "Why? ", '"Yes." ', "v1.2 ", "… ", "...", "好。", "吗？", "ครับ ", "(No.) ", "etc. ", "\u00a0",
         "1. ", ".", "!?", "\t")
    ),
    max_size=30,
).map("".join)  # fmt: skip


# --- sentences -----------------------------------------------------------------------------------


@given(st.one_of(anything, prose))
def test_sentences_joined_give_the_text_back(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(st.one_of(anything, prose))
def test_spans_of_sentences_touch_and_none_is_empty(text: str) -> None:
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]
    assert not spans or (spans[0][0], spans[-1][1]) == (0, len(text))


@pytest.mark.parametrize(
    "parts",
    [
        ["Dr. Ito paid 3.50. ", "It was enough!"],
        ["He came at 5 p.m. yesterday. ", "She left."],
        ["J. R. R. Tolkien wrote it. ", "Who read it? ", "Many."],
        ["See Fig. 3 for details. ", "Then go on."],
        ["“Stop!” he said. ", "Nobody stopped."],
        ["(It rained.) ", "Then it stopped."],
        ["Version 1.2.3 is out. ", "Get it at example.com today."],
        ["Wait... what? ", "Nothing."],
        ["今天下雨。", "明天呢？", "不知道。"],
        ["First line\n", "Second line"],
        ["It works, e.g. in Ohio. ", "And elsewhere."],
        ["Das kostet z.B. 3 Euro. ", "Mehr nicht."],
        ["Really?! ", "Yes."],
        ["No stop at the end"],
        [],
    ],
)
def test_sentences_end_where_a_reader_ends_them(parts: list[str]) -> None:
    assert sentences("".join(parts)) == parts


def test_sentences_are_at_the_top_of_the_package() -> None:
    assert prunus.sentences("One. Two.") == ["One. ", "Two."]


# --- normalising ---------------------------------------------------------------------------------


@given(anything)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(anything)
def test_normalised_text_has_single_spaces_inside_only(text: str) -> None:
    found = normalise(text)
    assert found == found.strip()
    assert "  " not in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("\u201cyes\u201d", '"yes"'),
        ("don\u2019t", "don't"),
        ("1990\u20131995", "1990-1995"),
        ("a\u00a0b\n c", "a b c"),
        ("soft\u00adhyphen", "softhyphen"),
        ("zero\u200bwidth", "zerowidth"),
        ("cafe\u0301", "caf\u00e9"),
        ("\u2212 5", "- 5"),
    ],
)
def test_quotes_that_differ_only_in_typography_are_equal(first: str, second: str) -> None:
    assert normalise(first) == normalise(second)


@pytest.mark.parametrize(("first", "second"), [("a b", "ab"), ("A", "a"), ("3.5", "35"), ("a-b", "a b"), ("½", "1/2")])
def test_quotes_that_differ_in_more_are_not_equal(first: str, second: str) -> None:
    assert normalise(first) != normalise(second)


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\t", 0),
        ("one two  three", 3),
        ("naïve café", 2),
        ("潮汐站", 3),
        ("ひらがな", 4),
        ("Windows 11 系统", 4),
        ("한국어 단어", 2),
        ("a\u00a0b", 2),
    ],
)
def test_words_are_what_a_reader_counts(text: str, words: int) -> None:
    assert count_words(text) == words


def test_thai_counts_more_than_one_word_a_run() -> None:
    assert 4 <= count_words("สถานีวัดระดับน้ำบันทึกระดับน้ำทุกวัน") <= 14


@given(anything, anything)
def test_words_of_separate_parts_add_up(first: str, second: str) -> None:
    assert count_words(first + " " + second) == count_words(first) + count_words(second)


@given(anything)
def test_text_that_shows_something_has_a_word(text: str) -> None:
    assert (count_words(text) > 0) == bool(text.strip())


# --- language ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The harbour was closed for the winter and it is open again.", "en"),
        ("Der Hafen war für den Winter geschlossen und ist jetzt wieder offen.", "de"),
        ("Le port est fermé pour les travaux et la jetée aussi.", "fr"),
        ("El puerto está cerrado por las obras y el muelle también.", "es"),
        ("Who directed La La Land?", "en"),
        ("¿Quién ganó la Vuelta en 2023?", "es"),
        ("Chi ha vinto la Vuelta nel 2023?", "it"),
        ("潮汐站每天记录水位高度", "zh"),
        ("みなとは冬のあいだ閉まっています", "ja"),
        ("Порт был закрыт на зиму и это не всё", "ru"),
        ("الميناء مغلق في الشتاء", "ar"),
        ("", "en"),
        ("12345", "en"),
    ],
)
def test_language_is_guessed_well_enough_for_a_stemmer(text: str, language: str) -> None:
    assert guess_language(text) == language
