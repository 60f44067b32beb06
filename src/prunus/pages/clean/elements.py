"""Elements: how the walk treats each tag, and the attributes, children and words of it that a reader sees.

A table maps a tag to flags: one look-up an element keeps the walk fast. Addresses are judged as they are written, as
the URL standard reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...core.text.numbers import bounded_int
from ..node_arrays import Attrs
from . import rules
from .language import language_of
from .parse import CHILDREN, FORMER, Element, Text

_EDGE: Final = bytes(range(33)).decode("ascii")  # control characters and the space, which the standard strips
_REMOVED: Final = str.maketrans("", "", "\t\n\r")  # the standard removes them everywhere
_SCHEME: Final = re.compile(r"[\0-\x20]*([A-Za-z][A-Za-z0-9+.-]*):")
_PLAIN: Final = ("/", "https://", "http://", "#")
"""How most addresses begin; their schemes need no search."""


def scheme_of(address: str) -> str:
    """Return the scheme of an address as a browser reads it, in lower case; '' for a relative address."""
    match = _SCHEME.match(address.translate(_REMOVED))
    return match[1].lower() if match else ""


def kept_address(value: str) -> str | None:
    """Return an address as cleaning writes it, on one line; None where its scheme is none of ``rules.SCHEMES``."""
    if " " in value or not value.isprintable():
        value = " ".join(value.split()).strip(_EDGE)
    return value if value.startswith(_PLAIN) or scheme_of(value) in rules.SCHEMES else None


_FILE_NAME: Final = re.compile(r"\S*[\d_./]\S*")
"""The title that a program gave a picture."""

_LAZY = ("data-src", "data-lazy-src", "data-original")
_WITHOUT_LANGUAGE = rules.DISSOLVED | {"body", "noscript"}

Special = tuple[Sequence[Any], Attrs | None, str]
"""The kept part of an element: its children, its attributes, and the words that it shows itself."""


PERMALINK: Final[Attrs] = {}
"""Stands for the attributes of a link that is the sign of a heading's address: it is dropped."""

_LINK_SIGNS: Final = frozenset("¶#§🔗⚓∞ \ufe0f\t\n\uf0c1")
_TITLED: Final = "h1,h2,h3,h4,h5,h6,dt,caption,figcaption,legend,summary,.caption"
_ANCHOR: Final = re.compile(r"anchor|header-?link|perma-?link|hash-?link", re.IGNORECASE)


def _is_permalink(link: Element) -> bool:
    """Tell whether a link to a fragment is only a sign at the end of a heading or title, or one before it by its class.

    Such a link gives the heading's address, and is no part of its words.
    """
    sign = link.text
    if not sign or len(sign) > 9 or not _LINK_SIGNS.issuperset(sign):
        return False
    title = link.closest(_TITLED)
    if title is None:
        return False
    return _is_at_edge(link, title, 1) or (
        _ANCHOR.search(link.attr("class") or "") is not None and _is_at_edge(link, title, -1)
    )


def _is_at_edge(node: Any, around: Element, step: int) -> bool:
    """Tell whether nothing but white space is between a node and the end (1) or the beginning (-1) of an element."""
    while node is not around:
        beside = node.next_sibling if step > 0 else node.previous_sibling
        if isinstance(beside, Text) and beside.data.isspace():
            beside = beside.next_sibling if step > 0 else beside.previous_sibling
        if beside is not None:
            return False
        node = node.parent
    return True


def kept_attributes(tag: str, node: Element, with_language: bool) -> Attrs | None:
    """Return the attributes of an element that carry meaning, with whole values; None where there are none."""
    kept: Attrs = {}
    if tag == "a":
        target = kept_address(node.attr("href") or "")
        if target and target != "#":  # a bare '#' leads nowhere
            if "#" in target and _is_permalink(node):
                return PERMALINK
            kept["href"] = target
            if target[0] == "#" and "noteref" in (node.attr("role") or node.attr("epub:type") or ""):
                kept["role"] = "doc-noteref"
    else:
        for name in rules.KEPT_ATTRIBUTES.get(tag, ()):
            value = node.attr(name)
            if value is not None:
                value = kept_address(value) if name in rules.URL_ATTRIBUTES else " ".join(value.split())
            if value is not None:
                kept[name] = value
        if kept and (tag == "td" or tag == "th"):
            kept = cell_attributes(kept)
    lang = (node.attr("lang") or "") if with_language else ""
    if lang and tag not in _WITHOUT_LANGUAGE:
        kept["lang"] = " ".join(lang.split())
    return kept or None


