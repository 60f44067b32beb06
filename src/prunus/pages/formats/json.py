"""``json``: JSON and JSON Lines: lists of flat objects as tables, other objects and lists as nested lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...core.errors import BadPage
from ...core.types import Page
from ._common.write import bad, document, lines, note, table, text_of, value, words

_SHORT_LIST: Final = 12  # plain values that one cell shows with commas between them
_FULL: Final = 0.5  # a table is filled at least to this share; its objects tell of the same things


class Engine:
    """JSON as a reader would lay it out; numbers stay as they are written.

    :param max_chars: letters of a file; default 32 Mi.
    :param max_values: values that are shown; default 300,000. The page says where it was cut.
    :param max_depth: lists and objects inside each other that are laid out; default 40. Deeper ones stay JSON.
    """

    name = "json"
    media_types = (
        "application/json", "text/json", "application/ld+json", "application/geo+json", "application/vnd.api+json",
        "application/x-ndjson", "application/jsonl", "application/x-jsonlines",
    )  # fmt: skip
    suffixes = (".json", ".jsonl", ".ndjson", ".geojson", ".jsonld")

    def __init__(self, max_chars: int = 32 << 20, max_values: int = 300_000, max_depth: int = 40) -> None:
        self._max_chars, self._max_values, self._max_depth = max_chars, max_values, max_depth

    def to_html(self, page: Page) -> str:
        """Return the values as HTML.

        :raises BadPage: the content is empty, binary, no JSON, or over ``max_chars``; the message says where.
        """
        text = text_of(page, "JSON")
        if len(text) > self._max_chars:
            raise bad(page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the file")
        found, odd = _parsed(text, page)
        writer = _Writer(self._max_values, self._max_depth)
        body = writer.block(found, 0)
        notes = [note(f"Line {number:,} is no JSON and stands as written: {line}") for number, line in odd]
        return document([*notes, body])


def _parsed(text: str, page: Page) -> tuple[Any, list[tuple[int, str]]]:
    """Return the value, or the list of the values of all lines; and the lines that are none.

    :raises BadPage: it is no JSON.
    """
    try:
        return _loads(text), []
    except RecursionError as error:
        raise bad(page, "lists and objects are nested too deep to be read") from error
    except ValueError as error:
        failure = _failure(page, error)
    values, odd = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values.append(_loads(line))
        except (ValueError, RecursionError):
            odd.append((number, line[:200]))
            if len(odd) > 3 and len(odd) > len(values):
                raise failure from None
    if not values or len(odd) * 5 > len(values) or not all(isinstance(one, dict | list) for one in values):
        raise failure
    return values, odd


def _loads(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; what stands twice under one key stays, as a list."""
    made = dict(pairs)
    if len(made) < len(pairs):
        several: dict[str, list[Any]] = {}
        for key, inner in pairs:
            several.setdefault(key, []).append(inner)
        made = {key: found if len(found) > 1 else found[0] for key, found in several.items()}
    return made


def _failure(page: Page, error: ValueError) -> BadPage:
    if isinstance(error, json.JSONDecodeError):
        return bad(page, f"this is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})")
    return bad(page, f"this is not valid JSON ({error})")


class _Writer:
    """Lays values out, until as many are shown as may be."""

    def __init__(self, max_values: int, max_depth: int) -> None:
        self._left, self._max_depth = max_values, max_depth

    def block(self, found: Any, depth: int) -> str:
        """Return a value as a block; an empty list costs as much as a plain value."""
        self._left -= 1
        if isinstance(found, Mapping):
            return self._raw(found) if depth >= self._max_depth and found else self._map(found, depth)
        if isinstance(found, list):
            return self._raw(found) if depth >= self._max_depth and found else self._list(found, depth)
        return f"<p>{self._plain(found)}</p>"

    def _inner(self, found: Any, depth: int) -> str:
        """Return a value as what an entry holds."""
        if isinstance(found, Mapping | list):
            return self.block(found, depth)
        return self._plain(found)

    def _map(self, found: Mapping[str, Any], depth: int) -> str:
        parts = ["<dl>"]
        for number, (key, inner) in enumerate(found.items()):
            if self._left <= 0:
                parts.append(f"<dt>…</dt><dd>{note(_more(len(found) - number))}</dd>")
                break
            parts.append(f"<dt>{lines(key)}</dt><dd>{self._inner(inner, depth + 1)}</dd>")
        parts.append("</dl>")
        return "".join(parts) if found else ""

    def _list(self, found: list[Any], depth: int) -> str:
        columns = _columns(found)
        if columns:
            return self._table(found, columns)
        if _is_matrix(found):
            shown = [[self._cell(cell) for cell in row] for row in found if self._left > 0]
            return self._short(len(found) - len(shown)) + table(shown)
        parts = ["<ul>"]
        for number, inner in enumerate(found):
            if self._left <= 0:
                parts.append(f"<li>{note(_more(len(found) - number))}</li>")
                break
            parts.append(f"<li>{self._inner(inner, depth + 1)}</li>")
        parts.append("</ul>")
        return "".join(parts) if found else ""

    def _table(self, found: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
        shown = []
        for row in found:
            if self._left <= 0:
                break
            shown.append([self._cell(row[column]) if column in row else "" for column in columns])
        return self._short(len(found) - len(shown)) + table([[lines(one) for one in columns], *shown], 1)

    def _short(self, left: int) -> str:
        return note(_more(left)) if left else ""

    def _cell(self, found: Any) -> str:
        if isinstance(found, list):
            return ", ".join(self._plain(one) for one in found)
        return self._plain(found)

    def _plain(self, found: Any) -> str:
        """Return a plain value: null shows nothing."""
        self._left -= 1
        if found is None:
            return ""
        if isinstance(found, bool):
            return "true" if found else "false"
        text = str(found)
        if text.startswith(("http://", "https://")) and len(text) < 2000 and not any(map(str.isspace, text)):
            return f'<a href="{value(text)}">{words(text)}</a>'
        return lines(text)

    def _raw(self, found: Any) -> str:
        """Return what is nested too deep as JSON."""
        try:
            text = json.dumps(found, ensure_ascii=False)
        except RecursionError:
            return note("What is nested deeper is not shown.")
        self._left -= 1 + len(text) // 20
        return f"<pre><code>{words(text)}</code></pre>"


def _more(number: int) -> str:
    return f"{number:,} more are not shown: the limit of values is reached."


def _is_plain(found: Any) -> bool:
    """Tell whether a value fits a cell."""
    if isinstance(found, list):
        return len(found) <= _SHORT_LIST and not any(isinstance(one, list | Mapping) for one in found)
    return not isinstance(found, Mapping)


def _columns(found: list[Any]) -> list[str]:
    """Return the keys of a list of flat objects in their order, none where it is no table."""
    if len(found) < 2:
        return []
    columns: dict[str, None] = {}
    filled = 0
    for row in found:
        if not isinstance(row, Mapping) or not all(map(_is_plain, row.values())):
            return []
        columns.update(dict.fromkeys(row))
        filled += len(row)
        if len(columns) > 1000:
            return []
    return list(columns) if filled >= _FULL * len(columns) * len(found) else []


def _is_matrix(found: list[Any]) -> bool:
    """Tell whether a list holds rows of the same length, two or more."""
    if len(found) < 2 or not isinstance(found[0], list) or not 2 <= len(found[0]) <= 1000:
        return False
    width = len(found[0])
    return all(
        isinstance(row, list) and len(row) == width and not any(isinstance(one, list | Mapping) for one in row)
        for row in found
    )
