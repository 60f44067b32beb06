"""The texts that the static vectors learn from: passages without labels, and questions with the units that answer them.

Only sets whose licence is certain are read. Everything is split by document, and nothing is random but by the seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from prunus_evals.data import rows
from prunus_evals.split import digest

PAIRS: Final = (
    "jaquad_ja", "cmrc2018_zh", "arcd_ar", "piaf_fr", "faquad_pt", "covidqa_en", "pubmedqa_en", "tatqa_en", "fetaqa_en",
    "ottqa_en", "qed_en", "clapnq_en", "evidence_inference_en", "faq_docs_multi",
)  # fmt: skip
"""Sets of questions with documents, all with a certain licence."""

UNCERTAIN: Final = frozenset({"drcd", "squad", "boolq", "hotpotqa", "2wikimultihopqa", "musique"})
"""Sources of passages that are left out, because no licence is stated where they were found."""

LONGEST: Final = 1200
"""Most code points of a unit that is learned from."""

_EACH: Final = 6
"""Questions of a document at most: some have dozens."""
_BESIDE: Final = 8
"""Other units of the document that are kept with a question, the nearest to the gold ones."""
_HELD: Final = 12
"""One document in this many is held back for validation."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, a unit that answers it, and other units of the same document.

    :param held: whether its document is held back for validation.
    """

    source: str
    language: str
    question: str
    gold: str
    beside: tuple[str, ...]
    held: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage without a label."""

    language: str
    text: str


def passages(sets: Path) -> list[Passage]:
    """Return the passages with a certain licence, in the order of the file."""
    return [Passage(row["lang"], row["text"]) for row in rows("passages", sets) if row["source"] not in UNCERTAIN]


def pairs(sets: Path) -> list[Pair]:
    """Return the questions with their units, at most six of a document."""
    return [pair for name in PAIRS for pair in _of_set(name, sets)]


def balanced(found: Sequence[Passage], size: int, seed: int) -> list[Passage]:
    """Sample passages by language; a language's share is the square root of its number.

    :param size: passages at most.
    """
    drawn = random.Random(seed)
    languages: dict[str, list[Passage]] = {}
    for passage in found:
        languages.setdefault(passage.language, []).append(passage)
    total = sum(len(of) ** 0.5 for of in languages.values())
    chosen = []
    for of in languages.values():
        chosen += drawn.sample(of, min(len(of), round(size * len(of) ** 0.5 / total)))
    drawn.shuffle(chosen)
    return chosen[:size]


def _of_set(name: str, sets: Path) -> Iterator[Pair]:
    drawn = random.Random(name)
    for _, group in groupby(rows(f"text/{name}", sets), key=lambda row: (row["title"], row["units"][:3])):
        document = list(group)
        held = int(digest("\n".join(document[0]["units"][:3]))[:8], 16) % _HELD == 0
        for row in drawn.sample(document, min(_EACH, len(document))):
            made = _pair(row, held, drawn)
            if made is not None:
                yield made


def _pair(row: Mapping[str, Any], held: bool, drawn: random.Random) -> Pair | None:
    units, heads = row["units"], row.get("heads")
    gold = [place for place in row["gold"] if units[place].strip()]
    if not gold or not row["question"].strip():
        return None
    place = drawn.choice(gold)
    others = sorted((other for other in range(len(units)) if other not in row["gold"]), key=lambda at: abs(at - place))
    beside = tuple(_shown(units, heads, row["title"], other) for other in others[:_BESIDE] if units[other].strip())
    return Pair(row["source"], row["lang"], row["question"], _shown(units, heads, row["title"], place), beside, held)


def _shown(units: Sequence[str], heads: Sequence[str] | None, title: str, place: int) -> str:
    """Return a unit below its title, as blocks stand below their headings."""
    head = (heads[place] if heads else "") or title
    return f"{head}\n{units[place]}"[:LONGEST] if head else units[place][:LONGEST]
