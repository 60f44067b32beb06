"""The tables of an index in LanceDB: states, changes, and one-line errors.

Each table of Lance has versions of its own. The table ``commits`` has one row, the *record*: it names the version of
every table that belongs to the present state. A reader reads the record and then those versions, which never change. A
writer appends versions that no record names yet, and replaces the record in one step, if it still has the number that
the writer began with. A killed writer, or one that was overtaken, leaves versions that no record names; the next writer
restores the named version before it writes.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....core.errors import BadInput, OutsideFailed, PrunusError
from ....core.ports import Ints
from ....core.seal import seal
from ..file.vectors import sync_folder

COMMITS: Final = "commits"
TABLES: Final = ("documents", "leaves", "parents", "notes")
KINDS: Final = ("leaves", "parents")
"""The tables of nodes."""
POSTED: Final = ("parts", "postings", "stale")
"""The tables of a large index beside these; see ``postings.py``."""
LAYOUT, LAYOUT_POSTED = 1, 2
"""The layout of an index without and with the tables of a large one."""
_KNOWN: Final = "posted-"
"""Begins the token of a writer that knows the tables of a large index."""

_AMONG: Final = 5000
"""Most values in one condition."""
_OPEN: Final = 16
"""Most versions of tables that stay open."""
_NEVER: Final = timedelta(days=36_500)
_PARTS: Final = ("data", "_deletions", "_indices", "_versions")
"""The folders of a table that hold what counts."""
_COARSE: Final = 3.0
"""Seconds by which the times of files may be rounded."""

_REASONS: Final = (
    (("permission denied", "read-only file system", "os error 13", "os error 30"), "no permission"),
    (("no space left", "os error 28"), "the disk is full"),
    (("nosuchbucket", "bucket not found", "bucket does not exist"), "there is no such bucket"),
    (
        ("accessdenied", "access denied", "forbidden", "invalidaccesskeyid", "signaturedoesnotmatch", "unauthorized",
         "credential", "invalidtoken", "expiredtoken"),
        "access is refused; are the credentials in the environment right?",
    ),
    (
        ("timed out", "timeout", "sending request", "connection", "connect error", "dns", "max_retries", "slowdown"),
        "the object store does not answer; is its address right?",
    ),
    (("http not allowed", "allow_http", "builder error"), "the address of the object store is not allowed"),
)  # fmt: skip
"""Messages by words of Lance's messages, which are not shown: they may hold parts of an address, and run over lines."""


class Lost(Exception):
    """Another writer came in between; nothing of this change counts."""


class Absent(Exception):
    """There is no such table."""


class Unreadable(BadInput):
    """A table cannot be read: it is damaged, or another process has just removed this old version of it."""


