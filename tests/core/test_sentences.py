"""Sentence boundaries, case by case; cuts are lossless and take linear time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import seconds_of
from tests.extras import need

from prunus.core.text.words import sentence_spans, sentences
from prunus_evals.split import half

PIECES = (
    "Dr. ", "J. ", "p. 5 ", "1. ", "2. ", "a. ", "b. ", "(", ") ", "\"", "\" ", "'", "' ", "\u201c", "\u201d ", "\u2018", "\u2019 ", "\u00ab", "\u00bb",
    "\u300c", "\u300d", "\u3002", "\uff0e", "\n", " \n", "\r\n", "\n\n", "\u2022 ", ". . . ", "... ", "!", "? ", "word ", "Word ", "U.S. ", "[1]",
    "example.com ", "3.5 ", ":", ";", "\u0589", "-- ", "The ", "\u00a0", "\u2028", "x", ".",
)  # fmt: skip
composed = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@given(st.one_of(st.text(max_size=200), composed))
def test_both_cuts_are_lossless_and_hold_no_empty_piece(text: str) -> None:
    for wrapped in (False, True):
        spans = sentence_spans(text, wrapped=wrapped)
        assert "".join(text[start:end] for start, end in spans) == text
        assert all(start < end for start, end in spans)
        assert all(text[start:end].strip() for start, end in spans) or not text.strip()


@given(composed)
def test_between_blocks_every_line_break_ends_a_segment(text: str) -> None:
    assert all(
        "\n" not in text[start:end].strip() or text[start:end].lstrip().startswith("\u2022")
        for start, end in sentence_spans(text)
    )


@pytest.mark.slow
@pytest.mark.parametrize("piece", [*PIECES, "(a ", '"a ', "'a ", "a' ", "\u201ea ", "A.", "\n(", "1. a 2. b "])
def test_time_is_linear(piece: str) -> None:
    """Quadratic work would take a hundred times as long for ten times the text; a busy machine gets more tries."""
    assert any(seconds(piece, 20_000) < 25 * max(seconds(piece, 2_000), 0.004) for _ in range(3))


def seconds(piece: str, times: int) -> float:
    text = piece * times
    return seconds_of(lambda: sentences(text))


CASES = """
Die Stadt zahlt 12 Mio. Euro und 3 Mrd. Kronen.| Rund 50 Tsd. Menschen kamen.
Es waren 5 Mio.| Das ist viel.
Acme Inc. Chief Ann Gray spoke to Hale Jr. Wednesday night.| Nobody heard it.
He works for Acme Inc.| The firm is big.
Im 4. Quartal und am 3. Tag nach der 2. Wahl stieg es.| Die 1. und 2. Klasse fehlte.
Er wurde 2.| Danach kam er am 5.| Dann ging er.| Weiter in Kapitel 3.| Inhalt und Form.
他来了。|“你好”，她说。|“真的吗？”|他走了。
他来了！|"你好"，她说。|《海》是书。
At 5 a.m. Mr. Smith drove off.| He slept until 7 P.M.| Mr. Jones did not.
The dealer paid Mr. Ito, Mrs. Lund and Dr. Abbott.| Nobody else came.
She has lived in the U.S. Government quarter for years.| She likes the U.S.| The food is good.
Plan B.| It failed.
The rolls (see Fig. 3) cost 5.50 each.| See No. 7, too.
Turn to p. 55.| Then read pp. 3-5.
They bought it from Lund & Co. at noon.| They sold it to Ito Inc.| Nobody knew.
Hello!?| Who is there?
She works at Yahoo! in the accounting office.
Mix it, bake it, and -- voila! -- you have cake.
He said, "It is late. We should go." and left.
He said, "It is late."| She held the book out.
“Stop! Thief!” he cried.| Nobody stopped.
He teaches (He was an engineer once.) at the school.
(It rained all day.)| We stayed.
Her address is Jane.Doe@example.com.| Write to her.
It is at https://www.example.com/new.html.| Look there.
The saint was a martyr.[1]| The emperor ruled.[2][3]| He died.
It ended there.|Then it began again.
Python 3.11.2 is out.| Get v2.0 of example.com today.
Use System.out to print.| Or do not.
I never meant that....| She left.
It was . . . well, late.
The end . . . .| The next begins.
1. First thing| 2. Second thing| 3. Third thing
1) First thing| 2) Second thing
a. one thing| b. another thing| c. a third
i. one thing| ii. another thing
\u2022 one thing| \u2022 another thing
It costs Rs. 500 or approx. $6.| Cheap.
Q. What is it?| A. A gauge.
Er kommt am 13. Februar.| Dann geht er.
Das kostet z. B. 3 Euro.| Mehr nicht.
今天下雨。|明天呢？|不知道。
彼は「雨だ。嫌だ。」と言った。|そして帰った。
它支持指纹解锁!|续航12个月?|是的。
2.打开v3.版本的设置.|好了。
他说"好!"|然后走了.|「なに?」と言った。
见 http://example.com/s?词=1 页!|好。
Yahoo!知恵袋で聞いた!|そうか。
価格は３．５です．|安い．
Ո՞վ է նա:| Նա է:
Ποιος είναι;| Εγώ.
እንደምን አለህ፧|መልካም ቀን።
मैं घर गया।| वह नहीं आया।
Говорил проф. Иванов.| Все ушли в 5 ч. утра.
""".strip().splitlines()


@pytest.mark.parametrize("case", CASES)
def test_sentences_end_where_a_reader_ends_them(case: str) -> None:
    wanted = [part.strip() for part in case.split("|")]
    assert [part.strip() for part in sentences(case.replace("|", ""))] == wanted


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It was a cold \nnight in town.", 1),
        ("It was cut off\nin the middle of it.", 1),
        ("features\ncontact manager\nevents", 3),
        ("First line\nSecond line", 2),
        ("A heading\n\nand a paragraph", 2),
        ("\n\n3\n\nIntroduction\n", 2),
    ],
)
def test_a_line_break_inside_a_sentence_ends_it_only_between_blocks(text: str, parts: int) -> None:
    assert len(sentences(text)) == parts
    assert len(sentence_spans(text)) == len([line for line in text.split("\n") if line.strip()])


def test_sentences_end_inside_a_quotation_that_is_not_closed() -> None:
    assert len(sentences('He said, "One thing. Another thing. A third (of four. And so on.')) == 4
    assert len(sentences('He said, "' + "One thing. " * 500 + '"')) > 400


@pytest.mark.data
def test_published_cases_are_cut_as_well_as_before(rows: Any) -> None:
    parts = need("prunus_evals.parts")
    scores = parts.cut_scores(rows("sentences/pysbd"))
    assert scores["all"]["lossless"] == 1
    dev = parts.cut_scores(case for case in rows("sentences/pysbd") if half(case["text"]) == "dev")
    assert dev["en"]["right"] >= 0.92 and scores["en"]["right"] >= 0.92
    assert dev["all"]["right"] >= 0.9


def test_a_case_is_right_when_the_cuts_are_the_same_white_space_aside() -> None:
    parts = need("prunus_evals.parts")
    assert parts.right(["One. ", "Two.\n"], ["One.", "Two."])
    assert not parts.right(["One. Two."], ["One.", "Two."])
    case = {"lang": "en", "text": "One. Two.", "sentences": ["One.", "Two."]}
    assert parts.cut_scores([case])["en"] == {"cases": 1, "right": 1, "lossless": 1}
    assert parts.cut_scores([case], lambda text: [text[:3]])["en"] == {"cases": 1, "right": 0, "lossless": 0}
