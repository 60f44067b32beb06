"""A paragraph of Markdown under construction: words, the marks around them, and escapes.

Text is escaped only where Markdown would read it as a mark: each escape costs tokens.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

_ESCAPED: Final = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|\s*\Z)          # a backslash escapes punctuation, and ends a line
    | `
    | \*(?:(?!\s)|(?<!\s\*))             # emphasis; not between spaces
    | _(?:(?<![^\W_]_)|(?![^\W_]))       # emphasis; not inside a word
    | ~(?:(?=~|\Z)|(?<=\S~))             # could end struck-out words
    | <(?=[A-Za-z/!?]|\Z)                # tags and addresses
    | \](?=\()                           # links and pictures
    | &(?=\#?[0-9A-Za-z]{1,31};|\Z)      # character references
    """,
    re.VERBOSE,
)
_LINE_FIRST: Final = frozenset("#-+*>[=:|0123456789")
_LINE_START: Final = re.compile(
    r"""
    ([0-9]{1,9})(?=[.)](?:\s|$))         # an item of an ordered list
    | (?=
        \#{1,6}(?:\s|$)                  # a heading
        | [-+*](?:\s|$)                  # an item
        | >                              # a quotation
        | \[[^\[\]]*\]:                  # the target of a link
        | =+$ | [:|\ ]*-[-:|\ ]*$        # turns the line above into a heading or a table, or is a rule
    )
    """,
    re.VERBOSE,
)
_LABEL: Final = re.compile(r"\[(?:\\.|[^\[\]\\])*\]:", re.DOTALL)
_HEADING_END: Final = re.compile(r"(^|\s)(?=#+$)")
_BRACKET: Final = re.compile(
    r"""
    (   `+[^`]*`+                        # not in code,
      | \\.                              # escapes,
      | !\[(?:\\.|[^\[\]\\])*\]\((?:[^()]|\([^()]*\))*\)  # and pictures
    )
    | [\[\]]
    """,
    re.VERBOSE | re.DOTALL,
)
_NESTING: Final = ("<", "“", "‘")
"""How marks begin that may stand inside others of their kind."""
_BLANK_LINE: Final = re.compile(r"(?<=\n)([ \t]*)\n")
_ADDRESS: Final = re.compile(r"[\s\0-\x1f\x7f<>\\`]")
_REFERENCE: Final = re.compile(r"&(?=#?[0-9A-Za-z]{1,31};)")
_MOST_NESTED: Final = 3
"""Balanced parentheses of an address that are not escaped: parsers need to read no more levels (CommonMark, 6.3)."""


def escape_markdown(text: str) -> str:
    """Escape Markdown's marks inside a line."""
    return _ESCAPED.sub(r"\\\g<0>", text)


def escape_line(row: str) -> str:
    """Escape a Markdown mark at the start of a line.

    :param row: a line that :func:`escape_markdown` has escaped; not empty.
    """
    if row[0] not in _LINE_FIRST:
        return row
    mark = _LINE_START.match(row)
    return f"{mark[0]}\\{row[mark.end() :]}" if mark else row


def escape_rows(rows: list[str]) -> list[str]:
    """Escape the Markdown marks at the starts of a paragraph's lines; the label of a link's target may span lines."""
    if rows[0][0] == "[" and _LABEL.match("\n".join(rows)):
        rows = [f"\\{rows[0]}", *rows[1:]]
    return [escape_line(row) for row in rows]


def escape_heading(words: str) -> str:
    """Escape number signs at the end of a heading, which Markdown would drop."""
    return _HEADING_END.sub(r"\1\\", words) if words[-1] == "#" else words


def escape_label(words: str) -> str:
    """Escape the brackets in a link's words unless they are balanced."""
    if _is_balanced("".join(bracket[0] for bracket in _BRACKET.finditer(words) if not bracket[1]), "[", "]"):
        return words
    return _BRACKET.sub(lambda bracket: bracket[1] or f"\\{bracket[0]}", words)


def code_span(words: str) -> str:
    """Return words as a code span, between more backticks than their longest run of backticks."""
    words = " ".join(words.split())
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    space = " " if longest and "`" in (words[0], words[-1]) else ""
    fence = "`" * (longest + 1)
    return f"{fence}{space}{words}{space}{fence}"


def html_block(markup: str) -> str:
    """Return HTML without blank lines, which would end an HTML block; line breaks in code become references."""
    return _BLANK_LINE.sub(r"\1&#10;", markup)


def destination(address: str) -> str:
    """Escape an address for the parentheses of a Markdown link."""
    address = _ADDRESS.sub(lambda letter: "".join(f"%{byte:02X}" for byte in letter[0].encode()), address)
    if address.count("(") > _MOST_NESTED or not _is_balanced(address, "(", ")"):
        address = address.replace("(", "%28").replace(")", "%29")
    return _REFERENCE.sub("&amp;", address)


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    """Tell whether brackets are balanced."""
    if opening not in text and closing not in text:
        return True
    depth = 0
    for letter in text:
        depth += (letter == opening) - (letter == closing)
        if depth < 0:
            return False
    return depth == 0


