"""How the formats of data read and write: their text decoded, their words escaped, their tables as HTML."""

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
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with its spans; ``markup`` is HTML, escaped already."""

    markup: str
    colspan: int = 1
    rowspan: int = 1
    header: bool = False


def text_of(page: Page, what: str) -> str:
    """Return a page's content as text.

    :param what: how the error calls what was expected, as ``a CSV file``.
    :raises BadPage: it is empty or binary.
    """
    content = page.content
    if isinstance(content, bytes):
        if is_binary(content, page.charset):
            raise bad(page, f"this is binary data, not {what}")
        content = decode(content, page.charset)
    if not content or content.isspace():
        raise bad(page, "the page is empty")
    return content.removeprefix("\ufeff")


def bad(page: Page, why: str) -> BadPage:
    """Make the error of a page that cannot be read."""
    return BadPage(f"{page.url or 'page'}: {' '.join(why.split())}", subject=page.url)


def words(text: str) -> str:
    """Escape text for the inside of an element."""
    return html.escape(_CONTROL.sub("", text), quote=False)


def value(text: str) -> str:
    """Escape text for an attribute in double quotes."""
    return html.escape(_CONTROL.sub("", text))


def lines(text: str) -> str:
    """Escape text and keep its line ends."""
    return words(text.strip("\n")).replace("\n", "<br>")


def preformatted(text: str, language: str = "") -> str:
    """Return code as it is laid out."""
    named = f' class="language-{value(language)}"' if language else ""
    return f"<pre><code{named}>{words(text)}</code></pre>" if text.strip() else ""


def fragment(markup: str) -> str:
    """Return the HTML of somebody else as a part of a page: cleaned alone, so that what it leaves open closes here."""
    if not markup.strip():
        return ""
    tree = clean_tree(markup)
    return f"<div>{render_tree(tree, 'html', _WHOLE)}</div>" if tree.has_words else ""


def note(text: str) -> str:
    """Return a line of the reader's own, which says what was left out."""
    return f"<p><em>{words(text)}</em></p>"


def document(body: Iterable[str], title: str = "", lang: str = "", **meta: str) -> str:
    """Return a whole page.

    :param lang: as the document names its language; left out where it is no such name.
    :param meta: ``author``, ``published`` and ``modified``, where the document names them.
    """
    named = f' lang="{lang}"' if _LANGUAGE.fullmatch(lang) else ""
    head = f"<title>{words(' '.join(title.split()))}</title>" if title else ""
    for name, said in meta.items():
        if said:
            key = 'name="author"' if name == "author" else f'property="article:{name}_time"'
            head += f'<meta {key} content="{value(said)}">'
    return f"<!DOCTYPE html><html{named}><head>{head}</head><body>{''.join(body)}</body></html>"


def alone(markup: str) -> str:
    """Return markup without the element of its paragraph, where it is one paragraph and nothing else."""
    one = markup.startswith("<p>") and markup.count("<p>") == 1 and markup.endswith("</p>")
    return markup[3:-4] if one else markup


def opened(markup: str) -> str:
    """Return markup with the words of its first paragraph bare, where it has one alone: the first line of an item."""
    one = markup.startswith("<p>") and markup.count("<p>") == 1
    return markup[3:].replace("</p>", "", 1) if one else markup


def table(rows: Iterable[Sequence[str | Cell]], headers: int = 0, caption: str = "") -> str:
    """Return a table.

    :param rows: cells as HTML, escaped already; ragged rows stay ragged.
    :param headers: how many of the first rows are header rows.
    :param caption: HTML, escaped already.
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
