"""WikiTableQuestions over full Wikipedia article pages, one question per page.

A question is used when its answer is visible in the page and in the gold table, and does not occur in the question
(fields ``core``, ``in_visible_text``, ``in_gold_table``, ``answer_in_question``; all 400 questions of the set pass).
The makers of the set computed these fields, so ``tasks.checked`` checks page and question again with the scorer's own
rules. An answer outside the gold table also counts as survival; the survival of the gold table is reported beside it.
Seven of the 400 questions fail the check: a sort key that only a style sheet hides is fused with their answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborHTMLParser

from prunus_evals.data import rows
from prunus_evals.errors import MetricError
from prunus_evals.records import About, Question, one_page

ABOUT = About(
    title="WikiTableQuestions over whole Wikipedia articles",
    metrics=("answer", "gold_whole", "gold_share"),
    files=("table_qa/questions.jsonl.xz", "table_qa/pages.jsonl.xz"),
    source="WikiTableQuestions 1.0.2, CC BY-SA 4.0",
)
CHECKED = True


def nth_table(html: str, index: int) -> str:
    """Return the HTML of the page's data table at this index, from 0.

    The makers of WikiTableQuestions counted only tables of the class ``wikitable``.

    :raises MetricError: the page has fewer tables.
    """
    tables = LexborHTMLParser(html).css("table.wikitable")
    if index >= len(tables):
        raise MetricError(f"the page has {len(tables)} data tables, not number {index}")
    return tables[index].html or ""


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions of the pages for whose key ``use`` is true."""
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
                documents=one_page(page["html"]),
                question=row["question"],
                answers=tuple(row["answers"]),
                gold_table=nth_table(page["html"], int(row["table_index"])),
            )
