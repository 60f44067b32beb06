"""``xml``: feeds as articles; any other XML as headings, paragraphs, tables and lists, by how its elements repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder

from ...core.errors import BadPage
from ...core.types import Page
from ._common.write import bad, document, fragment, lines, table, text_of, value, words
from ._common.xml import pieces, walk_xml

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
        root = _parsed(page, text, self._max_nodes)
        if root.tag == "svg":
            raise bad(page, "this is an SVG picture, which holds no text to read; give the page that shows it")
        if root.tag.lower() in _FEEDS:
            return _feed(root)
        return document([_block(root, 1)], _text(_first(root, "title")), root.get("lang", ""))


class _Builder:
    """Makes the tree, whose names have no prefix, and counts what it holds."""

    def __init__(self, page: Page, max_nodes: int) -> None:
        self._page, self._left, self._max = page, max_nodes, max_nodes
        self._tree = TreeBuilder()
        self.end, self.data, self.close = self._tree.end, self._tree.data, self._tree.close

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        self._left -= 1 + len(attrs)
        if self._left < 0:
            raise bad(self._page, f"XML of more than {self._max:,} elements is not read; split the file")
        self._tree.start(name, dict(attrs))


def _parsed(page: Page, text: str, max_nodes: int) -> Element:
    """Return the root element of a whole document.

    :raises BadPage: it is no XML, over a limit, or declares entities.
    """
    builder = _Builder(page, max_nodes)
    data = pieces(text.encode("utf-8", "replace"), 1 << 16)

    def fault(reason: str) -> BadPage:
        return bad(page, f"this document {reason}")

    walk_xml(data, builder, fault, "utf-8", doctype=True)  # what it declares was heeded when it was decoded
    return builder.close()


# --- what an element holds ---------------------------------------------------------------------------


def _first(element: Element, *names: str) -> Element | None:
    """Return the first element right below that has one of the names, tried in their order."""
    return next((child for name in names for child in element if child.tag == name), None)


def _text(element: Element | None) -> str:
    """Return all words below, in one line."""
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def _mixed(element: Element) -> Iterator[Element | str]:
    """Yield the elements and texts right below, in order."""
    if element.text:
        yield element.text
    for child in element:
        yield child
        if child.tail:
            yield child.tail


def _has_words(element: Element) -> bool:
    """Tell whether words stand right below."""
    return any(isinstance(child, str) and not child.isspace() for child in _mixed(element))


# --- feeds -----------------------------------------------------------------------------------------


def _feed(root: Element) -> str:
    """Return a feed as articles."""
    channel = _first(root, "channel")
    channel = root if channel is None else channel
    places = [channel] if channel is root else [channel, root]  # RDF puts its items beside the channel
    items = [one for place in places for one in place if one.tag in ("item", "entry")]
    title, about = _text(_first(channel, "title")), _text(_first(channel, "description", "subtitle"))
    parts = [f"<h1>{words(title)}</h1>" if title else "", f"<p>{words(about)}</p>" if about else ""]
    parts.extend(_article(one) for one in items)
    return document(parts, title, root.get("lang", ""))


def _article(item: Element) -> str:
    title, date = _first(item, "title"), _text(_first(item, "pubDate", "published", "updated", "date"))
    head = words(_plain(title)) if title is not None else ""
    address = _address(item)
    if address:
        head = f'<a href="{value(address)}">{head or words(address)}</a>'
    author = _first(item, "creator", "author")
    name = _first(author, "name") if author is not None else None
    body = _first(item, "encoded", "content", "description", "summary")
    inside = ""
    if body is not None:
        inside = fragment(_written(body) if len(body) else "".join(body.itertext()))
    said = " · ".join(words(one) for one in (date, _text(author if name is None else name)) if one)
    return f"<article><h2>{head}</h2>{f'<p>{said}</p>' if said else ''}{inside}</article>"


def _plain(title: Element) -> str:
    """Return a title without the markup that some feeds put into it."""
    text = _text(title)
    return re.sub(r"<[^>]{0,200}>", "", text) if title.get("type") == "html" else text


def _address(item: Element) -> str:
    """Return where an article stands."""
    links = [one for one in item if one.tag == "link"]
    links.sort(key=lambda one: one.get("rel", "alternate") != "alternate")
    for one in [*links, *[one for one in item if one.tag in ("guid", "id")]]:
        found = _ADDRESS.fullmatch((one.get("href") or _text(one)).strip())
        if found and one.get("isPermaLink") != "false":
            return found[0]
    return ""


def _written(element: Element) -> str:
    """Return XHTML below an element as HTML."""
    parts = []
    for child in _mixed(element):
        if isinstance(child, str):
            parts.append(words(child))
            continue
        name = child.tag if child.tag.isalnum() else "span"
        attrs = "".join(f' {key}="{value(text)}"' for key, text in child.attrib.items() if key.isalpha())
        inside = _written(child)
        parts.append(f"<{name}{attrs}>" if name in ("br", "hr", "img") else f"<{name}{attrs}>{inside}</{name}>")
    return "".join(parts)


# --- any other XML -----------------------------------------------------------------------------------


def _block(element: Element, level: int) -> str:
    """Return what an element holds, as blocks in their order."""
    if _has_words(element):
        return f"<p>{_inline(element)}</p>{_told(element)}"
    parts = [_told(element)]
    pairs: list[str] = []

    def close() -> None:
        if pairs:
            parts.append(f"<dl>{''.join(pairs)}</dl>")
            pairs.clear()

    for name, group in groupby(element, key=lambda one: one.tag):
        run = list(group)
        if name in _TITLES and len(run) == 1 and not run[0].attrib:
            close()
            parts.append(f"<h{min(level, 6)}>{_inline(run[0])}</h{min(level, 6)}>" if _text(run[0]) else "")
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
        elif len(run) > 1 and all(not len(one) and not one.attrib for one in run):
            entries = "".join(f"<li>{words(_text(one))}</li>" for one in run)
            pairs.append(f"<dt>{words(name)}</dt><dd><ul>{entries}</ul></dd>")
        elif any(_first(one, *_TITLES) is not None for one in run):
            close()
            parts.extend(f"<section>{_block(one, level + 1)}</section>" for one in run)
        else:
            for one in run:
                inside = words(_text(one)) if not len(one) and not one.attrib else _block(one, level + 1)
                pairs.append(f"<dt>{words(name)}</dt><dd>{inside}</dd>")
    close()
    return "".join(parts)


def _told(element: Element) -> str:
    """Return the attributes of an element that tell something."""
    told = [(key, text) for key, text in element.attrib.items() if text.strip() and key != "lang"]
    pairs = "".join(f"<dt>{words(key)}</dt><dd>{_linked(text)}</dd>" for key, text in told)
    return f"<dl>{pairs}</dl>" if pairs else ""


def _linked(text: str) -> str:
    return f'<a href="{value(text)}">{words(text)}</a>' if _ADDRESS.fullmatch(text) else lines(text)


def _inline(element: Element) -> str:
    """Return words with what stands among them, in one line; links stay links."""
    parts = []
    apart = not _has_words(element)  # white space between elements alone means nothing, and none means nothing too
    for child in _mixed(element):
        if isinstance(child, str):
            parts.append(words(child))
            continue
        target = child.get("href") or child.get("url") or ""
        inside = _inline(child)
        block = apart or child.tag in _PARAGRAPHS or child.tag in _BLOCKS
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
        names = [*one.attrib, *[child.tag for child in one]]
        flat = not _has_words(one) and all(not len(child) and not child.attrib for child in one)
        if not flat or not names or len(set(names)) < len(names):
            return []
        columns.update(dict.fromkeys(names))
        filled += len(names)
        if len(columns) > 500:
            return []
    return list(columns) if len(columns) > 1 and filled >= _FULL * len(columns) * len(run) else []


def _field(element: Element, name: str) -> str:
    return element.get(name) or _text(_first(element, name))
