"""A working folder for the examples of the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.fences import ROOT


@pytest.fixture
def clone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder that has ``examples``; all engines are those that a user gets."""
    monkeypatch.delenv("PRUNUS_RERANKER")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder
