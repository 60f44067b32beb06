"""Documents prepared for an index by other processes: read, cleaned, cut and embedded there, stored by one writer.

A prepared document is bytes, which pass between processes and machines.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from ..core.errors import BadInput, OutsideFailed
from ..core.options import Options
from ..core.settings import Settings
from ..core.types import Page
from ..engines import Maker, formats
from ..index.nodes import IndexedDocument, Leaf
from ..index.terms import Built
from .documents import document_of

if TYPE_CHECKING:
    from ..core.ports import Vectors
    from ..index.leaves import BuildSettings, Cutter

Prepared: TypeAlias = "tuple[IndexedDocument, list[Leaf], Vectors]"


@dataclass(frozen=True, slots=True)
class PreparedFor:
    """How documents are prepared for one index.

    :param built: the settings with which the index was built.
    :param options: name the embedder and the tokenizer.
    :param embedder, dimension: the identity and the dimension of the embedder of the index.
    :param place: the name of the index in errors.
    """

    built: Built
    options: Options
    embedder: str
    dimension: int
    place: str


class Preparer:
    """Prepares documents for one index, without opening it; its engines are made once.

    :raises BadInput: an engine cannot be made here, or it is not the embedder of the index.
    """

    def __init__(self, how: PreparedFor, settings: Settings) -> None:
        maker = Maker(settings, how.options)
        embedder = maker.make("embedder")
        found = identity_of(embedder)
        if found != (how.embedder, how.dimension):
            raise BadInput(
                f"{how.place}: this index was built with the embedder {how.embedder} ({how.dimension} dimensions), and "
                f"this process has {found[0]} ({found[1]})",
                subject=how.place,
            )
        self._cutter = _cutter(embedder, maker.make("tokenizer"), how)

    def prepare(self, id: str, page: Page) -> tuple[bytes, str, int]:
        """Return a page as a prepared document, its title, and the number of its chunks.

        :raises BadPage: the page is empty, binary, too large, or shows no text.
        """
        document, leaves = self._cutter.cut(document_of(id, page, formats().to_html))
        vectors = np.ascontiguousarray(self._cutter.embed(leaves), np.float32)
        plain = asdict(document) | {"metadata": dict(document.metadata)}
        packed = msgspec.msgpack.encode((plain, [asdict(leaf) for leaf in leaves], vectors.tobytes()))
        return packed, document.title, len(leaves)


def unpack(prepared: bytes, dimension: int) -> Prepared:
    """Return the document, the leaves and the vectors of a prepared document.

    :raises OutsideFailed: the bytes are none.
    """
    try:
        document, leaves, vectors = msgspec.msgpack.decode(prepared, type=tuple[IndexedDocument, list[Leaf], bytes])
        return document, leaves, np.frombuffer(vectors, np.float32).reshape(len(leaves), dimension)
    except (ValueError, msgspec.MsgspecError) as error:
        raise OutsideFailed(f"a worker sent no document ({error})", subject="worker") from error


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


def _cutter(embedder: Any, tokenizer: Any, how: PreparedFor) -> Cutter:
    from ..index.leaves import Cutter

    return Cutter(embedder, tokenizer, build_settings(how.built), how.dimension)
