"""QMSum: questions about meetings.

``qmsum:specific`` asks about a part of a meeting, whose turns people marked; ``qmsum:general`` about all of it.
``qmsum:all`` asks the questions of ``specific`` of all meetings at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Row, rows
from prunus_evals.records import About, Document, Question, Span

DATA = "long/qmsum"
ABOUT = About(
    title="questions about meetings, with the turns that people marked",
    metrics=("gold_recall_4grams", "rouge_l", "bleu4", "meteor_exact_stem"),
    files=(f"{DATA}.jsonl.xz",),
    source="QMSum, MIT",
    variants=("specific", "general", "all"),
)
METRICS = {"general": ("rouge_l", "bleu4", "meteor_exact_stem")}


def meeting(row: Row) -> tuple[str, list[int]]:
    """Return a meeting as lines, one per turn, and where each turn begins; the last number is the end of the text."""
    starts, parts, length = [], [], 0
    for turn in row.rows("turns"):
        starts.append(length)
        parts.append(f"{turn.text('speaker')}: {turn.text('content')}\n")
        length += len(parts[-1])
    return "".join(parts), [*starts, length]


def marked(row: Row, query: Row, starts: list[int]) -> list[tuple[int, int]]:
    """Return the places of the turns that people marked for a question; a last turn beyond the end is the last one.

    :raises DataWrong: they are not pairs of numbers of turns.
    """
    last = len(starts) - 2
    spans = []
    for pair in query.items_of("relevant_text_span"):
        try:
            first, end = (int(number) for number in pair)
        except (TypeError, ValueError) as error:
            raise row.wrong(f"'relevant_text_span' must be pairs of numbers, not {pair!r}") from error
        if not 0 <= first <= min(end, last):
            raise row.wrong(f"turns {first} to {end} are marked, of {last + 1}")
        spans.append((starts[first], starts[min(end, last) + 1]))
    return spans


def questions(use: Callable[[str], bool], variant: str = "specific") -> Iterator[Question]:
    """Yield the questions of the meetings for whose id ``use`` is true."""
    found = [(row.text("doc_id"), row, *meeting(row)) for row in rows(DATA)]
    every = tuple(Document(key, text, "text/plain") for key, _, text, _ in found)
    for (key, row, _, starts), own in zip(found, every, strict=True):
        for number, query in enumerate(row.rows("general" if variant == "general" else "specific") if use(key) else ()):
            spans = marked(row, query, starts) if variant != "general" else []
            yield Question(
                id=f"{key}#{number}",
                task=f"qmsum:{variant}",
                page=key,
                documents=every if variant == "all" else (own,),
                question=query.text("query"),
                kind="long",
                references=(query.text("answer"),),
                gold=tuple(Span(key, start, end) for start, end in spans),
            )
