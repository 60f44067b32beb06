"""``onnx``: any BERT-like sentence encoder as an ONNX graph, from a folder or the hub's local cache.

``onnx:FOLDER`` or ``onnx:OWNER/NAME``; ``#int8`` at the end selects int8. The folder holds ``model.onnx`` or
``onnx/model.onnx``, ``tokenizer.json``, ``config.json`` and optionally the settings of
sentence-transformers, which name the pooling of tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ..model_folder import ModelFolder, find_model, read_json, split_precision
from ..onnx_encoder import CuttingTokenizer, open_graph
from ._presets import PRESETS, Pooling, Preset, preset_of
from ._sentence import SentenceEncoder, stated_pooling, stated_prompts

_TWO = ("ctx_encoder", "question_encoder")
"""Folders of a model with separate encoders for documents and for queries."""


class Engine:
    """Embeds with ONNX Runtime on the processor; nothing is loaded before the first call.

    :param model: folder, ``.onnx`` file, hub id or name of a preset; ``#int8`` at the end selects int8. A folder
        with ``ctx_encoder`` and ``question_encoder`` in it is a pair of encoders (DPR).
    :param threads: threads per call; 0 is one per core.
    :param batch: texts that run at once.
    :param max_tokens: most tokens of a text, special tokens included; 0 takes the model's limit.
    :param preset: name of a preset; '' chooses it by the model's name.
    :param download: let ``huggingface_hub`` fetch files that its cache lacks; it does not use the egress door.
    """

    name = "onnx"

    def __init__(
        self,
        model: str = "",
        threads: int = 0,
        batch: int = 8,
        max_tokens: int = 0,
        preset: str = "",
        download: bool = False,
    ) -> None:
        path, self._precision = split_precision(model)
        self._preset = preset_of(path, preset)
        by_name = self._preset if path.lower() in PRESETS else None
        self._paths = _paths(path, by_name)
        self._settings = (threads, batch, max_tokens, download)
        self._lock = threading.Lock()
        self._loaded: dict[str, tuple[SentenceEncoder, str]] = {}

    @property
    def identity(self) -> str:
        """Files, precision and preset, on which the vectors depend: engines of equal identity give equal vectors."""
        graphs = [self._folder(kind).graph for kind in ("document", "query")]
        files = " ".join(f"{path.resolve()}@{path.stat().st_mtime_ns}" for path in dict.fromkeys(graphs))
        preset = next((name for name, preset in PRESETS.items() if preset is self._preset), "")
        return f"{self.name}:{files}#{self._precision} {self._settings[2]} {preset}".strip()

    @property
    def dimension(self) -> int:
        """Length of a vector; loads the model."""
        return self._encoder("document")[0].dimension

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, dimension] of unit norm; long texts are cut.

        :param kind: queries and documents get the model's prefixes and encoders for them.
        :raises BadInput: there is no such model, a file is missing, or the graph is no sentence encoder.
        :raises MissingExtra: onnxruntime is not installed.
        """
        encoder, prefix = self._encoder(kind)
        return encoder.embed([prefix + text for text in texts] if prefix else texts)

    def _folder(self, kind: str) -> ModelFolder:
        path = self._paths[kind == "query"]
        return find_model(path, precision=self._precision, download=self._settings[3], kind=self.name)

    def _encoder(self, kind: str) -> tuple[SentenceEncoder, str]:
        with self._lock:
            if kind not in self._loaded:
                self._loaded[kind] = self._load(kind)
            return self._loaded[kind]

    def _load(self, kind: str) -> tuple[SentenceEncoder, str]:
        """Load one encoder; its graph is loaded once for the process."""
        threads, batch, max_tokens, _ = self._settings
        folder, preset = self._folder(kind), self._preset
        pooling: Pooling = stated_pooling(folder) or (preset.pooling if preset else "mean")
        prompts = (preset.query, preset.document) if preset else stated_prompts(folder)
        longest = folder.longest(max_tokens, preset.max_tokens if preset else 0)
        texts = CuttingTokenizer(folder.tokenizer, longest)
        end_id = _end_id(folder, preset.end) if preset and preset.end else -1
        graph = open_graph(folder.graph, threads=threads, pad_id=folder.pad_id, quantise=not folder.ready)
        return SentenceEncoder(graph, texts, pooling, batch, end_id), prompts[kind != "query"]


def _paths(path: str, by_name: Preset | None) -> tuple[str, str]:
    """Return the paths of the document encoder and of the query encoder."""
    if by_name is not None:
        return by_name.hub, by_name.query_hub or by_name.hub
    inner = [Path(path).expanduser() / name for name in _TWO]
    if path and all(folder.is_dir() for folder in inner):
        return str(inner[0]), str(inner[1])
    return path, path


def _end_id(folder: ModelFolder, token: str) -> int:
    """Return the id of a token of the model's vocabulary."""
    for added in read_json(folder.tokenizer).get("added_tokens", ()):
        if added.get("content") == token:
            return int(added["id"])
    raise BadInput(f"{folder.path}: the tokenizer has no token {token!r}, which the preset needs", subject=token)
