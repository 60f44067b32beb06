"""Sentence segmentation on published cases: exactly right or not, by language.

A case is right when the sentences are those of the reference, white space aside: the references leave
out or repair spaces and line breaks, which a lossless cut must keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prunus.core.text.words import sentences
from prunus_evals.data import rows
from prunus_evals.split import Half, half

Cutter = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Score:
    """Cases of one language: how many, exactly right, and with text lost."""

    language: str
    cases: int
    right: int
    lossy: int


def right(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Tell whether two cuts are the same, white space aside."""
    bare = ["".join(one.split()) for one in found]
    return [one for one in bare if one] == ["".join(one.split()) for one in wanted]


def score(cases: Iterable[Mapping[str, Any]], cut: Cutter = sentences) -> list[Score]:
    """Score a cutter on cases with ``lang``, ``text`` and ``sentences``, by language."""
    counts: dict[str, list[int]] = {}
    for case in cases:
        found = cut(case["text"])
        count = counts.setdefault(case["lang"], [0, 0, 0])
        count[0] += 1
        count[1] += right(found, case["sentences"])
        count[2] += "".join(found) != case["text"]
    return [Score(language, *count) for language, count in sorted(counts.items(), key=lambda one: (-one[1][0], one[0]))]


def load(which: Half | None = "dev", folder: Path | None = None) -> list[dict[str, Any]]:
    """Load the cases of a half, of both for None. The key of a case is its text."""
    return [case for case in rows("sentences/pysbd", folder) if which is None or half(case["text"]) == which]


def table(scores: Sequence[Score]) -> str:
    """Return the scores as a table, one language a line."""
    lines = ["language  cases  right       %  lossy"]
    for one in scores:
        lines.append(
            f"{one.language:8}  {one.cases:5}  {one.right:5}  {100 * one.right / one.cases:6.1f}  {one.lossy:5}"
        )
    return "\n".join(lines)


def summary(scores: Sequence[Score], which: Half) -> dict[str, object]:
    """Return the scores, ready for JSON."""
    return {"half": which, "task": "segmentation", "languages": {one.language: asdict(one) for one in scores}}
