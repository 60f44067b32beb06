"""Write files whole or not at all, and open files of folders that may be a stranger's."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Any

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


def open_regular(path: Path, mode: str) -> IO[Any]:
    """Open a file that must be one: a link may lead to a file of the user, and a pipe never ends.

    :raises OSError: it is a link, a pipe, a device or a folder, or as ``open``.
    """
    return open(path, mode, opener=_open_regular)


def _open_regular(path: str, flags: int) -> int:
    # not every system has links and pipes; without O_NONBLOCK, opening a pipe waits for its other end
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no file", path)
    return handle
