"""Write the vectors and the vocabulary as the embedder ``static`` reads them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from tokenizers import Tokenizer

from prunus.core.files import write_bytes

VECTORS = "vectors.safetensors"
VOCABULARY = "tokenizer.json.gz"


def quantised(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Return int8 rows and their scales, float16; each row uses the whole range."""
    scales = (np.abs(table).max(1) / 127).astype(np.float16)
    divisors = np.where(scales == 0, 1, scales).astype(np.float32)[:, None]
    return np.clip(np.rint(table / divisors), -127, 127).astype(np.int8), scales


def write_vectors(table: NDArray[np.float32], folder: Path) -> None:
    """Write a table of vectors into a folder, in eight bits."""
    rows, scales = quantised(table)
    write_bytes(folder / VECTORS, save({"vectors": rows, "scales": scales}))


def write_vocabulary(tokenizer: Tokenizer, folder: Path) -> None:
    """Write a tokenizer into a folder; equal tokenizers give equal files."""
    write_bytes(folder / VOCABULARY, gzip.compress(tokenizer.to_str().encode("utf-8"), 9, mtime=0))


def read_vocabulary(folder: Path) -> Tokenizer:
    """Return the tokenizer of a folder."""
    return Tokenizer.from_str(gzip.decompress((folder / VOCABULARY).read_bytes()).decode("utf-8"))
