"""CRAG: questions with five whole pages of a search each, and the search engine's snippets. Ten questions: no score."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from prunus_evals.data import Row, rows
from prunus_evals.records import About, Document, Question
from prunus_evals.tasks._paragraphs import YES_NO

DATA = "search/crag"
ABOUT = About(
    title="questions with five whole web pages each; too few for a score",
    metrics=("answer", "em_share", "hit1", "accuracy"),
    files=(f"{DATA}.jsonl.xz",),
    source="CRAG, CC BY-NC 4.0; internal use",
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions for whose id ``use`` is true."""
    for row in rows(DATA):
        key = row.text("interaction_id")
        if not use(key):
            continue
        answer = row.text("answer")
        polar = answer.strip().casefold() in YES_NO
        yield Question(
            id=key,
            task="crag",
            page=key,
            documents=[_document(page, f"{key}/{place}") for place, page in enumerate(row.rows("search_results"))],
            question=row.text("query"),
            answers=() if polar else (answer,),
            aliases={} if polar else {answer: _others(row)},
            kind="yes_no" if polar else "short",
            choices=YES_NO if polar else (),
            correct=YES_NO.index(answer.strip().casefold()) if polar else -1,
            labels={"type": row.text("question_type")},
        )


def _document(page: Row, key: str) -> Document:
    return Document(
        key, page["page_result"] or "", title=page["page_name"] or "", url=page.text("page_url"),
        snippet=page["page_snippet"] or "",
    )  # fmt: skip


def _others(row: Row) -> tuple[str, ...]:
    """Return other answers, which the set writes as JSON in a text."""
    try:
        found = json.loads(row.text("alternative_answers") or "[]")
    except ValueError as error:
        raise row.wrong(f"'alternative_answers' must be a list: {error}") from error
    return tuple(str(answer) for answer in found)
