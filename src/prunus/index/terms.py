"""Data classes that describe an index to its callers: build settings, retrieval options, reports and costs.

They import no engine, so the public door and the command line can load them fast.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from ..core.errors import BadInput, Failures
from ..core.registry import is_built_in, split_spec

BUILT: Final = "built"
"""Name of the store's note that holds :class:`Built` as JSON."""
SITE: Final = "site "
"""Beginning of the names of notes that hold the rules of a site; its start follows."""
PAGE: Final = "page "
"""Beginning of the names of notes that hold what is known of a site's pages; its start and the page follow."""
REPEATED: Final = "repeated"
"""Key of a site's note that holds the lines that most of its pages repeat, as JSON."""
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
    :param documents: ids of the documents to retrieve from, or patterns of them with ``*``; () is all.
    :param since: only documents that were published since a day (``2026-01-31``), or in the last ``7d``, ``2w``
        or ``24h``; documents that do not say when are left out.
    :param max_age: only documents that were fetched since then, in the same way of writing.
    :param layers: for ``collapsed``, the layers to retrieve from; 0 is the leaves, () is all.
    :param start_layer: for ``traversal``, the layer to begin with; -1 begins with the roots.
    :param top: for ``traversal``, how many nodes are chosen on each layer.
    :param depth: for ``traversal``, how many layers are descended; 0 is all.
    :param scorer: for ``collapsed``: ``dense``, ``bm25`` or ``hybrid``.
    """

    way: Way | Literal[""] = ""
    documents: tuple[str, ...] = ()
    since: str = ""
    max_age: str = ""
    layers: tuple[int, ...] = ()
    start_layer: int = -1
    top: int = 5
    depth: int = 0
    scorer: Literal["dense", "bm25", "hybrid"] = "dense"


_DAY: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:T[\d:]{2,8}Z?)?)?)?")
_SPAN: Final = re.compile(r"(\d{1,5}) ?([hdw])")
_HOURS: Final = {"h": 1, "d": 24, "w": 24 * 7}


def moment(text: str, name: str, now: datetime) -> str:
    """Return the beginning of a time as ISO 8601 in UTC, to be compared with other such times as text.

    :param text: a day or a time (``2026-01-31``, ``2026-01-31T12:00``), or how long ago (``24h``, ``7d``, ``2w``).
    :param name: what the text is called in errors.
    :raises BadInput: it is neither.
    """
    span = _SPAN.fullmatch(text.strip().lower())
    if span:
        return f"{now - timedelta(hours=int(span[1]) * _HOURS[span[2]]):%Y-%m-%dT%H:%M:%S}"
    if not _DAY.fullmatch(text.strip()):
        raise BadInput(f"{name}: {text!r} is no time; write 2026-01-31, 24h, 7d or 2w", subject=name)
    return text.strip().rstrip("Z")


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


@dataclass(slots=True)
class SiteReport(Report):
    """The result of reading sites into an index; ``added`` holds only documents that are new.

    :param changed: ids of the documents that were replaced.
    :param removed: ids of the documents whose pages are gone (404, 410), moved, ask not to be kept, or repeat another.
    :param failures: why a page could not be read, by address; one that is in the index stays there as it was.
    :param requests: for pages and lists.
    :param bytes: of the responses' contents, decompressed; a page that has not changed sends none.
    :param left_out: how many addresses were left out, by reason.
    :param endless: what addresses look like of which there were too many: calendars and filters.
    :param notes: lists that the site names and that could not be read.
    """

    changed: list[str] = field(default_factory=list)
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    left_out: dict[str, int] = field(default_factory=dict)
    endless: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, other: SiteReport) -> None:
        """Add the report of another site."""
        for name in ("added", "unchanged", "removed", "changed", "endless", "notes"):
            getattr(self, name).extend(getattr(other, name))
        for name in ("chunks", "requests", "bytes", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for why, number in other.left_out.items():
            self.left_out[why] = self.left_out.get(why, 0) + number
        self.failures.first = self.failures.first or other.failures.first
        self.failures.update(other.failures)


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
