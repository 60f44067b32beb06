"""Small vocabularies built by the tests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

URL = "https://vocabularies.invalid/encodings/tiny.tiktoken"


def tiny_file() -> bytes:
    """Return a vocabulary: every byte, and a few pairs."""
    tokens = [bytes([one]) for one in range(256)] + [b"th", b"he", b"the", b"in", b"ing"]
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


def tiny_encoding() -> Callable[[], dict[str, Any]]:
    """Return a constructor of an encoding, as tiktoken's own are written."""
    names: dict[str, Any] = {}
    source = f"""
from tiktoken.load import load_tiktoken_bpe, data_gym_to_mergeable_bpe_ranks

def tiny():
    ranks = load_tiktoken_bpe({URL!r}, expected_hash={hashlib.sha256(tiny_file()).hexdigest()!r})
    return {{"name": "tiny", "pat_str": r"\\s*\\S+|\\s+", "mergeable_ranks": ranks, "special_tokens": {{"<|end|>": 300}}}}

def larger():
    return {{**tiny(), "name": "larger"}}
"""
    exec(source, names)
    return names["larger"]


def tiny_folder(path: Path) -> Path:
    """Write the vocabulary into a folder."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "tiny.tiktoken").write_bytes(tiny_file())
    return path


def tiny_tokenizer(path: Path) -> Path:
    """Write a ``tokenizer.json`` of bytes, which knows every text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(sorted(letters))}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(path))
    return path
