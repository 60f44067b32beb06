"""Subtitles: who says what, and when."""

from __future__ import annotations

import pytest

import prunus

CAPTIONS = {
    "WEBVTT\n\n00:01.000 --> 00:04.000\n<v Ann Lee>The valve\nopens at 3 bar.": [
        "00:01 Ann Lee: The valve opens at 3 bar."
    ],
    "WEBVTT\n\n00:01.000 --> 00:04.000\nThe valve\n\n00:04.000 --> 00:06.000\nopens. It": ["00:01 The valve opens. It"],
    "WEBVTT\n\n00:01.000 --> 00:04.000\nIt opens.\n\n00:04.000 --> 00:06.000\nIt closes.": [
        "00:01 It opens.",
        "00:04 It closes.",
    ],
    "WEBVTT\n\n1:00:01.000 --> 1:00:04.000 align:start\n<v A>Who\n<v B>me": ["1:00:01 A: Who", "1:00:01 B: me"],
    "WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>We\n\n00:03.000 --> 00:04.000\nwent": ["00:01 A: We went"],
    "WEBVTT\n\n00:01.000 --> 00:02.000\none\n\n00:02.000 --> 00:03.000\none\ntwo\n\n00:03.000 --> 00:04.000\ntwo\nthree": [
        "00:01 one two three"
    ],
    "1\n00:00:01,000 --> 00:00:02,000\nNo.\n\n2\n00:00:02,000 --> 00:00:03,000\nNo.": ["00:00:01 No.", "00:00:02 No."],
    "WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>yes\n\n00:02.000 --> 00:03.000\n<v B>yes": [
        "00:01 A: yes",
        "00:02 B: yes",
    ],
    "WEBVTT\n\n00:01.000 --> 00:02.000\none\n\n00:02.000 --> 00:02.010\none\n\n00:02.010 --> 00:03.000\none\ntwo": [
        "00:01 one two"
    ],
    "WEBVTT\n\nNOTE not said\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:02.000\n<00:01.200><c.red>R&amp;D</c> is <i>x</i>": [
        "00:01 R&D is x"
    ],
    "1\n00:00:01,000 --> 00:00:04,000\nHello {\\an8}you\n\n2\n00:00:05,000 --> 00:00:07,000\n5 < 6": [
        "00:00:01 Hello you 5 < 6"
    ],
}


@pytest.mark.parametrize("content", CAPTIONS)
@pytest.mark.parametrize("name", ["a.vtt", ""])
def test_captions_are_sentences_with_a_time_and_a_speaker(content: str, name: str) -> None:
    page = prunus.Page(content=content.replace("\n", "\r\n").encode(), url=name)
    assert prunus.clean(page, "text").split("\n") == CAPTIONS[content]


def test_a_speech_without_sentences_is_cut_into_paragraphs() -> None:
    captions = [f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\nfour words and {n}\n" for n in range(1, 41)]
    lines = prunus.clean(prunus.Page(content="\n".join(captions).encode(), url="a.srt"), "text").split("\n")
    assert [len(line.split()) for line in lines] == [61, 61, 41]


def test_a_text_about_subtitles_is_text() -> None:
    about = "WEBVTT files begin with this word.\n\nTheir captions follow."
    assert prunus.clean(prunus.Page(content=about.encode(), url="a.txt"), "text").startswith("WEBVTT files begin")


@pytest.mark.parametrize("content", [b"WEBVTT", b"x", b" "])
def test_a_file_without_captions_is_named(content: bytes) -> None:
    with pytest.raises(prunus.BadPage, match=r"a\.vtt"):
        prunus.clean(prunus.Page(content=content, url="a.vtt"))
