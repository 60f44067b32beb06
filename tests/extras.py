"""Packages that Prunus does not depend on: a test that needs one skips, unless all extras are promised."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest

ALL = os.environ.get("PRUNUS_ALL_EXTRAS", "") not in ("", "0")
"""Read at import: each test runs without the variables of the person who runs it."""


def need(module: str) -> Any:
    """Import an optional package; skip without it, or fail where every extra must be there."""
    if ALL:
        try:
            return import_module(module)
        except ImportError as error:
            pytest.fail(f"PRUNUS_ALL_EXTRAS is set, but {module} is missing ({error})")
    return pytest.importorskip(module)
