"""Escape text for Markdown only where Markdown would read it as a mark: each escape costs tokens."""

from __future__ import annotations

import re
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
