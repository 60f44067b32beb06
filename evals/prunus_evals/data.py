"""The real data and how it is read, and the folder of the reference package.

The only file here that reads the environment.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from prunus_evals.errors import DataMissing, DataWrong

VARIABLE = "PRUNUS_DATA"
REFERENCE_VARIABLE = "HTMLRAG_ENVIRONMENT"
TRAINING_VARIABLE = "PRUNUS_TRAINING"
REFERENCE_DEFAULT = "build/reference"


def data_folder() -> Path:
    """Return the data folder that ``PRUNUS_DATA`` names.

    :raises DataMissing: the variable is not set, or does not name a folder.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        raise DataMissing(f"the evaluation data is missing: set {VARIABLE} to its folder (own:FILE needs none)")
    folder = Path(value)
    if not folder.is_dir():
        raise DataMissing(f"{VARIABLE} is {folder}, which is not a folder")
    return folder


def reference_folder() -> Path:
    """Return the folder of the reference package's environment."""
    return Path(os.environ.get(REFERENCE_VARIABLE) or REFERENCE_DEFAULT)


def training_files() -> list[Path]:
    """Return the files of training data that ``PRUNUS_TRAINING`` names, separated as paths are."""
    return [Path(name) for name in os.environ.get(TRAINING_VARIABLE, "").split(os.pathsep) if name]


class Row(dict[str, Any]):
    """A JSON object of a data file; the objects inside it are rows, too.

    ``row["x"]`` and the methods raise :class:`.errors.DataWrong` where a field is missing or of another type.

    :param place: the file and the line, for errors.
    """

    def __init__(self, place: str, values: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()) -> None:
        super().__init__(values)
        self.place = place

    def __missing__(self, name: str) -> Any:
        raise DataWrong(f"{self.place}: the field {name!r} is missing")

    def wrong(self, what: str) -> DataWrong:
        """Return an error that names the place of the row."""
        return DataWrong(f"{self.place}: {what}")

    def text(self, name: str) -> str:
        """Return a field that must be a text; a lone surrogate in it becomes a question mark."""
        value = self[name]
        if not isinstance(value, str):
            raise self.wrong(f"{name!r} must be a text, not {_type(value)}")
        return _encodable(value)

    def name(self, name: str) -> str:
        """Return a field that must be a text or a whole number, as a text."""
        return self.text(name) if isinstance(self[name], str) else str(self.number(name))

    def number(self, name: str) -> int:
        """Return a field that must be a whole number."""
        value = self[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(f"{name!r} must be a whole number, not {_type(value)}")
        return value

    def items_of(self, name: str) -> list[Any]:
        """Return a field that must be a list."""
        value = self[name]
        if not isinstance(value, list):
            raise self.wrong(f"{name!r} must be a list, not {_type(value)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that must be a list of texts."""
        values = self.items_of(name)
        for value in values:
            if not isinstance(value, str):
                raise self.wrong(f"{name!r} must be a list of texts, and holds {_type(value)}")
        return tuple(map(_encodable, values))

    def rows(self, name: str) -> list[Row]:
        """Return a field that must be a list of objects."""
        values = self.items_of(name)
        for value in values:
            if not isinstance(value, Row):
                raise self.wrong(f"{name!r} must be a list of objects, and holds {_type(value)}")
        return values


def _type(value: object) -> str:
    names = {type(None): "null", bool: "true or false", str: "a text", list: "a list", Row: "an object"}
    return names.get(type(value), "a number")


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def rows(name: str, folder: Path | None = None) -> Iterator[Row]:
    """Yield the JSON objects of one data file, as of ``rows("table_qa/questions")``.

    :param folder: the data folder; by default that of ``PRUNUS_DATA``.
    :raises DataMissing: the file or the folder is missing.
    :raises DataWrong: a line is not a JSON object.
    """
    path = (folder or data_folder()) / f"{name}.jsonl.xz"
    if not path.is_file():
        raise DataMissing(f"{path} is missing from the evaluation data")
    return (row for _, row in Lines(path))


def find(files: str) -> Path:
    """Return the path of a data file.

    :param files: relative to the data folder; the first that exists of several, separated by ``|``.
    :raises DataMissing: none of them is here.
    """
    folder = data_folder()
    for file in files.split("|"):
        if (folder / file).exists():
            return folder / file
    raise DataMissing(f"{' or '.join(files.split('|'))} is not in {folder}")


class Lines:
    """The JSON objects of a file with one a line, which may be packed (``.xz``, ``.gz``); empty lines are skipped.

    Iterating yields each with its offset; :meth:`at` reads one again, so that no more than one need be in memory.

    :raises DataMissing: the file cannot be opened.
    :raises DataWrong: a line is not a JSON object.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        with _opened(self.path) as file:
            offset = 0
            for number, line in enumerate(_read(file, self.path), 1):
                if line.strip():
                    yield offset, _row(line, f"{self.path}, line {number}")
                offset += len(line)

    def at(self, offset: int, place: str) -> Row:
        """Return the object at an offset.

        :param place: that of the row, for errors.
        """
        with _opened(self.path) as file:
            file.seek(offset)
            return _row(file.readline(), place)


def _opened(path: Path) -> BinaryIO:
    opener = cast(Callable[[Path], BinaryIO], {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, _plain))
    try:
        return opener(path)
    except OSError as error:
        raise DataMissing(f"{path} cannot be read: {error.strerror}") from error


def _plain(path: Path) -> BinaryIO:
    return path.open("rb")


def _read(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        yield from file
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataWrong(f"{path} is damaged: {error}") from error


def _row(line: bytes, place: str) -> Row:
    value = _json(line, place)
    if not isinstance(value, Row):
        raise DataWrong(f"{place}: a line must be a JSON object, not {_type(value)}")
    return value


def _json(text: bytes, place: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: Row(place, pairs))
    except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError, too
        raise DataWrong(f"{place}: not JSON ({error})") from error


def whole(path: Path) -> Any:
    """Return the value of a file that is one JSON value; its objects are rows.

    :raises DataMissing: the file cannot be opened.
    :raises DataWrong: it is not JSON.
    """
    with _opened(path) as file:
        return _json(b"".join(_read(file, path)), str(path))


def listed(path: Path) -> list[Row]:
    """Return the objects of a file that is one JSON list; errors in them name their number, from 1.

    :raises DataMissing: the file cannot be opened.
    :raises DataWrong: it is not a list of JSON objects.
    """
    values = whole(path)
    if not isinstance(values, list):
        raise DataWrong(f"{path} must be a JSON list, not {_type(values)}")
    for number, value in enumerate(values, 1):
        if not isinstance(value, Row):
            raise DataWrong(f"{path}, item {number}: must be an object, not {_type(value)}")
        value.place = f"{path}, item {number}"
    return values


def missing_files(files: Sequence[str], source: str) -> str:
    """Return which data files are missing and where they come from; '' where all are here."""
    if not files:
        return ""
    try:
        folder = data_folder()
    except DataMissing as error:
        return str(error)
    gone = [group for group in files if not any((folder / file).exists() for file in group.split("|"))]
    if not gone:
        return ""
    first, *others = gone[0].split("|")
    more = f" or one of {len(others)} more" if len(others) > 1 else "".join(f" or {other}" for other in others)
    return f"{first}{more} is not in {folder}; source: {source}"
