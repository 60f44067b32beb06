"""Sentences that no model names, the baselines of extractors: ``sentences:bm25:3`` and ``sentences:all``.

``bm25:K`` names the K best sentences, whether or not they answer; ``all`` names every sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prunus.core.text.numbers import bounded_int
from prunus_evals.bm25 import BM25
from prunus_evals.errors import UnknownName
from prunus_evals.records import Document, System
from prunus_evals.systems._extract import Extractor, Named
from prunus_evals.tokens import Counter

VARIANTS = ("bm25:3", "all")
MOST = 10**6


def best(question: str, texts: Sequence[str], count: int) -> list[int]:
    """Return the places of the texts that BM25 finds best, in the order of the texts."""
    return sorted(np.argsort(-BM25(texts).scores(question), kind="stable")[:count].tolist())


def _count(variant: str) -> int | None:
    """Return the number of ``bm25:K``; None for ``all``.

    :raises UnknownName: it is neither.
    """
    kind, _, digits = variant.partition(":")
    if variant == "all":
        return None
    count = bounded_int(digits, 0, most=MOST) if kind == "bm25" and digits.isdecimal() else 0
    if not count:
        raise UnknownName(f"sentences:{variant} names no sentences; take sentences:bm25:3, or sentences:all")
    return count


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: another number.

    :raises UnknownName: it cannot.
    """
    _count(variant)
    return True


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    count = _count(variant)

    def extract(question: str, sentences: Sequence[str], documents: Sequence[Document]) -> Named:
        return Named(range(len(sentences)) if count is None else best(question, sentences, count))

    return Extractor(f"sentences:{variant}", extract, counter)
