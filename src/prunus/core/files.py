"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import BadInput


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it first, then renamed.

    :raises BadInput: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        real = path.resolve()
        if real.exists() and not real.is_file():  # a device or a pipe is written to, never replaced
            real.write_bytes(content)
            return
        beside = real.with_name(f".prunus-{os.getpid()}.tmp")
        try:
            beside.write_bytes(content)
            os.replace(beside, real)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror})", subject=str(path)) from error
