"""The folders of the real data and of the reference package; the only file here that reads the environment."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from prunus_evals.errors import DataMissing

VARIABLE = "PRUNUS_DATA"
REFERENCE_VARIABLE = "HTMLRAG_ENVIRONMENT"
REFERENCE_DEFAULT = "build/reference"


def data_folder() -> Path:
    """Return the data folder that ``PRUNUS_DATA`` names.

    :raises DataMissing: the variable is not set, or does not name a folder.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        raise DataMissing(f"the evaluation data is missing: set {VARIABLE} to its folder")
    folder = Path(value)
    if not folder.is_dir():
        raise DataMissing(f"{VARIABLE} is {folder}, which is not a folder")
    return folder


def reference_folder() -> Path:
    """Return the folder of the reference package's environment."""
    return Path(os.environ.get(REFERENCE_VARIABLE) or REFERENCE_DEFAULT)


def rows(name: str, folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of one data file, as of ``rows("table_qa/questions")``.

    :param folder: the data folder; by default that of ``PRUNUS_DATA``.
    :raises DataMissing: the file or the folder is missing.
    """
    path = (folder or data_folder()) / f"{name}.jsonl.xz"
    if not path.is_file():
        raise DataMissing(f"{path} is missing from the evaluation data")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def missing_files(files: Sequence[str], source: str) -> str:
    """Return which data files are missing and where they come from; '' where all are here."""
    try:
        folder = data_folder()
    except DataMissing as error:
        return str(error)
    gone = [group for group in files if not any((folder / file).exists() for file in group.split("|"))]
    return f"{gone[0]} is not in {folder}; source: {source}" if gone else ""
