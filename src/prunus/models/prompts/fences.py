"""Remove the fence lines of prompts from what a model writes: small models copy them.

:mod:`.render` puts page text between ``BEGIN <digest> label`` and ``END <digest>``.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = r"(?: (?:\[\d{1,4}\](?: \|[^\n]{0,300})?|was asked|was answered|the question|sentence \d{1,4}))?"
_FENCE: Final = re.compile(
    rf"(?<![^\s>*#`])(?:BEGIN|END) (?=\d{{0,63}}[a-f])(?=[a-f]{{0,63}}\d)[0-9a-f]{{12,64}}(?![0-9a-f])"
    rf"{_LABEL}[ \t]*"
)
"""A fence with a digest, which holds letters and digits: a date of twelve digits is none."""

_MAY_BE: Final = re.compile(
    r"(?:B|BE|BEG|BEGI|BEGIN|E|EN|END|(?:BEGIN|END) [0-9a-f]{0,64}|(?:BEGIN|END) [0-9a-f]{12,64} [^\n]{0,320})\Z"
)
_HELD: Final = 400
"""Code points that are held back at most: no fence line is longer."""


def without_fences(text: str) -> str:
    """Return a model's text without fence lines."""
    fences = FenceFilter()
    return fences.feed(text) + fences.rest()


class FenceFilter:
    """Removes fence lines from a stream of text; what may become one is held back."""

    def __init__(self) -> None:
        self._held = self._before = ""
        self._drop_end = False  # a fence was removed at the start of a line: its line end goes with it
        self._line_is_empty = True

    def feed(self, text: str) -> str:
        """Take a piece of the stream, and return the text that can be shown now."""
        return self._shown(self._held + text, last=False)

    def rest(self) -> str:
        """Return the text that was held back, at the end of the stream."""
        return self._shown(self._held, last=True)

    def _shown(self, text: str, last: bool) -> str:
        first = len(self._before)  # the letter before tells whether a fence can begin here
        text = self._before + text
        keep = len(text) if last else max(first, self._start_of_fence(text))
        self._held, self._before = text[keep:], text[keep - 1 : keep]
        shown, position = [], first
        for fence in _FENCE.finditer(text, first, keep):
            shown.append(self._written(text[position : fence.start()]))
            self._drop_end = self._line_is_empty
            position = fence.end()
        shown.append(self._written(text[position:keep]))
        return "".join(shown)

    def _start_of_fence(self, text: str) -> int:
        """Return where the text begins that may still become a fence line; its length where nothing may."""
        match = _MAY_BE.search(text, max(0, len(text) - _HELD))
        return match.start() if match else len(text)

    def _written(self, text: str) -> str:
        if self._drop_end and text:
            text = text.removeprefix("\n")
            self._drop_end = False
        if text:
            self._line_is_empty = not text.rpartition("\n")[2].strip(" \t>*#`")
        return text
