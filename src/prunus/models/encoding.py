"""Read tokenizers of the ``tokenizers`` library, and encode many texts in bounded memory."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_BATCH_TEXTS: Final = 4096
_BATCH_LETTERS: Final = 200_000


def packed_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a ``tokenizer.json.gz``, which cuts and pads nothing."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode("utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


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
