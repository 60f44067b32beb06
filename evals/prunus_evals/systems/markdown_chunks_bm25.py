"""Markdown in chunks cut at headings, ranked by BM25: ``chunks:headings:bm25`` under an older name."""

from __future__ import annotations

from prunus.core.installation import pip_install_folder
from prunus_evals.records import System
from prunus_evals.systems import chunks
from prunus_evals.systems._variants import Variant
from prunus_evals.systems.chunks import PACKERS
from prunus_evals.tokens import Counter

VARIANTS = tuple(PACKERS)


NEEDS = f"{pip_install_folder('evals')} (markdownify)"


def missing(variant: str) -> str:
    """Return what it lacks; '' where it lacks nothing."""
    return chunks.missing("headings:bm25")


def make(counter: Counter, variant: str) -> System:
    """Return the system with this packing."""
    name = f"markdown_chunks_bm25:{variant}"
    return chunks.RankedChunks(name, Variant("headings:bm25", {"pack": variant}), counter)
