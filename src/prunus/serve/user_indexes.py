"""The indexes that clients made: whose they are, how they are called, and where they are kept.

An index belongs to the name of the key that made it; a name is free for every key. The place of an index comes from a
random id, never from a client.
"""

from __future__ import annotations

import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput, OutsideFailed, StoreFailed
from ..core.settings import Settings
from .options import INDEX_NAME
from .state import PATIENCE, ServerState

_SCHEMA: Final = """CREATE TABLE IF NOT EXISTS serve_indexes (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, made TEXT NOT NULL, UNIQUE (owner, name))"""


@dataclass(frozen=True, slots=True)
class CreatedIndex:
    """An index that a client made.

    :param id: random; names its folder or schema.
    :param owner: name of the key that made it; ``-`` where the server needs no key.
    :param made: UTC time, ISO 8601.
    """

    id: str
    owner: str
    name: str
    made: str


class Taken(BadInput):
    """The key has an index of this name already."""


class Full(BadInput):
    """A limit of the operator is reached."""


class CreatedIndexes:
    """The records of created indexes, in the server's state. Every call may wait for the disk or the database.

    :param home: where indexes are kept: a folder, or ``postgres:ADDRESS``; '' where clients may make none.
    """

    def __init__(self, state: ServerState, home: str) -> None:
        self._state, self.home = state, home
        if home:
            with state.transaction() as run:
                run(_SCHEMA)

    def new_id(self) -> str:
        """Return an id for an index whose data are made before it is noted."""
        return f"prunus_{secrets.token_hex(8)}"

    def make_folder(self, id: str) -> None:
        """Make the folder of an index, for the server's user alone; in a database there is none.

        :raises StoreFailed: the disk refuses.
        """
        if not self.home.startswith("postgres:"):
            try:
                Path(self.home).expanduser().mkdir(parents=True, exist_ok=True, mode=0o700)
                Path(self.place(id)).mkdir(mode=0o700)
            except OSError as error:
                raise StoreFailed(f"an index cannot be made ({error.strerror})", subject="index") from error

    def add(self, owner: str, name: str, made: str, most: int, id: str = "") -> CreatedIndex:
        """Note a new index.

        :param most: indexes of a key at most.
        :param id: from :meth:`new_id`; '' takes a new one.
        :raises Taken: the name is in use.
        :raises Full: the key has as many indexes as it may have.
        """
        made_index = CreatedIndex(id or self.new_id(), owner, name, made)
        with self._state.transaction() as run:
            self._check(run, owner, name, most)
            row = (made_index.id, owner, name, made)
            run("INSERT INTO serve_indexes (id, owner, name, made) VALUES (?, ?, ?, ?)", row)
        return made_index

    def check(self, owner: str, name: str, most: int) -> None:
        """Raise what :meth:`add` would."""
        with self._state.transaction(writes=False) as run:
            self._check(run, owner, name, most)

    def _check(self, run: Any, owner: str, name: str, most: int) -> None:
        names = [known for (known,) in run("SELECT name FROM serve_indexes WHERE owner = ?", (owner,))]
        if name in names:
            raise Taken(f"there is an index {name} already; choose another name", subject="name")
        if len(names) >= most:
            raise Full(f"a key may have {most} indexes here; delete one first", subject="name")

    def of(self, owner: str) -> list[CreatedIndex]:
        """Return the indexes of a key, by name."""
        return self._where("owner = ? ORDER BY name", owner) if self.home else []

    def find(self, owner: str, name: str) -> CreatedIndex | None:
        """Return an index of a key by its name."""
        if not self.home or not INDEX_NAME.fullmatch(name):
            return None
        return next(iter(self._where("owner = ? AND name = ?", owner, name)), None)

    def place(self, id: str) -> str:
        """Return the place of an index, as `prunus.Index.open` takes it."""
        if self.home.startswith("postgres:"):
            return f"{self.home.partition(':')[2]}#{id}"
        return str(Path(self.home).expanduser() / id)

    def remove(self, id: str) -> None:
        """Remove the data of an index; nothing happens where it is gone.

        :raises OutsideFailed: the disk or the database refuses.
        """
        if not self.home.startswith("postgres:"):
            try:
                shutil.rmtree(self.place(id))
            except FileNotFoundError:
                return
            except OSError as error:
                raise OutsideFailed(f"an index cannot be removed ({error.strerror})", subject="index") from error
            return
        import psycopg  # there: it has made the schema
        from psycopg.sql import SQL, Identifier

        try:
            with psycopg.connect(self.home.partition(":")[2], autocommit=True, **PATIENCE) as connection:
                connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(id)))
        except psycopg.Error as error:  # its text may hold parts of the address
            raise OutsideFailed(f"an index cannot be removed (SQLSTATE {error.sqlstate})", subject="index") from None

    def _where(self, condition: str, *values: Any) -> list[CreatedIndex]:
        with self._state.transaction(writes=False) as run:
            rows = run(f"SELECT id, owner, name, made FROM serve_indexes WHERE {condition}", values)  # noqa: S608
        return [CreatedIndex(*row) for row in rows]


def index_home(settings: Settings, given: str = "") -> str:
    """Return where clients' indexes are kept: as given, or by the setting ``serve_index_home``; '' is nowhere.

    :raises BadInput: the place cannot be used.
    """
    home = given or settings.serve_index_home
    engine, colon, address = home.partition(":")
    if engine == "postgres" and colon:
        if not re.match(r"postgres(ql)?://", address):
            raise BadInput("index_home: write it as postgres:postgresql://USER@HOST/DATABASE", subject="index_home")
    elif home and settings.store.startswith("postgres"):
        raise BadInput(
            "index_home is a folder, but the setting store keeps indexes in PostgreSQL; set index_home to "
            "postgres:ADDRESS",
            subject="index_home",
        )
    elif home and settings.store.startswith("lance"):
        raise BadInput(
            "index_home is a folder, but the setting store keeps indexes in Lance; set index_home to "
            "postgres:ADDRESS, or store to file",
            subject="index_home",
        )
    return home
