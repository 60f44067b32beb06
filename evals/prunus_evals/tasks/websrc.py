"""WebSRC: questions about key and value pages, the answer in a known element."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import rows
from prunus_evals.records import Question


def questions(use: Callable[[str], bool]) -> Iterator[Question]:
    """Yield the questions of the pages whose key is used; yes/no questions are left out."""
    for row in rows("page_qa/websrc"):
        key = f"{row['domain']}/{row['site']}/{row['page']}"
        if use(key) and row["in_visible_text"]:
            yield Question(
                id=row["id"],
                task="websrc",
                page=key,
                html=row["html"],
                question=row["question"],
                answers=(row["answer"],),
                element_id=row["element_id"],
            )
