"""How a document is written: what is shown of it, and how tightly. Tables of HTML's own rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from ..clean import rules
from ..tree import Attrs


@dataclass(frozen=True, slots=True)
class Style:
    """How a document is written.

    :param links: write the targets of links.
    :param images: write the addresses of pictures and media (alt text is always written).
    :param emphasis: write bold, italics and their kin.
    :param sections: write section, nav, thead and the like.
    :param full: write every end tag, wrapper and quote.
    :param pretty: with ``full``, block elements on lines of their own, indented.
    """

    links: bool = True
    images: bool = True
    emphasis: bool = True
    sections: bool = True
    full: bool = False
    pretty: bool = False


CLEAN: Final = Style()
"""What cleaning writes: all that a reader can see, compactly."""

LEAN: Final = Style(links=False, images=False, emphasis=False, sections=False)
"""What pruning writes for a model: structure, and nothing that eats the budget."""

EMIT, PASS, WRAP = 0, 1, 2
"""Write the tags; write only the content; write the tags only where they hold words apart."""

CLOSED_BY: Final[dict[str, frozenset[str]]] = {
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "p": frozenset(
        """address article aside blockquote details dialog div dl fieldset figcaption figure footer form h1 h2
    h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section ul""".split()
    ),
    "option": frozenset({"option", "optgroup"}),
    "optgroup": frozenset({"optgroup"}),
    "thead": frozenset({"tbody", "tfoot"}),
    "tbody": frozenset({"tbody", "tfoot"}),
    "tfoot": frozenset(),
    "tr": frozenset({"tr", "tbody", "tfoot"}),
    "td": frozenset({"td", "th", "tr", "tbody", "tfoot"}),
    "th": frozenset({"td", "th", "tr", "tbody", "tfoot"}),
}
"""Start tags before which an end tag may be left out (HTML standard, optional tags).

Not <table> after <p>: without a doctype a parser is in quirks mode, and leaves the paragraph open."""

KNOWN_BLOCKS: Final = frozenset(
    """title p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption tr td th pre blockquote details summary br
    hr dialog legend option optgroup menu textarea source track""".split()
)
"""Blocks whose tags say something to a model; any other block is a wrapper."""

KNOWN_HTML: Final = (
    KNOWN_BLOCKS
    | rules.WRAPPERS
    | rules.SECTIONS
    | rules.INLINE
    | frozenset("html head body thead tbody tfoot figure figcaption hgroup menu noscript center".split())
)
"""Elements of HTML; any other is a custom element, which every reader takes for inline."""

START_TAGS: Final = {tag: f"<{tag}>" for tag in KNOWN_HTML}
END_TAGS: Final = {tag: f"</{tag}>" for tag in KNOWN_HTML}
"""What is written most, made once."""

SPACED: Final = frozenset({"button", "label", "output"})
"""Inline elements that stand apart from their neighbours: without their tags, a space does it."""

_LEAN_ATTRIBUTES: Final = frozenset(
    "alt title colspan rowspan start value reversed checked placeholder open label selected".split()
)
_LINK_ATTRIBUTES: Final = frozenset({"href", "cite"})
_IMAGE_ATTRIBUTES: Final = frozenset({"src", "poster", "data"})
_WORDS: Final = frozenset({"alt", "label", "placeholder", "value"})
"""Attributes whose value is text that a reader sees: what cleaning writes holds them whole."""

_AMPERSAND: Final = re.compile(r"&(?=[A-Za-z#]|\Z)")


@cache
def actions(style: Style) -> dict[str, int]:
    """Return what to do with each tag; one that is not listed is EMIT when inline, else WRAP."""
    if style.full:
        return {}
    table = {**dict.fromkeys(rules.INLINE | KNOWN_BLOCKS, EMIT), "html": PASS, "body": PASS, "noscript": PASS}
    parts = ("thead", "tbody", "tfoot")
    table |= dict.fromkeys(parts, EMIT)
    if style.sections:
        table |= dict.fromkeys(rules.SECTIONS | {"figure", "figcaption"}, EMIT)
    if not style.links:
        table["a"] = PASS
    if not style.emphasis:
        table |= dict.fromkeys(rules.EMPHASIS | SPACED | {"time", "ins", "object"}, PASS)
    return table


def shown_attributes(attrs: Attrs, style: Style) -> Attrs:
    """Return the attributes that ``style`` writes, long values shortened for the model.

    Cleaning loses no word: values that are words are shortened only where sections are left out, too.
    """
    if style.sections and style.links and style.images:
        for value in attrs.values():
            if len(value) > rules.LONG_VALUE:
                break
        else:
            return attrs
    shown: Attrs = {}
    for name, value in attrs.items():
        if not style.sections and name not in _LEAN_ATTRIBUTES | _LINK_ATTRIBUTES | _IMAGE_ATTRIBUTES:
            continue
        if (name in _LINK_ATTRIBUTES and not style.links) or (name in _IMAGE_ATTRIBUTES and not style.images):
            continue
        whole = style.full or len(value) <= rules.LONG_VALUE or (style.sections and name in _WORDS)
        shown[name] = value if whole else shorten(value, name)
    return shown


def shorten(value: str, name: str) -> str:
    """Shorten a long attribute value for a model; doing it twice changes nothing."""
    if name in rules.URL_ATTRIBUTES:
        value = value.split("#", 1)[0].split("?", 1)[0] or value
    return value if len(value) <= rules.LONG_VALUE else value[: rules.LONG_VALUE - 1] + "\u2026"


def written_attributes(attrs: Attrs, style: Style) -> str:
    """Write the attributes that ``style`` shows, quoted only where HTML demands it unless it is full."""
    full = style.full
    written = ""
    for name, value in shown_attributes(attrs, style).items():
        if not value and name != "alt":
            written += f" {name}"
        elif not full and not (
            "=" in value
            or " " in value
            or '"' in value
            or "'" in value
            or "<" in value
            or ">" in value
            or "`" in value
            or "&" in value
            or "\n" in value
            or "\t" in value
            or "\r" in value
            or "\f" in value
        ):
            written += f" {name}={value}"
        else:
            if "&" in value:
                value = value.replace("&", "&amp;") if full else _AMPERSAND.sub("&amp;", value)
            value = value.replace('"', "&quot;")
            written += f' {name}="{value}"'
    return written


def escape(text: str) -> str:
    """Escape text so that it parses back to itself."""
    if "&" in text:
        text = _AMPERSAND.sub("&amp;", text)
    return text.replace("<", "&lt;") if "<" in text else text
