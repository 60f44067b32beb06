"""WikiTableQuestions over full Wikipedia article pages, one question a page.

Used are the questions whose answer is visible in the page and in the gold table, and
does not stand in the question (fields ``core``, ``in_visible_text``, ``in_gold_table``,
``answer_in_question``; the set was made so that all 400 pass). The fields were computed
by the makers of the set, so ``tasks.checked`` checks the page and the question again
with the scorer's own rules. An answer may stand in the page outside its table too: that
counts as survival, and gold-table survival is shown beside it. Seven questions of the
400 fall out: a sort key that only a style sheet hides is fused with their answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborHTMLParser

from prunus_evals.data import rows
from prunus_evals.errors import MetricError
from prunus_evals.records import Question


def nth_table(html: str, index: int) -> str:
    """Return the HTML of the page's data table with this number, counted from 0.

    The makers of WikiTableQuestions counted the tables of the class ``wikitable`` only.
    """
    tables = LexborHTMLParser(html).css("table.wikitable")
    if index >= len(tables):
        raise MetricError(f"the page has {len(tables)} data tables, not number {index}")
    return tables[index].html or ""


def questions(use: Callable[[str], bool]) -> Iterator[Question]:
    """Yield the questions of the pages whose key is used."""
    wanted = {
        row["page"]: row
        for row in rows("table_qa/questions")
        if use(row["page"])
        and row["core"]
        and row["in_visible_text"]
        and row["in_gold_table"]
        and not row["answer_in_question"]
    }
    for page in rows("table_qa/pages"):
        row = wanted.get(page["page"])
        if row is not None:
            yield Question(
                id=row["id"],
                task="table_qa",
                page=row["page"],
                html=page["html"],
                question=row["question"],
                answers=tuple(row["answers"]),
                gold_table=nth_table(page["html"], int(row["table_index"])),
            )
