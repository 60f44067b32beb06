"""MuSiQue: questions of several hops about whole paragraphs; a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.records import About, Question
from prunus_evals.tasks.twowiki import sample

DATA = "extract/musique"
ABOUT = About(
    title="questions of several hops about paragraphs",
    metrics=("answer", "em_share", "token_f1"),
    files=(f"{DATA}.jsonl.xz",),
    source="MuSiQue by way of IRCoT, CC BY 4.0",
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions for whose id ``use`` is true."""
    yield from sample("musique", DATA, use)
