"""``notebook``: Jupyter notebooks: text, code, and outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ...core.types import Page
from ._common.allowance import VALUE_MARKS, Allowance
from ._common.write import document, escape_text, fragment, note, page_error, preformatted, text_of
from .markdown import Converter

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_RETURN: Final = re.compile(r"^[^\n]*\r(?!\n)", re.M)
_TITLE: Final = re.compile(r"^#[ \t]++(\S.*)$", re.M)


class Engine:
    """Notebooks of version 3 and 4. Of scripts, widgets and pictures in outputs only the text alternative is kept.

    :param max_output: characters of one output that are shown; default 20,000. A note marks a cut.
    :param max_chars: characters of a notebook, embedded pictures included; default 64 Mi.
    :param seconds: time limit for all Markdown of the notebook; default 30.
    """

    name = "notebook"
    media_types = ("application/x-ipynb+json",)
    suffixes = (".ipynb",)

    def __init__(self, max_output: int = 20_000, max_chars: int = 64 << 20, seconds: float = 30.0) -> None:
        self._max_output, self._max_chars, self._seconds = max_output, max_chars, seconds

    def to_html(self, page: Page) -> str:
        """Return the cells in order.

        :raises BadPage: the content is empty or binary, is no notebook, or is longer than ``max_chars``.
        """
        text = text_of(page, "a notebook")
        if len(text) > self._max_chars:
            raise page_error(
                page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; clear its outputs"
            )
        Allowance(page.url).spend("values", sum(map(text.count, VALUE_MARKS)))
        try:
            book = json.loads(text)
        except RecursionError as error:
            raise page_error(page, "this is no notebook: it is nested too deep") from error
        except ValueError as error:
            raise page_error(page, f"this is no notebook: not valid JSON ({error})") from error
        cells = _cells(book)
        if cells is None:
            raise page_error(page, "this is no notebook: it has no cells")
        metadata = _mapping(book.get("metadata"))
        language = _text(_mapping(metadata.get("language_info")).get("name")) or "python"
        reader = Converter(self._seconds)
        parts = [part for cell in cells for part in self._cell(_mapping(cell), language, reader)]
        return document(parts, _text(metadata.get("title")) or _title(cells))

    def _cell(self, cell: Mapping[str, Any], language: str, reader: Converter) -> list[str]:
        source = _text(cell.get("source", cell.get("input")))
        kind = cell.get("cell_type")
        if kind == "markdown":
            return [reader.to_markup(_with_attachments(source))] if source.strip() else []
        if kind == "heading":
            level = cell.get("level")
            name = f"h{level if isinstance(level, int) and 1 <= level <= 6 else 1}"
            return [f"<{name}>{escape_text(source)}</{name}>"]
        if kind == "raw":
            return [preformatted(source)]
        outputs = cell.get("outputs")
        shown = [self._output(_mapping(output), reader) for output in outputs] if isinstance(outputs, list) else []
        return [preformatted(source, language), *shown]

    def _output(self, output: Mapping[str, Any], reader: Converter) -> str:
        """Return an output as HTML: HTML before formulas, Markdown and text; an error as one line."""
        kind = output.get("output_type")
        if kind in ("error", "pyerr"):
            message = f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
            return preformatted(_ANSI.sub("", message)[:500].strip(": "))
        if kind == "stream":
            return self._text_output(_text(output.get("text")))
        data = _mapping(output.get("data")) or output  # version 3 has no "data"
        markup = _text(data.get("text/html", data.get("html")))
        if markup and not _is_program(markup):
            if len(markup) <= 50 * self._max_output:  # HTML is mostly tags, so its limit is higher
                return fragment(markup)
            return note("An output was too large to be shown.")
        formula = _text(data.get("text/latex", data.get("latex"))).strip().strip("$").strip()
        if formula:
            return f'<p><code class="math">{escape_text(formula[: self._max_output])}</code></p>'
        if data.get("text/markdown"):
            return reader.to_markup(_text(data["text/markdown"])[: self._max_output])
        plain = _text(data.get("text/plain", data.get("text")))
        if any(key.startswith("image/") or key in ("png", "jpeg", "svg") for key in data):
            alt = plain.strip() if plain and not plain.startswith("<") else ""
            return f"<figure><figcaption>{escape_text(alt)}</figcaption></figure>" if alt else ""
        return self._text_output(plain)

    def _text_output(self, text: str) -> str:
        """Return a text as a terminal shows it in the end: without escape codes and overwritten lines."""
        text = _RETURN.sub("", _ANSI.sub("", text))
        cut = len(text) - self._max_output
        if cut <= 0:
            return preformatted(text)
        return preformatted(text[: self._max_output]) + note(f"{cut:,} more characters of this output are not shown.")


def _cells(book: Any) -> list[Any] | None:
    """Return the cells of a notebook (in version 3 of all worksheets), or None where it has none."""
    notebook = _mapping(book)
    if isinstance(notebook.get("cells"), list):
        return list(notebook["cells"])
    sheets = notebook.get("worksheets")
    if not isinstance(sheets, list):
        return None
    cell_lists = [_mapping(sheet).get("cells") for sheet in sheets]
    return [cell for cells in cell_lists if isinstance(cells, list) for cell in cells]


def _title(cells: list[Any]) -> str:
    """Return the first level-1 heading of the first 20 cells, or ''."""
    for cell in cells[:20]:
        if _mapping(cell).get("cell_type") == "markdown":
            for match in _TITLE.finditer(_text(_mapping(cell).get("source"))):
                title = match[1].rstrip().rstrip("#").strip("*_` ")
                if title:
                    return title
    return ""


def _mapping(node: Any) -> Mapping[str, Any]:
    return node if isinstance(node, dict) else {}


def _text(node: Any) -> str:
    """Return a text, which notebooks store as a string or as a list of lines; '' for any other value."""
    if isinstance(node, list):
        return "".join(line for line in node if isinstance(line, str))
    return node if isinstance(node, str) else ""


def _with_attachments(source: str) -> str:
    """Turn links to attached pictures into fragments: they have no address, but their alt text stays."""
    return source.replace("](attachment:", "](#attachment-")


def _is_program(markup: str) -> bool:
    """Tell whether an HTML output only draws with a script. Its plain-text version then says more."""
    head = markup[:20_000].lower()
    return "<script" in head and "<table" not in head and "<p" not in head