@dataclass(frozen=True, slots=True)
class Record:
    """The record: what belongs to one state of the index.

    :param number: number of the commit; every change adds one.
    :param version: number of the state for readers of nodes; notes do not change it.
    :param versions: the version of each table.
    :param counts, seals: number of the rows of each table, and the sum of their seals.
    :param compacted: number of the commit that compacted the tables, and the number of rows then, without postings.
    :param written: such rows that have been written since then.
    :param cells: for a large table, the number of cells of its index of vectors.
    :param indexed: number of leaves for which the indexes were made; 0 without.
    :param token: drawn at random by the writer, by which it knows its own commit. It begins with ``posted-``, which
        versions of Prunus that know no postings do not write.
    """

    number: int
    version: int
    layout: int
    embedder: str
    dimension: int
    next_document: int
    next_node: int
    versions: Mapping[str, int]
    counts: Mapping[str, int]
    seals: Mapping[str, int]
    compacted: Sequence[int] = (0, 0)
    written: int = 0
    cells: Mapping[str, int] = field(default_factory=dict)
    indexed: int = 0
    token: str = ""

    @property
    def posted(self) -> bool:
        """Whether there are tables of postings that belong to this state.

        They do not after a change by an older version of Prunus that had opened the index before they were made.
        """
        return {*POSTED} <= {*self.versions} and self.token.startswith(_KNOWN)

    def text(self) -> str:
        """Return the record as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


class Tables:
    """The tables at one place.

    :param packages: the modules ``lancedb`` and ``pyarrow``.
    :param address: a folder, or an address of object storage.
    :param place: the name of the index in messages.
    :param wait: seconds to wait for an answer of object storage.
    """

    def __init__(self, packages: tuple[Any, Any], address: str, place: str, wait: float) -> None:
        self._lancedb, self.arrow = packages
        self.address, self.place, self._wait = address, place, wait
        self.folder = None if "://" in address else Path(address)
        self._connection: Any = None
        self._open: dict[tuple[str, int], Any] = {}
        self._synced: dict[Path, set[Path]] = {}  # of each folder, the young files that are on the disk

    # --- states --------------------------------------------------------------------------------

    def record(self) -> Record | None:
        """Return the record of the present state; None where there is no index.

        :raises BadInput: the record is damaged.
        """
        if self.folder is not None and not (self.folder / f"{COMMITS}.lance").is_dir():
            return None
        try:
            table = self.latest(COMMITS)
            with self.told(COMMITS):
                rows = table.search().select(["number", "record", "seal"]).to_arrow().to_pylist()
        except Absent:
            return None
        if len(rows) != 1 or seal(rows[0]["number"], rows[0]["record"]) != rows[0]["seal"]:
            raise self.damaged("its record does not match its checksum")
        return Record(**json.loads(rows[0]["record"]))

    def create(self, schemas: Mapping[str, Any], record: Record) -> None:
        """Create the tables; of two processes that try at once, the second finds them made.

        Tables of a creator that was killed are replaced: no record names their rows.
        """
        versions = {}
        with self.told(COMMITS):
            for name in TABLES:
                versions[name] = int(self.made(name, schemas[name]).version)
            record = replace(record, versions=versions)
            first = self.arrow.Table.from_pylist([_row(record)])
            self._connected().create_table(COMMITS, first, exist_ok=True)

    def made(self, name: str, schema: Any) -> Any:
        """Create an empty table, in place of one that no record names; return a handle."""
        try:
            return self._connected().create_table(name, schema=schema)
        except ValueError as error:
            if "already exists" not in str(error):
                raise
        return self._connected().create_table(name, schema=schema, mode="overwrite")

    def latest(self, name: str) -> Any:
        """Return a new handle of a table at its latest version.

        :raises Absent: there is no such table.
        """
        with self.told(name):
            return self._connected().open_table(name)

    def at(self, name: str, version: int) -> Any:
        """Return a handle of one version of a table; it stays open for later calls."""
        found = self._open.get((name, version))
        if found is None:
            with self.told(name):
                found = self._connected().open_table(name)
                found.checkout(version)  # and stay there, whatever others write
            kept = list(self._open.items())[1 - _OPEN :]
            self._open = {**dict(kept), (name, version): found}
        return found

    def read(self, name: str, table: Any, columns: Sequence[str], where: str = "") -> Any:
        """Return columns of the rows of a table as an Arrow table."""
        with self.told(name):
            query = table.search().select(list(columns))
            return (query.where(where) if where else query).to_arrow()

    # --- changes -------------------------------------------------------------------------------

    def commit(self, record: Record) -> None:
        """Replace the record by its successor.

        :raises Lost: another writer has replaced it.
        """
        row = _row(record)
        with self.told(COMMITS):
            done = self._connected().open_table(COMMITS).update(where=f"number = {record.number - 1}", values=row)
        if int(done.rows_updated) != 1:  # a request that was sent twice has found the first one done
            found = self.record()
            if found is None or found.token != record.token:
                raise Lost

    def sync(self, name: str, since: float) -> None:
        """Wait until the files of a table that were written since a time are on the disk, which Lance does not do."""
        if self.folder is None:
            return
        try:
            for folder in (self.folder / f"{name}.lance" / part for part in _PARTS):
                young = _written_since(folder, since - _COARSE)
                new = young - self._synced.get(folder, set())
                for path in new:
                    with suppress(FileNotFoundError), open(path, "rb") as file:
                        os.fsync(file.fileno())
                if new:
                    sync_folder(folder)
                self._synced[folder] = young
        except OSError as error:
            raise OutsideFailed(f"{self.place}: the index failed ({error.strerror})", subject=self.place) from error

    def prune(self, older: float) -> None:
        """Remove versions that are older than some seconds. The latest of each table stays.

        Lance writes tables of many files anew on this occasion, so it is done after a compaction only.
        """
        for name in (*TABLES, *POSTED, COMMITS):
            with suppress(Lost, Absent), self.told(name):
                self._connected().open_table(name).optimize(cleanup_older_than=timedelta(seconds=max(older, 0.001)))

    def size(self, record: Record) -> int:
        """Return the bytes of the files in the folder; on object storage, those of the present state."""
        if self.folder is None:
            with self.told(COMMITS):
                handles = [self.at(name, record.versions[name]) for name in record.versions]
                return sum(int(handle.stats()["total_bytes"]) for handle in handles)
        total = 0
        for path in self.folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process has just removed it
                total += path.stat().st_size if path.is_file() else 0
        return total

    # --- errors --------------------------------------------------------------------------------

    def damaged(self, what: str) -> Unreadable:
        """Return the error for damage, with the way out."""
        way_out = "remove the damaged document and add it again, or build the index again in another place"
        return Unreadable(f"{self.place}: damaged ({what}); {way_out}", subject=self.place)

    @contextmanager
    def told(self, name: str) -> Iterator[None]:
        """Turn what Lance raises into an error of ours."""
        try:
            yield
        except (PrunusError, Lost, Absent):
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise self._told(name, str(error).lower()) from None

    def _told(self, name: str, said: str) -> Exception:
        if "conflict" in said or "concurrent writers" in said:
            return Lost()
        if f"table '{name}' was not found" in said:
            return Absent(name)
        for words, reason in _REASONS:
            if any(word in said for word in words):
                return OutsideFailed(f"{self.place}: the index failed ({reason})", subject=self.place)
        return self.damaged(f"the table {name} cannot be read")

    def _connected(self) -> Any:
        if self._connection is None:
            seconds = max(1, int(self._wait / 3))  # Lance lists a folder six times before it gives up
            limits = {
                "client_max_retries": "3",
                "client_retry_timeout": str(seconds),
                "connect_timeout": f"{min(5, seconds)}s",
                "timeout": f"{seconds}s",
            }
            options = limits if self.folder is None else None
            self._connection = self._lancedb.connect(self.address, storage_options=options)
        return self._connection


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the index, which never changes."""

    tables: Tables
    record: Record

    def read(self, name: str, columns: Sequence[str], where: str = "") -> Any:
        """Return columns of the rows of a table as an Arrow table."""
        return self.tables.read(name, self.tables.at(name, self.record.versions[name]), columns, where)

    def take(self, name: str, columns: Sequence[str], offsets: Ints) -> Any:
        """Return columns of the rows at some places of a table, in the order in which a whole table is read."""
        table = self.tables.at(name, self.record.versions[name])
        if not len(offsets):
            return self.tables.read(name, table, columns, "false")
        with self.tables.told(name):
            return table.take_offsets(offsets.tolist()).select(list(columns)).to_arrow()


