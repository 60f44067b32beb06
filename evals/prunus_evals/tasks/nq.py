"""Natural Questions over whole Wikipedia articles.

In an answer of several lines, every line is an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import rows
from prunus_evals.records import About, Question, one_page

ABOUT = About(
    title="Natural Questions over whole Wikipedia articles",
    metrics=("answer",),
    files=("page_qa/nq.jsonl.xz",),
    source="Natural Questions by way of L-Eval, CC BY-SA 3.0",
)
CHECKED = True


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions of the pages for whose key ``use`` is true."""
    for row in rows("page_qa/nq"):
        if not use(row["doc_id"]):
            continue
        for number, item in enumerate(row["qas"]):
            lines = [line.strip() for line in item["answer"].split("\n")]
            yield Question(
                id=f"{row['doc_id']}#{number}",
                task="nq",
                page=row["doc_id"],
                documents=one_page(row["html"]),
                question=item["question"],
                answers=tuple(line for line in lines if line),
            )
