"""Notes beside the nodes of an index in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from ..file.fulltext import clean


class PostgresNotes:
    """Short texts by name; writing them changes no node, and nobody who builds has to begin again."""

    def _connected(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin so."""
        with self._connected() as connection:
            asked = 'SELECT name, text FROM notes WHERE starts_with(name, %s) ORDER BY name COLLATE "C"'
            return dict(connection.execute(asked, (clean(prefix),)).fetchall())

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes, all of them or none; an empty text takes one away."""
        with self._connected() as connection, connection.transaction():
            for name, text in sorted(notes.items()):  # in one order: two who write wait for each other
                if text:
                    connection.execute(
                        "INSERT INTO notes VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET text = excluded.text",
                        (clean(name), clean(text)),
                    )
                else:
                    connection.execute("DELETE FROM notes WHERE name = %s", (clean(name),))
