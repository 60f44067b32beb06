"""Formatting that is never closed: a parser opens it anew in every block that follows, each time as another element.

``<div><i id=1>x</div><div><i id=2>x</div>...`` makes a DOM that is quadratic in the page (HTML, 13.2.4.3: the list of
active formatting elements): a hundred kilobytes become millions of elements. Where that could happen, formatting
elements get names that no parser opens anew; :mod:`prunus.pages.clean.walk` gives them their own back.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any, Final

NAMES: Final = ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
"""Elements that are opened anew, but for ``a``, of which one at most is."""

FORMER: Final = {f"{name}-": name for name in NAMES}
"""What a formatting element is called in a page that was rewritten, and what it was."""

MOST_COPIES: Final = 2_000_000
"""Elements that a parser may have to add to a page: as many as a page may have tags; they take some 320 MB."""

_DEPTH: Final = 511  # the parser nests no deeper
_ALIKE: Final = 3  # equal formatting elements that are opened anew (HTML, 13.2.4.3: the Noah's Ark clause)
_NAME: Final = rf"(?i:{'|'.join(NAMES)})(?=[\s/>])"
_PLAIN_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+(?:=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=`]+))?)*\s*"""
_START: Final = rf"(?a)<(?=[BCEFINSTUbcefinstu]){_NAME}(?:{_PLAIN_ATTRIBUTES}>)?"
_RENAMED: Final = rf"(?a)</?{_NAME}"


@cache
def _pattern(source: str, of_text: bool) -> re.Pattern[Any]:
    """Return a pattern for text or for bytes, made when a page first wants it."""
    return re.compile(source if of_text else source.encode())


def multiplies(page: str | bytes, tags: int) -> bool:
    """Tell whether parsing a page could add more than ``MOST_COPIES`` elements that it does not hold.

    Each tag may open anew as many elements as the page has unlike start tags of formatting, three of each. End tags
    are not looked at: a page may hide them in comments. So a large page with hundreds of formatting elements that all
    differ in their attributes is taken for a bomb though it closes them all. That changes nothing but where misnested
    formatting ends.

    :param page: text, or bytes in an encoding that holds ASCII as such.
    :param tags: how many "<" it holds.
    """
    most = min(tags // 2, _DEPTH)  # they are opened anew once for each tag that ends a block, and is none of them
    if most * (tags - most) <= MOST_COPIES:
        return False
    of_text = isinstance(page, str)
    starts = Counter(_pattern(_START, of_text).findall(page))
    plain = ">" if of_text else b">"  # attributes that were not read to their end may differ
    unlike = sum(min(count, _ALIKE) if start.endswith(plain) else count for start, count in starts.items())
    return min(unlike, _DEPTH) * tags > MOST_COPIES


def renamed(page: str | bytes) -> tuple[Any, list[int]]:
    """Return a page in which no formatting element is opened anew, and where the letters that it has more stand."""
    content: Any = page
    hyphen = "-" if isinstance(page, str) else b"-"
    parts: list[Any] = []
    places: list[int] = []
    done = 0
    for found in _pattern(_RENAMED, isinstance(page, str)).finditer(content):
        parts += (content[done : found.end()], hyphen)
        done = found.end()
        places.append(done + len(places))
    return content[:0].join([*parts, content[done:]]), places
