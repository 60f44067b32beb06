"""Decode the text of pages, escape text for HTML, and write tables and whole HTML documents."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ....core.errors import BadPage
from ....core.types import Page
from ...clean.parse import decode, is_binary
from ...clean.walk import clean_tree
from ...write.style import Style
from ...write.whole import render_tree

_WHOLE: Final = Style(full=True)
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_TOKEN: Final = re.compile(r"<(/?)([A-Za-z][\w:-]*+)[^<>]*+>|<!--[^<>]*+-->|([^<>]++)")
_UNSEEN: Final = frozenset({"head", "script", "style", "svg", "template", "title"})
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell. ``markup`` is HTML: its text is already escaped."""

    markup: str
    colspan: int = 1
    rowspan: int = 1
    header: bool = False


def text_of(page: Page, expected: str) -> str:
    """Return a page's content as text, without a byte order mark.

    :param expected: the expected kind of page, for the error: ``a CSV file``.
    :raises BadPage: the content is empty or binary.
    """
    content = page.content
    if isinstance(content, bytes):
        if is_binary(content, page.charset):
            raise page_error(page, f"this is binary data, not {expected}")
        content = decode(content, page.charset)
    if not content or content.isspace():
        raise page_error(page, "the page is empty")
    return content.removeprefix("\ufeff")


def page_error(page: Page, reason: str) -> BadPage:
    """Return an error that names the page and says why it cannot be read."""
    return BadPage(f"{page.url or 'page'}: {' '.join(reason.split())}", subject=page.url)


def escape_text(text: str) -> str:
    """Escape text for the inside of an element, and drop control characters."""
    return html.escape(_CONTROL.sub("", text), quote=False)


def escape_attribute(text: str) -> str:
    """Escape text for an attribute in double quotes, and drop control characters."""
    return html.escape(_CONTROL.sub("", text))


def escape_lines(text: str) -> str:
    """Escape text, and write its line ends as ``<br>``."""
    return escape_text(text.strip("\n")).replace("\n", "<br>")


def preformatted(text: str, language: str = "") -> str:
    """Return code as ``<pre><code>``, with its white space; '' for blank text."""
    css_class = f' class="language-{escape_attribute(language)}"' if language else ""
    return f"<pre><code{css_class}>{escape_text(text)}</code></pre>" if text.strip() else ""


def fragment(markup: str) -> str:
    """Return embedded HTML as a ``<div>``; '' where it shows no words.

    The HTML is cleaned separately, so that an element it leaves open cannot swallow the rest of the page.
    """
    if not markup.strip():
        return ""
    tree = clean_tree(markup)
    return f"<div>{render_tree(tree, 'html', _WHOLE)}</div>" if tree.has_words else ""


def note(text: str) -> str:
    """Return a note that tells readers what was left out of the page."""
    return f"<p><em>{escape_text(text)}</em></p>"


def document(body: Iterable[str], title: str = "", lang: str = "", **meta: str) -> str:
    """Return a whole HTML page.

    :param lang: language code of the document; ignored where it is not a valid code.
    :param meta: ``author``, ``published`` and ``modified`` of the document; empty values are left out.
    """
    language = f' lang="{lang}"' if _LANGUAGE.fullmatch(lang) else ""
    head = f"<title>{escape_text(' '.join(title.split()))}</title>" if title else ""
    for name, content in meta.items():
        if content:
            key = 'name="author"' if name == "author" else f'property="article:{name}_time"'
            head += f'<meta {key} content="{escape_attribute(content)}">'
    return f"<!DOCTYPE html><html{language}><head>{head}</head><body>{''.join(body)}</body></html>"


def without_paragraph(markup: str) -> str:
    """Return markup without its ``<p>`` element, where the markup is a single paragraph."""
    is_single = markup.startswith("<p>") and markup.count("<p>") == 1 and markup.endswith("</p>")
    return markup[3:-4] if is_single else markup


def without_first_paragraph(markup: str) -> str:
    """Return markup without the ``<p>`` of its only paragraph, where the markup begins with that paragraph.

    List items use this: their first line then stands directly in the ``<li>``.
    """
    is_single = markup.startswith("<p>") and markup.count("<p>") == 1
    return markup[3:].replace("</p>", "", 1) if is_single else markup


def with_mark(markup: str, mark: str) -> str:
    """Return markup whose first words stand in ``<data value="MARK">``: there a part of the document begins.

    See :func:`prunus.pages.place.place_in_document`.
    """
    unseen = ""
    for token in _TOKEN.finditer(markup):
        closes, name, words = token.groups()
        if name and (name.lower() in _UNSEEN or unseen):
            unseen = "" if closes and name == unseen else unseen or name
        elif words and words.strip() and not unseen:
            start = token.start() + len(words) - len(words.lstrip())
            end = token.start() + len(words.rstrip())
            return f'{markup[:start]}<data value="{mark}">{markup[start:end]}</data>{markup[end:]}'
    return markup


def table(rows: Iterable[Sequence[str | Cell]], headers: int = 0, caption: str = "") -> str:
    """Return a table.

    :param rows: cells as escaped HTML; rows of different lengths stay as they are.
    :param headers: number of header rows at the top.
    :param caption: escaped HTML.
    """
    parts = ["<table>", f"<caption>{caption}</caption>" if caption else ""]
    if headers:
        parts.append("<thead>")
    number = 0
    for number, row in enumerate(rows):
        if headers and number == headers:
            parts.append("</thead><tbody>")
        parts.append(_row(row, number < headers))
    if headers:
        parts.append("</thead>" if number < headers else "</tbody>")
    parts.append("</table>")
    return "".join(parts)


def _row(row: Sequence[str | Cell], header: bool) -> str:
    tag = "th" if header else "td"
    if all(type(cell) is str for cell in row):
        return f"<tr><{tag}>" + f"</{tag}><{tag}>".join(row) + f"</{tag}></tr>" if row else "<tr></tr>"  # type: ignore[arg-type]
    parts = ["<tr>"]
    for cell in row:
        if isinstance(cell, str):
            parts.append(f"<{tag}>{cell}</{tag}>")
            continue
        name = "th" if header or cell.header else "td"
        across = f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
        down = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
        parts.append(f"<{name}{across}{down}>{cell.markup}</{name}>")
    parts.append("</tr>")
    return "".join(parts)
