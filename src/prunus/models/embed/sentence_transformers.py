"""``sentence_transformers``: any sentence encoder through the package of that name, on torch.

For models without an ONNX file, and for a GPU. ``sentence_transformers:FOLDER`` or
``sentence_transformers:OWNER/NAME``. Prefixes and lengths come from the presets, pooling from the model's
own settings.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, MissingExtra
from ...core.installation import pip_install
from ..model_folder import WEIGHTS, hub_folder
from ._presets import PRESETS, preset_of
from ._sentence import unit


class Engine:
    """Embeds with torch; nothing is loaded before the first call.

    Weights are read from safetensors only, and a model's own code is never run.

    :param model: folder, hub id or name of a preset.
    :param device: torch's name of a device (``cpu``, ``cuda``, ``mps``); '' lets torch choose.
    :param batch: texts that run at once.
    :param max_tokens: most tokens of a text; 0 takes the limit of the preset or of the model.
    :param preset: name of a preset; '' chooses it by the model's name.
    :param download: let the hub's client fetch files that its cache lacks; it does not use the egress door.
    """

    name = "sentence_transformers"

    def __init__(
        self,
        model: str = "",
        device: str = "",
        batch: int = 32,
        max_tokens: int = 0,
        preset: str = "",
        download: bool = False,
    ) -> None:
        self._path = model
        self._device = device
        self._batch = batch
        self._longest = max_tokens
        self._preset = preset_of(model, preset)
        self._download = download
        self._lock = threading.Lock()
        self._models: dict[str, Any] = {}

    @property
    def identity(self) -> str:
        """Model, length and preset, on which the vectors depend."""
        preset = next((name for name, preset in PRESETS.items() if preset is self._preset), "")
        return f"{self.name}:{self._path} {self._longest} {preset}".strip()

    @property
    def dimension(self) -> int:
        """Length of a vector; loads the model."""
        with self._lock:
            return _dimension(self._model("document"))

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, dimension] of unit norm; long texts are cut.

        :param kind: queries and documents get the model's prefixes and encoders for them.
        :raises BadInput: there is no such model, or it cannot be loaded.
        :raises MissingExtra: sentence-transformers is not installed.
        """
        with self._lock:  # torch modules may not be thread-safe, and one call uses all cores anyway
            model = self._model(kind)
            if not len(texts):
                return np.zeros((0, _dimension(model)), np.float32)
            prefix = getattr(self._preset, kind) if self._preset else self._prompt(model, kind)
            vectors = model.encode(
                [_clean(prefix + text) for text in texts],
                prompt="",
                batch_size=self._batch,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return unit(np.asarray(vectors, np.float32), self._path)

    def _prompt(self, model: Any, kind: str) -> str:
        """Return the prefix that the model's own settings state for queries or documents."""
        prompts = model.prompts or {}
        return str(prompts.get(kind) or (prompts.get("passage") if kind == "document" else "") or "")

    def _model(self, kind: str) -> Any:
        path = self._path
        if path.lower() in PRESETS:
            preset = PRESETS[path.lower()]
            path = (preset.query_hub if kind == "query" else "") or preset.hub
        if path not in self._models:
            self._models[path] = self._load(path)
        return self._models[path]

    def _load(self, path: str) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra(
                f"sentence-transformers is not installed; run: {pip_install('sentence-transformers')}",
                subject=self.name,
            ) from error
        if not path:
            raise BadInput(f"{self.name} needs a model: {self.name}:FOLDER or {self.name}:OWNER/NAME", subject=path)
        folder = Path(path).expanduser()
        if not folder.is_dir():
            folder = hub_folder(path, WEIGHTS, self._download)
        try:
            model = SentenceTransformer(
                str(folder),
                device=self._device or None,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:  # any error of the packages here means that the folder cannot be loaded
            raise BadInput(f"{path}: no sentence encoder ({_short(error)})", subject=path) from error
        limits = [limit for limit in (self._longest, self._preset.max_tokens if self._preset else 0) if limit]
        if limits:
            model.max_seq_length = min([*limits, model.max_seq_length or limits[0]])
        return model


def _dimension(model: Any) -> int:
    # newer versions of the package renamed the method
    dimension = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(dimension() or 0)


def _clean(text: str) -> str:
    return text[:100_000].encode("utf-8", "replace").decode("utf-8")


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]
