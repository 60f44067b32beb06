"""``prunus``: a small cross-encoder that reads English questions and blocks; its weights are in this folder.

It was trained on what the scorer ``hybrid`` confuses, and its score is added to that of the cheap scorer
(:attr:`Engine.beside`); the extractor ``sentences`` adds it to the scores of its best segments (:attr:`Engine.added`).
``prunus:FOLDER`` loads a model that ``prunus train reader`` wrote.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.errors import BadInput
from ...model_folder import read_json
from .. import onnx


class Engine:
    """Scores pairs of a question and a block with ONNX Runtime; nothing is loaded before the first call.

    :param model: folder of a model; '' takes that of this folder.
    :param threads: threads per call; 0 is one per core.
    :param batch: pairs that run at once.
    """

    name = "prunus"
    languages = ("en",)

    def __init__(self, model: str = "", threads: int = 0, batch: int = 8) -> None:
        self._model = model
        self._threads = threads
        self._batch = batch
        self._lock = threading.Lock()
        self._loaded: tuple[onnx.Engine, dict[str, Any]] | None = None

    @property
    def above(self) -> int:
        """Most code points of breadcrumbs that stood before a block in training; reads the model's settings."""
        return int(self._setting("above"))

    @property
    def beside(self) -> float:
        """Weight of the cheap score, in standard deviations of the candidates; reads the model's settings."""
        return float(self._setting("beside"))

    @property
    def added(self) -> float:
        """Weight of the score beside the learned score of a segment; 0: it was not trained on segments."""
        return float(self._setting("added", 0.0))

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one score per text, float64 [n]; higher is better. Only the distance of scores has a meaning.

        :raises MissingExtra: onnxruntime is not installed.
        :raises BadInput: the folder holds no model that ``prunus train reader`` wrote.
        """
        return self._load()[0].rerank(query, texts)

    def _setting(self, name: str, default: float | None = None) -> float:
        folder, settings = self._model or self.name, self._load()[1]
        value = settings.get(name, default)
        if not isinstance(value, int | float) or not 0 <= value < 10_000:
            raise BadInput(f"{folder}: config.json lacks the setting {name!r} of a reader", subject=folder)
        return value

    def _load(self) -> tuple[onnx.Engine, dict[str, Any]]:
        with self._lock:
            if self._loaded is None:
                folder = Path(self._model).expanduser() if self._model else Path(__file__).parent
                settings = read_json(folder / "config.json").get("prunus")
                if not isinstance(settings, dict):
                    raise BadInput(f"{folder}: no model of `prunus train reader`", subject=str(folder))
                self._loaded = onnx.Engine(f"{folder}#int8", self._threads, self._batch), settings
            return self._loaded
