"""Remove pictures, links, addresses, HTML and citations of unread pages from a model's answer.

A hostile page may instruct the model to write them, and a picture's address alone can leak data when a browser loads
the picture. So the text of a model is never trusted.

An answer is a stream, and what was shown cannot be taken back. So it is read in pieces, which end at white space
outside brackets, tags and code, and :mod:`._inline` makes each piece safe. Nothing reaches from one line into another:
what is not closed on its line is escaped. Code between fences stays as it is where every renderer reads it as code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from markdown_it.token import Token

from ._inline import BARE, Inline

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters and changes of direction, which a terminal or a browser would obey."""

_HELD: Final = 2_000
"""Code points that are held back at most, where brackets, a tag or code stay open."""

_MAY_BE_FENCE: Final = re.compile(r"[ \t>*+\-\d.)]{0,100}(?:`{0,2}|`{3,100}[^`]{0,200}|~{0,2}|~{3,100}.{0,200})")
_FENCE: Final = re.compile(r"((?:[ \t>]|[*+-](?=[ \t])|\d{1,9}[.)](?=[ \t]))*)(`{3,}+|~{3,}+).*+")
_PLAIN_START: Final = re.compile(r"(?: {0,3}>)* {0,3}")
"""The start of a line on which a fence begins code whatever stands above."""

_MOST_PARSED: Final = 400_000
"""Code points that are parsed to find out whether fences inside lists begin code; the fences after them do not."""

_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SPACE: Final = frozenset(" \t\n")
_FULL_STOPS: Final = frozenset("。，、；：？！）》」』…")
"""Punctuation that stands without white space, and ends every address."""

_ENDING: Final = ".,;:!?)*_~\"'" + "".join(_FULL_STOPS)
"""What may follow a word without white space, where a citation before it was removed."""