@dataclass(slots=True)
class Change:
    """The changes of one writer, which count from :meth:`commit` on.

    Each step must be the very next version of its table: a version in between means that another writer is at work.
    """

    tables: Tables
    record: Record
    next_document: int = field(init=False)
    next_node: int = field(init=False)
    counts: dict[str, int] = field(init=False)
    seals: dict[str, int] = field(init=False)
    cells: dict[str, int] = field(init=False)
    indexed: int = field(init=False)
    posted: bool = field(init=False)
    _compacted: Sequence[int] = field(init=False)
    _written: int = field(init=False)
    _gone: dict[str, list[int]] = field(default_factory=dict)
    _open: dict[str, Any] = field(default_factory=dict)
    _tips: dict[str, int] = field(default_factory=dict)
    _began: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.next_document, self.next_node = self.record.next_document, self.record.next_node
        self.counts, self.seals = {**self.record.counts}, {**self.record.seals}
        self.cells, self.indexed = {**self.record.cells}, self.record.indexed
        self._compacted, self._written = self.record.compacted, self.record.written
        self.posted = self.record.posted
        if not self.posted:
            for name in POSTED:
                self.counts.pop(name, None)
                self.seals.pop(name, None)

    def read(self, name: str, columns: Sequence[str], where: str = "") -> Any:
        """Return columns of the rows of a table, with the changes so far, as an Arrow table."""
        table = self._open.get(name)  # an empty one is false
        if table is None:
            table = self.tables.at(name, self.record.versions[name])
        return self.tables.read(name, table, columns, where)

    def drop(self, name: str, column: str, values: Sequence[Any]) -> None:
        """Delete the rows in which a column has one of the values."""
        for where in among(column, values):
            self.delete(name, where)

    def clear(self, name: str) -> None:
        """Delete all rows, and the postings of the nodes."""
        self.delete(name, "seal >= 0")
        if self.posted and name in KINDS:
            for table in POSTED:
                self.drop(table, "kind", [name])

    def create(self, name: str, schema: Any) -> None:
        """Create one of the tables of a large index."""
        with self.tables.told(name):
            self._open[name] = self.tables.made(name, schema)
            self._tips[name] = int(self._open[name].version)
        self.counts[name] = self.seals[name] = 0
        self.posted = {*POSTED} <= {*self.counts}

    def add_stale(self, kind: str, ids: Ints) -> None:
        """Note nodes whose postings do not count any more."""
        if len(ids):
            data = ids.astype("<i8").tobytes()
            row = {"kind": kind, "ids": data, "seal": seal(kind, data)}
            schema = self.read("stale", ["kind", "ids", "seal"], "false").schema
            self.add("stale", self.tables.arrow.Table.from_pylist([row], schema=schema))

    def add(self, name: str, rows: Any) -> None:
        """Add the rows of an Arrow table, which has a column ``seal``."""
        if not rows.num_rows:
            return
        table = self._writable(name)
        with self.tables.told(name):
            version = int(table.add(rows).version)
        self._step(name, version)
        self._written += rows.num_rows if name in TABLES else 0
        self.counts[name] += rows.num_rows
        self.seals[name] += sum(rows.column("seal").to_pylist())

    def compact(self, name: str) -> None:
        """Write the rows of a table in few files, as a new version, whatever its state."""
        table = self._writable(name)
        with self.tables.told(name):
            table.checkout(self._tips[name])
            table.restore()  # or the version may be so old that the next pruning could take it
            self._step(name, int(table.version))
            table.optimize(cleanup_older_than=_NEVER)
            self._tips[name] = int(table.version)
        sealed = self.read(name, ["seal"]).column("seal").to_pylist()
        if (len(sealed), sum(sealed)) != (self.counts[name], self.seals[name]):
            raise Lost  # rows of another writer came in between

    def index(self, name: str, columns: Mapping[str, Any]) -> None:
        """Make indexes of a table anew, by column."""
        table = self._writable(name)
        for column, made in columns.items():
            with self.tables.told(name):
                table.create_index(column, config=made, replace=True)
                version = int(table.version)
            self._step(name, version)

    def mark_compacted(self) -> None:
        """Note in the record that the tables have been compacted."""
        self._compacted, self._written = (self.record.number + 1, sum(self.counts[name] for name in TABLES)), 0

    @property
    def empty(self) -> bool:
        """Whether nothing has been written."""
        return not self._tips

    def commit(self, nodes: bool = True) -> Record:
        """Make the changes count, all of them; return the new record.

        :param nodes: documents or nodes have changed, not only notes.
        :raises Lost: another writer was faster; none of the changes counts.
        """
        known = self.record
        self._note_gone()
        versions = {name: number for name, number in known.versions.items() if name in self.counts}
        record = replace(
            known,
            layout=LAYOUT_POSTED if self.posted else LAYOUT,
            number=known.number + 1,
            version=known.version + nodes,
            next_document=self.next_document,
            next_node=self.next_node,
            versions={**versions, **self._tips},
            counts=self.counts,
            seals=self.seals,
            compacted=self._compacted,
            written=self._written,
            cells=self.cells,
            indexed=self.indexed,
            token=_KNOWN + secrets.token_hex(16),
        )
        for name in self._tips:
            self.tables.sync(name, self._began)
        self.tables.commit(record)
        self.tables.sync(COMMITS, self._began)
        return record

    def delete(self, name: str, where: str) -> None:
        """Delete the rows for which a condition holds."""
        noted = self.posted and name in KINDS
        found = self.read(name, ["seal", "id"] if noted else ["seal"], where)
        sealed = found.column("seal").to_pylist()
        if not sealed:
            return
        if noted:
            self._gone.setdefault(name, []).extend(found.column("id").to_pylist())
        table = self._writable(name)
        with self.tables.told(name):
            version = int(table.delete(where).version)
        self._step(name, version)
        self.counts[name] -= len(sealed)
        self.seals[name] -= sum(sealed)

    def _note_gone(self) -> None:
        """Note the nodes that have postings and were deleted; one that is written anew is deleted before."""
        for kind, ids in self._gone.items():
            parts = self.read("parts", ["first", "end"], f"kind = {quoted(kind)}")
            first, end = (np.sort(parts.column(name).to_numpy()) for name in ("first", "end"))
            gone = np.unique(np.asarray(ids, np.int64))
            within = np.searchsorted(first, gone, "right") > np.searchsorted(end, gone, "right")
            self.add_stale(kind, gone[within])

    def _writable(self, name: str) -> Any:
        """Return a handle of a table at the version of the record, which is then its latest."""
        if name not in self._open:
            table = self.tables.latest(name)
            with self.tables.told(name):
                tip = int(table.version)
                if tip != self.record.versions[name]:  # a writer was killed or overtaken, or is at work
                    table.checkout(self.record.versions[name])
                    table.restore()
                    if int(table.version) != tip + 1:
                        raise Lost
                    tip += 1
            self._open[name], self._tips[name] = table, tip
        return self._open[name]

    def _step(self, name: str, version: int) -> None:
        if version != self._tips[name] + 1:
            raise Lost
        self._tips[name] = version


