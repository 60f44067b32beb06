"""Words in the stores `postgres` and `lance`, and what all stores need for BM25.

PostgreSQL holds the words of a node as a tsvector, and asks for those of a question by a tsquery.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...core.text.bm25 import QUERY_NOISE, stem, tokens

_LONGEST = 400
"""Most letters of a word; PostgreSQL refuses words over two kilobytes."""

_LAST = 16_383
"""The last position of a word that a tsvector can hold."""

_MOST_PLACES = 255
"""Most places of one word in a tsvector."""

_WEIGHTS = "DCBA"
"""Weights of a tsvector by their number."""

_TERMS = 64
"""Most words of a question that are searched, the first ones."""

K1, B = 1.2, 0.75
"""BM25's parameters, as SQLite's full text has them."""


def clean(text: str) -> str:
    """Return text that PostgreSQL accepts: a lone surrogate and a NUL are replaced by one code point each."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def vector_of(text: str, above: str, language: str) -> tuple[str, int]:
    """Return (stemmed words as a tsvector, number of words); words of the headings ``above`` have the weight D."""
    places, count = _places(text, above, language)
    parts = (
        f"{_quoted(word)}:{','.join(f'{at & _LAST}{_WEIGHTS[at >> 14]}' for at in result)}"
        for word, result in places.items()
    )
    return " ".join(parts), count


def packed(text: str, above: str, language: str) -> tuple[bytes, int]:
    """Return what :func:`vector_of` does, in PostgreSQL's binary format."""
    places, count = _places(text, above, language)
    parts = [len(places).to_bytes(4, "big")]
    for word, result in places.items():
        parts += [word.encode(), b"\0", struct.pack(f">H{len(result)}H", len(result), *result)]
    return b"".join(parts), count


def _places(text: str, above: str, language: str) -> tuple[dict[str, list[int]], int]:
    """Return the places of each stemmed word, with the weight in the upper two bits, and the number of words."""
    places: dict[str, list[int]] = {}
    position = 0
    for part, weight in ((text, _WEIGHTS.index("A")), (above, _WEIGHTS.index("D"))):
        for word in stem(tokens(clean(part)), language):
            position += 1
            result, at = places.setdefault(word[:_LONGEST], []), min(position, _LAST)
            if len(result) < _MOST_PLACES and not (result and result[-1] & _LAST == at):
                result.append(at | weight << 14)
    return places, position


def terms_of(query: str, languages: Sequence[str]) -> list[str]:
    """Return the terms of a question, stemmed in every language of the index."""
    words = tokens(clean(query))
    words = [word for word in words if word not in QUERY_NOISE] or words
    words = list(dict.fromkeys(words))[:_TERMS]
    result = sorted({stemmed[:_LONGEST] for language in languages or [""] for stemmed in stem(words, language)})
    return result[: 2 * _TERMS]


def any_of(terms: Sequence[str]) -> str:
    """Return a tsquery for nodes that hold at least one of the terms."""
    return " | ".join(_quoted(term) for term in terms)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
