"""Documents of an index are read, cleaned, cut and embedded by other processes, and stored by one writer.

Workers of :meth:`.Index.add` get documents in parts, and their results come in order. A batch cuts page after page, and
packs each document as bytes, which pass between machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ..core.errors import BadInput, OutsideFailed
from ..core.options import Options
from ..core.settings import Settings
from ..engines import one_engine
from ..index.nodes import IndexedDocument, Leaf
from ..index.terms import Built, Report
from ..pages.sources import Source, is_address
from .documents import each_document

if TYPE_CHECKING:
    from ..core.executor import Executor
    from ..index.leaves import BuildSettings, CutDocument, Cutter

_PART: Final = 16
"""Documents that a worker gets at a time."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How the documents of one index are cut, for a process that does not open the index.

    :param options: name the embedder and the tokenizer.
    :param built: the settings with which the index was built.
    :param embedder, dimension: the identity and the dimension of the embedder of the index.
    :param location: the name of the index in errors.
    """

    settings: Settings
    options: Options
    built: Built
    embedder: str
    dimension: int
    location: str

    def cutter(self) -> Cutter:
        """Return what cuts and embeds documents, with engines of this process.

        :raises BadInput: an engine cannot be made here, or the embedder is not that of the index.
        """
        from ..index.leaves import Cutter

        embedder = one_engine("embedder", self.settings, self.options)
        name, dimension = identity_of(embedder)
        if (name, dimension) != (self.embedder, self.dimension):
            raise BadInput(
                f"{self.location}: this index was built with the embedder {self.embedder} ({self.dimension} "
                f"dimensions), and this process has {name} ({dimension})",
                subject=self.location,
            )
        tokenizer = one_engine("tokenizer", self.settings, self.options)
        return Cutter(embedder, tokenizer, build_settings(self.built), self.dimension)

    def by(
        self,
        executor: Executor,
        sources: Mapping[str, Source],
        known: Mapping[str, str],
        report: Report,
        done: Callable[[str, str], None],
    ) -> Iterator[list[CutDocument]]:
        """Yield the documents that are new or have changed, cut by workers, in order; see :func:`.each_document`."""
        for documents, part in executor(partial(_Worker, self), _parts(sources, known)):
            report.unchanged += part.unchanged
            for id in part.unchanged:
                done(id, "unchanged")
            report.failures.update(part.failures)
            report.failures.first = report.failures.first or part.failures.first
            for id in part.failures:
                done(id, "failed")
            yield documents


class _Worker:
    """Cuts the documents of one part after the other."""

    def __init__(self, how: Cutting) -> None:
        self._settings, self._cutter = how.settings, how.cutter()

    def __call__(self, part: tuple[dict[str, Source], dict[str, str]]) -> tuple[list[CutDocument], Report]:
        """Return the documents of a part, and the report on the others."""
        from ..index.leaves import parts_of

        report = Report()
        documents = each_document(*part, self._settings, report, lambda id, fate: None)
        return [cut for some in parts_of(documents) for cut in self._cutter.cut_each(some)], report


def _parts(
    sources: Mapping[str, Source], known: Mapping[str, str]
) -> Iterator[tuple[dict[str, Source], dict[str, str]]]:
    """Yield documents by id, some at a time, with the digests that the index has of them."""
    ids = [*sources]
    for start in range(0, len(ids), _PART):
        part = ids[start : start + _PART]
        yield {id: sources[id] for id in part}, {id: known[id] for id in part if id in known}


def can_be_shared(sources: Mapping[str, Source], options: Options) -> bool:
    """Tell whether workers may read these documents.

    Addresses are fetched by one process, so that each host gets its pauses; engines that are objects stay in theirs.
    """
    addresses = any(isinstance(source, str) and is_address(source) for source in sources.values())
    named: list[Any] = [options.embedder, options.tokenizer]
    return not addresses and all(isinstance(engine, str) for engine in named)


# --- documents as bytes ----------------------------------------------------------------------------


def pack(cut: CutDocument) -> bytes:
    """Return a document with its leaves and vectors as bytes."""
    document, leaves, vectors = cut
    plain = asdict(document) | {"metadata": dict(document.metadata)}
    numbers = np.ascontiguousarray(vectors, np.float32).tobytes()
    return msgspec.msgpack.encode((plain, [asdict(leaf) for leaf in leaves], numbers))


def unpack(packed: bytes, dimension: int) -> CutDocument:
    """Return the document that :func:`pack` packed.

    :raises OutsideFailed: the bytes are none.
    """
    try:
        document, leaves, vectors = msgspec.msgpack.decode(packed, type=tuple[IndexedDocument, list[Leaf], bytes])
        return document, leaves, np.frombuffer(vectors, np.float32).reshape(len(leaves), dimension)
    except (ValueError, msgspec.MsgspecError) as error:
        raise OutsideFailed(f"a worker sent no document ({error})", subject="worker") from error


# --- what an index is built with -------------------------------------------------------------------


def build_settings(built: Built) -> BuildSettings:
    """Return how an index is built."""
    from ..index.leaves import PAPER, BuildSettings

    chosen: dict[str, Any] = {
        "chunk_tokens": built.chunk_tokens,
        "summary_tokens": built.summary_tokens,
        "scope": built.tree,
    }
    return replace(PAPER if built.preset == "raptor" else BuildSettings(), **chosen)


def identity_of(embedder: Any) -> tuple[str, int]:
    """Return the embedder's identity and dimension, which an index stores."""
    inner = getattr(embedder, "inner", embedder)  # a cache in front of it changes no vector
    dimension = int(getattr(embedder, "dimension", 0) or embedder.embed(["dimension"], "document").shape[1])
    name = str(getattr(inner, "identity", "") or getattr(inner, "name", type(inner).__name__))
    return name, dimension
