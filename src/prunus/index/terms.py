"""What is said about an index: how it was built, how it is asked, what became of documents, what summaries cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..core.errors import Failures

BUILT: Final = "built"
"""The note of what an index was built with."""
COST: Final = "cost"
"""The note of what its summaries have cost."""
COSTS: Final = ("prompt_tokens", "completion_tokens", "usd")
"""What is added up there."""

_PAPER_EMBEDDER: Final = "sentence_transformers:multi-qa-mpnet-base-cos-v1"
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "raptor": {
        "clusterer": "raptor",
        "embedder": _PAPER_EMBEDDER,
        "chunk_tokens": 100,
        "tree": "collection",
        "budget": 2000,
    },
}
"""Presets: what the settings are then. ``raptor`` is the paper's: plain chunks of 100 tokens, its clusters, its
embedder; asked with ``collapsed`` and 2,000 tokens unless something else is said."""

Way = Literal["hybrid", "collapsed", "traversal", "flat"]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How an index is asked.

    :param way: ``hybrid``: leaves and their neighbours, summaries for broad questions; ``collapsed`` and
        ``traversal``: as in the paper; ``flat``: leaves by embedding alone; '' is the index's own: ``hybrid``,
        for the preset ``raptor`` ``collapsed``.
    :param documents: only these, by id; all without.
    :param layers: for ``collapsed``, only these layers; 0 are the leaves.
    :param start_layer: for ``traversal``, the layer that is looked at first; -1 are the roots.
    :param top: for ``traversal``, nodes that are chosen on each layer.
    :param depth: for ``traversal``, layers that are gone through; 0 is all.
    :param scorer: for ``collapsed``: ``dense``, ``bm25`` or ``hybrid``.
    """

    way: Way | Literal[""] = ""
    documents: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    start_layer: int = -1
    top: int = 5
    depth: int = 0
    scorer: Literal["dense", "bm25", "hybrid"] = "dense"


@dataclass(slots=True)
class Report:
    """What became of documents that were to be added.

    :param added: ids that are on the disk now.
    :param unchanged: ids that were there already, with the same content.
    :param removed: ids that are gone (of :meth:`Index.sync`).
    :param chunks: leaves of the added documents.
    :param failures: what could not be read, by id: the reason.
    """

    added: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    chunks: int = 0
    failures: Failures = field(default_factory=Failures)


@dataclass(frozen=True, slots=True)
class Bill:
    """What the summaries that are missing will cost at most.

    :param usd: None where no price is known.
    :param exact: False where the tree depends on the summaries: then it is what the paper's trees take, about.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Built:
    """What an index was built with."""

    preset: str = ""
    clusterer: str = "ward"
    chunk_tokens: int = 100
    summary_tokens: int = 100
    tree: str = "collection"
