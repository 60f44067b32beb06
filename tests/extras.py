"""Import optional packages in tests: without one its tests skip, unless ``PRUNUS_ALL_EXTRAS`` is set."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest

ALL = os.environ.get("PRUNUS_ALL_EXTRAS", "") not in ("", "0")
"""Read at import, because each test runs without the environment variables of Prunus."""


def need(module: str) -> Any:
    """Import an optional package; skip the test without it, or fail where ``PRUNUS_ALL_EXTRAS`` is set."""
    if ALL:
        try:
            return import_module(module)
        except ImportError as error:
            pytest.fail(f"PRUNUS_ALL_EXTRAS is set, but {module} is missing ({error})")
    return pytest.importorskip(module)