def cell_attributes(kept: Attrs) -> Attrs:
    """Return a cell's attributes without spans of 1 and empty scopes; spans are capped as browsers cap them."""
    clean: Attrs = {}
    for name, value in kept.items():
        if name in ("colspan", "rowspan"):
            digits = value[: len(value) - len(value.lstrip("0123456789"))]
            number = bounded_int(digits, 1, most=1000 if name == "colspan" else 65534)
            if number != 1:
                clean[name] = str(number)
        elif value:
            clean[name] = value
    return clean


def _head(node: Element, kept: Attrs | None) -> Special | None:
    """Keep only the title of <head>."""
    title = node.find("title", axis=CHILDREN)
    return (title,) if title is not None else (), None, ""


def _title(node: Element, kept: Attrs | None) -> Special | None:
    """Keep a <title> only in <head>; elsewhere, as in drawings, it is not the page's title."""
    parent = node.parent
    return (node.children, kept, "") if isinstance(parent, Element) and parent.tag == "head" else None


def _image(node: Element, kept: Attrs | None) -> Special | None:
    """Keep an image that has alt text or an address; drop tracking pixels and inlined data."""
    alt = (kept or {}).get("alt", "")
    title = " ".join((node.attr("title") or node.attr("aria-label") or "").split()) if not alt else ""
    if node.attr("alt") is not None and node.closest("td,th") is None:
        title = ""  # the page says that the picture is for its look
    if title and not _FILE_NAME.fullmatch(title):  # the only name
        alt = title
        kept = {**(kept or {}), "alt": alt}
        kept.pop("title", None)
    if not alt and any((node.attr(side) or "").strip().rstrip("px") in ("0", "1") for side in ("width", "height")):
        return None
    if "src" not in (kept or {}) and node.attr("src"):  # inlined data, perhaps in the place of a lazy picture
        lazy = next((address for name in _LAZY if (address := kept_address(node.attr(name) or ""))), "")
        kept = {"src": lazy, **(kept or {})} if lazy else kept
    if not alt and not (kept or {}).get("src"):
        return None
    if kept is not None and not alt:
        kept.pop("alt", None)
    return (), kept, alt


BOXES: Final = ("☐", "☑")
"""What text says in place of a box or button: without and with its tick."""


def _input(node: Element, kept: Attrs | None) -> Special | None:
    """Keep an <input> whose value or tick a reader sees."""
    kind = (node.attr("type") or "").strip().lower()
    if kind not in rules.VISIBLE_INPUTS:
        return None
    kept = dict(kept or {})
    if kind in ("checkbox", "radio"):
        return (), {"type": kind, **({"checked": ""} if "checked" in kept else {})}, BOXES["checked" in kept]
    shown = kept.get("value") or kept.get("placeholder") or ""
    if not shown or kind == "range":
        return None
    kept.pop("checked", None)
    if kind in ("", "text"):
        kept.pop("type", None)
    if kept.get("value"):
        kept.pop("placeholder", None)
    return (), kept, shown


def _select(node: Element, kept: Attrs | None) -> Special | None:
    """Keep the option that a closed <select> shows; with ``multiple`` or ``size`` it shows all options."""
    if node.attr("multiple") is not None or bounded_int(node.attr("size"), 1, most=2) > 1:
        return node.children, kept, ""
    first: Element | None = None
    for child in node.descendants:
        if isinstance(child, Element) and child.tag == "option":
            if child.attr("selected") is not None:
                return (child,), kept, ""
            first = first or child
    return (first,) if first is not None else (), kept, ""


