"""Natural Questions over passages: the passage that answers, and the nine hardest others by BM25, shuffled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from prunus_evals.bm25 import BM25
from prunus_evals.data import rows
from prunus_evals.records import About, Question, Span
from prunus_evals.tasks.dureader import shuffled

DATA = "rank/nq_passages"
POOL = 10
ABOUT = About(
    title="Natural Questions over ten passages, one of which answers",
    metrics=("ndcg", "mrr", "hit@1", "answer", "em_share", "hit1"),
    files=(f"{DATA}.jsonl.xz",),
    source="NQ-open by way of lost-in-the-middle, CC BY-SA 3.0",
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the questions of the articles for whose title ``use`` is true."""
    found = list(rows(DATA))
    known = {row.text("gold_text"): row.text("gold_title") for row in found}
    texts = list(known)
    places = {text: place for place, text in enumerate(texts)}
    index: BM25 | None = None
    for number, row in enumerate(found):
        title, asked = row["gold_title"], row.text("question")
        if not use(title):
            continue
        index = index or BM25(texts)
        gold = places[row["gold_text"]]
        hardest = [place for place in np.argsort(-index.scores(asked), kind="stable").tolist() if place != gold]
        pool = [(known[texts[place]], texts[place]) for place in [gold, *hardest[: POOL - 1]]]
        documents, urls = shuffled(title, asked, pool)
        answer, *others = row.texts("answers")
        yield Question(
            id=f"{number}",
            task="nq_passages",
            page=title,
            documents=documents,
            question=asked,
            answers=(answer,),
            aliases={answer: tuple(others)},
            gold=(Span(urls[0], 0, len(pool[0][1])),),
        )
