"""The weights of the cross-encoder ``reader`` of Prunus: a graph in ONNX, its tokenizer and its settings."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"


def folder() -> Path:
    """Return the folder of ``model_int8.onnx``, ``tokenizer.json`` and ``config.json``."""
    return Path(__file__).parent / "model"


def files() -> dict[str, Path]:
    """Return the path of each file of the model by its name, as ``files()["tokenizer.json"]``."""
    return {path.name: path for path in sorted(folder().iterdir()) if path.is_file()}
