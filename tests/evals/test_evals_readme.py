"""The README of the evaluations."""

from __future__ import annotations

import re
from pathlib import Path

ROOM = Path(__file__).parents[2] / "evals"


def test_the_table_names_every_part_of_the_room_and_no_other() -> None:
    table = [line for line in (ROOM / "README.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    named = [name for line in table for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    there = {
        path.name + "/" * path.is_dir()
        for path in (ROOM / "prunus_evals").iterdir()
        if not path.name.startswith("__") and path.name != "py.typed"
    }
    assert sorted(named) == sorted(there)
