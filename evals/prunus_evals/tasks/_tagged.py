"""Rows of questions about numbered sentences, in a form of our own.

A line is ``{"id": "…", "question": "…", "sentences": ["…", …], "tags": [2, 5]}``: tags are places of the right
sentences, from 0, or null where no sentence answers. ``answers`` (a list of texts) may be there.
"""

from __future__ import annotations

from collections.abc import Sequence

from prunus_evals.data import Row
from prunus_evals.records import Document, Question, Span


def tags_of(row: Row, name: str, sentences: int) -> tuple[int, ...] | None:
    """Return the right tags of a row, in order; None where no sentence answers.

    :raises DataWrong: they are no list of places of sentences, or the list is empty.
    """
    if row[name] is None:
        return None
    tags = row.items_of(name)
    for tag in tags:
        if not isinstance(tag, int) or isinstance(tag, bool) or not 0 <= tag < sentences:
            raise row.wrong(f"{name!r} names the tag {tag!r}, of {sentences} sentences")
    if not tags:
        raise row.wrong(f"{name!r} is empty; write null where no sentence answers")
    return tuple(sorted({*tags}))


def question_of(
    task: str, key: str, text: str, sentences: Sequence[str], tags: tuple[int, ...] | None, answers: Sequence[str] = ()
) -> Question:
    """Return a question about the tags of sentences; the sentences, one a line, are its document and gold evidence."""
    starts = [0]
    for sentence in sentences:
        starts.append(starts[-1] + len(sentence) + 1)
    return Question(
        id=key,
        task=task,
        page=key,
        documents=(Document(key, "\n".join(sentences), "text/plain"),),
        question=text,
        answers=tuple(answers),
        kind="tags",
        sentences=tuple(sentences),
        tags=tags,
        gold=tuple(Span(key, starts[tag], starts[tag + 1] - 1) for tag in tags or () if sentences[tag].strip()),
    )
