"""The output style of a document, and the tables of HTML rules behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from ..clean import rules
from ..node_arrays import Attrs


@dataclass(frozen=True, slots=True)
class Style:
    """The output style of a document.

    :param links: write the targets of links.
    :param images: write the addresses of pictures and media (alt text is always written).
    :param emphasis: write bold, italics and similar tags.
    :param sections: write section, nav, thead and similar tags.
    :param full: write every end tag, wrapper and quote.
    :param pretty: with ``full``, write each block element on a new line, indented.
    """

    links: bool = True
    images: bool = True
    emphasis: bool = True
    sections: bool = True
    full: bool = False
    pretty: bool = False


CLEAN: Final = Style()
"""The style of cleaning: all that a reader can see, in compact form."""

LEAN: Final = Style(links=False, images=False, emphasis=False, sections=False)
"""The style of pruning: words and structure, without tags and attributes that cost tokens."""

EMIT, PASS, WRAP = 0, 1, 2
"""Actions for an element: write the tags; write only the content; write the tags only where they separate words."""

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
"""Start tags before which each end tag may be left out (HTML standard, optional tags).

<table> after <p> is not among them: without a doctype a parser is in quirks mode and leaves the paragraph open."""

KNOWN_BLOCKS: Final = frozenset(
    """title p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption tr td th pre blockquote details summary br
    hr dialog legend option optgroup menu textarea source track""".split()
)
"""Blocks whose tags tell a model something; other blocks are wrappers."""

KNOWN_HTML: Final = (
    KNOWN_BLOCKS
    | rules.WRAPPERS
    | rules.SECTIONS
    | rules.INLINE
    | frozenset("html head body thead tbody tfoot figure figcaption hgroup menu noscript center".split())
)
"""Elements of HTML. All others are custom elements, which parsers and browsers treat as inline."""

START_TAGS: Final = {tag: f"<{tag}>" for tag in KNOWN_HTML}
END_TAGS: Final = {tag: f"</{tag}>" for tag in KNOWN_HTML}
"""Tags without attributes, made once for speed."""

SPACED: Final = frozenset({"button", "label", "output"})
"""Inline elements that are shown apart from their neighbours; without their tags a space separates them."""

_LEAN_ATTRIBUTES: Final = frozenset(
    "alt title colspan rowspan start value reversed checked placeholder open label selected type max".split()
)
_LINK_ATTRIBUTES: Final = frozenset({"href", "cite"})
_IMAGE_ATTRIBUTES: Final = frozenset({"src", "poster", "data"})
_WORDS: Final = frozenset({"alt", "label", "placeholder", "value"})
"""Attributes whose value a reader sees as text; cleaning writes them whole."""

_AMPERSAND: Final = re.compile(r"&(?=[A-Za-z#]|\Z)")


@cache
def actions(style: Style) -> dict[str, int]:
    """Return the action for each tag. A tag that is not listed has the default: EMIT with ``full``, else WRAP."""
    if style.full:
        return {}
    table = {**dict.fromkeys(rules.INLINE | KNOWN_BLOCKS, EMIT), "html": PASS, "body": PASS, "noscript": PASS}
    table |= dict.fromkeys(("thead", "tbody", "tfoot"), EMIT)
    if style.sections:
        table |= dict.fromkeys(rules.SECTIONS | {"figure", "figcaption"}, EMIT)
    if not style.links:
        table["a"] = PASS
    if not style.emphasis:
        table |= dict.fromkeys(rules.EMPHASIS | SPACED | {"time", "ins", "object"}, PASS)
    return table


def shown_attributes(attrs: Attrs, style: Style) -> Attrs:
    """Return the attributes that ``style`` writes, with long values shortened for the model.

    Cleaning loses no word, so values that a reader sees are shortened only where ``sections`` is off too.
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
    """Shorten a long attribute value for a model; idempotent."""
    if name in rules.URL_ATTRIBUTES:
        value = value.split("#", 1)[0].split("?", 1)[0] or value
    return value if len(value) <= rules.LONG_VALUE else value[: rules.LONG_VALUE - 1] + "\u2026"


def written_attributes(attrs: Attrs, style: Style) -> str:
    """Write the attributes that ``style`` shows; without ``full``, quoted only where HTML demands it."""
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
    """Escape text for HTML, and only where a parser would read it otherwise."""
    if "&" in text:
        text = _AMPERSAND.sub("&amp;", text)
    return text.replace("<", "&lt;") if "<" in text else text
