"""``extractive`` (default): the summary is the central, different sentences of a group, in their order.

Of the rows of a table the summary says which table it is, and its first and last row: ``Levels Month cm: May – July.``
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
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


_LABEL: Final = 200
"""Code points of the name of a table at most."""
_NAME: Final = 80
"""Code points of the name of a row at most."""
_CELLS: Final = re.compile(r"\t+")
_RANGE: Final = re.compile(r"([^\n]{1,200}?): ([^\n–]{1,80}) – ([^\n–]{1,80})\.")
"""A sentence on the rows of a table: the table, its first and its last row."""


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
    """Return the sentences of a group, each once, in order; those on the rows of a table are joined."""
    result: dict[str, str] = {}
    for text in texts:
        for line in _lines(text):
            rows = _RANGE.fullmatch(line)
            name = normalise(rows[1] if rows else line)
            earlier = _RANGE.fullmatch(result.get(name, ""))
            result[name] = f"{rows[1]}: {earlier[2]} – {rows[3]}." if rows and earlier else result.get(name, line)
    lines = list(result.values())
    long = [line for line in lines if len(line) > 60 or len(line.split()) >= _SHORTEST or not line.isascii()]
    lines = long or lines
    return lines[:: 1 + (len(lines) - 1) // _MOST] if lines else lines


def _lines(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each on one line, and one for each run of rows with the line above it."""
    table = ""
    groups = [(rows, list(lines)) for rows, lines in groupby(text.split("\n"), lambda line: "\t" in line.strip())]
    for place, (has_rows, lines) in enumerate(groups):
        if has_rows:
            yield from _of_rows([_CELLS.split(line.strip()) for line in lines], table)
            table = ""
            continue
        last = " ".join(lines[-1].split())
        if place + 1 < len(groups) and len(last) <= _LABEL and last[-1:] not in ".!?":
            table = last
            del lines[-1]
        yield from filter(None, (" ".join(sentence.split()) for sentence in sentences("\n".join(lines))))


def _of_rows(rows: Sequence[Sequence[str]], table: str) -> Iterator[str]:
    """Yield a line on rows: their table and its first and last row; of labels with values, each label and value.

    :param table: the line above the rows, which names them.
    """
    first = rows[0]
    with_header = len(rows) > 1 and not _has_digit(first) and any(map(_has_digit, rows[1:]))
    below = rows[1:] if with_header else rows
    if not with_header and max(map(len, rows)) == 2:
        yield from (f"{row[0].rstrip(': ')}: {' '.join(row[1:])}" for row in rows)
        return
    table = " ".join([table, *(first if with_header else [])])[:_LABEL].strip()
    span = " – ".join(dict.fromkeys(row[0][:_NAME].strip() for row in (below[0], below[-1])))
    yield f"{table}: {span}." if table else f"{span}."


def _has_digit(row: Sequence[str]) -> bool:
    return any(letter.isdigit() for cell in row for letter in cell)


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
