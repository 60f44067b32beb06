"""``json``: JSON and JSON Lines. Lists of flat objects become tables, other objects and lists nested lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...core.types import Page
from ._common.allowance import VALUE_MARKS, Allowance
from ._common.json_text import json_error, loads
from ._common.write import document, escape_attribute, escape_lines, escape_text, note, page_error, table, text_of

_SHORT_LIST: Final = 12  # plain values; a longer list does not fit a table cell
_FULL: Final = 0.5  # share of non-empty cells from which objects with different keys form one table


class Engine:
    """JSON as tables and lists. Numbers stay as written.

    :param max_chars: characters of a file; default 32 Mi.
    :param max_values: values that are shown; default 300,000. A note marks the cut.
    :param max_depth: nesting depth of lists and objects; default 40. Deeper values stay JSON.
    """

    name = "json"
    media_types = (
        "application/json", "text/json", "application/geo+json", "application/vnd.api+json",
        "application/x-ndjson", "application/jsonl", "application/x-jsonlines",
    )  # fmt: skip
    suffixes = (".json", ".jsonl", ".ndjson", ".geojson")

    def __init__(self, max_chars: int = 32 << 20, max_values: int = 300_000, max_depth: int = 40) -> None:
        self._max_chars, self._max_values, self._max_depth = max_chars, max_values, max_depth

    def to_html(self, page: Page) -> str:
        """Return the values as HTML.

        :raises BadPage: the content is empty, binary, longer than ``max_chars``, or not JSON; the message says where.
        """
        text = text_of(page, "JSON")
        if len(text) > self._max_chars:
            raise page_error(
                page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the file"
            )
        Allowance(page.url).spend("values", sum(map(text.count, VALUE_MARKS)))
        content, bad_lines = _parsed(text, page)
        writer = _Writer(self._max_values, self._max_depth)
        body = writer.block(content, 0)
        notes = [note(f"Line {number:,} is no JSON and stands as written: {line}") for number, line in bad_lines]
        return document([*notes, body])


def _parsed(text: str, page: Page) -> tuple[Any, list[tuple[int, str]]]:
    """Return the value, or for JSON Lines the list of values; and the (number, text) of lines that are not JSON.

    :raises BadPage: the text is neither JSON nor JSON Lines.
    """
    try:
        return loads(text), []
    except RecursionError as error:
        raise page_error(page, "lists and objects are nested too deep; save the inner values as files") from error
    except ValueError as error:
        failure = json_error(page, error)
    values, bad_lines = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values.append(loads(line))
        except (ValueError, RecursionError):
            bad_lines.append((number, line[:200]))
            if len(bad_lines) > 3 and len(bad_lines) > len(values):
                raise failure from None
    are_records = all(isinstance(line_value, dict | list) for line_value in values)
    if not values or len(bad_lines) * 5 > len(values) or not are_records:
        raise failure
    return values, bad_lines


class _Writer:
    """Writes values as HTML, within a limit on their number."""

    def __init__(self, max_values: int, max_depth: int) -> None:
        self._left, self._max_depth = max_values, max_depth

    def block(self, node: Any, depth: int) -> str:
        """Return a value as a block. A list or object counts as one value too, so that empty ones are not free."""
        self._left -= 1
        if isinstance(node, Mapping):
            return self._json_text(node) if depth >= self._max_depth and node else self._object_html(node, depth)
        if isinstance(node, list):
            return self._json_text(node) if depth >= self._max_depth and node else self._list_html(node, depth)
        return f"<p>{self._plain_html(node)}</p>"

    def _entry(self, node: Any, depth: int) -> str:
        """Return a value as the content of a list entry."""
        if isinstance(node, Mapping | list):
            return self.block(node, depth)
        return self._plain_html(node)

    def _object_html(self, node: Mapping[str, Any], depth: int) -> str:
        parts = ["<dl>"]
        for number, (key, member) in enumerate(node.items()):
            if self._left <= 0:
                parts.append(f"<dt>…</dt><dd>{note(_left_out_text(len(node) - number))}</dd>")
                break
            parts.append(f"<dt>{escape_lines(key)}</dt><dd>{self._entry(member, depth + 1)}</dd>")
        parts.append("</dl>")
        return "".join(parts) if node else ""

    def _list_html(self, nodes: list[Any], depth: int) -> str:
        columns = _columns(nodes)
        if columns:
            return self._table(nodes, columns)
        if _is_matrix(nodes):
            shown = [[self._cell(cell) for cell in row] for row in nodes if self._left > 0]
            return self._left_out_note(len(nodes) - len(shown)) + table(shown)
        parts = ["<ul>"]
        for number, item in enumerate(nodes):
            if self._left <= 0:
                parts.append(f"<li>{note(_left_out_text(len(nodes) - number))}</li>")
                break
            parts.append(f"<li>{self._entry(item, depth + 1)}</li>")
        parts.append("</ul>")
        return "".join(parts) if nodes else ""

    def _table(self, objects: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
        rows = []
        for row in objects:
            if self._left <= 0:
                break
            rows.append([self._cell(row[column]) if column in row else "" for column in columns])
        header = [escape_lines(column) for column in columns]
        return self._left_out_note(len(objects) - len(rows)) + table([header, *rows], 1)

    def _left_out_note(self, left: int) -> str:
        return note(_left_out_text(left)) if left else ""

    def _cell(self, node: Any) -> str:
        if isinstance(node, list):
            return ", ".join(map(self._plain_html, node))
        return self._plain_html(node)

    def _plain_html(self, node: Any) -> str:
        """Return a plain value as HTML; '' for null."""
        self._left -= 1
        if node is None:
            return ""
        if isinstance(node, bool):
            return "true" if node else "false"
        text = str(node)
        if text.startswith(("http://", "https://")) and len(text) < 2000 and not any(map(str.isspace, text)):
            return f'<a href="{escape_attribute(text)}">{escape_text(text)}</a>'
        return escape_lines(text)

    def _json_text(self, node: Any) -> str:
        """Return a value that is nested too deep as JSON text."""
        try:
            text = json.dumps(node, ensure_ascii=False)
        except RecursionError:
            return note("What is nested deeper is not shown.")
        self._left -= 1 + len(text) // 20
        return f"<pre><code>{escape_text(text)}</code></pre>"


def _left_out_text(number: int) -> str:
    return f"{number:,} more are not shown: the limit of values is reached."


def _is_plain(node: Any) -> bool:
    """Tell whether a value fits a table cell: it is plain, or a short list of plain values."""
    if isinstance(node, list):
        return len(node) <= _SHORT_LIST and not any(isinstance(item, list | Mapping) for item in node)
    return not isinstance(node, Mapping)


def _columns(nodes: list[Any]) -> list[str]:
    """Return the keys of a list of flat objects in their order; an empty list where the objects form no table."""
    if len(nodes) < 2:
        return []
    columns: dict[str, None] = {}
    filled = 0
    for row in nodes:
        if not isinstance(row, Mapping) or not all(map(_is_plain, row.values())):
            return []
        columns.update(dict.fromkeys(row))
        filled += len(row)
        if len(columns) > 1000:
            return []
    return list(columns) if filled >= _FULL * len(columns) * len(nodes) else []


def _is_matrix(nodes: list[Any]) -> bool:
    """Tell whether a list holds two or more rows of the same length, with plain cells."""
    if len(nodes) < 2 or not isinstance(nodes[0], list) or not 2 <= len(nodes[0]) <= 1000:
        return False
    width = len(nodes[0])
    return all(
        isinstance(row, list) and len(row) == width and not any(isinstance(cell, list | Mapping) for cell in row)
        for row in nodes
    )
