"""Summaries that were paid for, by the hash of what made them: a run that was killed pays for none twice."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ...core.errors import BadInput, OutsideFailed
from ...core.types import Message
from ..database import write_ahead

_LAYOUT = 1
_WAIT = 30.0
"""Seconds to wait for another process that writes."""


def key_of(model: str, messages: Sequence[Message], max_tokens: int) -> str:
    """Return the hash of texts, prompt, model and length, hex."""
    state = hashlib.sha256()
    for part in (model, str(max_tokens), *(text for one in messages for text in (one.role, one.content))):
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


class KeptSummaries:
    """Summaries in one SQLite file; without a path, none are kept.

    :param path: of the file; its folder is made.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def get(self, key: str) -> str | None:
        """Return a summary, None where it is not kept."""
        if self._path is None or not self._path.exists():
            return None
        with self._opened() as file:
            row = file.execute("SELECT text FROM summaries WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    def put(self, key: str, text: str) -> None:
        """Keep a summary; on return it is on the disk."""
        if self._path is None:
            return
        safe = text.encode("utf-8", "replace").decode("utf-8")
        with self._opened() as file:
            file.execute("INSERT OR REPLACE INTO summaries VALUES (?, ?)", (key, safe))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        assert self._path is not None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)) as file:
                if file.execute("PRAGMA user_version").fetchone()[0] not in (0, _LAYOUT):
                    raise BadInput(f"{self._path}: made by another version; delete it", subject=str(self._path))
                write_ahead(file, _WAIT)
                file.execute("CREATE TABLE IF NOT EXISTS summaries (key TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID")
                file.execute(f"PRAGMA user_version = {_LAYOUT}")
                yield file
        except (sqlite3.OperationalError, OSError) as error:
            raise OutsideFailed(f"{self._path}: summaries cannot be kept ({error})", subject=str(self._path)) from error
        except sqlite3.DatabaseError as error:
            raise BadInput(
                f"{self._path}: no file of summaries ({error}); delete it", subject=str(self._path)
            ) from error
