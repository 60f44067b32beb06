"""What Markdown would read as its own marks, escaped where it would, and nowhere else: escapes cost tokens."""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|\s*\Z)          # a backslash escapes punctuation, and ends a line
    | `
    | \*(?:(?!\s)|(?<!\s\*))             # emphasis; not between spaces
    | _(?:(?<![^\W_]_)|(?![^\W_]))       # emphasis; not inside a word
    | ~(?:(?=~|\Z)|(?<=\S~))             # what could end struck out words
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
        | =+$ | [:|\ ]*-[-:|\ ]*$        # what makes a heading or a table of the line above, or a rule
    )
    """,
    re.VERBOSE,
)
_HEADING_END: Final = re.compile(r"(^|\s)(?=#+$)")
_BRACKET: Final = re.compile(
    r"""
    (   `+[^`]*`+                        # but for code,
      | \\.                              # what is escaped,
      | !\[(?:\\.|[^\[\]\\])*\]\((?:[^()]|\([^()]*\))*\)  # and pictures
    )
    | [\[\]]
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK_LINE: Final = re.compile(r"(?<=\n)([ \t]*)\n")
_ADDRESS: Final = re.compile(r"[\s<>\\`]")
_REFERENCE: Final = re.compile(r"&(?=#?[0-9A-Za-z]{1,31};)")
_MOST_NESTED: Final = 3
"""Parentheses in an address that are left as they are when they are balanced."""


def escape_markdown(text: str) -> str:
    """Escape what Markdown would read as its own marks inside a line."""
    return _ESCAPED.sub(r"\\\g<0>", text)


def escape_line(row: str) -> str:
    """Escape what Markdown would read as its own marks at the start of a line that is escaped otherwise."""
    if row[0] not in _LINE_FIRST:
        return row
    found = _LINE_START.match(row)
    return f"{found[0]}\\{row[found.end() :]}" if found else row


def escape_heading(words: str) -> str:
    """Escape number signs at the end of a heading, which Markdown would drop."""
    return _HEADING_END.sub(r"\1\\", words) if words[-1] == "#" else words


def escape_label(words: str) -> str:
    """Escape the brackets in a link's words unless they are balanced."""
    if _is_balanced("".join(found[0] for found in _BRACKET.finditer(words) if not found[1]), "[", "]"):
        return words
    return _BRACKET.sub(lambda found: found[1] or f"\\{found[0]}", words)


def code_span(words: str) -> str:
    """Return words as code, between more backticks than they hold in a row."""
    words = " ".join(words.split())
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    space = " " if longest and "`" in (words[0], words[-1]) else ""
    fence = "`" * (longest + 1)
    return f"{fence}{space}{words}{space}{fence}"


def html_block(markup: str) -> str:
    """Return HTML without blank lines, which would end it: line breaks of code that make one become references."""
    return _BLANK_LINE.sub(r"\1&#10;", markup)


def destination(address: str) -> str:
    """Return an address such that it can stand between the parentheses of a link."""
    address = _ADDRESS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), address)
    if address.count("(") > _MOST_NESTED or not _is_balanced(address, "(", ")"):
        address = address.replace("(", "%28").replace(")", "%29")
    return _REFERENCE.sub("&amp;", address)


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    """Tell whether each bracket that opens closes."""
    if opening not in text and closing not in text:
        return True
    depth = 0
    for letter in text:
        depth += (letter == opening) - (letter == closing)
        if depth < 0:
            return False
    return depth == 0
