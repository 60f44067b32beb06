"""Full-text search in PostgreSQL: a node's words as a tsvector, and BM25 scores as SQLite computes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ....core.text.bm25 import QUERY_NOISE, stem, tokens

_LONGEST = 400
"""Most letters of a word; PostgreSQL refuses words over two kilobytes."""

_LAST = 16_383
"""The last position of a word that a tsvector can hold."""

_TERMS = 64
"""Most words of a question that are searched, the first ones."""

K1, B = 1.2, 0.75
"""BM25's parameters, as SQLite's full text has them."""


def clean(text: str) -> str:
    """Return text that PostgreSQL accepts: a lone surrogate and a NUL are replaced by one code point each."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def vector_of(text: str, above: str, language: str) -> tuple[str, int]:
    """Return (stemmed words as a tsvector, number of words); words of the headings ``above`` have the weight D."""
    places: dict[str, list[str]] = {}
    position = 0
    for part, weight in ((text, "A"), (above, "D")):
        for word in stem(tokens(clean(part)), language):
            position += 1
            places.setdefault(word[:_LONGEST], []).append(f"{min(position, _LAST)}{weight}")
    return " ".join(f"{_quoted(word)}:{','.join(at)}" for word, at in places.items()), position


def terms_of(query: str, languages: Sequence[str]) -> list[str]:
    """Return the terms of a question, stemmed in every language of the index."""
    words = tokens(clean(query))
    words = [word for word in words if word not in QUERY_NOISE] or words
    words = list(dict.fromkeys(words))[:_TERMS]
    found = sorted({stemmed[:_LONGEST] for language in languages or [""] for stemmed in stem(words, language)})
    return found[: 2 * _TERMS]


def any_of(terms: Sequence[str]) -> str:
    """Return a tsquery for nodes that hold at least one of the terms."""
    return " | ".join(_quoted(term) for term in terms)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def bm25(rows: Iterable[tuple[int, int, str, float]], count: int, average: float) -> dict[int, float]:
    """Return the BM25 score of each node, by the formula of SQLite's full text, so that both stores rank alike.

    :param rows: (node, number of its words, term, weighted frequency) of every match.
    :param count: number of all nodes.
    :param average: mean number of words of a node.
    """
    found = list(rows)
    holding: dict[str, int] = {}
    for _, _, term, _ in found:
        holding[term] = holding.get(term, 0) + 1
    rarity = {term: max(1e-6, math.log((count - n + 0.5) / (n + 0.5))) for term, n in holding.items()}
    scores: dict[int, float] = {}
    for node, words, term, frequency in found:
        length = K1 * (1 - B + B * words / (average or 1.0))
        scores[node] = scores.get(node, 0.0) + rarity[term] * frequency * (K1 + 1) / (frequency + length)
    return scores
