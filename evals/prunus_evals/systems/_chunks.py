"""Shared by the systems of chunks: cut text into chunks, and pack the best of them into the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prunus_evals.tokens import Counter


def word_chunks(text: str, size: int) -> list[str]:
    """Cut a text into chunks of at most ``size`` words; line ends inside a chunk are kept."""
    chunks: list[str] = []
    lines: list[str] = []
    room = size
    for line in text.split("\n"):
        parts = line.split()
        while parts:
            head, parts = parts[:room], parts[room:]
            lines.append(" ".join(head))
            room -= len(head)
            if room == 0:
                chunks.append("\n".join(lines))
                lines, room = [], size
    if lines:
        chunks.append("\n".join(lines))
    return chunks


def token_chunks(text: str, size: int, overlap: int, counter: Counter) -> list[str]:
    """Cut a text into chunks of at most ``size`` tokens, each of which begins ``overlap`` tokens before the last ends.

    Linear in the length of the text: each chunk is cut from a window of 16 letters a token.
    """
    chunks: list[str] = []
    start = 0
    while start < len(text):
        chunk = counter.head(text[start : start + 16 * size], size)
        if not chunk:  # a letter of more tokens than a chunk
            break
        if chunk.strip():
            chunks.append(chunk.strip())
        if start + len(chunk) >= len(text):
            break
        start += max(1, len(counter.head(chunk, size - overlap)))
    return chunks


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of one page with their tokens, each counted once."""

    texts: Sequence[str]
    costs: Sequence[int]
    glue: str
    counter: Counter

    def join(self, kept: Mapping[int, str]) -> str:
        """Join texts in the order of their chunks' indexes."""
        return self.glue.join(kept[index] for index in sorted(kept))

    def size(self, kept: Mapping[int, str]) -> int:
        """Count the tokens of the joined texts."""
        return self.counter.count([self.join(kept)])[0]


def pack_whole(chunks: Chunks, ranking: Sequence[int], budget: int) -> dict[int, str]:
    """Take whole chunks by rank; a chunk that does not fit is skipped."""
    kept: list[int] = []
    used = 0
    for index in ranking:
        if used + chunks.costs[index] <= budget:
            kept.append(index)
            used += chunks.costs[index]
    texts = {index: chunks.texts[index] for index in kept}
    # the joined text can have more tokens than its parts: the glue costs, and so may the first word of a part
    while texts and chunks.size(texts) > budget:
        del texts[kept.pop()]
    return texts


def pack_filled(chunks: Chunks, ranking: Sequence[int], budget: int) -> dict[int, str]:
    """Take chunks by rank; the first chunk that does not fit is cut to fill the rest of the budget."""
    texts: dict[int, str] = {}
    used = 0
    order = iter(ranking)
    for index in order:
        texts[index] = chunks.texts[index]
        used += chunks.costs[index]
        if used > budget:
            break
    taken = list(texts)
    while texts and chunks.size(texts) > budget:
        last = taken.pop()
        del texts[last]
        room = budget - (chunks.size(texts) if texts else 0)
        while room > 0:
            cut = texts | {last: chunks.counter.head(chunks.texts[last], room)}
            over = chunks.size(cut) - budget
            if over <= 0:
                return cut
            room -= over
    return texts


PACKERS = {"whole": pack_whole, "filled": pack_filled}
