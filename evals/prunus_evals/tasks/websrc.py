"""WebSRC: questions about pages of keys and values; the element that holds the answer is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import rows
from prunus_evals.records import About, Question, one_page

ABOUT = About(
    title="questions about pages of keys and values",
    metrics=("answer", "gold_whole"),
    files=("page_qa/websrc.jsonl.xz",),
    source="WebSRC",
)
CHECKED = True


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions of the pages for whose key ``use`` is true, without yes/no questions."""
    for row in rows("page_qa/websrc"):
        key = f"{row['domain']}/{row['site']}/{row['page']}"
        if use(key) and row["in_visible_text"]:
            yield Question(
                id=row["id"],
                task="websrc",
                page=key,
                documents=one_page(row["html"]),
                question=row["question"],
                answers=(row["answer"],),
                element_id=row["element_id"],
            )
