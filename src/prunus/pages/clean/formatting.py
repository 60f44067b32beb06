"""Guards the parser against unclosed formatting elements, which make a DOM quadratic in the page.

A parser reopens an unclosed formatting element in every later block, as a new element each time (HTML, 13.2.4.3: the
list of active formatting elements). ``<div><i id=1>x</div><div><i id=2>x</div>...`` turns a hundred kilobytes into
millions of elements. Where that could happen, formatting elements are renamed, so that the parser does not reopen
them; :mod:`prunus.pages.clean.walk` restores their names.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any, Final

NAMES: Final = ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
"""Formatting elements that a parser reopens. ``a`` is left out: a parser reopens one of them at most."""

FORMER: Final = {f"{name}-": name for name in NAMES}
"""The name of each formatting element in a rewritten page, and its original name."""

MOST_COPIES: Final = 2_000_000
"""Elements that a parser may add to a page: as many as a page may have tags. They take some 320 MB."""

_DEPTH: Final = 511  # the parser's limit of nesting
_ALIKE: Final = 3  # equal formatting elements that a parser reopens at most (HTML, 13.2.4.3: the Noah's Ark clause)
_NAME: Final = rf"(?i:{'|'.join(NAMES)})(?=[\s/>])"
_PLAIN_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+(?:=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=`]+))?)*\s*"""
_START: Final = rf"(?a)<(?=[BCEFINSTUbcefinstu]){_NAME}(?:{_PLAIN_ATTRIBUTES}>)?"
_RENAMED: Final = rf"(?a)</?{_NAME}"


@cache
def _pattern(source: str, of_text: bool) -> re.Pattern[Any]:
    """Return a pattern for text or for bytes, compiled on first use."""
    return re.compile(source if of_text else source.encode())


def multiplies(page: str | bytes, tags: int) -> bool:
    """Tell whether a parser could add more than ``MOST_COPIES`` elements that are not in the page.

    Each tag may reopen three elements for each different start tag of formatting. End tags are not counted, because
    a page may hide them in comments. So a large page with hundreds of different formatting elements counts as hostile
    even if it closes them all. Renaming its elements then only changes where misnested formatting ends.

    :param page: text, or bytes in an encoding that contains ASCII.
    :param tags: number of "<" in the page.
    """
    most = min(tags // 2, _DEPTH)  # each other tag may end a block, and so reopen them once
    if most * (tags - most) <= MOST_COPIES:
        return False
    of_text = isinstance(page, str)
    starts = Counter(_pattern(_START, of_text).findall(page))
    plain = ">" if of_text else b">"  # the pattern read only the name: the attributes may differ
    # an upper bound of the elements on the parser's list
    reopened = sum(min(count, _ALIKE) if start.endswith(plain) else count for start, count in starts.items())
    return min(reopened, _DEPTH) * tags > MOST_COPIES


def renamed(page: str | bytes) -> tuple[Any, list[int]]:
    """Return a page with its formatting elements renamed, and the offsets of the hyphens that were added."""
    content: Any = page
    hyphen = "-" if isinstance(page, str) else b"-"
    parts: list[Any] = []
    places: list[int] = []
    done = 0  # end of the page's part that is copied
    for tag in _pattern(_RENAMED, isinstance(page, str)).finditer(content):
        parts += (content[done : tag.end()], hyphen)
        done = tag.end()
        places.append(done + len(places))
    return content[:0].join([*parts, content[done:]]), places
