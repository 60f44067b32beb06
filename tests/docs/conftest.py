"""A working folder for the examples of the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.fences import ROOT


@pytest.fixture
def clone(folder: Path) -> Path:
    """An empty working folder that has ``examples``."""
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder
