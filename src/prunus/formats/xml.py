"""``xml``: feeds as articles; any other XML as headings, paragraphs, tables and lists, by how its elements repeat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..types import Page
from ._elements import Element, parse
from ._write import bad, document, fragment, lines, table, text_of, value, words

_DECLARED: Final = re.compile(rb"<\?xml[^>]{0,200}encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
_TITLES: Final = frozenset({"title", "head", "heading", "bridgehead"})
_PARAGRAPHS: Final = frozenset({"p", "para", "paragraph", "simpara"})
_BLOCKS: Final = frozenset({"item", "row", "listitem", "list", "table", "br", "lb", "entry", "cell"})
_FEEDS: Final = frozenset({"rss", "feed", "rdf"})
_FULL: Final = 0.5
_ADDRESS: Final = re.compile(r"https?://[^\s\"<>]+", re.I)


class Engine:
    """XML without its looks. Entities, document types and addresses in it are never followed.

    :param max_chars: letters of a file; default 32 Mi.
    :param max_nodes: elements and attributes; default 250,000.
    """

    name = "xml"
    media_types = ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml")
    suffixes = (".xml", ".rss", ".atom", ".rdf", ".opml")

    def __init__(self, max_chars: int = 32 << 20, max_nodes: int = 250_000) -> None:
        self._max_chars, self._max_nodes = max_chars, max_nodes

    def to_html(self, page: Page) -> str:
        """Return the document as HTML.

        :raises BadPage: the content is empty, binary, not well-formed, a drawing, or over a limit.
        """
        if isinstance(page.content, bytes) and not page.charset:
            declared = _DECLARED.match(page.content.lstrip()[:300])
            if declared:
                page = Page(page.content, page.url, charset=declared[1].decode())
        text = text_of(page, "XML").lstrip()
        if len(text) > self._max_chars:
            raise bad(page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the file")
        root = parse(page, text, self._max_nodes)
        if root.name == "svg":
            raise bad(page, "this is an SVG picture, which holds no text to read; give the page that shows it")
        if root.name.lower() in _FEEDS:
            return _feed(root)
        title = root.find("title")
        return document([_block(root, 1)], title.text if title else "", root.attrs.get("lang", ""))


# --- feeds -----------------------------------------------------------------------------------------


def _feed(root: Element) -> str:
    """Return a feed as articles."""
    channel = root.find("channel") or root
    places = [channel] if channel is root else [channel, root]  # RDF puts its items beside the channel
    items = [one for place in places for one in place.elements if one.name in ("item", "entry")]
    title = channel.find("title")
    about = channel.find("description", "subtitle")
    parts = [f"<h1>{words(title.text)}</h1>" if title else ""]
    if about and about.text:
        parts.append(f"<p>{words(about.text)}</p>")
    parts.extend(_article(one) for one in items)
    return document(parts, title.text if title else "", root.attrs.get("lang", ""))


def _article(item: Element) -> str:
    title, date = item.find("title"), item.find("pubDate", "published", "updated", "date")
    head = words(_plain(title)) if title else ""
    address = _address(item)
    if address:
        head = f'<a href="{value(address)}">{head or words(address)}</a>'
    author = item.find("creator", "author")
    told = [words(date.text) if date else "", words((author.find("name") or author).text) if author else ""]
    body = item.find("encoded", "content", "description", "summary")
    inside = ""
    if body is not None:
        inside = fragment(_written(body) if body.elements else "".join(body.texts()))
    said = " · ".join(one for one in told if one)
    return f"<article><h2>{head}</h2>{f'<p>{said}</p>' if said else ''}{inside}</article>"


def _plain(title: Element) -> str:
    """Return a title without the markup that some feeds put into it."""
    text = title.text
    return re.sub(r"<[^>]{0,200}>", "", text) if title.attrs.get("type") == "html" else text


def _address(item: Element) -> str:
    """Return where an article stands."""
    links = [one for one in item.elements if one.name == "link"]
    links.sort(key=lambda one: one.attrs.get("rel", "alternate") != "alternate")
    for one in [*links, *[one for one in item.elements if one.name in ("guid", "id")]]:
        found = _ADDRESS.fullmatch((one.attrs.get("href") or one.text).strip())
        if found and one.attrs.get("isPermaLink") != "false":
            return found[0]
    return ""


def _written(element: Element) -> str:
    """Return XHTML below an element as HTML."""
    parts = []
    for child in element.children:
        if isinstance(child, str):
            parts.append(words(child))
            continue
        name = child.name if child.name.isalnum() else "span"
        attrs = "".join(f' {key}="{value(text)}"' for key, text in child.attrs.items() if key.isalpha())
        inside = _written(child)
        parts.append(f"<{name}{attrs}>" if name in ("br", "hr", "img") else f"<{name}{attrs}>{inside}</{name}>")
    return "".join(parts)


# --- any other XML -----------------------------------------------------------------------------------


def _block(element: Element, level: int) -> str:
    """Return what an element holds, as blocks in their order."""
    if element.has_words:
        return f"<p>{_inline(element)}</p>{_told(element)}"
    parts = [_told(element)]
    pairs: list[str] = []

    def close() -> None:
        if pairs:
            parts.append(f"<dl>{''.join(pairs)}</dl>")
            pairs.clear()

    for name, group in groupby(element.elements, key=lambda one: one.name):
        run = list(group)
        if name in _TITLES and len(run) == 1 and not run[0].attrs:
            close()
            parts.append(f"<h{min(level, 6)}>{_inline(run[0])}</h{min(level, 6)}>" if run[0].text else "")
            continue
        if name in _PARAGRAPHS:
            close()
            parts.extend(f"<p>{_inline(one)}</p>" for one in run)
            continue
        columns = _columns(run)
        if columns:
            close()
            rows = [[lines(_field(one, column)) for column in columns] for one in run]
            parts.append(table([[words(column) for column in columns], *rows], 1, words(name)))
        elif len(run) > 1 and all(not one.elements and not one.attrs for one in run):
            entries = "".join(f"<li>{words(one.text)}</li>" for one in run)
            pairs.append(f"<dt>{words(name)}</dt><dd><ul>{entries}</ul></dd>")
        elif any(one.find(*_TITLES) for one in run):
            close()
            parts.extend(f"<section>{_block(one, level + 1)}</section>" for one in run)
        else:
            for one in run:
                inside = words(one.text) if not one.elements and not one.attrs else _block(one, level + 1)
                pairs.append(f"<dt>{words(name)}</dt><dd>{inside}</dd>")
    close()
    return "".join(parts)


def _told(element: Element) -> str:
    """Return the attributes of an element that tell something."""
    told = [(key, text) for key, text in element.attrs.items() if text.strip() and key != "lang"]
    pairs = "".join(f"<dt>{words(key)}</dt><dd>{_linked(text)}</dd>" for key, text in told)
    return f"<dl>{pairs}</dl>" if pairs else ""


def _linked(text: str) -> str:
    return f'<a href="{value(text)}">{words(text)}</a>' if _ADDRESS.fullmatch(text) else lines(text)


def _inline(element: Element) -> str:
    """Return words with what stands among them, in one line; links stay links."""
    parts = []
    apart = not element.has_words  # white space between elements alone means nothing, and none means nothing too
    for child in element.children:
        if isinstance(child, str):
            parts.append(words(child))
            continue
        target = child.attrs.get("href") or child.attrs.get("url") or ""
        inside = _inline(child)
        block = apart or child.name in _PARAGRAPHS or child.name in _BLOCKS
        linked = f'<a href="{value(target)}">{inside or words(target)}</a>' if _ADDRESS.fullmatch(target) else inside
        parts.append(f" {linked} " if block else linked)
    return "".join(parts)


def _columns(run: Sequence[Element]) -> list[str]:
    """Return the names of the fields of elements that repeat, none where they are no table."""
    if len(run) < 2:
        return []
    columns: dict[str, None] = {}
    filled = 0
    for one in run:
        below = one.elements
        names = [*one.attrs, *[child.name for child in below]]
        flat = not one.has_words and all(not child.elements and not child.attrs for child in below)
        if not flat or not names or len(set(names)) < len(names):
            return []
        columns.update(dict.fromkeys(names))
        filled += len(names)
        if len(columns) > 500:
            return []
    return list(columns) if len(columns) > 1 and filled >= _FULL * len(columns) * len(run) else []


def _field(element: Element, name: str) -> str:
    if name in element.attrs:
        return element.attrs[name]
    found = element.find(name)
    return found.text if found else ""
