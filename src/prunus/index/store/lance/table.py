"""The table of an index in Lance: its rows, one merge for each change, and one-line errors.

One table holds everything, so that one commit of Lance is one change of the index, whole or not at all:

    about   layout, embedder, dimension, number of the state, next numbers; one row, which every change writes
    note    a note
    document  a document: its record, its text and its page
    node    a leaf or a parent: text, words, vectors

Every change writes the row ``about`` again. So of two writers that began with the same state Lance refuses the second,
which begins again. A reader keeps the version with which it began.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from ....core.errors import BadInput, MissingExtra, OutsideFailed, PrunusError
from ....core.installation import pip_install
from ....core.ports import Vectors
from ..file.vectors import sync_folder

ABOUT: Final = "about"
"""The key of the row that every change writes."""
_KEPT: Final = timedelta(hours=1)
"""How long versions stay that are not the newest: readers may still read them."""
_AMONG: Final = 5_000
"""Most values in one condition."""
_PARTS: Final = ("data", "_deletions", "_indices", "_versions", "_transactions")
"""The folders of a table that hold what counts."""

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

T = TypeVar("T")


class Overtaken(Exception):
    """Another writer came in between; nothing of this change counts."""


class Absent(Exception):
    """There is no such table."""


class LanceTable:
    """The table at one place; threads may share it.

    :param address: a folder, or an address of object storage.
    :param place: the name of the index in messages.
    :param wait: seconds to wait for other writers, and for an answer of object storage.
    """

    def __init__(self, address: str, place: str, wait: float) -> None:
        try:
            import lance
            import pyarrow
            import pyarrow.compute
        except ImportError as error:
            raise MissingExtra(
                f"the store lance needs pylance ({error}); run: {pip_install('lance')}", subject="lance"
            ) from error
        logging.getLogger("lance").setLevel(logging.ERROR)
        self._lance, self.arrow = lance, pyarrow
        self.address, self.location, self._wait = address, place, wait
        self.folder = None if "://" in address else Path(address)
        seconds = max(1, int(wait / 3))  # Lance asks several times before it gives up
        limits = {"client_max_retries": "3", "client_retry_timeout": str(seconds), "timeout": f"{seconds}s"}
        self._options = None if self.folder is not None else {**limits, "connect_timeout": f"{min(5, seconds)}s"}
        self._session = lance.Session()

    def schema(self, dimension: int) -> Any:
        """Return the columns of the table."""
        arrow = self.arrow
        whole, text, vector = arrow.int64(), arrow.string(), arrow.list_(arrow.float32(), dimension)
        return arrow.schema(
            [("key", text), ("kind", text), ("id", whole), ("layer", whole), ("document", whole), ("place", whole),
             ("spot", whole), ("first", whole), ("last", whole), ("tokens", whole), ("words", whole),
             ("text", arrow.large_string()), ("above", text), ("crc", whole), ("own_words", text),
             ("above_words", text), ("children", arrow.list_(whole)), ("own", vector),
             ("routing", vector), ("record", text), ("source", arrow.large_binary()), ("sha256", arrow.binary())]
        )  # fmt: skip

    # --- states --------------------------------------------------------------------------------

    def latest(self) -> Any:
        """Return the present version; it stays what it is, whatever others write.

        :raises Absent: there is no table.
        """
        if self.folder is not None and not (self.folder / "_versions").is_dir():
            raise Absent
        with self.errors():
            return self._lance.dataset(self.address, storage_options=self._options, session=self._session)

    def create(self, rows: Sequence[Mapping[str, Any]], dimension: int) -> None:
        """Make the table with its first rows; of two processes that try at once, the second finds it made."""
        with suppress(Overtaken), self.errors():
            try:
                made = self._lance.write_dataset(
                    self._arrow(rows, dimension), self.address, mode="create", storage_options=self._options
                )
            except OSError as error:
                if "already exists" not in str(error):
                    raise
                return
            for column in ("own_words", "above_words"):  # words are stemmed already
                made.create_scalar_index(
                    column, "INVERTED", with_position=False, base_tokenizer="whitespace", lower_case=False,
                    stem=False, remove_stop_words=False, ascii_folding=False, max_token_length=None,
                )  # fmt: skip

    def read(self, version: Any, columns: Sequence[str], where: str) -> Any:
        """Return columns of the rows that meet a condition, as an Arrow table."""
        with self.errors():
            return version.to_table(columns=list(columns), filter=where)

    def among(self, version: Any, columns: Sequence[str], name: str, values: Iterable[Any], where: str) -> Any:
        """Return columns of the rows whose column ``name`` has one of some values, as an Arrow table."""
        wanted = list(values)
        starts = range(0, max(1, len(wanted)), _AMONG)
        parts = [
            self.read(version, columns, f"{where} AND {name} IN ({listed(wanted[at : at + _AMONG])})")
            for at in starts
            if wanted
        ]
        return self.arrow.concat_tables(parts) if parts else self.read(version, columns, "false")

    def rows(self, version: Any, columns: Sequence[str], where: str) -> list[dict[str, Any]]:
        """Return :meth:`read` as a list of rows."""
        result: list[dict[str, Any]] = self.read(version, columns, where).to_pylist()
        return result

    # --- changes -------------------------------------------------------------------------------

    def changed(self, work: Callable[[Any], T]) -> T:
        """Do what reads a version and commits one change; begin again where another writer came in between.

        :raises OutsideFailed: other writers have been writing for too long.
        """
        ends = time.monotonic() + self._wait
        while True:
            try:
                return work(self.latest())
            except Overtaken:
                if time.monotonic() > ends:
                    raise OutsideFailed(
                        f"{self.location}: the index failed (other processes have been writing for too long)",
                        subject=self.location,
                    ) from None
                time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 - no secret

    def commit(self, version: Any, put: Sequence[Mapping[str, Any]], drop: Sequence[str], dimension: int) -> None:
        """Write and delete rows in one commit, whole or not at all; on return it is durable.

        :param put: whole rows; they replace those of their keys.
        :param drop: keys of rows that go.
        :raises Overtaken: the table has changed since ``version``.
        """
        began = time.time()
        parts = (f"key IN ({listed(drop[at : at + _AMONG])})" for at in range(0, len(drop), _AMONG))
        with self.errors():
            merge = version.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
            if drop:
                merge = merge.when_not_matched_by_source_delete(" OR ".join(parts))
            merge.conflict_retries(0).execute(self._arrow(put, dimension))
        self._sync(began)

    def compact(self) -> None:
        """Write few large files instead of many, and remove old versions that no reader may still read."""
        with suppress(Overtaken, Absent), self.errors():
            table = self.latest()
            table.optimize.compact_files()
            table.optimize.optimize_indices()
            table.cleanup_old_versions(older_than=_KEPT)

    def index(self, least: int, where: str) -> None:
        """Let Lance's indexes take in new rows; make those of vectors and numbers where many rows have none.

        :param least: rows from which on vectors and numbers get an index.
        :param where: the condition of the rows that are counted.
        """
        with suppress(Overtaken, Absent), self.errors():
            table = self.latest()
            count, made = int(table.count_rows(where)), {index.name for index in table.describe_indices()}
            if count >= least and "own_idx" not in made:
                table.create_index("own", "IVF_SQ", metric="dot", num_partitions=max(1, int(count**0.5 / 2)))
                for column in ("id", "spot"):
                    table.create_scalar_index(column, "BTREE")
            table.optimize.optimize_indices()

    def size(self) -> int:
        """Return the bytes of the files in the folder; on object storage, those of the present version."""
        total = 0
        if self.folder is None:
            with self.errors():
                return sum(int(file.file_size_bytes or 0) for part in self.latest().get_fragments()
                           for file in part.data_files())  # fmt: skip
        for path in self.folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process has just removed it
                total += path.stat().st_size if path.is_file() else 0
        return total

    def _sync(self, began: float) -> None:
        """Wait until the files that a change wrote are on the disk, which Lance does not do."""
        if self.folder is None:
            return
        try:
            for folder in (self.folder / part for part in _PARTS):
                young = [path for path in folder.glob("**/*") if path.is_file() and path.stat().st_mtime >= began - 3]
                for path in young:
                    with suppress(FileNotFoundError), open(path, "rb") as file:
                        os.fsync(file.fileno())
                for parent in {path.parent for path in young}:
                    sync_folder(parent)
        except OSError as error:
            raise OutsideFailed(
                f"{self.location}: the index failed ({error.strerror})", subject=self.location
            ) from error

    def _arrow(self, rows: Sequence[Mapping[str, Any]], dimension: int) -> Any:
        schema, columns = self.schema(dimension), []
        for column in schema:
            values = [row.get(column.name) for row in rows]
            if column.name in ("own", "routing"):
                columns.append(self._vectors(values, dimension))
            else:
                columns.append(self.arrow.array(values, column.type))
        return self.arrow.Table.from_arrays(columns, schema=schema)

    def _vectors(self, vectors: Sequence[Vectors | None], dimension: int) -> Any:
        matrix = np.zeros((len(vectors), dimension), np.float32)
        missing = np.asarray([vector is None for vector in vectors], bool)
        for at, vector in enumerate(vectors):
            if vector is not None:
                matrix[at] = vector
        mask = self.arrow.array(missing) if missing.any() else None
        return self.arrow.FixedSizeListArray.from_arrays(self.arrow.array(matrix.ravel()), dimension, mask=mask)

    # --- errors --------------------------------------------------------------------------------

    def damaged(self, what: str) -> BadInput:
        """Return the error for damage, with the way out."""
        way_out = "remove the damaged document and add it again, or build the index again in another place"
        return BadInput(f"{self.location}: damaged ({what}); {way_out}", subject=self.location)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what Lance raises into an error of ours."""
        try:
            yield
        except (PrunusError, Overtaken, Absent):
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise self._error(str(error).lower()) from None

    def _error(self, message: str) -> Exception:
        if "conflict" in message or "concurrent writers" in message:
            return Overtaken()
        for words, reason in _REASONS:
            if any(word in message for word in words):
                return OutsideFailed(f"{self.location}: the index failed ({reason})", subject=self.location)
        if "was not found" in message and "dataset" in message:
            return Absent()
        return self.damaged("its table cannot be read")


def listed(values: Sequence[Any]) -> str:
    """Return values as they stand in a condition."""
    return ", ".join(str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'" for value in values)