@dataclass(slots=True)
class _Mark:
    """An open inline element: its marks, and where its words begin.

    :param node: the element's number in the tree.
    :param opening, closing: marks to write around the words.
    :param place: index in ``Line.parts`` where the words begin.
    :param joins: an element with the same marks ended directly before this one.
    """

    node: int
    opening: str
    closing: str
    place: int
    joins: bool = False


class Line:
    """Collects a paragraph, which may have several lines.

    ``code`` is set inside a code span, where nothing is escaped or marked.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.code = False
        self._marks: list[_Mark] = []
        self._joint = (-1, "")  # index after the latest mark that ended, and the mark
        self._bare = (-1, "")  # index after emphasis that no letter may follow, and its words without marks

    def add(self, markdown: str) -> None:
        """Add text that is Markdown already."""
        if self._bare[0] == len(self.parts) and markdown and not _is_space_or_punctuation(markdown[0]):
            joining = self._marks and self._marks[-1].joins and self._marks[-1].place == len(self.parts)
            if not joining:  # Markdown would not end the emphasis before this letter: write its words without marks
                self.parts[-1] = self._bare[1]
        self.parts.append(markdown)

    def add_words(self, text: str) -> None:
        """Add words, escaped for Markdown."""
        if not self.code:
            text = escape_markdown(text)
            if text[:1] == "(" and self.parts and self.parts[-1][-1:] == "]":
                text = f"\\{text}"  # "[words](" would read as a link
        self.add(text)

    def open(self, node: int, opening: str, closing: str) -> None:
        """Begin an element; it gets no marks in code, or inside an element with the same marks but tags."""
        nests = opening[:1] in _NESTING
        if opening and not self.code and (nests or all(outer.opening != opening for outer in self._marks)):
            position = len(self.parts)
            joins = self._joint == (position, opening) and (not self._marks or self._marks[-1].place != position)
            self._marks.append(_Mark(node, opening, closing, position, joins))
            self.code = opening == "`"

    def close(self, node: int) -> None:
        """End an element, if it has marks."""
        if self._marks and self._marks[-1].node == node:
            mark = self._marks.pop()
            self._wrap(mark)
            if mark.opening == "`":
                self.code = False

    def take(self) -> list[str]:
        """End the paragraph and return its lines; open marks continue in the next paragraph, links do not."""
        for mark in reversed(self._marks):
            if self._wrap(mark) and mark.opening == "[":
                mark.opening = mark.closing = ""
            mark.place, mark.joins = 0, False
        words = "".join(self.parts)
        self.parts.clear()
        self._joint = self._bare = (-1, "")
        return [row for row in (" ".join(row.split()) for row in words.split("\n")) if row]

    def _wrap(self, mark: _Mark) -> bool:
        """Write a mark around its words, with spaces moved outside; tell whether there are words."""
        parts, opening, closing = self.parts, mark.opening, mark.closing
        inner = "".join(parts[mark.place :])
        words = inner.strip()
        if not words or not opening:
            return bool(words)
        del parts[mark.place :]
        before = inner[: len(inner) - len(inner.lstrip())]
        after = inner[len(inner.rstrip()) :]
        joins = mark.joins and not before
        if opening == "`":
            shown = "\n".join(code_span(row) for row in words.split("\n") if row.strip())
            if joins and (parts[-1].endswith("``") or shown.startswith("``")):
                shown = escape_markdown(words)  # two code spans side by side would read as one
                opening = ""
        else:
            if opening == "[":
                words = escape_label(words)
                if not before and parts and parts[-1].endswith("!"):
                    parts[-1] = f"{parts[-1][:-1]}\\!"  # an unescaped "!" would make the link a picture
            elif opening == closing and not before and parts and not joins and _cannot_begin(parts[-1], words[0]):
                opening = closing = ""
            shown = f"{opening}{words}{closing}"
        bare = f"{before}{words}"
        if joins and opening:
            bare = ""
            parts[-1] = f"{parts[-1][: -len(closing)]}{shown[len(opening) :]}{after}"  # one mark around both
        else:
            self.add(f"{before}{shown}{after}")
        self._joint = (len(parts), opening if opening == closing and not after else "")
        # emphasis that ends with punctuation is not closed if a letter follows (CommonMark, 6.2)
        may_fail = bare and self._joint[1] not in ("", "`") and _is_space_or_punctuation(words[-1])
        self._bare = (len(parts), bare) if may_fail else (-1, "")
        return True


def _cannot_begin(before: str, first: str) -> bool:
    """Tell whether emphasis cannot begin here: after a letter and before a punctuation mark (CommonMark, 6.2)."""
    return _is_space_or_punctuation(first) and not _is_space_or_punctuation(before.rstrip("*~")[-1:] or " ")


def _is_space_or_punctuation(letter: str) -> bool:
    """Tell whether a letter is white space or a punctuation mark."""
    return letter.isspace() or unicodedata.category(letter)[0] in "PS"