def rows_among(
    state: Snapshot | Change, name: str, columns: Sequence[str], column: str, values: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return the rows of a table in which a column has one of the values, as dicts."""
    return [row for where in among(column, values) for row in state.read(name, columns, where).to_pylist()]


def among(column: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield conditions that a column has one of the values, for as many values as one condition takes."""
    for start in range(0, len(values), _AMONG):
        part = values[start : start + _AMONG]
        yield f"{column} IN ({', '.join(map(quoted, part))})"


def quoted(value: str | int) -> str:
    """Return a value as SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(int(value))


def _written_since(folder: Path, since: float) -> set[Path]:
    """Return the files of a folder that were written after a time."""
    found: set[Path] = set()
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another process may just have removed or renamed it
            if path.is_file() and path.stat().st_mtime > since:
                found.add(path)
    return found


def _row(record: Record) -> dict[str, Any]:
    text = record.text()
    return {"number": record.number, "record": text, "seal": seal(record.number, text)}


def again(work: Callable[[], Any], wait: float, place: str) -> Any:
    """Do something until no other writer comes in between; the pauses grow, and are drawn at random.

    :raises OutsideFailed: other writers came in between for over ``wait`` seconds.
    """
    end = time.monotonic() + wait
    pause = 0.02
    while True:
        try:
            return work()
        except Lost:
            if time.monotonic() > end:
                raise OutsideFailed(
                    f"{place}: the index failed (other processes have been writing for over {wait:g} seconds)",
                    subject=place,
                ) from None
        time.sleep(pause * secrets.randbelow(1000) / 1000)
        pause = min(1.0, 1.5 * pause)
