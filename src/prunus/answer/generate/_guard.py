"""Remove pictures, links, addresses, HTML and citations of unread pages from a model's answer.

A hostile page may instruct the model to write them, and a picture's address alone can leak data when a browser loads
the picture. So the text of a model is never trusted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_IMAGE: Final = re.compile(r"!\[([^\]\n]{0,300})\](?:\([^)\n]{0,2000}\)|\[[^\]\n]{0,300}\])")
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,300})\]\([^)\n]{0,2000}\)")
_DEFINITION: Final = re.compile(r"^[ \t]{0,3}\[[^\]\n]{1,300}\]:[ \t]*\S[^\n]*", re.M)
_TAG: Final = re.compile(r"<(?:/?[A-Za-z!?][^<>\n]{0,500})>")
_ADDRESS: Final = re.compile(
    r"\b(?:https?|ftp|data|javascript|file):[^\s<>\"')\]]{1,2000}|\bwww\.[^\s<>\"')\]]{1,2000}", re.I
)
_MARK: Final = re.compile(r"[ \t]?\[(\d{1,4}(?:\s?[,;]\s?\d{1,4}){0,20})\]")
_OPEN: Final = re.compile(
    r"(?:!?\[[^\]\n]{0,300}(?:\](?:[(\[:][^)\n]{0,2000})?)?|<[^<>\n]{0,500}|!"
    r"|\b(?:h|ht|htt|http|https|f|ft|ftp|d|da|dat|data|j|ja|jav|java|javas|javasc|javascr|javascri|javascrip|javascript"
    r"|fi|fil|file|w|ww|www)|\b(?:(?:https?|ftp|data|javascript|file):|www\.)[^\s<>\"')\]]{0,2000})\Z",
    re.I,
)
"""The end of a stream that may be the beginning of something to remove."""

_HELD: Final = 2_400
"""Most code points that are held back; longer than the longest pattern above."""


class Guard:
    """Filters a stream of text; a piece is held back until it is clear whether it must be removed.

    :param sources: the numbers of the sources, or how many there are; citations of other numbers are removed.
    """

    def __init__(self, sources: int | Collection[int]) -> None:
        self._sources = range(1, sources + 1) if isinstance(sources, int) else frozenset(sources)
        self._held = ""
        self.refused = 0
        """How many pictures, links, addresses, tags and citations were removed."""

    def feed(self, text: str) -> str:
        """Take a piece of the stream, and return the text that can be shown now."""
        self._held += text
        found = _OPEN.search(self._held, max(0, len(self._held) - _HELD))
        end = found.start() if found else len(self._held)
        if end and self._held[end - 1 : end] in " \t":
            end -= 1  # the space before a citation goes with it
        shown, self._held = self._held[:end], self._held[end:]
        return self._clean(shown)

    def rest(self) -> str:
        """Return the text that was held back, at the end of the stream."""
        shown, self._held = self._held, ""
        return self._clean(shown)

    def _clean(self, text: str) -> str:
        for pattern, kept in (
            (_IMAGE, ""),
            (_DEFINITION, ""),
            (_LINK, r"\1"),
            (_TAG, ""),
            (_ADDRESS, "(address left out)"),
        ):
            text, count = pattern.subn(kept, text)
            self.refused += count
        return _MARK.sub(self._mark, text)

    def _mark(self, match: re.Match[str]) -> str:
        """Return a citation as [1][2], without numbers that no source has."""
        numbers = [int(number) for number in re.split(r"\s?[,;]\s?", match[1])]
        known = [number for number in dict.fromkeys(numbers) if number in self._sources]
        self.refused += len({*numbers}) - len(known)
        lead = match[0][: match[0].index("[")] if known else ""
        return lead + "".join(f"[{number}]" for number in known)
