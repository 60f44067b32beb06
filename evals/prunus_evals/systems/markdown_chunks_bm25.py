"""Markdown (by markdownify), cut at headings and into chunks of 200 words, ranked by BM25.

Links and images are written as their text, as tools that feed models do: with addresses the same budget would hold a
third of the words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prunus_evals.records import Asker, Document, System
from prunus_evals.systems._chunks import PACKERS, ChunkAsker, word_chunks
from prunus_evals.systems._documents import html_of
from prunus_evals.tokens import Counter

WORDS = 200
VARIANTS = tuple(PACKERS)
HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
BLANK = re.compile(r"\n\s*\n")


def heading_chunks(markdown: str, size: int) -> list[str]:
    """Cut Markdown before every heading, and a longer section after every ``size`` words."""
    chunks: list[str] = []
    for section in HEADING.split(markdown):
        chunks.extend(word_chunks(BLANK.sub("\n", section), size))
    return chunks


class MarkdownChunksBM25:
    """Keeps the chunks of Markdown that BM25 ranks first."""

    def __init__(self, packing: str, counter: Counter) -> None:
        self.name = f"markdown_chunks_bm25:{packing}"
        self._packing = packing
        self._counter = counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Convert, cut and index the page once."""
        from markdownify import markdownify  # here: only this baseline needs it

        chunks: list[str] = []
        for document in documents:
            markdown = markdownify(html_of(document), heading_style="ATX", strip=["a", "img", "script", "style"])
            chunks += heading_chunks(markdown, WORDS)
        return ChunkAsker(chunks, "markdown", "\n", self._packing, self._counter)


def make(counter: Counter, variant: str) -> System:
    """Return the system with this packing."""
    return MarkdownChunksBM25(variant, counter)
