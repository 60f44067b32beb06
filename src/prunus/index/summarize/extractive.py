"""``extractive`` (default): the central sentences of a group that do not repeat each other, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder, Ints, TokenCounter
from ...core.text.words import normalise, sentences
from ...core.types import Summary

_MOST: Final = 600
"""Sentences of a group that are compared; of more, every second, third … one."""
_SHORTEST: Final = 3
"""Words below which a line is no sentence, where longer ones are there."""


class Engine:
    """Chooses sentences by maximal marginal relevance (Carbonell and Goldstein 1998) to the group's mean.

    :param embedder: of the sentences.
    :param tokenizer: counts the summary.
    :param novelty: what likeness to a sentence already chosen takes off, against likeness to the mean.
    """

    name = "extractive"
    identity = "extractive"

    def __init__(self, embedder: Embedder, tokenizer: TokenCounter, novelty: float = 0.5) -> None:
        self.embedder, self.tokenizer, self.novelty = embedder, tokenizer, novelty

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary a group of at most ``max_tokens`` tokens; '' where the group shows no word."""
        return [Summary(text) for text in await asyncio.to_thread(self._all, batch, max_tokens)]

    def _all(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[str]:
        return [self._one(texts, max_tokens) for texts in batch]

    def _one(self, texts: Sequence[str], max_tokens: int) -> str:
        said = _sentences(texts)
        if not said:
            return ""
        tokens = self.tokenizer.count(said)
        fitting = [place for place in range(len(said)) if tokens[place] < max_tokens]
        if not fitting:
            return _shortened(min(said, key=len), max_tokens, self.tokenizer)
        said, tokens = [said[place] for place in fitting], tokens[fitting]
        vectors = np.asarray(self.embedder.embed(said, "document"), np.float32)
        chosen: list[int] = []
        for place in _by_relevance(vectors, tokens, max_tokens, self.novelty):
            together = " ".join(said[one] for one in sorted([*chosen, place]))
            if int(self.tokenizer.count([together])[0]) <= max_tokens:
                chosen.append(place)
        return " ".join(said[one] for one in sorted(chosen))


def _sentences(texts: Sequence[str]) -> list[str]:
    """Return the sentences of a group, each once, in order."""
    found: dict[str, str] = {}
    for text in texts:
        for sentence in sentences(text):
            line = " ".join(sentence.split())
            if line:
                found.setdefault(normalise(line), line)
    said = list(found.values())
    long = [line for line in said if len(line) > 60 or len(line.split()) >= _SHORTEST or not line.isascii()]
    said = long or said
    return said[:: 1 + (len(said) - 1) // _MOST] if said else said


def _by_relevance(vectors: NDArray[np.float32], tokens: Ints, budget: int, novelty: float) -> list[int]:
    """Order sentences by likeness to the mean less likeness to those before; stop when the budget is full."""
    mean: Any = vectors.mean(axis=0)
    central = vectors @ (mean / max(float(np.linalg.norm(mean)), 1e-9))
    nearest = np.full(len(vectors), -np.inf)
    open_ones = np.ones(len(vectors), bool)
    found: list[int] = []
    left = budget
    while True:
        value = central - novelty * np.where(np.isfinite(nearest), nearest, 0.0)
        value = np.where(open_ones & (tokens <= left), value, -np.inf)
        best = int(value.argmax())
        if not np.isfinite(value[best]):
            return found
        found.append(best)
        open_ones[best] = False
        left -= int(tokens[best])
        nearest = np.maximum(nearest, vectors @ vectors[best])


def _shortened(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """Return the longest beginning of a text, by halving, that is within the budget."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if int(counter.count([text[:middle]])[0]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low].strip()
