"""``notebook``: Jupyter notebooks: the words, the code, and what the code showed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ...core.types import Page
from ._common.write import bad, document, fragment, note, preformatted, text_of, words
from .markdown import Converter

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_RETURN: Final = re.compile(r"[^\n]*\r(?!\n)")
_TITLE: Final = re.compile(r"^#\s+(.+?)\s*#*$", re.M)


class Engine:
    """Notebooks of version 3 and 4. Scripts, widgets and pictures in outputs are left out, but for words about them.

    :param max_output: letters of one output that are shown; default 20,000. What is cut says so.
    :param max_chars: letters of a notebook; default 64 Mi, pictures in it included.
    :param seconds: time for the Markdown in it, all together; default 30.
    """

    name = "notebook"
    media_types = ("application/x-ipynb+json",)
    suffixes = (".ipynb",)

    def __init__(self, max_output: int = 20_000, max_chars: int = 64 << 20, seconds: float = 30.0) -> None:
        self._max_output, self._max_chars, self._seconds = max_output, max_chars, seconds

    def to_html(self, page: Page) -> str:
        """Return the cells in order.

        :raises BadPage: the content is empty, binary, or no notebook.
        """
        text = text_of(page, "a notebook")
        if len(text) > self._max_chars:
            raise bad(page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; clear its outputs")
        try:
            book = json.loads(text)
        except RecursionError as error:
            raise bad(page, "this is no notebook: it is nested too deep") from error
        except ValueError as error:
            raise bad(page, f"this is no notebook: not valid JSON ({error})") from error
        cells = _cells(book)
        if cells is None:
            raise bad(page, "this is no notebook: it has no cells")
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
            return [f"<{name}>{words(source)}</{name}>"]
        if kind == "raw":
            return [preformatted(source)]
        outputs = cell.get("outputs")
        shown = [self._output(_mapping(one), reader) for one in outputs] if isinstance(outputs, list) else []
        return [preformatted(source, language), *shown]

    def _output(self, output: Mapping[str, Any], reader: Converter) -> str:
        """Return what an output shows: a table before text, an error in one line."""
        kind = output.get("output_type")
        if kind in ("error", "pyerr"):
            said = f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
            return preformatted(_ANSI.sub("", said)[:500].strip(": "))
        if kind == "stream":
            return self._text_output(_text(output.get("text")))
        data = _mapping(output.get("data")) or output  # version 3 has no "data"
        markup = _text(data.get("text/html", data.get("html")))
        if markup and not _is_program(markup):
            if len(markup) <= 50 * self._max_output:
                return fragment(markup)
            return note("An output was too large to be shown.")
        formula = _text(data.get("text/latex", data.get("latex"))).strip().strip("$").strip()
        if formula:
            return f'<p><code class="math">{words(formula[: self._max_output])}</code></p>'
        if data.get("text/markdown"):
            return reader.to_markup(_text(data["text/markdown"])[: self._max_output])
        plain = _text(data.get("text/plain", data.get("text")))
        if any(key.startswith("image/") or key in ("png", "jpeg", "svg") for key in data):
            alt = plain.strip() if plain and not plain.startswith("<") else ""
            return f"<figure><figcaption>{words(alt)}</figcaption></figure>" if alt else ""
        return self._text_output(plain)

    def _text_output(self, text: str) -> str:
        """Return a text as a terminal would show it at its end."""
        text = _RETURN.sub("", _ANSI.sub("", text))
        cut = len(text) - self._max_output
        if cut <= 0:
            return preformatted(text)
        return preformatted(text[: self._max_output]) + note(f"{cut:,} more characters of this output are not shown.")


def _cells(book: Any) -> list[Any] | None:
    """Return the cells of a notebook, of all worksheets in version 3."""
    found = _mapping(book)
    if isinstance(found.get("cells"), list):
        return list(found["cells"])
    sheets = found.get("worksheets")
    if not isinstance(sheets, list):
        return None
    inside = [_mapping(sheet).get("cells") for sheet in sheets]
    return [cell for cells in inside if isinstance(cells, list) for cell in cells]


def _title(cells: list[Any]) -> str:
    """Return the first heading."""
    for cell in cells[:20]:
        if _mapping(cell).get("cell_type") == "markdown":
            found = _TITLE.search(_text(_mapping(cell).get("source")))
            if found:
                return found[1].strip("*_` ")
    return ""


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: Any) -> str:
    """Return a text, which notebooks write as one string or as a list of lines."""
    if isinstance(found, list):
        return "".join(one for one in found if isinstance(one, str))
    return found if isinstance(found, str) else ""


def _with_attachments(source: str) -> str:
    """Pictures inside the notebook have no address; their alt text stays."""
    return source.replace("](attachment:", "](#attachment-")


def _is_program(markup: str) -> bool:
    """Tell whether an output only draws by script: its text twin says more."""
    head = markup[:20_000].lower()
    return "<script" in head and "<table" not in head and "<p" not in head
