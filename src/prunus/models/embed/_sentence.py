"""Sentence vectors from an ONNX graph: tokens in, one vector per text out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ..model_folder import ModelFolder
from ..onnx_encoder import CuttingTokenizer, EncodedText, OnnxGraph, in_batches
from ._presets import Pooling

_TOKENS: Final = ("last_hidden_state", "token_embeddings", "hidden_states")
_WHOLE: Final = ("sentence_embedding", "dense_vecs", "embeddings", "pooler_output")
_MODES: Final[Mapping[str, Pooling]] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
"""The names of the ways of pooling in sentence-transformers' ``1_Pooling/config.json``."""

_KNOWN: Final = frozenset({"Transformer", "Pooling", "Normalize"})
"""Modules of sentence-transformers that this encoder supports."""


def stated_pooling(folder: ModelFolder) -> Pooling | None:
    """Return the way of pooling that the model's files state; None where they state none.

    :raises BadInput: the way of pooling or a further layer of the model is not supported.
    """
    subject = str(folder.path)
    for kind in _modules(folder):
        if kind not in _KNOWN:
            raise BadInput(
                f"{subject}: the model has a layer {kind!r} above its encoder, which onnx does not run; "
                f"use sentence_transformers:{subject}",
                subject=subject,
            )
    modes = folder.read("1_Pooling/config.json")
    chosen = [key for key, value in modes.items() if key.startswith("pooling_mode_") and value is True]
    if not chosen:
        return None
    if len(chosen) > 1 or chosen[0] not in _MODES:
        raise BadInput(
            f"{subject}: pooling {' + '.join(chosen)} is not known; there are: {', '.join(_MODES)}", subject=subject
        )
    return _MODES[chosen[0]]


def _modules(folder: ModelFolder) -> list[str]:
    """Return the kinds of a sentence-transformers model's modules, in order."""
    path = folder.path / "modules.json"
    if not path.is_file():
        return []
    try:
        return [str(module["type"]).rsplit(".", 1)[-1] for module in json.loads(path.read_text("utf-8"))]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: not a list of modules", subject=str(path)) from error


def stated_prompts(folder: ModelFolder) -> tuple[str, str]:
    """Return the prefixes of queries and of documents that the model's files state."""
    prompts = folder.read("config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return "", ""
    query = prompts.get("query", prompts.get("web_search_query", ""))
    document = prompts.get("document", prompts.get("passage", ""))
    return str(query or ""), str(document or "")


class SentenceEncoder:
    """Embeds with one graph and one tokenizer.

    :param texts: the tokenizer, which cuts long texts.
    :param pooling: how token vectors become the vector of the text.
    :param batch: texts that run at once.
    :param end_id: a token that must end every text; -1 for none.
    :raises BadInput: the graph has no output of vectors.
    """

    def __init__(
        self, graph: OnnxGraph, texts: CuttingTokenizer, pooling: Pooling, batch: int, end_id: int = -1
    ) -> None:
        self._graph = graph
        self._texts = texts
        self._pooling = pooling
        self._batch = batch
        self._end_id = end_id
        self._output = self._choose()

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 where the graph does not state it."""
        last = self._graph.outputs[self._output][-1:]
        return last[0] if last and isinstance(last[0], int) else 0

    def embed(self, texts: Sequence[str], ordered: bool = True) -> NDArray[np.float32]:
        """Return float32 [n, dimension] of unit norm.

        :param ordered: sort texts by length first; only a benchmark turns this off.
        :raises BadInput: the graph's output is no vector, or is not finite.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for places, rows in in_batches(texts, self._rows, self._batch, ordered):
            pooled = self._pool(*self._graph.run(rows, self._output))
            if not vectors.shape[1]:
                vectors = np.zeros((len(texts), pooled.shape[1]), np.float32)
            vectors[places] = pooled
        return unit(vectors, self._graph.name)

    def _rows(self, texts: Sequence[str]) -> list[EncodedText]:
        rows = self._texts.rows(texts)
        if self._end_id < 0:
            return rows
        longest = self._texts.max_tokens
        return [row if row.ids and row.ids[-1] == self._end_id else _ended(row, self._end_id, longest) for row in rows]

    def _choose(self) -> str:
        """Return the name of the output to read; vectors of tokens are preferred to vectors of texts."""
        ranks = {name: len(shape) for name, shape in self._graph.outputs.items()}
        for names, rank in ((_TOKENS, 3), (_WHOLE, 2)):
            fitting = [name for name in ranks if ranks[name] == rank]
            if fitting:
                return next((name for name in names if name in fitting), fitting[0])
        shown = ", ".join(f"{name} {list(shape)}" for name, shape in self._graph.outputs.items())
        raise BadInput(
            f"{self._graph.name}: no output holds vectors of tokens or texts ({shown})", subject=self._graph.name
        )

    def _pool(self, output: NDArray[Any], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        values = output.astype(np.float32, copy=False)
        if values.ndim == 2 and len(values) == len(mask):
            return values
        if values.ndim != 3 or values.shape[:2] != mask.shape:
            raise BadInput(
                f"{self._graph.name}: the graph gives {list(values.shape)} for {list(mask.shape)} tokens",
                subject=self._graph.name,
            )
        if self._pooling == "cls":
            return np.asarray(values[:, 0], np.float32)
        if self._pooling == "last":
            return np.asarray(values[np.arange(len(values)), mask.sum(1) - 1], np.float32)
        real = mask[:, :, None]
        if self._pooling == "max":
            return np.asarray(np.where(real > 0, values, -np.inf).max(1), np.float32)
        return np.asarray((values * real).sum(1) / real.sum(1), np.float32)


def unit(vectors: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Scale vectors to unit norm; a vector of zeros becomes the first unit vector.

    :param name: name of the model, for messages.
    :raises BadInput: a number is not finite.
    """
    if not np.isfinite(vectors).all():
        raise BadInput(f"{name}: the model gives numbers that are not finite", subject=name)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    large = ~np.isfinite(norms[:, 0])
    if large.any():  # the squares of its numbers are too large for float32
        exact = vectors[large].astype(np.float64)
        vectors = vectors.copy()
        vectors[large] = exact / np.linalg.norm(exact, axis=1, keepdims=True)
        norms[large] = 1.0
    empty = norms[:, 0] < 1e-12
    if empty.any():
        vectors = vectors.copy()
        vectors[empty, :1] = 1.0
        norms[empty] = 1.0
    return np.asarray(vectors / norms, np.float32)


def _ended(row: EncodedText, end_id: int, longest: int) -> EncodedText:
    """Return a row with an end token, cut to the longest length."""
    return EncodedText([*row.ids[: longest - 1], end_id], [*row.types[: longest - 1], 0])
