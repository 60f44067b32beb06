"""``make demo``: three questions, from any working folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.command import SITE, environment


def test_the_demo_answers_its_questions(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, SITE.parent / "demo.py"],
        capture_output=True, timeout=60, env={**environment(), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    text = done.stdout.decode("utf-8")
    assert (done.returncode, done.stderr) == (0, b"")
    for answer in ("€11.90", "€74,400", "BAT-2"):
        assert answer in text
    counts = re.findall(r"([\d,]+) tokens raw -> ([\d,]+) cleaned -> ([\d,]+) kept", text)
    assert len(counts) == 3
    for one in counts:
        raw, cleaned, kept = (int(number.replace(",", "")) for number in one)
        assert raw > cleaned > kept <= 1024
    assert text.count("✓ found in the page") >= 3 and "NOT FOUND" not in text
    assert "prunus doctor" in text
