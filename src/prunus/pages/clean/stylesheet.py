"""Reads the text of a page's ``<style>`` elements: which rules apply on a screen, and which may hide or show something.

A sheet is cut at its closing braces, which is linear in its size and never fails: what is no CSS makes rules that match
nothing. :func:`suspects` looks for the few declarations that can hide, and :meth:`StyleSheet.rules` reads the wanted
rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ...core.text.numbers import bounded_float
from .css import escaped, unseen_by, without_comments

_SPACES: Final = b" \t\r\n\f"
_HIDES: Final = (
    b"display:none",
    b"visibility:",
    b"opacity:",
    b"font-size:0",
    b"font-size:.",
    b"clip",
    b"width:0",
    b"height:0",
    b"-size:0",
    b":-",
    b":9999",
    b"font:",
    b"font-size:1%",
    b"inset:",
    b"margin:",
    b"matrix",
    b"color:",
    b"filter:",
    b"mask",
    b"scale",
    b"rotate",
    b"translate",
    b":var(",
    b":calc(",
)
"""Beginnings of declarations that can hide an element, in lower case without white space."""

_SAYS: Final = re.compile(
    rb"display:none|visibility:[hc]|opacity:\.?0|font-size|clip:rect\(|clip-path:|(?:width|height|-size):0|:-\d{3}|:-\d+e|"
    rb":-\d+r|:-\d+v|:9999|font:.{0,40}?0|color:(?:transparent|rgba?\(|hsla?\(|#[0-9a-f]{3}0\b|#[0-9a-f]{6}00\b)|"
    rb"filter:.{0,40}?opacity\(|mask(?:-image)?:|scale|rotate[xy]|translate[xy]?(?:3d)?[(:](?:-|calc)|"
    rb"(?:inset|margin):.{0,30}?-\d{3}|matrix|:var\(|:calc\("
)
"""What must stand where a word of ``_HIDES`` is found."""

_LAYS_OUT: Final = (b"display:", b"float:", b"white-space", b"user-select:", b"line-through", b"vertical-align:su")
"""What stands in declarations that can part words, keep their line breaks, strike them through, raise or lower them, or
keep them out of a copied text."""

_SAYS_WHERE: Final = re.compile(
    rb"display:(?:-webkit-|-ms-)?(?:block|box|table|list-item|flow-root|(?:inline-)?(?:flex|grid))|float:[lri]|"
    rb"white-space:(?:pre|break)|white-space-collapse:p|user-select:none|line-through|vertical-align:su(?:b|per)"
)

_SAYS_WORDS: Final = re.compile(
    rb"content:(?:attr\(|\"(?!\"[;}!]|\"\Z|\\[ef][0-9a-f]{3}\")|'(?!'[;}!]|'\Z|\\[ef][0-9a-f]{3}'))"
)
"""A ``content`` that is neither empty nor one letter of an icon font."""

_STRING: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_LENGTH: Final = re.compile(r"(min-|max-)?(width|height)\s*:\s*(\d{1,7}(?:\.\d{0,4})?)\s*(px|r?em)\s*\Z")
_RANGE: Final = re.compile(r"(width|height)\s*(<=?|>=?)\s*(\d{1,7}(?:\.\d{0,4})?)\s*(px|r?em)\s*\Z")
_SCREEN: Final = {"width": 1280.0, "height": 800.0}
_HOLDS: Final = frozenset(
    """orientation:landscape hover:hover any-hover:hover pointer:fine any-pointer:fine prefers-color-scheme:light
    prefers-reduced-motion:no-preference scripting:enabled color update:fast""".split()
)
"""Features of media queries that hold on the screen of a desktop computer."""


class Rule(NamedTuple):
    """A style rule that applies on a screen.

    :param order: its place among the rules of the page.
    :param selector: its selector list, nesting resolved.
    :param body: its declarations.
    :param layer: place of its cascade layer; rules outside layers have none, and win.
    """

    order: int
    selector: str
    body: str
    layer: int | None


class _Context(NamedTuple):
    """An open block: the selector of a rule ('' in an at-rule), whether it applies, and its layer."""

    selector: str
    applies: bool
    layer: int | None


_UNREAD: Final = _Context("", False, None)
"""A block that is nested too deep to be read."""


def suspects(css: str) -> tuple[list[int], list[int], list[int]]:
    """Return the places of the parts, between closing braces, that may hide, lay out, or say words.

    :param css: a sheet without comments.
    """
    squeezed = css.encode("utf-8", "surrogatepass").lower().translate(None, _SPACES)
    laying = _parts_with(squeezed, _LAYS_OUT, _SAYS_WHERE)
    saying = _parts_with(squeezed, (b"content:",), _SAYS_WORDS)
    result = _parts_with(squeezed, _HIDES, _SAYS)
    if b"\\" in squeezed:
        escaped = {
            number
            for number, part in enumerate(css.split("}"))
            if "\\" in part and "\\" in _STRING.sub("", part.rpartition("{")[2])
        }
        return sorted(escaped.union(result)), laying, saying
    return result, laying, saying


def _parts_with(squeezed: bytes, words: tuple[bytes, ...], says: re.Pattern[bytes]) -> list[int]:
    """Return the places of the parts in which a word stands and the pattern matches."""
    places = []
    for word in words:
        position = squeezed.find(word)
        while position >= 0:
            if says.match(squeezed, position):
                places.append(position)
            position = squeezed.find(word, position + 1)
    result: list[int] = []
    part = last = 0
    for position in sorted(places):
        part += squeezed.count(b"}", last, position)
        last = position
        if not result or result[-1] != part:
            result.append(part)
    return result


def may_hide(values: Mapping[str, str]) -> bool:
    """Tell whether the declarations of a rule hide an element, in whatever way it is positioned."""
    return bool(unseen_by({**values, "position": "fixed"}))


class StyleSheet:
    """A style sheet, cut into the parts between its closing braces.

    :param css: its text.
    """

    def __init__(self, css: str) -> None:
        css = without_comments(css.replace("<!--", " ").replace("-->", " "))  # browsers skip these marks in a sheet
        self.suspects, self.laying, self.saying = suspects(css)
        """The places of the parts that may hide something, of those that may lay out words, and that say words."""

        self.parts = css.split("}") if self.suspects or self.laying or self.saying else []
        quoted = '"' in css or "'" in css
        if quoted and any(part.count('"') & 1 or part.count("'") & 1 for part in self.parts):
            css = escaped(css)
            self.suspects, self.laying, self.saying = suspects(css)
            self.parts = css.split("}")  # a string holds a brace
        self._nesting: set[int] = set()
        self._media: dict[str, bool] = {}

    def rules(self, wanted: set[int], first: int, layers: dict[str, int]) -> Iterator[Rule]:
        """Yield the rules that apply on a screen, in order, nested ones resolved.

        :param wanted: the places of the parts whose rules are yielded.
        :param first: the place of the sheet's first rule among those of the page.
        :param layers: the places of the cascade layers of the page; this call adds to it.
        """
        if not self._nesting:
            self._nesting = {number for number, part in enumerate(self.parts) if part.count("{") != 1}
        blocks: list[_Context] = [_Context("", True, None)]
        for number in sorted(self._nesting | wanted):  # another part opens and closes one block
            yields = number in wanted
            *openings, tail = self.parts[number].split("{")
            for opening in openings:
                declared, _, prelude = opening.rpartition(";")
                block = blocks[-1]
                if declared and yields and block.selector and block.applies:
                    yield Rule(first + number, block.selector, declared, block.layer)
                elif "@layer" in declared:
                    for name in declared.partition("@layer")[2].partition(";")[0].split(","):
                        layers.setdefault(name.strip(), len(layers))
                blocks.append(self._opened(prelude.strip(), block, layers) if len(blocks) < 64 else _UNREAD)
            block = blocks[-1]
            if yields and tail and block.selector and block.applies:
                yield Rule(first + number, block.selector, tail, block.layer)
            if len(blocks) > 1:
                blocks.pop()

    def _opened(self, prelude: str, block: _Context, layers: dict[str, int]) -> _Context:
        """Return the context of a block that a prelude opens inside another."""
        if not prelude.startswith("@"):
            selector = nested(prelude, block.selector) if block.selector else prelude
            return _Context(selector, block.applies and bool(selector), block.layer)
        layer = block.layer
        if prelude[:6].lower() == "@layer":
            layer = layers.setdefault(prelude[6:].strip() or f"{len(layers)}", len(layers))
        applies = self._media.get(prelude)
        if applies is None:
            applies = self._media[prelude] = _applies(prelude)
        return _Context(block.selector, block.applies and applies, layer)


def _applies(prelude: str) -> bool:
    """Tell whether the rules in an at-rule apply on a screen."""
    name, _, condition = prelude.lower().replace("(", " (", 1).partition(" ")
    if name == "@media":
        return on_screen(condition)
    if name == "@supports":
        return not any(word in condition for word in ("not ", "not(", "-moz-", "-ms-"))
    return name == "@layer"


def nested(selector: str, parent: str) -> str:
    """Return the selector of a rule inside the rule ``parent``; '' where it would be very long."""
    if len(parent) * (selector.count(",") + selector.count("&") + 1) > 20_000:
        return ""
    inside = f":is({parent})"
    return ",".join(
        one.replace("&", inside) if "&" in one else f"{inside} {one}" for one in map(str.strip, separate(selector))
    )


def separate(selector: str) -> list[str]:
    """Return the selectors of a list: what stands between commas outside brackets."""
    if "(" not in selector and "[" not in selector:
        return selector.split(",")
    result: list[str] = []
    start = depth = 0
    for index, letter in enumerate(selector):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth <= 0:
            result.append(selector[start:index])
            start = index + 1
    return [*result, selector[start:]]


def on_screen(query: str) -> bool:
    """Tell whether a media query list holds on a screen of 1280 × 800 pixels; an unknown feature does not hold."""
    queries = query.lower().split(",")
    return not query.strip() or any(_holds(one) for one in queries)


def _holds(query: str) -> bool:
    """Tell whether a single media query, in lower case, holds."""
    conditions = [one.strip() for one in re.split(r"\band\b", query)]
    negated = conditions[0].startswith("not ")
    conditions[0] = conditions[0].removeprefix("only ").removeprefix("not ").strip()
    known = [_feature(one) for one in conditions]
    return None not in known and all(known) != negated


def _feature(condition: str) -> bool | None:
    """Tell whether one condition of a media query holds; None where it is not known."""
    if not condition.startswith("("):
        return {"all": True, "screen": True, "print": False, "speech": False, "tty": False}.get(condition)
    inner = condition.strip("()").strip()
    length = _LENGTH.match(inner)
    if length:
        bound = _pixels(length[3], length[4])
        size = _SCREEN[length[2]]
        return size >= bound if length[1] == "min-" else size <= bound if length[1] else size == bound
    limit = _RANGE.match(inner)
    if limit:
        bound, size = _pixels(limit[3], limit[4]), _SCREEN[limit[1]]
        return {"<": size < bound, "<=": size <= bound, ">": size > bound, ">=": size >= bound}[limit[2]]
    return True if "".join(inner.split()) in _HOLDS else None


def _pixels(number: str, unit: str) -> float:
    return bounded_float(number, 0.0) * (1.0 if unit == "px" else 16.0)
