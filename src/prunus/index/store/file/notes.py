"""Notes beside the nodes of an index: how it was built, and what was found out about its summaries."""

from __future__ import annotations

from collections.abc import Mapping

from ...database import Database, writing
from .rows import clean


class FileNotes:
    """What stores in a SQLite file share: short texts by name."""

    _database: Database

    def notes(self, prefix: str = "") -> dict[str, str]:
        """Return the notes whose names begin so."""
        with self._database.opened() as file:
            asked = "SELECT name, text FROM notes WHERE substr(name, 1, ?) = ? ORDER BY name"
            return dict(file.execute(asked, (len(prefix), prefix)))

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Keep notes, all of them or none; an empty text takes one away."""
        with self._database.opened() as file, writing(file):
            for name, text in notes.items():
                file.execute("DELETE FROM notes WHERE name = ?", (name,))
                if text:
                    file.execute("INSERT INTO notes VALUES (?, ?)", (name, clean(text)))
