"""``sentence_transformers``: a cross-encoder through the package of that name, on torch.

For models without an ONNX file, and for a GPU. ``sentence_transformers:FOLDER`` or
``sentence_transformers:OWNER/NAME``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, MissingExtra
from ...core.installation import pip_install
from ..model_folder import WEIGHTS, hub_folder
from .onnx import scores_from_logits


class Engine:
    """Scores pairs with torch; nothing is loaded before the first call.

    Weights are read from safetensors only, and a model's own code is never run.

    :param model: folder or hub id.
    :param device: torch's name of a device (``cpu``, ``cuda``, ``mps``); '' lets torch choose.
    :param batch: pairs that run at once.
    :param max_tokens: most tokens of a pair; 0 takes the model's limit.
    :param download: let the hub's client fetch files that its cache lacks; it does not use the egress door.
    """

    name = "sentence_transformers"
    above = 400
    beside = 0.0
    added = 0.0
    languages = ()

    def __init__(
        self, model: str = "", device: str = "", batch: int = 32, max_tokens: int = 0, download: bool = False
    ) -> None:
        self._path = model
        self._device = device
        self._batch = batch
        self._longest = max_tokens
        self._download = download
        self._lock = threading.Lock()
        self._model: Any = None

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one score per text, float64 [n]; higher is better.

        :raises BadInput: there is no such model, or it cannot be loaded.
        :raises MissingExtra: sentence-transformers is not installed.
        """
        if not len(texts):
            return np.zeros(0)
        with self._lock:  # torch modules may not be thread-safe, and one call uses all cores anyway
            if self._model is None:
                self._model = self._load()
            pairs = [(_clean(query), _clean(text)) for text in texts]
            import torch

            logits = self._model.predict(
                pairs, batch_size=self._batch, show_progress_bar=False, activation_fn=torch.nn.Identity()
            )
        return scores_from_logits(logits, len(texts), self._path)

    def _load(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtra(
                f"sentence-transformers is not installed; run: {pip_install('sentence-transformers')}",
                subject=self.name,
            ) from error
        if not self._path:
            raise BadInput(
                f"{self.name} needs a model: {self.name}:FOLDER or {self.name}:OWNER/NAME", subject=self.name
            )
        folder = Path(self._path).expanduser()
        if not folder.is_dir():
            folder = hub_folder(self._path, WEIGHTS, self._download)
        try:
            return CrossEncoder(
                str(folder),
                device=self._device or None,
                max_length=self._longest or None,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:  # any error of the packages here means that the folder cannot be loaded
            raise BadInput(f"{self._path}: no cross-encoder ({_short(error)})", subject=self._path) from error


def _clean(text: str) -> str:
    return text[:100_000].encode("utf-8", "replace").decode("utf-8")


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]
