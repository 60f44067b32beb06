"""MTQA: questions with several answers each, as tags of sentences (the set "Multiple" of the Internet-SAG paper).

The paper takes its document-dependent questions, cuts their texts into tagged sentences, and has a model write the
right tags, which are not published. This reads such a file: a line is
``{"id": "…", "question": "…", "sentences": ["…", …], "tags": [2, 5], "answers": ["…", …]}``; tags count from 0,
``answers`` may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Lines, find
from prunus_evals.records import About, Question
from prunus_evals.tasks._tagged import question_of, tags_of
from prunus_evals.tasks.hotpot import TAGS

FILE = "sets/mtqa/questions.jsonl"
ABOUT = About(
    title="questions with several answers, as tags of sentences",
    metrics=TAGS,
    files=(FILE,),
    source="MTQA (several answers; terms of its authors), tagged by you; the task's file has the form",
    half="all",
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions for whose id ``use`` is true."""
    for _, row in Lines(find(FILE, ABOUT.source)):
        key = row.name("id")
        if use(key):
            sentences = row.texts("sentences")
            answers = row.texts("answers") if "answers" in row else ()
            yield question_of(
                "mtqa", key, row.text("question"), sentences, tags_of(row, "tags", len(sentences)), answers
            )
