"""``xml``: feeds become articles. Other XML becomes headings, paragraphs, tables and lists, by its repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder

from ...core.errors import BadPage
from ...core.types import Page
from ._common.write import document, escape_attribute, escape_lines, escape_text, fragment, page_error, table, text_of
from ._common.xml import cut_bytes, walk_xml

_DECLARED: Final = re.compile(rb"<\?xml[^>]{0,200}encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
_TITLES: Final = frozenset({"title", "head", "heading", "bridgehead"})
_PARAGRAPHS: Final = frozenset({"p", "para", "paragraph", "simpara"})
_BLOCKS: Final = frozenset({"item", "row", "listitem", "list", "table", "br", "lb", "entry", "cell"})
_FEEDS: Final = frozenset({"rss", "feed", "rdf"})
_FULL: Final = 0.5  # share of non-empty cells from which repeated elements form a table
_ADDRESS: Final = re.compile(r"https?://[^\s\"<>]+", re.I)


class Engine:
    """XML documents and feeds. Entities, document types and addresses are never followed.

    :param max_chars: limit on the characters of a file; default 32 Mi.
    :param max_nodes: limit on elements and attributes together; default 250,000.
    """

    name = "xml"
    media_types = ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml")
    suffixes = (".xml", ".rss", ".atom", ".rdf", ".opml")

    def __init__(self, max_chars: int = 32 << 20, max_nodes: int = 250_000) -> None:
        self._max_chars, self._max_nodes = max_chars, max_nodes

    def to_html(self, page: Page) -> str:
        """Return the document as HTML.

        :raises BadPage: the content is empty, binary, not well-formed, an SVG picture, or exceeds a limit.
        """
        if isinstance(page.content, bytes) and not page.charset:
            declared = _DECLARED.match(page.content.lstrip()[:300])
            if declared:
                page = Page(page.content, page.url, charset=declared[1].decode())
        text = text_of(page, "XML").lstrip()
        if len(text) > self._max_chars:
            raise page_error(
                page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the file"
            )
        root = _parsed(page, text, self._max_nodes)
        if root.tag == "svg":
            raise page_error(page, "this is an SVG picture, which holds no text to read; give the page that shows it")
        if root.tag.lower() in _FEEDS:
            return _feed(root)
        return document([_block(root, 1)], _text(_first(root, "title")), root.get("lang", ""))


class _Builder:
    """Listener that builds a tree of names without prefix, and counts elements and attributes."""

    def __init__(self, page: Page, max_nodes: int) -> None:
        self._page, self._left, self._max = page, max_nodes, max_nodes
        self._tree = TreeBuilder()
        self.end, self.data, self.close = self._tree.end, self._tree.data, self._tree.close

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        self._left -= 1 + len(attrs)
        if self._left < 0:
            raise page_error(
                self._page, f"XML with more than {self._max:,} elements and attributes is not read; split the file"
            )
        self._tree.start(name, dict(attrs))


def _parsed(page: Page, text: str, max_nodes: int) -> Element:
    """Return the root element of a whole document.

    :raises BadPage: the text is not XML, exceeds a limit, or declares entities.
    """
    builder = _Builder(page, max_nodes)
    data = cut_bytes(text.encode("utf-8", "replace"), 1 << 16)

    def fault(reason: str) -> BadPage:
        return page_error(page, f"this document {reason}")

    walk_xml(data, builder, fault, "utf-8", doctype=True)  # to_html has applied the declared encoding
    return builder.close()


# --- content of an element ---------------------------------------------------------------------------


def _first(element: Element, *names: str) -> Element | None:
    """Return the first child with one of the names; the order of the names decides."""
    return next((child for name in names for child in element if child.tag == name), None)


def _text(element: Element | None) -> str:
    """Return all text in an element on one line; '' for None."""
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def _mixed(element: Element) -> Iterator[Element | str]:
    """Yield the child elements and texts of an element in order."""
    if element.text:
        yield element.text
    for child in element:
        yield child
        if child.tail:
            yield child.tail


def _has_words(element: Element) -> bool:
    """Tell whether an element directly contains text."""
    return any(isinstance(child, str) and not child.isspace() for child in _mixed(element))


# --- feeds -----------------------------------------------------------------------------------------


def _feed(root: Element) -> str:
    """Return a feed as articles."""
    channel = _first(root, "channel")
    channel = root if channel is None else channel
    places = [channel] if channel is root else [channel, root]  # RDF puts its items beside the channel
    items = [child for place in places for child in place if child.tag in ("item", "entry")]
    title, description = _text(_first(channel, "title")), _text(_first(channel, "description", "subtitle"))
    parts = [
        f"<h1>{escape_text(title)}</h1>" if title else "",
        f"<p>{escape_text(description)}</p>" if description else "",
    ]
    parts.extend(map(_article, items))
    return document(parts, title, root.get("lang", ""))


def _article(item: Element) -> str:
    title, date = _first(item, "title"), _text(_first(item, "pubDate", "published", "updated", "date"))
    head = escape_text(_title_text(title)) if title is not None else ""
    address = _address(item)
    if address:
        head = f'<a href="{escape_attribute(address)}">{head or escape_text(address)}</a>'
    author = _first(item, "creator", "author")
    name = _first(author, "name") if author is not None else None
    body = _first(item, "encoded", "content", "description", "summary")
    inside = ""
    if body is not None:
        inside = fragment(_xhtml(body) if len(body) else "".join(body.itertext()))
    byline = " · ".join(escape_text(text) for text in (date, _text(author if name is None else name)) if text)
    return f"<article><h2>{head}</h2>{f'<p>{byline}</p>' if byline else ''}{inside}</article>"


def _title_text(title: Element) -> str:
    """Return the text of a title without the HTML tags that some feeds put into it."""
    text = _text(title)
    return re.sub(r"<[^>]{0,200}>", "", text) if title.get("type") == "html" else text


def _address(item: Element) -> str:
    """Return the URL of an article, or ''."""
    links = [child for child in item if child.tag == "link"]
    links.sort(key=lambda link: link.get("rel", "alternate") != "alternate")
    for child in [*links, *[child for child in item if child.tag in ("guid", "id")]]:
        match = _ADDRESS.fullmatch((child.get("href") or _text(child)).strip())
        if match and child.get("isPermaLink") != "false":
            return match[0]
    return ""


def _xhtml(element: Element) -> str:
    """Return the XHTML content of an element as HTML."""
    parts = []
    for child in _mixed(element):
        if isinstance(child, str):
            parts.append(escape_text(child))
            continue
        name = child.tag if child.tag.isalnum() else "span"
        attrs = "".join(f' {key}="{escape_attribute(text)}"' for key, text in child.attrib.items() if key.isalpha())
        inside = _xhtml(child)
        parts.append(f"<{name}{attrs}>" if name in ("br", "hr", "img") else f"<{name}{attrs}>{inside}</{name}>")
    return "".join(parts)


# --- any other XML -----------------------------------------------------------------------------------


def _block(element: Element, level: int) -> str:
    """Return the content of an element as blocks in document order.

    :param level: heading level for titles.
    """
    if _has_words(element):
        return f"<p>{_inline(element)}</p>{_attributes_html(element)}"
    parts = [_attributes_html(element)]
    pairs: list[str] = []

    def close() -> None:
        if pairs:
            parts.append(f"<dl>{''.join(pairs)}</dl>")
            pairs.clear()

    for name, group in groupby(element, key=lambda child: child.tag):
        run = list(group)
        if name in _TITLES and len(run) == 1 and not run[0].attrib:
            close()
            parts.append(f"<h{min(level, 6)}>{_inline(run[0])}</h{min(level, 6)}>" if _text(run[0]) else "")
            continue
        if name in _PARAGRAPHS:
            close()
            parts.extend(f"<p>{_inline(child)}</p>" for child in run)
            continue
        columns = _columns(run)
        if columns:
            close()
            fields = map(_fields, run)
            rows = [[escape_lines(row.get(column, "")) for column in columns] for row in fields]
            parts.append(table([[escape_text(column) for column in columns], *rows], 1, escape_text(name)))
        elif len(run) > 1 and all(not len(child) and not child.attrib for child in run):
            entries = "".join(f"<li>{escape_text(_text(child))}</li>" for child in run)
            pairs.append(f"<dt>{escape_text(name)}</dt><dd><ul>{entries}</ul></dd>")
        elif any(_first(child, *_TITLES) is not None for child in run):
            close()
            parts.extend(f"<section>{_block(child, level + 1)}</section>" for child in run)
        else:
            for child in run:
                is_plain = not len(child) and not child.attrib
                inside = escape_text(_text(child)) if is_plain else _block(child, level + 1)
                pairs.append(f"<dt>{escape_text(name)}</dt><dd>{inside}</dd>")
    close()
    return "".join(parts)


def _attributes_html(element: Element) -> str:
    """Return the non-empty attributes of an element as a definition list, without its language."""
    attributes = [(key, text) for key, text in element.attrib.items() if text.strip() and key != "lang"]
    pairs = "".join(f"<dt>{escape_text(key)}</dt><dd>{_linked(text)}</dd>" for key, text in attributes)
    return f"<dl>{pairs}</dl>" if pairs else ""


def _linked(text: str) -> str:
    if _ADDRESS.fullmatch(text):
        return f'<a href="{escape_attribute(text)}">{escape_text(text)}</a>'
    return escape_lines(text)


def _inline(element: Element) -> str:
    """Return the content of an element as inline HTML. Links stay links."""
    parts = []
    no_text = not _has_words(element)  # children without text between them are separate, with or without white space
    for child in _mixed(element):
        if isinstance(child, str):
            parts.append(escape_text(child))
            continue
        target = child.get("href") or child.get("url") or ""
        inside = _inline(child)
        block = no_text or child.tag in _PARAGRAPHS or child.tag in _BLOCKS
        if _ADDRESS.fullmatch(target):
            inside = f'<a href="{escape_attribute(target)}">{inside or escape_text(target)}</a>'
        parts.append(f" {inside} " if block else inside)
    return "".join(parts)


def _columns(run: Sequence[Element]) -> list[str]:
    """Return the field names of repeated elements; an empty list where the elements form no table."""
    if len(run) < 2:
        return []
    columns: dict[str, None] = {}
    filled = 0
    for element in run:
        names = [*element.attrib, *[child.tag for child in element]]
        flat = not _has_words(element) and all(not len(child) and not child.attrib for child in element)
        if not flat or not names or len(set(names)) < len(names):
            return []
        columns.update(dict.fromkeys(names))
        filled += len(names)
        if len(columns) > 500:
            return []
    return list(columns) if len(columns) > 1 and filled >= _FULL * len(columns) * len(run) else []


def _fields(element: Element) -> Mapping[str, str]:
    return {**{child.tag: _text(child) for child in element}, **element.attrib}
