"""Formatting that is never closed: a parser opens it anew in every block that follows, each time as another element.

``<div><i id=1>x</div><div><i id=2>x</div>...`` makes a DOM that is quadratic in the page (HTML, 13.2.4.3: the list of
active formatting elements): a hundred kilobytes become millions of elements. Where that could happen, formatting
elements get names that no parser opens anew; :mod:`prunus.html.clean` gives them their own back.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

NAMES: Final = ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
"""Elements that are opened anew, but for ``a``, of which one at most is."""

FORMER: Final = {f"{name}-": name for name in NAMES}
"""What a formatting element is called in a page that was rewritten, and what it was."""

MOST_COPIES: Final = 600_000
"""Elements that a parser may have to add to a page: some 70 MB."""

_DEPTH: Final = 511  # the parser nests no deeper
_ALIKE: Final = 3  # equal formatting elements that are opened anew (HTML, 13.2.4.3: the Noah's Ark clause)
_NAME: Final = rf"(?i:{'|'.join(NAMES)})"
_PLAIN_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+(?:=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=`]+))?)*\s*"""
_START: Final = rf"(?a)<(?=[BCEFINSTUbcefinstu]){_NAME}(?=[\s/>])"
_PLAIN_START: Final = rf"<{_NAME}{_PLAIN_ATTRIBUTES}>"
_CLOSED: Final = rf"<({_NAME}){_PLAIN_ATTRIBUTES}>[^<]*</\1(?=[\s/>])"
_TAG: Final = rf"<(/?)([A-Za-z][\w-]*){_PLAIN_ATTRIBUTES}/?>|<"
_RENAMED: Final = rf"(</?{_NAME})(?=[\s/>])"
_PASSED: Final = frozenset(
    "a abbr bdi bdo br cite del dfn img ins kbd mark q samp span sub sup time var wbr".split()
)  # fmt: skip
"""Elements in which an end tag of formatting around them still finds its start."""


class _Patterns:
    """The patterns, for text or for bytes."""

    def __init__(self, to: Any) -> None:
        self.start, self.plain_start, self.closed, self.tag, self.renamed = (
            re.compile(to(pattern)) for pattern in (_START, _PLAIN_START, _CLOSED, _TAG, _RENAMED)
        )
        self.passed = frozenset(to(name) for name in _PASSED)
        self.names = frozenset(to(name) for name in NAMES)
        self.renaming = to(r"\1-")


@cache
def _patterns(of_text: bool) -> _Patterns:
    """Return the patterns, made when a page first wants them."""
    return _Patterns(str if of_text else str.encode)


def count_tags_in_python(page: str | bytes) -> tuple[int, int]:
    """Return how many "<" a page holds, and how many start tags of formatting elements.

    :param page: text, or bytes in an encoding that holds ASCII as such.
    """
    content: Any = page
    of_text = isinstance(page, str)
    return content.count("<" if of_text else b"<"), len(_patterns(of_text).start.findall(content))


try:
    from ._tags import count_tags as count_tags
except ImportError:  # only wheels hold what is compiled
    count_tags = count_tags_in_python


def multiplies(page: str | bytes, tags: int, starts: int) -> bool:
    """Tell whether parsing a page could add more than ``MOST_COPIES`` elements that it does not hold.

    What is said to be harmless is; of pages with as much misnested formatting as no author leaves some harmless ones
    are said not to be. It is linear, and takes hardly any time where few formatting elements stand in a page.

    :param page: text, or bytes in an encoding that holds ASCII as such.
    :param tags: how many "<" it holds.
    :param starts: how many formatting elements begin in it.
    """
    content: Any = page
    most = min(tags // 2, _DEPTH)  # what is not a start tag of formatting must end blocks
    if most * (tags - most) <= MOST_COPIES:
        return False
    allowed = MOST_COPIES // tags + 2  # formatting elements that may be open at each tag
    if min(starts, _DEPTH) <= allowed:
        return False
    patterns: Any = _patterns(isinstance(page, str))
    plain: list[Any] = []
    others = 0  # each may be unlike all the others
    for start in patterns.start.finditer(content):
        found = patterns.plain_start.match(content, start.start())
        if found is None:
            others += 1
        elif not patterns.closed.match(content, start.start()):  # nothing but text in it: it is over at once
            plain.append(found[0])
    if min(others + _unlike(plain), _DEPTH) <= allowed:
        return False
    return min(others + _unlike(_left_open(content, patterns)), _DEPTH) > allowed


def renamed(markup: str | bytes) -> str | bytes:
    """Return a page in which no formatting element is opened anew."""
    patterns: Any = _patterns(isinstance(markup, str))
    page: str | bytes = patterns.renamed.sub(patterns.renaming, markup)
    return page


def _unlike(starts: list[Any]) -> int:
    """Return how many of some start tags are opened anew at most."""
    counts: dict[Any, int] = {}
    for start in starts:
        counts[start] = counts.get(start, 0) + 1
    return sum(min(count, _ALIKE) for count in counts.values())


def _left_open(page: Any, patterns: Any) -> list[Any]:
    """Return the plain start tags that are not closed before anything but text and inline elements follows."""
    left: list[Any] = []
    run: list[tuple[Any, Any]] = []  # names and start tags that are open, with nothing but such content since
    for found in patterns.tag.finditer(page):
        ends, name = found[1], found[2] and found[2].lower()
        if name in patterns.names:
            if not ends:
                run.append((name, found[0]))
                continue
            if run and run[-1][0] == name:
                run.pop()
                continue
        elif name in patterns.passed:
            continue
        left.extend(start for _, start in run)
        run.clear()
    left.extend(start for _, start in run)
    return left
