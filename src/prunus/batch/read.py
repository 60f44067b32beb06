"""Read the rows of a source one after the other, and cut them into parts."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from ..core.errors import BadInput, BadPage, MissingExtra, PrunusError, one_line
from ..core.installation import pip_install
from ..core.settings import Settings
from ..core.types import Page
from ..engines import formats
from ..pages.sources import is_address
from ..web.reader import fetch_with
from ..web.warc import WarcArchive
from .jobs import job_row
from .remote import Remote, is_remote
from .rows import START, BatchSource, Mark, Part, Row

ROWS: Final = 500
"""Rows of a part at most."""
BYTES: Final = 32 << 20
"""Bytes of the rows of a part at most; a larger page is a part of its own."""

MAX_LINE: Final = 96 << 20
"""Bytes of a line at most: room for the largest page that is read, escaped as JSON."""
STDIN: Final = "-"
"""The name of the source that is standard input."""

CONTENT: Final = {"html": "", "content": "", "markdown": "text/markdown", "text": "text/plain"}
"""The names of the columns that hold a page, best first → its media type, '' where the page itself tells."""
COLUMNS: Final = (*CONTENT, "url", "path", "id", "question", "media_type", "charset")
"""The names of all columns that are read."""

Marked: TypeAlias = "Iterator[tuple[Mark, Row]]"


@dataclass(frozen=True, slots=True)
class Partitioner:
    """Cuts sources into parts, the same at every run.

    :param rows: rows of a part at most.
    """

    settings: Settings
    rows: int = ROWS

    def parts(self, number: int, source: BatchSource, ends: Mapping[int, Mark | None]) -> Iterator[Part]:
        """Yield the parts of a source that are not done, in order.

        :param number: number of the source in the batch.
        :param ends: the number of each part that is done, with its end.
        :raises BadInput: the source cannot be opened.
        """
        first, start = 0, START
        while first in ends:
            end = ends[first]
            if end is None:
                return
            first, start = first + 1, end
        reader = Reader(source, self.settings)
        held: list[Row] = []
        size = 0
        for mark, row in reader.rows(start):
            if held and (len(held) == self.rows or size + row.size > BYTES):
                if first not in ends:
                    yield Part(number, first, source.name, tuple(held), mark, dict(reader.taken()))
                reader.taken()
                first, held, size = first + 1, [], 0
            held.append(row)
            size += row.size
        if first not in ends:
            yield Part(number, first, source.name, tuple(held), None, dict(reader.taken()))


@dataclass(slots=True)
class Reader:
    """Reads one source. ``skipped`` counts the records that are no pages, by reason."""

    source: BatchSource
    settings: Settings
    skipped: Counter[str] = field(default_factory=Counter)

    def rows(self, start: Mark) -> Marked:
        """Yield the rows from a mark on, each with its own.

        :raises BadInput: the source cannot be opened.
        :raises MissingExtra: the package that reads it is not installed.
        """
        return cast(Marked, getattr(self, f"_{self.source.kind}")(start))

    def taken(self) -> Counter[str]:
        """Return what was skipped since the last call."""
        skipped = Counter(self.skipped)
        self.skipped.clear()
        return skipped

    def _files(self, start: Mark) -> Marked:
        for number in range(start.position, len(self.source.files)):
            path = self.source.files[number]
            yield Mark(number + 1, number), Row(number + 1, path=path)

    def _warc(self, start: Mark) -> Marked:
        archive = WarcArchive(path_of(self.source.name), self.settings.max_file_mb, _is_readable, self.skipped)
        if start.position and not archive.begins_at(start.position):  # packed as one stream: read it from its beginning
            start = Mark(start.record, 0)
        number = start.record if start.position else 1
        for entry in archive.records(start.position):
            if 1 < start.record >= number and not start.position:
                self.skipped.clear()  # what was skipped up to here belongs to earlier parts
            if number >= start.record:
                yield Mark(number, entry.place), _row_of_record(number, entry)
            number += 1

    def _urls(self, start: Mark) -> Marked:
        for mark, line in self._lines(start):
            text = line if isinstance(line, Row) else line.decode("utf-8-sig", "replace").strip()
            if isinstance(text, Row):
                yield mark, text
            elif text and not text.startswith("#"):
                bad = "" if is_address(text) else f"line {mark.record}: not an address: {one_line(text, longest=80)}"
                yield mark, Row(mark.record, text, fetch=not bad, error=bad, kind="page" if bad else "")

    def _jsonl(self, start: Mark) -> Marked:
        for mark, line in self._lines(start):
            if isinstance(line, Row):
                yield mark, line
            elif line.strip():
                yield mark, _row_of_line(mark.record, line, self.settings)

    def _jobs(self, start: Mark) -> Marked:
        first_lines: dict[bytes, int] = {}
        for mark, line in self._lines(start):
            if isinstance(line, Row):
                yield mark, line
            elif line.strip():
                yield mark, job_row(mark.record, line.strip(), first_lines)

    def _lines(self, start: Mark) -> Iterator[tuple[Mark, bytes | Row]]:
        """Yield the lines, each with its mark; a line that is too long, and the end of a damaged file, is a row."""
        packed = path_of(self.source.name).suffix.lower() == ".gz"
        with _open(self.source.name, packed) as file:
            number, position = (1, 0) if packed else (start.record, start.position)
            if position:
                file.seek(position)
            while True:
                try:
                    line = file.readline(MAX_LINE + 1)
                    long = len(line) > MAX_LINE and not line.endswith(b"\n")
                    whole = len(line) + (_to_end_of_line(file) if long else 0)
                except (OSError, EOFError, zlib.error) as error:
                    reason = f"damaged file: nothing after line {number - 1} can be read ({one_line(str(error))})"
                    yield Mark(number, position), Row(number, error=reason, kind="source")
                    return
                if not line:
                    return
                if number >= start.record:
                    reason = f"line {number}: longer than {MAX_LINE >> 20} MiB"
                    yield Mark(number, position), Row(number, error=reason, kind="large") if long else line
                number, position = number + 1, position + whole

    def _parquet(self, start: Mark) -> Marked:
        arrow, parquet = parquet_packages()
        name = self.source.name
        try:
            file = parquet.ParquetFile(_for_arrow(name), pre_buffer=False, buffer_size=1 << 20)
        except (OSError, arrow.ArrowException) as error:
            reason = getattr(error, "strerror", None) or one_line(str(error))
            raise BadPage(f"{name}: cannot be read as Parquet ({reason})", subject=name) from error
        with file:
            columns = page_columns(file.schema_arrow.names, name)
            groups, number = _groups_from(file.metadata, start.position)
            try:
                for batch in file.iter_batches(64, groups, columns):
                    for values in rows_of(batch):
                        if number > start.position:
                            yield Mark(number, number - 1), row_of(number, values, f"row {number}", self.settings)
                        number += 1
            except (OSError, ValueError, arrow.ArrowException) as error:
                reason = f"damaged file: nothing from row {number} on can be read ({one_line(str(error))})"
                yield Mark(number, number - 1), Row(number, error=reason, kind="source")


def page_columns(names: Sequence[str], table: str) -> list[str]:
    """Return the columns of a table that are read, see :data:`COLUMNS`.

    :param table: how errors name the table.
    :raises BadPage: no column holds pages.
    """
    columns = [column for column in COLUMNS if column in names]
    if not {*CONTENT, "url", "path"} & {*columns}:
        wanted = ", ".join(CONTENT)
        there = one_line(", ".join(names))
        raise BadPage(f"{table}: no column called {wanted}, url or path; it has: {there}", subject=table)
    return columns


def row_of(number: int, values: Mapping[str, Any], name: str, settings: Settings) -> Row:
    """Return the page of a row of columns, see :data:`COLUMNS`; a row that holds none has an error.

    :param name: how errors name the row.
    """
    given = {key: values[key] for key in COLUMNS if values.get(key) is not None}
    for key, value in given.items():
        if not isinstance(value, str | bytes) and not (key == "id" and isinstance(value, int)):
            return Row(number, error=f"{name}: {key} is of type {type(value).__name__}, not text", kind="page")
    texts = {key: _text(value) for key, value in given.items() if key not in CONTENT}
    row = Row(number, texts.get("url", ""), texts.get("id", ""), question=texts.get("question", "").strip())
    held = next((key for key in CONTENT if given.get(key)), "")
    if held:
        content = given[held]
        if len(content) > settings.max_file_mb << 20:
            reason = f"{name}: {len(content) >> 20} MiB is over the limit of {settings.max_file_mb} MiB"
            return replace(row, error=reason, kind="large")
        media_type = texts.get("media_type") or CONTENT[held]
        return replace(row, content=content, media_type=media_type, charset=texts.get("charset", ""))
    if texts.get("path"):
        if is_remote(texts["path"]):
            return replace(row, error=f"{name}: path is an address; name its folder as an input", kind="page")
        return replace(row, path=texts["path"])
    if is_address(row.url):
        return replace(row, url=row.url.strip(), fetch=True)
    columns = ", ".join(CONTENT)
    return replace(row, error=f"{name}: no page: {columns} and path are empty, and url is no address", kind="page")


def fetched(part: Part, settings: Settings) -> Part:
    """Return a part whose rows hold their pages; addresses are fetched, with the pauses that each host is owed."""
    wanted = [row for row in part.rows if row.fetch]
    if not wanted:
        return part
    pages = iter(fetch_with(settings)([row.url for row in wanted]))
    return replace(part, rows=tuple(_with_page(row, next(pages)) if row.fetch else row for row in part.rows))


def rows_in_parquet(name: str) -> int:
    """Return the number of rows that a Parquet file says it has."""
    return int(parquet_packages()[1].read_metadata(_for_arrow(name)).num_rows)


def path_of(name: str) -> Path | Remote:
    """Return a file by its path or its address."""
    return Remote.of(name) if is_remote(name) else Path(name)


def _for_arrow(name: str) -> Any:
    return path_of(name).open("rb") if is_remote(name) else name


def check_packages(sources: Sequence[BatchSource]) -> None:
    """Check that the packages that read the sources are installed.

    :raises MissingExtra: one is not.
    """
    kinds = {source.kind for source in sources}
    if "parquet" in kinds:
        parquet_packages()
    if "warc" in kinds:
        from ..web.warc import check_package

        check_package()


def _with_page(row: Row, page: Page | PrunusError) -> Row:
    if isinstance(page, PrunusError):
        return replace(row, fetch=False, error=one_line(str(page), longest=500), kind="outside")
    if page.wall:
        return replace(row, fetch=False, error=f"{row.url}: the page sent no content ({page.wall})", kind="outside")
    return replace(
        row,
        fetch=False,
        content=page.content,
        url=page.final_url or row.url,
        media_type=page.media_type,
        charset=page.charset,
    )


def rows_of(batch: Any) -> list[dict[str, Any]]:
    """Return the rows of an Arrow table or batch; text that is no UTF-8 stays bytes."""
    arrow, _ = parquet_packages()
    binary = {arrow.string(): arrow.binary(), arrow.large_string(): arrow.large_binary()}
    read = [
        [_as_text(value) for value in column.cast(binary[column.type]).to_pylist()]
        if column.type in binary
        else column.to_pylist()
        for column in batch.columns
    ]
    return [dict(zip(batch.schema.names, values, strict=True)) for values in zip(*read, strict=True)]


def _as_text(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def _row_of_record(number: int, entry: Any) -> Row:
    if entry.page is None:
        kind = "large" if entry.large else "source" if entry.last else "page"
        return Row(number, entry.url, entry.id, error=entry.error, kind=kind)
    page = entry.page
    return Row(number, page.url, entry.id, page.content, page.media_type, page.charset)


def _row_of_line(number: int, line: bytes, settings: Settings) -> Row:
    try:
        values = json.loads(line)
    except RecursionError:
        return Row(number, error=f"line {number}: nested too deep to be read", kind="page")
    except ValueError as error:
        return Row(number, error=f"line {number}: not valid JSON ({one_line(str(error))})", kind="page")
    if not isinstance(values, dict):
        return Row(number, error=f"line {number}: not a JSON object", kind="page")
    return row_of(number, values, f"line {number}", settings)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@lru_cache(maxsize=1024)
def _is_readable(media_type: str) -> bool:
    """Tell whether documents of a media type are read; what is called binary may be anything, and is not."""
    try:
        formats().media_type(media_type)
    except BadInput:
        return False
    return True


@contextmanager
def _open(name: str, packed: bool) -> Iterator[BinaryIO]:
    if name == STDIN:
        try:
            # A file object of its own: a thread that reads sys.stdin would make the interpreter fail as it ends.
            yield open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
        except io.UnsupportedOperation:  # a test's standard input has no descriptor
            yield sys.stdin.buffer
        return
    try:
        file = path_of(name).open("rb")  # closed below, so that this `except` catches only the opening
    except OSError as error:
        raise BadPage(f"{name}: cannot be read ({error.strerror})", subject=name) from error
    with file:
        if packed:
            with gzip.open(file) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield file


def _to_end_of_line(file: BinaryIO) -> int:
    """Read up to the end of a line in bounded memory; return the bytes read."""
    size = 0
    while piece := file.readline(1 << 20):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _groups_from(metadata: Any, rows: int) -> tuple[list[int], int]:
    """Return the row groups of a Parquet file that hold what follows some rows, and the first row's number."""
    first, before = 0, 0
    while first < metadata.num_row_groups and before + metadata.row_group(first).num_rows <= rows:
        before += metadata.row_group(first).num_rows
        first += 1
    return list(range(first, metadata.num_row_groups)), before + 1


def parquet_packages() -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    :raises MissingExtra: the package is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(
            f"Parquet and Arrow need the package pyarrow; run: {pip_install('parquet')}", subject="pyarrow"
        ) from error
    return pyarrow, pyarrow.parquet
