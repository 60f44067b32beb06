"""Where the real data and the reference are; the only place that reads the environment."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prunus_evals.errors import DataMissing

VARIABLE = "PRUNUS_DATA"
REFERENCE_VARIABLE = "HTMLRAG_ENVIRONMENT"
REFERENCE_DEFAULT = "build/reference"


def data_folder() -> Path:
    """Return the data folder that the environment names."""
    value = os.environ.get(VARIABLE)
    if not value:
        raise DataMissing(f"set {VARIABLE} to the folder that holds the evaluation data")
    folder = Path(value)
    if not folder.is_dir():
        raise DataMissing(f"{VARIABLE} names {folder}, which is not a folder")
    return folder


def reference_folder() -> Path:
    """Return the folder of the reference's own environment."""
    return Path(os.environ.get(REFERENCE_VARIABLE) or REFERENCE_DEFAULT)


def rows(name: str, folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of one data file, e.g. ``rows("table_qa/questions")``."""
    path = (folder or data_folder()) / f"{name}.jsonl.xz"
    if not path.is_file():
        raise DataMissing(f"{path} is missing")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