def _option(node: Element, kept: Attrs | None) -> Special | None:
    """Keep an option's words without ``selected``, which :func:`_select` has used, and without options nested in it."""
    if _is_in_option(node):
        return None
    inner = tuple(
        child for child in node.children if not (isinstance(child, Element) and child.tag in ("option", "optgroup"))
    )
    return inner, None, ""


def _is_in_option(node: Element) -> bool:
    """Tell whether an option or group is inside an option; a <noscript> between does not count."""
    above = node.parent
    while isinstance(above, Element) and above.tag == "noscript":
        above = above.parent
    return isinstance(above, Element) and above.tag == "option"


def _optgroup(node: Element, kept: Attrs | None) -> Special | None:
    """Keep the label of an option group as words: a reader sees it."""
    if _is_in_option(node):
        return None
    return node.children, kept, (kept or {}).get("label", "")


def _media(node: Element, kept: Attrs | None) -> Special | None:
    """Keep a player's sources and title; no browser shows its fallback text."""
    inner = tuple(child for child in node.children if isinstance(child, Element) and child.tag in ("source", "track"))
    return (inner, kept, (kept or {}).get("title", "")) if kept or inner else None


def _gauge(node: Element, kept: Attrs | None) -> Special | None:
    """Keep what a <progress> or <meter> shows: its value, of the most that it can be."""
    value = (kept or {}).get("value", "")
    words = f"{value}/{(kept or {}).get('max') or 1}" if value and not node.text.strip() else ""
    return node.children, kept, words


def _dialog(node: Element, kept: Attrs | None) -> Special | None:
    """Drop a dialog that is not open."""
    return (node.children, kept, "") if node.attr("open") is not None else None


def _pre(node: Element, kept: Attrs | None) -> Special | None:
    """Keep of the class of code its language, as HTML writes it."""
    others = {name: value for name, value in (kept or {}).items() if name != "class"}
    language = language_of(node)
    if language and others.get("lang", "").lower() == language:
        del others["lang"]
    return node.children, {**others, **({"class": f"language-{language}"} if language else {})} or None, ""


SPECIAL: dict[str, Callable[[Element, Attrs | None], Special | None]] = {
    "head": _head, "title": _title, "img": _image, "input": _input, "select": _select, "option": _option,
    "optgroup": _optgroup, "video": _media, "audio": _media, "dialog": _dialog,
    "pre": _pre, "progress": _gauge, "meter": _gauge,
}  # fmt: skip


UNREAD: Final = frozenset({"canvas", "embed", "frame", "iframe", "svg"})
"""Dropped elements that may show a reader words."""

_FIELDS: Final = frozenset({"", "text", "url", "number", "date", "time", "month", "week", "datetime-local", "range"})
"""Types of fields that may show what a script writes; those for addresses and passwords are the reader's to fill."""

_OWN: Final = re.compile(
    r"\b[qs]\b|search|keyword|mail|author|comment|website|\burl\b|user|login|subscri|newsletter|captcha|honey|gform|"
    r"[fl]name|name\b|phone|zip|hidden",
    re.IGNORECASE,
)
"""Names of fields for a search, a comment, a message or an account."""

_AROUND: Final = "header,footer,nav,aside,dialog,[role=search]"
_DRAWN_WORDS: Final = 4  # of a drawing that is no icon


def unread_kind(node: Element) -> str:
    """Return what an element that is dropped shows a reader: a form field, a drawing, another page; '' for nothing."""
    if node.tag == "input":
        if (node.attr("type") or "").strip().lower() not in _FIELDS:
            return ""
        name = " ".join(node.attr(attr) or "" for attr in ("name", "id", "aria-label"))
        return "" if _OWN.search(name) or (not node.attr("value") and _is_to_fill(node)) else "form field"
    if node.tag == "svg" and node.select_one("text") is None:  # most drawings are icons
        return ""
    if any((node.attr(side) or "").strip().removesuffix("px") in ("0", "1") for side in ("width", "height")):
        return ""
    if node.tag == "svg":
        words = sum(len(text.text.split()) for text in node.select("text")[:_DRAWN_WORDS])
        return "labelled drawing" if words >= _DRAWN_WORDS else ""
    if node.tag == "canvas":
        return "canvas"
    address = (node.attr("src") or node.attr("srcdoc") or "").strip()
    return "embedded page" if address and scheme_of(address) not in ("about", "javascript") else ""