class Guard:
    """Filters a stream of text; a piece is held back until it is clear whether it must be removed.

    :param sources: the numbers of the sources, or how many there are; citations of other numbers are removed. A mapping
        gives each number the address of its source, to which the answer may link.
    """

    def __init__(self, sources: int | Collection[int]) -> None:
        numbers = range(1, sources + 1) if isinstance(sources, int) else sources
        self._inline = Inline(numbers, sources.values() if isinstance(sources, Mapping) else ())
        self._out: list[str] = []
        self._tail = "\n"  # the last letter that was written
        self._gap = False  # a space must be written before what follows
        self._above: list[str] = []  # what was written since the last line on which no list or quote was open
        self._parsed = 0
        self._after_return = False  # the last letter was a carriage return
        self._after_blank = False  # the last line was blank
        self._after_bars = False  # the last line holds code that must not become a row of a table
        self._bar_above = False  # the last line holds a bar
        self._in_table = False
        self._fence = ("", "")  # of open code: what stands before it on each line, and its fence
        self._code: list[str] = []  # a line of code
        self._in_code_line = False  # the start of the line of code was written
        self._begin_line()
        self._begin_piece()

    @property
    def refused(self) -> int:
        """How many pictures, links, addresses, tags and citations were removed."""
        return self._inline.refused

    def feed(self, text: str) -> str:
        """Take a piece of the stream, and return the text that can be shown now."""
        for letter in _CONTROL.sub("", text):
            if letter != "\n" or not self._after_return:
                self._take("\n" if letter == "\r" else letter)
            self._after_return = letter == "\r"
        return self._shown()

    def rest(self) -> str:
        """Return the text that was held back, at the end of the stream."""
        if self._fence[1]:
            self._end_code_line("")
        self._end_head("")
        if self._last:
            self._step(self._last, "")
        self._end_piece()
        return self._shown()

    def _shown(self) -> str:
        shown = "".join(self._out)
        self._out.clear()
        return shown

    # -- lines --------------------------------------------------------------------------------------

    def _begin_line(self) -> None:
        self._head: str | None = ""  # the start of a line that may be a fence; None behind it
        self._start: str | None = ""  # what is written of the line, as long as it is only marks
        self._last = ""  # a letter whose meaning depends on the next
        self._bar = False  # the line holds a bar

    def _take(self, letter: str) -> None:
        """Take a letter; line ends are line feeds."""
        if self._fence[1]:
            self._take_code(letter)
        elif self._head is None:
            self._take_text(letter)
        elif letter == "\n":
            self._end_head("\n")
        else:
            self._head += letter
            if not _MAY_BE_FENCE.fullmatch(self._head):
                self._leave_head()

    def _leave_head(self) -> None:
        head, self._head = self._head or "", None
        for letter in head:
            self._take_text(letter)

    def _end_head(self, end: str) -> None:
        """End a line of which only the start was read; a fence begins code."""
        fence = _FENCE.fullmatch(self._head or "")
        if fence and self._begins_code(fence):
            before = "".join(letter if letter in ">\t" else " " for letter in fence[1])
            self._fence, self._head = (before, fence[2]), ""
            self._write(fence[0] + end)
            self._after_blank = False
            return
        self._leave_head()
        if end:
            self._take_text(end)

    def _begins_code(self, fence: re.Match[str]) -> bool:
        """Tell whether every renderer reads a line as the start of code; in lists the lines above it decide."""
        if "|" in fence[0]:  # some renderers read it as the header of a table
            return False
        if _PLAIN_START.fullmatch(fence[1]):
            return True
        above = "".join(self._above)
        self._parsed += len(above)
        if self._parsed > _MOST_PARSED or ">" in fence[1]:  # renderers differ on indented quotes
            return False
        tokens: list[Token] = []
        self._inline.parser.block.parse(above + fence[0], self._inline.parser, {}, tokens)
        line = above.count("\n")
        return any(token.type == "fence" and token.map and token.map[0] == line for token in tokens)

    def _take_text(self, letter: str) -> None:
        if self._last:
            self._step(self._last, letter)
        self._last = letter
        if letter != "\n":
            return
        self._end_piece()
        self._write("\n")
        marks = self._start
        self._after_blank = marks is not None and not marks.strip()
        rule = marks is not None and "-" in marks and (self._bar_above or not {"|", ":"}.isdisjoint(marks))
        self._in_table = not self._after_blank and (self._in_table or rule)
        self._bar_above = self._bar
        self._after_bars, self._inline.bars = self._inline.bars, False
        self._begin_line()

    def _write(self, text: str) -> None:
        if self._after_blank and text[:1] not in ("", " ", "\t", "\n"):
            self._above.clear()
            self._after_blank = False
        if self._gap and text[:1] not in _SPACE and not (self._tail.isalnum() and not text.strip(_ENDING)):
            text = f" {text}"
        self._gap = False
        self._tail = text[-1:] or self._tail
        self._above.append(text)
        self._out.append(text)

    # -- code between fences ------------------------------------------------------------------------

    def _take_code(self, letter: str) -> None:
        if self._in_code_line:
            self._write(letter)
            self._in_code_line = letter != "\n"
        elif letter == "\n":
            self._end_code_line("\n")
        else:
            self._code.append(letter)
            if len(self._code) == _HELD:
                line, (before, fence) = "".join(self._code), self._fence
                if not line.startswith(before):
                    self._end_code_line("")
                elif line[len(before) :].strip(f" \t{fence[0]}"):
                    self._write(line)
                    self._code.clear()
                    self._in_code_line = True

    def _end_code_line(self, end: str) -> None:
        """Write a line of code. A line that may lie outside the list or quote of the code ends it."""
        line, (before, fence) = "".join(self._code), self._fence
        self._code.clear()
        blank = line.strip(" \t") == before.strip(" \t")
        if not line.startswith(before) and not (blank and line.rstrip() == before.rstrip()):
            self._write(f"{before}{fence}\n" if line or end else "")
            self._fence = "", ""
            self._begin_line()
            for letter in line + end:
                self._take(letter)
            return
        rest = line[len(before) :].lstrip(" \t")
        indent, ticks = line[len(before) : len(line) - len(rest)], rest.rstrip(" \t")
        closes = len(ticks) >= len(fence) and not ticks.strip(fence[0])
        if closes and (before or len(indent.expandtabs(4)) < 4):
            line = f"{before}{rest}" if before else line  # indented, it might not close
            self._fence = "", ""
            self._begin_line()
        self._write(line + end)

    # -- pieces -------------------------------------------------------------------------------------

    def _begin_piece(self) -> None:
        self._piece: list[str] = []
        self._ticks = 0  # the length of the fence of an open span of code
        self._run = 0  # backticks up to here
        self._brackets = self._parentheses = 0
        self._in_tag = self._escaped = False
        self._named = False  # it holds signs that occur in addresses

    def _step(self, letter: str, after: str) -> None:
        """Add a letter to the piece, and end the piece where nothing can reach across."""
        before = self._piece[-1] if self._piece else ""
        self._piece.append(letter)
        self._follow(before, letter, after)
        is_open = self._ticks or self._brackets or self._parentheses or self._in_tag
        if not is_open and self._ends(before, letter, after):
            self._end_piece()
        elif len(self._piece) >= _HELD:
            self._cut(after)

    def _follow(self, before: str, letter: str, after: str) -> None:
        """Note what is open behind a letter."""
        if self._escaped:
            self._escaped = False
        elif letter == "`":
            self._run += 1
            if after != "`":
                self._ticks = 0 if self._ticks == self._run else self._ticks or self._run
                self._run = 0
        elif self._ticks:
            return
        elif letter == "\\":
            self._escaped = after in _PUNCTUATION
        elif letter == "<" or letter == ">":
            self._in_tag = letter == "<" and after.isascii() and (after.isalpha() or after in ("/", "!", "?"))
        elif letter in "[【":
            self._brackets += 1
        elif letter in "]】":
            self._brackets = max(0, self._brackets - 1)
            self._parentheses = int(after == "(")  # counts the parenthesis that follows
        elif letter == "(" and self._parentheses and before not in "]】":
            self._parentheses += 1
        elif letter == ")" and self._parentheses:
            self._parentheses -= 1
        self._named = self._named or letter in ".:/@\\&"

    def _ends(self, before: str, letter: str, after: str) -> bool:
        """Tell whether a piece with nothing open ends behind a letter."""
        if letter in " \t":
            return False
        if after in ("", " ", "\t", "\n"):
            target_follows = before + letter == "]:" and after in (" ", "\t") and self._start is not None
            return not target_follows
        if letter in _FULL_STOPS:
            return True
        return not self._named and not after.isascii() and (letter == "]" or not letter.isascii())

    def _cut(self, after: str) -> None:
        """Cut a piece that has become too long at its last white space."""
        text = "".join(self._piece)
        place = max(text.rfind(" "), text.rfind("\t"))
        self._piece = list(text[:place] if place > 0 else f"{text} ")
        self._end_piece()
        tail = text[place:] if place > 0 else ""
        for place, letter in enumerate(tail, 1):
            self._step(letter, tail[place : place + 1] or after)

    def _end_piece(self) -> None:
        """Write the piece, made safe."""
        piece = "".join(self._piece)
        text = self._inline.safe(piece, self._start, self._in_table)
        self._begin_piece()
        if text[:1] != piece[:1] and self._tail not in _SPACE:  # what was removed at its start kept it apart
            if piece[0] in _SPACE:
                self._gap = True
            elif text[:1] not in tuple("[`(<") or self._tail.isascii():
                text = text and f" {text}"
        if not text:
            return
        self._bar = self._bar or "|" in text
        if self._start is not None:
            if self._after_bars and not self._start.strip(" \t>") and text.lstrip(" \t>")[:1] in tuple("|:-"):
                text = re.sub(r"(?=[|:-])", r"\\", text, count=1)  # the code above must not become a row of a table
            marks = (self._start + text)[-200:]
            self._start = marks if BARE.fullmatch(marks) else None
        self._write(text)
