"""Write the words of a PDF as inline HTML: lines joined, hyphens undone, emphasis, links, page marks."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from ....core.text.words import UNSPACED
from .lines import Word
from .reader import BOLD, ITALIC, MONO

_TAIL: Final = re.compile(r"(?<![^\W\d_])([^\W\d_]++)[-\u00ad\u2010]$")
_HEAD: Final = re.compile(r"[^\W\d_]+")
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_WEB: Final = ("http://", "https://", "mailto:", "ftp://")

Key = tuple[str, bool, bool, bool, str, int]
"""Link, bold, italic, code, ``sup`` or ``sub``, number of the page that begins here or 0."""


class PdfInlineWriter:
    """Writes the words of one document.

    :param words: all words of the document. They tell whether the parts of a hyphenated word form one word.
    :param bold: whether running text is bold, so that bold is no emphasis.
    """

    def __init__(self, words: Iterable[Word], bold: bool = False) -> None:
        self.known = Counter(word.text.strip(".,;:!?()[]\"'“”‘’").lower() for word in words)
        self.bold = bold
        self.page = -1

    def inline(self, lines: Sequence[Sequence[Word]], plain: bool = False) -> str:
        """Return lines as inline HTML.

        :param plain: leave out emphasis, for headings and header cells.
        """
        runs: list[tuple[Key, str]] = []
        last: Word | None = None
        for number, line in enumerate(lines):
            base = _base(line)
            for at, word in enumerate(line):
                glue = " " if word.space or (at == 0 and number > 0) else ""
                if at == 0 and number and last is not None:
                    glue = self._between(last, word, runs)
                if last is None:
                    glue = ""
                key = self._key(word, base, plain)
                text = glue + word.text
                if runs and runs[-1][0] == key:
                    runs[-1] = (key, runs[-1][1] + text)
                else:
                    runs.append((key, text))
                last = word
        return "".join(_wrapped(key, text) for key, text in runs).strip()

    def _between(self, last: Word, word: Word, runs: list[tuple[Key, str]]) -> str:
        """Return the separator between the last word of a line and the first word of the next.

        A hyphen that only breaks a word is removed from ``runs``.
        """
        if _UNSPACED.match(last.text[-1]) and _UNSPACED.match(word.text[0]):
            return ""
        tail, head = _TAIL.search(last.text), _HEAD.match(word.text)
        if not tail:
            return "" if last.text.endswith(("-", "\u00ad")) and len(last.text) > 1 and word.text[0].isalnum() else " "
        if head is None:
            return "" if word.text[0].isdigit() else " "
        soft = last.text.endswith("\u00ad")
        first, second = tail[1].lower(), head[0].lower()
        # the document itself decides: does it write the word with or without the hyphen elsewhere?
        joined, parted = self.known[first + second], self.known[f"{first}-{second}"]
        if soft or joined > parted or (not parted and head[0][0].islower() and len(first) > 1):
            key, text = runs[-1]
            runs[-1] = (key, text[:-1])
        return ""

    def _key(self, word: Word, base: tuple[float, float], plain: bool) -> Key:
        size, y = base
        script = ""
        if word.size <= 0.82 * size:  # smaller letters off the baseline are superscript or subscript
            script = "sup" if word.y < y - 0.18 * size else "sub" if word.y > y + 0.08 * size else ""
        begins = word.page + 1 if word.page > self.page else 0
        self.page = max(self.page, word.page)
        if plain:
            return (word.href, False, False, False, script, begins)
        flags = word.flags
        bold = bool(flags & BOLD) and not self.bold
        return (word.href, bold, bool(flags & ITALIC), bool(flags & MONO), script, begins)


def code_text(lines: Sequence[Sequence[Word]]) -> str:
    """Return lines of code with their indentation, escaped. Columns follow from the median letter width."""
    words = [word for line in lines for word in line]
    left = min(word.x0 for word in words)
    widths = sorted((word.x1 - word.x0) / max(len(word.text), 1) for word in words)
    width = widths[len(widths) // 2] or 1.0
    gaps = [lower[0].y - upper[0].y for upper, lower in itertools.pairwise(lines)]
    usual = min((gap for gap in gaps if gap > 0), default=0.0)
    written = []
    for number, line in enumerate(lines):
        if number and usual and gaps[number - 1] > 1.6 * usual:
            written.append("")
        text = ""
        for word in line:
            column = min(round((word.x0 - left) / width), 400)
            text += " " * max(column - len(text), 1 if word.space and text else 0) + word.text
        written.append(text)
    return escape("\n".join(written), quote=False)


def _base(line: Sequence[Word]) -> tuple[float, float]:
    """Return the most frequent (size, baseline) of a line, counted by letters."""
    sizes: Counter[tuple[float, float]] = Counter()
    for word in line:
        sizes[word.size, word.y] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else (10.0, 0.0)


def _wrapped(key: Key, text: str) -> str:
    """Return a run of text in the elements of its style. Spaces at its ends stay outside."""
    href, bold, italic, mono, script, begins = key
    core = text.strip()
    if not core:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    html = escape(core, quote=False)
    for tag, wanted in (("code", mono), (script, bool(script)), ("i", italic), ("b", bold)):
        if wanted:
            html = f"<{tag}>{html}</{tag}>"
    if href.lower().startswith(_WEB):
        html = f'<a href="{escape(href)}">{html}</a>'
    if begins:
        html = f'<data value="page-{begins}">{html}</data>'
    return before + html + after
