"""The tokenizer of SmolLM2, which ships with Prunus: 49,152 tokens of bytes; special tokens are plain text."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..encoding import packed_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LOCK = threading.Lock()


@lru_cache(maxsize=1)
def _load() -> Tokenizer:
    return packed_tokenizer(Path(__file__).with_name("tokenizer.json.gz"))


def smollm2_tokenizer() -> Tokenizer:
    """Return the tokenizer of SmolLM2, loaded once for the process and shared (it is thread-safe)."""
    with _LOCK:
        return _load()
