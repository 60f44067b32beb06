"""The fenced blocks of a Markdown file, and how output is compared with what they show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PAGES = (*DOCS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block.

    :param line: line of its opening fence, from 1.
    :param gap: text between the previous block and this one.
    """

    language: str
    info: str
    body: str
    line: int
    gap: str

    def option(self, name: str) -> str:
        """Return ``value`` of ``name=value`` in the info string, '' where there is none."""
        found = re.search(rf"\b{name}=(\S+)", self.info)
        return found[1] if found else ""


def fences(path: Path) -> list[Fence]:
    """Return the fenced blocks of a file in order."""
    text = path.read_text("utf-8")
    found, reached = [], 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        gap = text[reached : match.start()]
        found.append(Fence(match["language"], match["info"].strip(), match["body"], line, gap))
        reached = match.end()
    return found


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def shows(expected: str, output: str) -> bool:
    """Tell whether output matches a block: ``…`` in a line stands for any letters, alone for any lines."""
    lines = [line.rstrip() for line in output.rstrip().splitlines()]
    chunks: list[list[str]] = [[]]
    for line in expected.rstrip().splitlines():
        if line.strip() == "…":
            chunks.append([])
        else:
            chunks[-1].append(line.rstrip())
    place = len(chunks[0])
    if not _matches(chunks[0], lines[:place]):
        return False
    if len(chunks) == 1:
        return place == len(lines)
    for chunk in chunks[1:-1]:
        while not _matches(chunk, lines[place : place + len(chunk)]):
            place += 1
            if place > len(lines):
                return False
        place += len(chunk)
    rest = len(lines) - len(chunks[-1])
    return rest >= place and _matches(chunks[-1], lines[rest:])


def _matches(wanted: Sequence[str], lines: Sequence[str]) -> bool:
    if len(wanted) != len(lines):
        return False
    patterns = (".*".join(re.escape(part) for part in line.split("…")) for line in wanted)
    return all(re.fullmatch(pattern, line) for pattern, line in zip(patterns, lines, strict=True))
