"""The visible text of HTML and Markdown; shares no code with Prunus, so that Prunus' own bugs cannot hide."""

from __future__ import annotations

import html as html_module
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from prunus_evals.records import OutputFormat

INVISIBLE = frozenset("head script style template noscript iframe svg title".split())
# every other tag separates words: a block, a row, a cell, a line break
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr"
    " output q rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split()
)
CELLS = frozenset(("td", "th"))
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# some tools number their tags (<td3>); they count as the tags without numbers
NUMBERED = re.compile(r"^(?!h[1-6]$)([a-z]+)\d+$")
SPACES = re.compile(r"[^\S\n]+")
LINES = re.compile(r" ?\n[\s]*")


def is_hidden(node: Any) -> bool:
    """Return whether an element's own attributes hide it; style sheets are not evaluated."""
    attributes = node.attributes
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    style = attributes.get("style")
    return bool(style) and HIDDEN_STYLE.search(style) is not None


def separator(tag: str) -> str:
    """Return the separator that a tag puts between words: nothing, a space or a line end."""
    match = NUMBERED.match(tag)
    tag = match.group(1) if match else tag
    if tag in INLINE:
        return ""
    return " " if tag in CELLS else "\n"


def _is_shown(tag: str) -> bool:
    return tag not in INVISIBLE and not tag.startswith(("!", "_", "-"))


def pieces(root: Any) -> Iterator[tuple[str, str, bool]]:
    """Walk the nodes below a node in order; yield ("text" | "open" | "close", text or tag, hidden)."""
    node = root
    hider: int | None = None
    while True:
        tag = node.tag
        descend = False
        if tag == "-text":
            yield "text", node.text_content or "", hider is not None
        elif _is_shown(tag):
            if hider is None and is_hidden(node):
                hider = node.mem_id
            yield "open", tag, hider is not None
            descend = node.child is not None
        if descend:
            node = node.child
            continue
        while True:
            if _is_shown(node.tag):
                yield "close", node.tag, hider is not None
                hider = None if hider == node.mem_id else hider
            if node.mem_id == root.mem_id:
                return
            if node.next is not None:
                node = node.next
                break
            node = node.parent


def tidy(text: str) -> str:
    """Collapse white space, but keep line ends."""
    return LINES.sub("\n", SPACES.sub(" ", text)).strip()


def node_text(root: Any, keep_hidden: bool = False) -> str:
    """Return the visible text of a parsed node, with a line for each block or row."""
    parts: list[str] = []
    for kind, value, hidden in pieces(root):
        if keep_hidden or not hidden:
            parts.append(value.replace("\n", " ") if kind == "text" else separator(value))
    return tidy("".join(parts))


def html_text(html: str, keep_hidden: bool = False) -> str:
    """Return the visible text of an HTML document or fragment."""
    root = LexborHTMLParser(html).root
    return "" if root is None else node_text(root, keep_hidden)


CUT_TAG = re.compile(r"<[a-zA-Z/!][^<>]*\Z")
"""A tag that a cut at the budget left incomplete; parsers differ on whether it is text."""


class _Reader(HTMLParser):
    """Reads tags and text in source order, without building a tree."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._invisible: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # the end tag of head may be missing, and every element inside it is invisible anyway
        if tag in INVISIBLE and tag != "head":
            self._invisible.append(tag)
        elif not self._invisible:
            self.parts.append(separator(tag))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._invisible:
            del self._invisible[self._invisible.index(tag) :]
        elif not self._invisible:
            self.parts.append(separator(tag))

    def handle_data(self, data: str) -> None:
        if not self._invisible:
            self.parts.append(data.replace("\n", " "))


def read_text(html: str) -> str:
    """Return the text of output HTML as a model reads it, in source order.

    This does not build a tree, because an HTML5 parser moves misplaced content out of a table (the reference's
    cleaning leaves ``<tr><a>…</a>``) and drops the white space around it; a model reads the string as it is.
    """
    reader = _Reader()
    reader.feed(CUT_TAG.sub("", html))
    reader.close()
    return tidy("".join(reader.parts))


FENCE = re.compile(r"^\s*(```|~~~)")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
IMAGE = re.compile(r"!\[[^\]]*\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\)")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\)")
HEAD = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+)+")
EMPHASIS = re.compile(r"\*+|`+|~~|(?<!\w)_+|_+(?!\w)")


def _markdown_line(line: str) -> str:
    if RULE.match(line):
        return ""
    line = ESCAPE.sub(lambda match: f"&#{ord(match.group(1))};", line)
    line = LINK.sub(r"\1", IMAGE.sub(" ", line))
    line = EMPHASIS.sub("", HEAD.sub("", line))
    return line.replace("|", " ")


def markdown_text(markdown: str) -> str:
    """Return the visible text of Markdown, with the HTML inside it."""
    lines: list[str] = []
    fenced = False
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        elif fenced:
            lines.append(html_module.escape(line, quote=False))
        else:
            lines.append(_markdown_line(line))
    return read_text("\n".join(lines))


def visible_text(text: str, format: OutputFormat) -> str:
    """Return the visible text of an output in any of the three formats."""
    if format == "html":
        return read_text(text)
    if format == "markdown":
        return markdown_text(text)
    return text
