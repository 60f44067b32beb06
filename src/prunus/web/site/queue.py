"""The addresses of a site on disk: which wait, which were read, and what is known of each; one SQLite file.

Every change is on disk before the next page is asked for, so that a killed run goes on where it was.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from ...core.errors import BadInput
from ...core.sqlite import ERRORS, check_files, write_ahead, writing

Fate = Literal[
    "waiting",
    "check",
    "read",
    "stored",
    "moved",
    "duplicate",
    "noindex",
    "outside",
    "older",
    "robots",
    "gone",
    "failed",
    "listed",
]
"""What is known of an address.

- ``waiting``: it was not asked for yet; ``check``: it is kept, and to be asked whether it has changed;
- ``read``: its page came; ``stored``: and whoever asked for the site keeps it;
- ``moved`` leads to another address of the site, ``outside`` to another site;
- ``older``: a later version of the same documentation is known, and only the latest is wanted;
- ``duplicate``: the page of another address has the same text; ``noindex``: the page asks not to be kept;
- ``robots``: robots.txt forbids it; ``gone``: 404 or 410; ``failed``: another failure, a wall included;
- ``listed``: it is too far away to be read.
"""


@dataclass(slots=True)
class SiteEntry:
    """One address of a site.

    :param key: what the addresses of one page have in common.
    :param depth: links between the start and the page.
    :param source: what named it first: ``start``, ``sitemap``, ``feed``, ``llms.txt`` or ``link``.
    :param words: text of the link, which tells what the page promises.
    :param lastmod: when it was changed last, by the sitemap.
    :param etag, modified: validators of the last response.
    :param read_at: when it was read or confirmed last, ISO 8601.
    :param snapshot, text: sha256 of its bytes and of its text.
    :param note: why it failed, or where it leads.
    :param failures: failures in a row.
    """

    key: str
    url: str
    depth: int = 0
    source: str = "link"
    words: str = ""
    fate: Fate = "waiting"
    lastmod: str = ""
    etag: str = ""
    modified: str = ""
    read_at: str = ""
    snapshot: str = ""
    text: str = ""
    note: str = ""
    failures: int = 0


_COLUMNS: Final = tuple(field.name for field in fields(SiteEntry))
_NUMBERS: Final = frozenset({"depth", "failures"})
_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS pages (number INTEGER PRIMARY KEY, {", ".join(f"{name} {'INTEGER' if name in _NUMBERS else 'TEXT'} NOT NULL" for name in _COLUMNS)}, UNIQUE (key));
CREATE INDEX IF NOT EXISTS pages_by_fate ON pages (fate, depth, number);
CREATE INDEX IF NOT EXISTS pages_by_text ON pages (text);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""  # noqa: E501
_LIST: Final = ", ".join(_COLUMNS)


class SiteQueue:
    """The addresses of one site; safe to use from several threads.

    :param path: the file; None keeps them in memory.
    :raises BadInput: the file cannot be used, or is that of another site.
    """

    def __init__(self, path: Path | None = None, about: str = "") -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                check_files(path)
            self._file = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None, timeout=10)
            if path is not None:
                write_ahead(self._file, 10.0)
            self._file.executescript(_SCHEMA)
            before = self.fact("about") or about
        except (OSError, *ERRORS) as error:
            raise BadInput(f"{path}: cannot be used ({error}); remove it", subject=str(path)) from error
        if before != about:
            raise BadInput(
                f"{path}: this run read another site, or the same by other rules: {before}; finish it with the same "
                "command, or remove the file",
                subject=str(path),
            )
        self.put_fact("about", about)
        self.size = self.count()

    def add(self, entry: SiteEntry) -> bool:
        """Add an address; return False where it is known."""
        marks = ", ".join("?" * len(_COLUMNS))
        statement = f"INSERT OR IGNORE INTO pages ({_LIST}) VALUES ({marks})"  # noqa: S608 - our own names
        added = self._run(statement, tuple(asdict(entry).values())).rowcount > 0
        self.size += added
        return added

    def put(self, entry: SiteEntry) -> None:
        """Write what is known of an address."""
        names = ", ".join(f"{name} = ?" for name in _COLUMNS)
        self._run(f"UPDATE pages SET {names} WHERE key = ?", (*asdict(entry).values(), entry.key))  # noqa: S608

    def get(self, key: str) -> SiteEntry | None:
        """Return what is known of an address."""
        return next(self._entries("WHERE key = ?", key), None)

    def revive(self, text: str) -> None:
        """Ask again for the pages that were left out because another one, now gone, had their text."""
        self._run("UPDATE pages SET fate = 'waiting' WHERE fate = 'duplicate' AND text = ?", (text,))

    def with_text(self, text: str) -> SiteEntry | None:
        """Return the address that is read or stored with a text."""
        return next(self._entries("WHERE text = ? AND fate IN ('read', 'stored', 'check') ORDER BY number", text), None)

    def waiting(self, most: int) -> list[SiteEntry]:
        """Return the addresses to ask for: those that are kept, then the nearest to the start."""
        kept = list(self._entries("WHERE fate = 'check' ORDER BY depth, number LIMIT ?", most))
        return kept + list(self._entries("WHERE fate = 'waiting' ORDER BY depth, number LIMIT ?", most - len(kept)))

    def entries(self, *fates: Fate) -> list[SiteEntry]:
        """Return the addresses with one of some fates, in the order in which they were found; by default all."""
        where = f"WHERE fate IN ({', '.join('?' * len(fates))})" if fates else ""
        return list(self._entries(f"{where} ORDER BY number", *fates))

    def count(self, *fates: Fate) -> int:
        """Return the number of addresses with one of some fates; by default of all."""
        where = f"WHERE fate IN ({', '.join('?' * len(fates))})" if fates else ""
        number: int = self._run(f"SELECT count(*) FROM pages {where}", fates).fetchone()[0]  # noqa: S608
        return number

    def fact(self, name: str) -> str:
        """Return a fact about the run, '' where it is not known."""
        row = self._run("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def facts(self, prefix: str) -> list[str]:
        """Return what follows a prefix in the names of facts."""
        rows = self._run(
            "SELECT substr(name, ?) FROM facts WHERE substr(name, 1, ?) = ?", (len(prefix) + 1, len(prefix), prefix)
        )
        return [str(name) for (name,) in rows.fetchall()]

    def put_fact(self, name: str, value: str) -> None:
        """Write a fact about the run."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def write_all(self, entries: Iterable[SiteEntry]) -> None:
        """Add many addresses at once."""
        with self._lock, writing(self._file):
            for entry in entries:
                self.add(entry)

    def close(self, remove: bool = False) -> None:
        """Close the file.

        :param remove: remove it, because the run is complete.
        """
        with self._lock:
            self._file.close()
        if remove and self.path is not None:
            for beside in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + beside).unlink(missing_ok=True)

    def _entries(self, where: str, *values: Any) -> Iterator[SiteEntry]:
        for row in self._run(f"SELECT {_LIST} FROM pages {where}", values).fetchall():  # noqa: S608 - our own names
            yield SiteEntry(*row)

    def _run(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            with self._lock:
                return self._file.execute(statement, values)
        except ERRORS as error:
            raise BadInput(f"{self.path}: cannot be used ({error}); remove it", subject=str(self.path)) from error
