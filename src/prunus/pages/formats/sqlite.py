"""``sqlite``: a database file as tables, read-only. Its views, triggers, functions and extensions are never run."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final

from ...core.types import Page
from ._common.allowance import Allowance
from ._common.write import document, escape_lines, escape_text, note, page_error, table

_MAGIC: Final = b"SQLite format 3\0"
_VIRTUAL: Final = re.compile(r"create(?:\s|/\*(?:(?!\*/).)*+\*/|--[^\n]*\n)*+virtual\b", re.I | re.S)
_COMPUTED: Final = 2  # the mark of a column whose values are computed when they are read
_STEPS: Final = 1000  # virtual machine instructions between two checks of the time
_MAX_TABLES: Final = 500
_MAX_COLUMNS: Final = 500
_MAX_SQL: Final = 1 << 20  # bytes of one SQL statement
_MAX_LETTERS: Final = 64 << 20  # letters and bytes of all cells that are read, shown or not
_LEAST_LENGTH: Final = 1 << 20  # bytes; no value of a database is longer than its file, but its schema may be


class Engine:
    """Tables with their columns and types. Views and computed columns are not shown: they may compute anything.

    :param max_rows: rows of a table that are shown; default 1,000. A note gives the total.
    :param max_cells: cells of the database that are shown; default 200,000.
    :param max_text: characters of one cell that are shown; default 2,000.
    :param seconds: time limit for reading; default 10. The rest is left out, with a note.
    """

    name = "sqlite"
    media_types = ("application/vnd.sqlite3", "application/x-sqlite3")
    suffixes = (".sqlite", ".sqlite3", ".db", ".db3", ".gpkg")

    def __init__(
        self, max_rows: int = 1000, max_cells: int = 200_000, max_text: int = 2000, seconds: float = 10.0
    ) -> None:
        self._max_rows, self._max_cells, self._max_text, self._seconds = max_rows, max_cells, max_text, seconds

    def to_html(self, page: Page) -> str:
        """Return the tables as sections.

        :raises BadPage: the page is no database, is damaged or encrypted, or holds no table.
        """
        content = page.content
        if not content:
            raise page_error(page, "the page is empty")
        if not isinstance(content, bytes) or not content.startswith(_MAGIC):
            raise page_error(page, "this is no SQLite database, or it is encrypted; save it without its password")
        if len(content) < 100:
            raise page_error(page, "this database is damaged: its header is cut off; copy it again")
        # bytes 18-19 ask for a write-ahead log, which is not part of the page; 1 means that there is none
        plain = content[:18] + b"\1\1" + content[20:]
        allowance = Allowance(page.url, self._seconds, cells=self._max_cells, letters=_MAX_LETTERS)
        try:
            with closing(sqlite3.connect(":memory:")) as connection:
                connection.deserialize(plain)
                _guard(connection, allowance, max(len(plain), _LEAST_LENGTH))
                return self._document(connection, page, allowance)
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise page_error(page, f"this database is damaged, or cannot be read ({error})") from error

    def _document(self, connection: sqlite3.Connection, page: Page, allowance: Allowance) -> str:
        sections: list[str] = []
        tables = list(islice(_tables(connection), _MAX_TABLES))
        for name, is_virtual in tables:
            body = ""
            if is_virtual:
                body = note("This table is virtual: it may compute anything, and is not read.")
            elif allowance.is_late() or not allowance.left["cells"]:
                body = note("This table is not shown: the limit of time or of cells is reached.")
            else:
                body = self._table(connection, name, allowance)
            sections.append(f"<section><h2>{escape_text(name)}</h2>{body}</section>")
        if not sections:
            raise page_error(page, "this database holds no table")
        if len(tables) >= _MAX_TABLES:
            sections.append(note(f"Only the first {_MAX_TABLES} tables are shown."))
        return document(sections)

    def _table(self, connection: sqlite3.Connection, name: str, allowance: Allowance) -> str:
        """Return a table as HTML. A note replaces rows that cannot be read, and columns that are computed."""
        quoted = _quoted(name)
        rows: list[list[str]] = []
        notes: list[str] = []
        try:
            declared = connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
            stored = [column for column in declared if column[6] != _COMPUTED]
            computed = ", ".join(str(column[1]) for column in declared if column[6] == _COMPUTED)
            if computed:
                notes.append(note(f"Computed columns are not shown: {computed[: self._max_text]}."))
            if len(stored) > _MAX_COLUMNS:
                notes.append(note(f"Only the first {_MAX_COLUMNS} columns are shown."))
            columns = [str(column[1]) for column in stored[:_MAX_COLUMNS]]
            names = ", ".join(map(_quoted, columns))
            cursor = connection.execute(f"SELECT {names} FROM {quoted} LIMIT ?", (self._max_rows + 1,))  # noqa: S608 - quoted
            for row in cursor:
                letters = sum(len(cell) for cell in row if isinstance(cell, str | bytes))
                fits = len(rows) < self._max_rows and allowance.take("letters", letters)
                if not fits or not allowance.take("cells", len(columns)):
                    notes.append(note(self._left_out(connection, quoted, len(rows))))
                    break
                rows.append([self._cell(cell) for cell in row])
        except sqlite3.Error as error:
            notes.append(note(f"Not all of this table could be read ({error})."))
            if not rows:
                return notes[-1]
        caption = escape_text(_schema(stored[:_MAX_COLUMNS]))
        return "".join(notes) + table([[escape_text(column) for column in columns], *rows], 1, caption)

    def _left_out(self, connection: sqlite3.Connection, quoted: str, shown: int) -> str:
        try:
            total = connection.execute(f"SELECT count(*) FROM {quoted}").fetchone()[0]  # noqa: S608 - quoted
        except sqlite3.Error:  # counting took too long
            return f"Only rows 1 to {shown:,} are shown."
        return f"Rows 1 to {shown:,} of {total:,} are shown."

    def _cell(self, stored: Any) -> str:
        if stored is None:
            return ""
        if isinstance(stored, bytes):
            return f"({len(stored):,} bytes)"
        text = str(stored)
        cut = len(text) - self._max_text
        return escape_lines(text) if cut <= 0 else f"{escape_lines(text[: self._max_text])} … ({cut:,} more characters)"


def _guard(connection: sqlite3.Connection, allowance: Allowance, max_length: int) -> None:
    """Allow a database only to be read, without functions, and only while there is time.

    :param max_length: bytes of one value.
    """
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_length)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # no further database file can be opened
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_SQL)
    connection.set_progress_handler(lambda: int(allowance.is_late()), _STEPS)

    def allow(action: int, first: str | None, second: str | None, *_: object) -> int:
        reads = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
        counts = action == sqlite3.SQLITE_FUNCTION and second == "count"
        describes = action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo"
        return sqlite3.SQLITE_OK if reads or counts or describes else sqlite3.SQLITE_DENY

    connection.set_authorizer(allow)


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, bool]]:
    """Yield the tables in the order of their creation, and whether each is virtual."""
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
        if isinstance(name, str) and not name.lower().startswith("sqlite_"):
            yield name, bool(_VIRTUAL.match(str(sql or "").lstrip()))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _schema(columns: Sequence[Sequence[Any]]) -> str:
    """Return the columns of a table with their types, as one line."""
    return ", ".join(f"{row[1]} {row[2]}".strip() + (" (key)" if row[5] else "") for row in columns)
