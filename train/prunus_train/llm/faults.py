"""Faults of the machine in one line: no memory, no space."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prunus_train.errors import TrainError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_WORDS = ("No space left", "File too large", "PytorchStreamWriter failed", "unexpected pos", "Disk quota")
_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "Cannot allocate memory")


class OutOfMemory(TrainError):
    """The machine has no memory for this training."""


class NoSpace(TrainError):
    """The disk is full."""


@contextmanager
def plain_faults(work: Path) -> Iterator[None]:
    """Turn faults of the machine into errors of one line.

    :param work: folder of the checkpoints, which stay.
    :raises OutOfMemory: with advice.
    :raises NoSpace: a file could not be written.
    """
    try:
        yield
    except TrainError:
        raise
    except Exception as error:
        chain = list(_chain(error))
        kept = f"checkpoints in {work} are kept; run the same command to go on"
        if any(isinstance(one, MemoryError) or _says(one, _MEMORY_WORDS) for one in chain):
            raise OutOfMemory(
                "out of memory: give --checkpointing, a smaller --window (longer samples are left out) or --lora 16; "
                f"checkpoints in {work} are kept, and go on after a change of --checkpointing alone"
            ) from error
        if any((isinstance(one, OSError) and one.errno in _FULL) or _says(one, _FULL_WORDS) for one in chain):
            raise NoSpace(f"no space left to write in {work}: free some; {kept}") from error
        raise


def check_space(folder: Path, needed: int) -> None:
    """Look whether a disk has room for the checkpoints, before hours of work.

    :param needed: bytes.
    :raises NoSpace: it has not.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpace(
            f"{folder} has {free / 1e9:.1f} GB free, and two checkpoints and the model need about {needed / 1e9:.1f}: "
            "free some, name another folder by --work, or train by LoRA (--lora 16)"
        )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return (isinstance(error, RuntimeError | OSError | ValueError) and any(word in str(error) for word in words)) or (
        type(error).__name__ == "SafetensorError" and any(word in str(error) for word in words)
    )
