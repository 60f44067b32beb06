"""Chunks, cut at headings or of a fixed size, ranked by BM25 or by an embedder: ``chunks:CUT:RANKER``.

CUT is ``headings`` (Markdown by markdownify, cut before every heading and into at most 200 words) or ``fixed`` (plain
text, every 200 words). RANKER is ``bm25``, ``static``, ``minilm``, ``e5`` (multilingual-e5-small), ``bge``
(BGE-Large-EN), ``dpr``, or the spec of an embedder, as ``sentence_transformers:FOLDER``. Options: ``@words=100``: the
words of a chunk at most; ``@pack=whole``: whole chunks only; ``@pack=filled``, the default, cuts the first chunk that
does not fit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from prunus.core.installation import pip_install_folder
from prunus_evals.bm25 import BM25
from prunus_evals.records import Asker, Document, OutputFormat, Reply, System
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import markdown_of, text_of
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._variants import Kinds, Variant, read
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


WORDS = 200
CUTS: Mapping[str, OutputFormat] = {"headings": "markdown", "fixed": "text"}
RANKERS = ("bm25", "static", "minilm", "e5")
VARIANTS = tuple(f"{cut}:{ranker}" for cut in CUTS for ranker in RANKERS)
OPTIONS: Kinds = {"words": int, "pack": tuple(PACKERS), **COSTS}
HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
BLANK = re.compile(r"\n\s*\n")

Ranking = Callable[[str], list[int]]
"""Returns the chunks for a question, best first."""


def heading_chunks(markdown: str, size: int) -> list[str]:
    """Cut Markdown before every heading, and a longer section after every ``size`` words."""
    chunks: list[str] = []
    for section in HEADING.split(markdown):
        chunks.extend(word_chunks(BLANK.sub("\n", section), size))
    return chunks


def cut(documents: Sequence[Document], way: str, size: int) -> list[str]:
    """Cut documents into chunks; no chunk holds words of two documents.

    :param way: ``headings`` or ``fixed``.
    """
    chunks: list[str] = []
    for document in documents:
        if way == "headings":
            chunks += heading_chunks(markdown_of(document), size)
        else:
            chunks += word_chunks(text_of([document]), size)
    return chunks


def ranking_of(ranker: str, chunks: Sequence[str], hold: bool = True) -> Ranking:
    """Return the ranking of chunks: by BM25, or by the cosine of an embedder, ties in document order.

    :param hold: whether the embedder keeps its vectors.
    """
    if ranker == "bm25":
        return BM25(chunks).ranking
    embedder = _embed.embedder(ranker, hold)
    vectors = embedder.embed(chunks) if chunks else None

    def ranked(question: str) -> list[int]:
        if vectors is None:
            return []
        scores = vectors @ embedder.embed([question], "query")[0]
        return [int(place) for place in np.argsort(-scores, kind="stable")]

    return ranked


class RankedChunks:
    """Keeps the best chunks, in document order."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._cut, _, self._ranker = variant.head.partition(":")
        self.models = _embed.models(self._ranker)
        self._words = variant.options.get("words", WORDS)
        self._packing = variant.options.get("pack", "filled")
        self._costs = variant.options.get("costs") == "yes"
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Convert, cut and index the documents once."""
        stages = StageTimer(self._counter, self._costs)
        start = time.perf_counter()
        texts = cut(documents, self._cut, self._words)
        stages.note("cut", time.perf_counter() - start, [document.content for document in documents], texts)
        start = time.perf_counter()
        ranking = ranking_of(self._ranker, texts, hold=not self._costs)
        stages.note("index", time.perf_counter() - start, texts, texts)
        return ChunkAsker(texts, CUTS[self._cut], self._packing, ranking, stages)


class ChunkAsker:
    """Documents cut into ranked chunks."""

    def __init__(
        self, texts: Sequence[str], format: OutputFormat, packing: str, ranking: Ranking, stages: StageTimer
    ) -> None:
        counter = stages.counter
        self._chunks = Chunks(texts, counter.count(texts), "\n", counter)
        self._format: OutputFormat = format
        self._pack = PACKERS[packing]
        self._ranking = ranking
        self._stages = stages

    def ask(self, question: str, budget: int) -> Reply:
        """Return the best chunks within the budget, in document order."""
        start = time.perf_counter()
        ranking = self._ranking(question)
        kept = self._pack(self._chunks, ranking, budget)
        if not kept and ranking:
            kept = pack_filled(self._chunks, ranking, budget)
        text = self._chunks.join(kept)
        stages = self._stages.copy()
        stages.note("rank and pack", time.perf_counter() - start, sum(self._chunks.costs), [text])
        return Reply(text, self._format, stages=tuple(stages.found))


def _parts(variant: str) -> tuple[str, str]:
    way, _, ranker = read("chunks", variant, OPTIONS).head.partition(":")
    return way, ranker


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: with another embedder, or with options."""
    way, ranker = _parts(variant)
    return way in CUTS and (ranker == "bm25" or _embed.is_embedder(ranker))


NEEDS = f"cut at headings: {pip_install_folder('evals')} (markdownify); {_embed.NEEDS}"


def missing(variant: str) -> str:
    """Return what a variant lacks; '' where it lacks nothing."""
    way, ranker = _parts(variant)
    if way == "headings" and find_spec("markdownify") is None:
        return f"{pip_install_folder('evals')} (markdownify)"
    return "" if ranker == "bm25" else _embed.missing(ranker)


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant."""
    return RankedChunks(f"chunks:{variant}", read("chunks", variant, OPTIONS), counter)
