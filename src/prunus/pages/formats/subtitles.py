"""``subtitles``: what is said in a film or a recording, of WebVTT and SubRip files, with who says it and when."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...core.types import Page
from ._common.allowance import Allowance
from ._common.write import document, escape_text, page_error, text_of

_TIMES: Final = re.compile(
    r"[ \t]{0,20}((?:\d{1,4}:)?\d{1,2}:\d\d)[.,]\d{1,3}[ \t]{0,20}-->[ \t]{0,20}[\d:]{4,12}[.,]\d"
)
_VOICE: Final = re.compile(r"<v(?:\.[^ <>]{0,80})?[ \t]([^<>]{1,200})>", re.I)
_TAG: Final = re.compile(r"</?(?:[a-z]{1,5}(?:[. \t][^<>]{0,200})?|[\d:.]{1,20})>|\{\\[^{}]{0,100}\}", re.I)
_ENDS: Final = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_MOST_WORDS: Final = 60
"""Words after which a paragraph of one speaker ends, where no sentence does."""


@dataclass(slots=True)
class _Paragraph:
    time: str
    speaker: str
    text: str


class Engine:
    """Captions that follow each other are joined to sentences; a paragraph has the time at which it begins.

    Lines that roll up from one caption to the next are written once. Notes, styles and positions are left out.
    """

    name = "subtitles"
    media_types = ("text/vtt", "application/x-subrip")
    suffixes = (".vtt", ".srt")

    def to_html(self, page: Page) -> str:
        """Return the captions as paragraphs.

        :raises BadPage: the content is empty or binary, or holds no caption.
        """
        allowance, paragraphs = Allowance(page.url), []
        for paragraph in _paragraphs(text_of(page, "a file of subtitles")):
            allowance.spend("items")
            speaker = f"<b>{escape_text(paragraph.speaker)}:</b> " if paragraph.speaker else ""
            paragraphs.append(f"<p><time>{paragraph.time}</time> {speaker}{escape_text(paragraph.text)}</p>")
        if not paragraphs:
            raise page_error(page, "this file holds no captions")
        return document(paragraphs, "")


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """Yield captions, joined until a sentence ends or another person speaks."""
    open_: _Paragraph | None = None
    before: tuple[str, list[str]] = ("", [])
    for time, speaker, lines in _captions(text):
        said = " ".join(_new(lines, before[1]) if speaker == before[0] else lines)
        before = (speaker, lines)
        if not said:
            continue
        done = open_ is not None and (_ENDS.search(open_.text) or len(open_.text.split()) >= _MOST_WORDS)
        if open_ is not None and not done and speaker in ("", open_.speaker):
            open_.text += f" {said}"
            continue
        if open_ is not None:
            yield open_
        open_ = _Paragraph(time, speaker, said)
    if open_ is not None:
        yield open_


def _new(lines: list[str], before: list[str]) -> list[str]:
    """Return the lines of a caption without those that roll up from the one before; "No." may be said twice."""
    rolled = next((size for size in range(len(lines), 0, -1) if lines[:size] == before[-size:]), 0)
    return lines if rolled == len(lines) and lines and _ENDS.search(lines[-1]) else lines[rolled:]


def _captions(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the time, the speaker and the lines of each caption."""
    lines = iter(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for line in lines:
        times = _TIMES.match(line)
        if not times:
            continue
        speaker, said = "", list[str]()
        for shown in lines:
            if not shown.strip():
                break
            voice = _VOICE.search(shown)
            if voice and said and voice[1].strip() != speaker:
                yield times[1], speaker, said
                said = []
            speaker = voice[1].strip() if voice else speaker
            plain = " ".join(html.unescape(_TAG.sub("", shown)).split())
            said += [plain] if plain else []
        yield times[1], speaker, said
