"""Questions of another task, each asked of the next page of its half: the best answer is none.

The next page is that in the order of the keys' digests, after the last the first. It may hold the answer by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from prunus_evals import tasks
from prunus_evals.records import About, Question

ABOUT = About(
    title="questions of another task, asked of a wrong page",
    metrics=("turned_away",),
    files=("page_qa/nq.jsonl.xz|table_qa/pages.jsonl.xz|page_qa/websrc.jsonl.xz|multilingual/xquad_de.jsonl.xz",),
    source="that of the other task",
    variants=("nq", "table_qa", "websrc", "xquad:de", "xquad:zh"),
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions of the pages for whose key ``use`` is true."""
    pages = [page for page in tasks.groups(variant, "all") if use(page[0].page)]
    for page, following in zip(pages, [*pages[1:], *pages[:1]], strict=True):
        if len(pages) > 1:  # a single page is no wrong one
            for question in page:
                yield replace(
                    question,
                    task=f"wrong_page:{variant}",
                    documents=following[0].documents,
                    gold=(),
                    gold_table=None,
                    element_id=None,
                    labels={**question.labels, "page": "wrong"},
                )
