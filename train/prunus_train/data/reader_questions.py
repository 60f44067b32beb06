"""What the cross-encoder of ``prunus train reader`` learns from: questions with candidates, the best of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from prunus_evals.data import rows
from prunus_evals.split import digest

_ROWS: Final = frozenset({"row+passage", "paragraph+row"})


@dataclass(frozen=True, slots=True)
class ReaderQuestion:
    """A question and its candidates, best first by the cheap score.

    :param source: the set; ``…/segments`` where the candidates are segments, else they are blocks.
    :param page: what the held-out part is drawn by.
    :param answers: the short answers; [] where none are known.
    :param texts: each candidate as the model reads it.
    :param cheap: score of each: of segments by the learned weights, of blocks in standard deviations from their mean.
    :param gold: indices of the candidates that hold the answer.
    :param wrong: the best candidates of a page that does not answer; [] where it is not asked of one.
    """

    source: str
    page: str
    question: str
    answers: Sequence[str]
    texts: Sequence[str]
    cheap: Sequence[float]
    gold: Sequence[int]
    wrong: Sequence[str] = ()

    @property
    def held_out(self) -> bool:
        """Whether the question is for validation only: one page in sixteen."""
        return digest(self.page)[1] == "0"


def documents_of(name: str, sets: Path, share: float, size: int, few: int) -> list[list[Any]]:
    """Return the first English documents of a set of texts, each as the rows of some of its questions.

    :param share: of the documents.
    :param size: documents at the share 1.
    :param few: questions of a document at most.
    """
    english = (row for row in rows(f"text/{name}", sets) if row["lang"] == "en")
    found: list[list[Any]] = []
    for _, of_one in groupby(english, key=lambda row: row["units"][:3]):
        asked = list(of_one)
        if is_used(str(asked[0]["id"]), share):
            found.append(sorted(asked, key=lambda row: digest(str(row["id"])))[:few])
        if len(found) >= max(1, round(size * share)):
            break
    return found


def shaped(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document as ``page_of`` takes it: rows of tables, or paragraphs."""
    if row["kind"] in _ROWS and row["units"] and all(" | " in unit for unit in row["units"]):
        return {**row, "kind": "row"}
    return row


def is_used(key: str, share: float) -> bool:
    """Tell whether a document belongs to a share of a set; a larger share holds a smaller one."""
    return int(digest(key)[2:6], 16) < share * 65536