def _is_to_fill(field: Element) -> bool:
    """Tell whether an empty field is the reader's to fill: in a form that is sent, or in what surrounds the content."""
    form = field.closest("form")
    if form is not None and ("action" in form.attrs or "method" in form.attrs):
        return True
    return field.closest(_AROUND) is not None


KIND: Final = 7
"""The bits of a tag's kind: one of the numbers from DROP to RENAMED."""

DROP: Final = 0  # dropped with its content
BLOCK: Final = 1
INLINE: Final = 2
MORE: Final = 3  # has rules of its own, see _Walk._special
PASS: Final = 4  # only its content is kept
STRICT: Final = 5  # a heading, item, form or part of a ruby: becomes a <div>, or is left out, where it cannot be nested
RENAMED: Final = 6  # a formatting element that the parser was given under another name

LINE: Final = 8  # inline
KEEPS: Final = 16  # some of its attributes are kept
WRAPS: Final = 32  # it may be merged with its only child
PRE: Final = 64  # its white space is kept
UNNESTED: Final = 128  # its start tag ends an open element of its kind
HELD: Final = 256  # a wrapper that is kept only while it holds a heading

LEAVES: Final = frozenset({"br", "hr", "img", "source", "track"})
SHOWN: Final = frozenset({"img", "audio", "video", "input", "progress", "meter", "source", "track"})
OBSOLETE: Final = {"xmp": "pre", "listing": "pre", "plaintext": "pre"}
"""Obsolete elements that are renamed: valid HTML cannot hold them, and browsers show them as <pre>."""

RUBY_PARTS: Final = frozenset({"rb", "rp", "rt", "rtc"})
NOT_NESTED: Final = rules.HEADINGS | RUBY_PARTS | {"option", "optgroup"}
"""Elements whose start tag ends an open element of their kind."""

ENDING: Final = NOT_NESTED | {"hr"}
"""Elements whose start tag ends an open element of ``NOT_NESTED``: <hr> ends an option."""

ITEMS: Final = frozenset({"li", "dd", "dt"})

STRUCK_BLOCKS: Final = frozenset({"a", "p", "div", "td", "th", "blockquote", "figcaption"}) | ITEMS | rules.HEADINGS
"""Links and blocks whose words are marked as struck where their style strikes them through."""


def _table() -> dict[str, int]:
    """Return the kind and flags of each tag that a rule names."""
    table: dict[str, int] = {
        **dict.fromkeys(rules.INLINE, INLINE),
        **dict.fromkeys(rules.DROPPED, DROP),
        **dict.fromkeys(rules.DISSOLVED, PASS),
        **dict.fromkeys(SPECIAL.keys() | LEAVES | SHOWN | OBSOLETE.keys(), MORE),
        **dict.fromkeys(rules.PREFORMATTED | {"noscript"}, MORE),
        **dict.fromkeys(rules.HEADINGS | ITEMS | RUBY_PARTS | {"form"}, STRICT),
        **dict.fromkeys(FORMER, RENAMED),
    }
    bits = {
        LINE: rules.INLINE,
        KEEPS: frozenset(rules.KEPT_ATTRIBUTES),
        WRAPS: rules.WRAPPERS,
        PRE: rules.PREFORMATTED,
        UNNESTED: NOT_NESTED,
    }
    for bit, tags in bits.items():
        for tag in tags:
            table[tag] = table.get(tag, BLOCK) | bit
    return table


KINDS: Final[dict[str, int]] = _table()
"""Kind and flags of each tag; a tag that is not listed is a ``BLOCK``."""
