"""``onnx``: a cross-encoder as an ONNX graph, which reads question and text together and gives one score.

``onnx:FOLDER`` or ``onnx:OWNER/NAME``; ``#int8`` at the end selects int8. The folder holds ``model.onnx`` or
``onnx/model.onnx``, ``tokenizer.json`` and ``config.json``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ..model_folder import find_model, split_precision
from ..onnx_encoder import CuttingTokenizer, OnnxGraph, in_batches, open_graph


class Engine:
    """Scores pairs with ONNX Runtime on the processor; nothing is loaded before the first call.

    A score is the graph's logit: order and distance of scores have a meaning, zero has none. For a model
    with two labels, the score is the second logit less the first.

    :param model: folder, ``.onnx`` file or hub id; ``#int8`` at the end selects int8.
    :param threads: threads per call; 0 is one per core.
    :param batch: pairs that run at once.
    :param max_tokens: most tokens of a pair, special tokens included; 0 takes the model's limit. The text is
        cut, and also a question that takes more than half.
    :param download: let ``huggingface_hub`` fetch files that its cache lacks; it does not use the egress door.
    """

    name = "onnx"
    above = 400
    beside = 0.0
    added = 0.0
    languages = ()

    def __init__(
        self, model: str = "", threads: int = 0, batch: int = 8, max_tokens: int = 0, download: bool = False
    ) -> None:
        self._path, self._precision = split_precision(model)
        self._threads = threads
        self._batch = batch
        self._longest = max_tokens
        self._download = download
        self._lock = threading.Lock()
        self._loaded: tuple[OnnxGraph, CuttingTokenizer, str] | None = None

    @property
    def max_tokens(self) -> int:
        """Most tokens of a pair; loads the model."""
        return self._load()[1].max_tokens

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one score per text, float64 [n]; higher is better.

        :raises BadInput: there is no such model, a file is missing, or the graph is no cross-encoder.
        :raises MissingExtra: onnxruntime is not installed.
        """
        scores = np.zeros(len(texts))
        if not len(texts):
            return scores
        graph, pairs, output = self._load()
        for places, rows in in_batches([(query, text) for text in texts], pairs.rows, self._batch):
            numbers, _ = graph.run(rows, output)
            scores[places] = scores_from_logits(numbers, len(rows), graph.name)
        return scores

    def _load(self) -> tuple[OnnxGraph, CuttingTokenizer, str]:
        with self._lock:
            if self._loaded is None:
                folder = find_model(self._path, precision=self._precision, download=self._download, kind=self.name)
                texts = CuttingTokenizer(folder.tokenizer, folder.longest(self._longest), pairs=True)
                graph = open_graph(folder.graph, threads=self._threads, pad_id=folder.pad_id, quantise=not folder.ready)
                output = "logits" if "logits" in graph.outputs else next(iter(graph.outputs))
                self._loaded = graph, texts, output
            return self._loaded


def scores_from_logits(logits: NDArray[Any], count: int, name: str) -> NDArray[np.float64]:
    """Return one finite score per pair from a classifier's output of one or two labels.

    :param logits: [count], [count, 1] or [count, 2].
    :param name: name of the model, for messages.
    :raises BadInput: the shape is another, or a number is not finite.
    """
    values = np.asarray(logits, np.float64)
    if values.shape == (count,):
        values = values[:, None]
    if values.ndim != 2 or len(values) != count or values.shape[1] not in (1, 2):
        raise BadInput(
            f"{name}: gives {list(values.shape)} numbers for {count} pairs; a reranker has one or two labels",
            subject=name,
        )
    if not np.isfinite(values).all():
        raise BadInput(f"{name}: the model gives numbers that are not finite", subject=name)
    return np.asarray(values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0], np.float64)
