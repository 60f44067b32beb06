"""Fixtures: the command line inside the test's process and as a separate process, and a folder of pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.command import PROGRAM, SITE, Cli, Shell, environment

from prunus.cli.main import app


@pytest.fixture
def cli(folder: Path) -> Cli:
    """Run a command in an empty working folder that has ``examples/site``."""
    (folder / "examples").mkdir()
    (folder / "examples" / "site").symlink_to(SITE)

    def call(*arguments: str | Path, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)

    return call


@pytest.fixture
def shell(folder: Path) -> Shell:
    """Run a command as a separate process."""

    def call(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
        texts = [str(argument) for argument in arguments]
        return subprocess.run([*PROGRAM, *texts], capture_output=True, timeout=60, env=environment(), **options)

    return call


@pytest.fixture
def small_site(folder: Path) -> Path:
    """Make a folder with two good pages, one of them in a subfolder, and two pages that cannot be read."""
    root = folder / "pages"
    (root / "below").mkdir(parents=True)
    shutil.copy(SITE / "faq.html", root / "faq.html")
    (root / "below" / "note.html").write_text("<h1>Note</h1><p>The bridge opened in 1932.</p>", "utf-8")
    (root / "empty.html").write_bytes(b"")
    (root / "picture.html").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    return root
