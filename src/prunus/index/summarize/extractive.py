"""``extractive`` (default): the summary is the central, different sentences of a group, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.ports import Embedder, Ints, TokenCounter
from ...core.text.words import normalise, sentences
from ...core.types import Summary
from ._shorten import shortened

_MOST: Final = 600
"""Most sentences of a group that are compared; of more sentences every second, third, … is taken."""
_SHORTEST: Final = 3
"""Fewest words of a sentence; shorter lines are used only where a group has no longer line."""


class Engine:
    """Chooses sentences by maximal marginal relevance (Carbonell and Goldstein 1998) to the group's mean.

    :param embedder: embeds the sentences.
    :param tokenizer: counts the tokens of the summary.
    :param novelty: weight of the similarity to the nearest chosen sentence, which is subtracted from the similarity to
        the mean.
    """

    name = "extractive"
    identity = "extractive"

    def __init__(self, embedder: Embedder, tokenizer: TokenCounter, novelty: float = 0.5) -> None:
        self.embedder, self.tokenizer, self.novelty = embedder, tokenizer, novelty

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return a summary of at most ``max_tokens`` tokens for each group; '' for a group without words."""
        return await asyncio.to_thread(lambda: [Summary(self._summary(texts, max_tokens)) for texts in batch])

    def _summary(self, texts: Sequence[str], max_tokens: int) -> str:
        lines = _sentences(texts)
        if not lines:
            return ""
        tokens = self.tokenizer.count(lines)
        fitting = [at for at in range(len(lines)) if tokens[at] < max_tokens]
        if not fitting:
            return shortened(min(lines, key=len), max_tokens, self.tokenizer.count)
        lines, tokens = [lines[at] for at in fitting], tokens[fitting]
        vectors = np.asarray(self.embedder.embed(lines, "document"), np.float32)
        chosen: list[int] = []
        for at in _by_relevance(vectors, tokens, max_tokens, self.novelty):
            summary = " ".join(lines[index] for index in sorted([*chosen, at]))
            if int(self.tokenizer.count([summary])[0]) <= max_tokens:
                chosen.append(at)
        return " ".join(lines[index] for index in sorted(chosen))


def _sentences(texts: Sequence[str]) -> list[str]:
    """Return the sentences of a group, each once, in order."""
    result: dict[str, str] = {}
    for text in texts:
        for sentence in sentences(text):
            line = " ".join(sentence.split())
            if line:
                result.setdefault(normalise(line), line)
    lines = list(result.values())
    long = [line for line in lines if len(line) > 60 or len(line.split()) >= _SHORTEST or not line.isascii()]
    lines = long or lines
    return lines[:: 1 + (len(lines) - 1) // _MOST] if lines else lines


def _by_relevance(vectors: NDArray[np.float32], tokens: Ints, budget: int, novelty: float) -> list[int]:
    """Return places of sentences by marginal relevance, until no further sentence fits the budget."""
    mean: Any = vectors.mean(axis=0)
    central = vectors @ (mean / max(float(np.linalg.norm(mean)), 1e-9))
    nearest = np.full(len(vectors), -np.inf)
    available = np.ones(len(vectors), bool)
    result: list[int] = []
    remaining = budget
    while True:
        value = central - novelty * np.where(np.isfinite(nearest), nearest, 0.0)
        value = np.where(available & (tokens <= remaining), value, -np.inf)
        best = int(value.argmax())
        if not np.isfinite(value[best]):
            return result
        result.append(best)
        available[best] = False
        remaining -= int(tokens[best])
        nearest = np.maximum(nearest, vectors @ vectors[best])
