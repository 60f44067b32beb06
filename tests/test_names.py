"""A public class has one name in the whole house, and a name one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "prunus"


def shared_names(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the files of each public class name that several files define.

    ``Engine`` is the name of every engine by contract. Adapters name their classes as their frameworks do.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for path, text in sources.items():
        if path.startswith("adapters/"):
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name != "Engine":
                files[node.name].append(path)
    return {name: sorted(paths) for name, paths in files.items() if len(paths) > 1}


def test_no_two_public_classes_share_a_name() -> None:
    sources = {path.relative_to(SOURCES).as_posix(): path.read_text("utf-8") for path in SOURCES.rglob("*.py")}
    assert len(sources) > 100
    assert shared_names(sources) == {}


def test_a_shared_name_is_seen() -> None:
    assert shared_names({"a.py": "class Source: ...", "b/c.py": "class Source: ..."}) == {"Source": ["a.py", "b/c.py"]}
