"""Shared by the tests of the command line: types, the program, and readers of its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

SITE = Path(__file__).parents[2] / "examples" / "site"
PROGRAM = [sys.executable, "-c", "from prunus.cli.main import main; main()"]

Cli = Callable[..., Result]
Shell = Callable[..., "subprocess.CompletedProcess[bytes]"]


def environment() -> dict[str, str]:
    """Return the environment of a process, without settings of Prunus."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PRUNUS_")}


def lines_of(result: Result) -> list[Any]:
    """Return stdout as JSON lines."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def only_line(result: Result) -> str:
    """Return the only line of stderr; check that it is no traceback and that stdout is empty."""
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    [line] = result.stderr.splitlines()
    assert line.startswith("prunus")
    return line
