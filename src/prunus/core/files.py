"""Write files whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import BadInput


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file through a temporary file beside it, so that no reader ever sees half of it.

    :raises BadInput: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        real = path.resolve()
        if real.exists() and not real.is_file():  # a device or a pipe must not be replaced by a file
            real.write_bytes(content)
            return
        temporary = real.with_name(f".prunus-{os.getpid()}.tmp")
        try:
            temporary.write_bytes(content)
            os.replace(temporary, real)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror})", subject=str(path)) from error
