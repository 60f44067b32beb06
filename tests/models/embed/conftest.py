"""Tiny encoders for every test of this folder; they need the extra ``onnx``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extras import need
from tests.models.embed.tiny import save_encoder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny sentence encoder."""
    need("onnx")
    need("onnxruntime")
    return save_encoder(tmp_path_factory.mktemp("tiny") / "encoder")
