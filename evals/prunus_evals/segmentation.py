"""Task ``segmentation``: cut published cases into sentences; a case is exactly right or wrong, by language.

White space is not compared: the references leave out or repair spaces and line breaks, which a lossless cut must
keep.
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
    """The counts of one language: cases, exactly right cases, and cases in which text was lost."""

    language: str
    cases: int
    right: int
    lossy: int


def right(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether two lists of sentences are the same but for white space."""
    bare = ["".join(sentence.split()) for sentence in found]
    return [sentence for sentence in bare if sentence] == ["".join(sentence.split()) for sentence in wanted]


def score(cases: Iterable[Mapping[str, Any]], cut: Cutter = sentences) -> list[Score]:
    """Score a cutter on cases with ``lang``, ``text`` and ``sentences``; most frequent language first."""
    counts: dict[str, list[int]] = {}
    for case in cases:
        found = cut(case["text"])
        count = counts.setdefault(case["lang"], [0, 0, 0])
        count[0] += 1
        count[1] += right(found, case["sentences"])
        count[2] += "".join(found) != case["text"]
    return [Score(language, *count) for language, count in sorted(counts.items(), key=lambda row: (-row[1][0], row[0]))]


def load(which: Half | None = "dev", folder: Path | None = None) -> list[dict[str, Any]]:
    """Load the cases of a half, or of both halves for None; the text of a case decides its half."""
    return [case for case in rows("sentences/pysbd", folder) if which is None or half(case["text"]) == which]


def table(scores: Sequence[Score]) -> str:
    """Return the scores as a text table, one line per language."""
    lines = ["language  cases  right       %  lossy"]
    for row in scores:
        lines.append(
            f"{row.language:8}  {row.cases:5}  {row.right:5}  {100 * row.right / row.cases:6.1f}  {row.lossy:5}"
        )
    return "\n".join(lines)


def summary(scores: Sequence[Score], which: Half) -> dict[str, object]:
    """Return the scores, ready for JSON."""
    return {"half": which, "task": "segmentation", "languages": {row.language: asdict(row) for row in scores}}
