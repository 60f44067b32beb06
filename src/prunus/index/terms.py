"""Data classes that describe an index to its callers: build settings, retrieval options, reports and costs.

They import no engine, so the public door and the command line can load them fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..core.errors import Failures
from ..core.registry import is_built_in, split_spec

BUILT: Final = "built"
"""Name of the store's note that holds :class:`Built` as JSON."""
COST: Final = "cost"
"""Name of the store's note that holds the cost of all summaries as JSON."""
COSTS: Final = ("prompt_tokens", "completion_tokens", "usd")
"""Keys of that cost."""

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
"""Settings by name of preset. ``raptor`` is the paper: plain chunks of 100 tokens, its clusters and its embedder; by
default retrieved by ``collapsed`` with a budget of 2,000 tokens."""

Way = Literal["hybrid", "collapsed", "traversal", "flat"]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How nodes are retrieved from an index.

    :param way: ``hybrid``: leaves and their neighbours, and summaries for broad questions; ``collapsed`` and
        ``traversal``: as in the paper; ``flat``: leaves by embedding only; '': the index's default, which is
        ``collapsed`` for the preset ``raptor`` and else ``hybrid``.
    :param documents: ids of the documents to retrieve from; () is all.
    :param layers: for ``collapsed``, the layers to retrieve from; 0 is the leaves, () is all.
    :param start_layer: for ``traversal``, the layer to begin with; -1 begins with the roots.
    :param top: for ``traversal``, how many nodes are chosen on each layer.
    :param depth: for ``traversal``, how many layers are descended; 0 is all.
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
    """The result of adding documents.

    :param added: ids of the documents that were added or replaced.
    :param unchanged: ids of the documents that the index already has with the same content.
    :param removed: ids of the documents that :meth:`Index.sync` removed.
    :param chunks: number of leaves of the added documents.
    :param failures: why a document could not be read, by id.
    """

    added: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    chunks: int = 0
    failures: Failures = field(default_factory=Failures)


@dataclass(frozen=True, slots=True)
class Bill:
    """The largest cost of the missing summaries.

    :param calls: calls to the summariser.
    :param usd: None where the price is not known.
    :param exact: False where the tree depends on the summaries: then the numbers follow the paper's trees.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    exact: bool = True


def harmless(embedder: Any) -> str:
    """Return the spec of an embedder that an index may name, else ''.

    An index may come from elsewhere: an address in it would be asked, and code in a file would run.
    """
    name = split_spec(embedder)[0] if isinstance(embedder, str) else "http"
    return embedder if name != "http" and is_built_in("embedder", name) else ""


@dataclass(frozen=True, slots=True)
class Built:
    """The settings with which an index was built.

    :param embedder: the spec of its embedder; '' for one that is not :func:`harmless`, and in older indexes.
    """

    preset: str = ""
    embedder: str = ""
    clusterer: str = "ward"
    chunk_tokens: int = 100
    summary_tokens: int = 100
    tree: str = "collection"

    @property
    def named_embedder(self) -> str:
        """The embedder that the index names: its own, else that of its preset; '' leaves it to the settings."""
        return harmless(self.embedder) or str(PRESETS.get(self.preset, {}).get("embedder", ""))
