"""Questions with the best segments of their pages, to train the cross-encoder of ``prunus train reader``.

Segments are cut, scored and written as the extractor ``sentences`` shows them to a reader. Each question may bring the
best segments of a wrong page, so that the reader learns what an answer is, and not only which segment is the best.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import prunus
from prunus.answer.extract._features import Question
from prunus.answer.extract._reading import READ, pair_texts
from prunus.answer.extract._weights import weights
from prunus.evidence.documents import Documents
from prunus_evals.bm25 import BM25
from prunus_evals.data import Row, rows
from prunus_evals.metrics import matching
from prunus_evals.split import digest, half
from prunus_train.data.quotes import Reader, is_gold, page_of
from prunus_train.data.reader_questions import ReaderQuestion, documents_of, is_used, shaped

TEXTS: Final = {
    "qed_en": (240, 2, 6), "clapnq_en": (290, 2, 6), "covidqa_en": (92, 8, 1), "ottqa_en": (1200, 2, 1),
    "tatqa_en": (550, 4, 2), "fetaqa_en": (1500, 2, 3), "faq_docs_multi": (150, 3, 1),
}  # fmt: skip
"""Sets of texts: documents that are used, questions of each, and documents that make a page."""

_FEW: Final = 8
"""Questions of a page of ``table_qa`` at most; the first three are also asked of a wrong page."""

_WRONG: Final = 8
"""Segments of a wrong page that are kept, the best."""

_TOGETHER: Final = 6
"""Passages of ``nq_passages`` that make a page: the gold one and those that BM25 confuses with it."""


def from_tables(sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about whole pages with tables; the wrong page is the one before."""
    reader = Reader()
    asked: dict[str, list[Row]] = {}
    for row in rows("table_qa/questions", sets):
        if row["in_gold_table"] and row["in_visible_text"] and not row["answer_in_question"]:
            asked.setdefault(row["page"], []).append(row)
    before: Documents | None = None
    for page in rows("table_qa/pages", sets):
        if page["page"] not in asked or not is_used(page["page"], share):
            continue
        own = prunus.read(page["html"])
        for place, row in enumerate(sorted(asked[page["page"]], key=lambda row: digest(row["id"]))[:_FEW]):
            question = reader.question(row["question"], own)
            if question is not None:
                gold = [matching.holds(segment.text, row["answers"]) for segment in question.tagged]
                wrong = reader.question(row["question"], before) if before is not None and place < 3 else None
                yield from _asked("tables", page["page"], row["answers"], question, gold, wrong)
        before = own


def from_texts(name: str, sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about the documents of a set of texts; every other one is also asked of the page before."""
    reader, (size, few, together) = Reader(), TEXTS[name]
    firsts = documents_of(name, sets, share, size, few)
    before: Documents | None = None
    for start in range(0, len(firsts), together):
        group = firsts[start : start + together]
        own = prunus.read(page_of([shaped(asked[0]) for asked in group]))
        for place, row in enumerate(row for asked in group for row in asked):
            question = reader.question(row["question"], own)
            if question is not None:
                gold = [is_gold(name, row, segment.text) for segment in question.tagged]
                wrong = reader.question(row["question"], before) if before is not None and not place % 2 else None
                yield from _asked(name, f"{name}:{group[0][0]['id']}", row["answers"], question, gold, wrong)
        before = own


def from_passages(share: float) -> Iterator[ReaderQuestion]:
    """Yield questions of the dev half of ``nq_passages``, each with a page of six passages, and one without its own."""
    reader = Reader()
    found = [row for row in rows("rank/nq_passages") if half(row["gold_title"]) == "dev"]
    texts = list({row["gold_text"]: row["gold_title"] for row in found}.items())
    index = BM25([text for text, _ in texts])
    for row in found:
        if not is_used(row["gold_title"], share):
            continue
        order = np.argsort(-index.scores(row["question"]), kind="stable")[: _TOGETHER + 2].tolist()
        others = [texts[place] for place in order if texts[place][0] != row["gold_text"]][: _TOGETHER - 1]
        own = [*others, (row["gold_text"], row["gold_title"])]
        random.Random(row["question"]).shuffle(own)
        question, wrong = (reader.question(row["question"], prunus.read(_page(part))) for part in (own, others))
        if question is not None:
            passage = _letters(row["gold_text"])
            gold = [
                _letters(segment.text) in passage and matching.holds(segment.text, row["answers"])
                for segment in question.tagged
            ]
            yield from _asked("nq_passages", row["gold_title"], row["answers"][:3], question, gold, wrong)


def _page(passages: Sequence[tuple[str, str]]) -> str:
    return page_of([{"title": title, "units": [text], "kind": "sentence"} for text, title in passages])


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text)


def _asked(
    source: str, page: str, answers: Sequence[str], question: Question, gold: Sequence[bool], wrong: Question | None
) -> Iterator[ReaderQuestion]:
    """Yield a question with its best segments; nothing where none, or each of them, is gold."""
    scores, order = _ranked(question)
    golds = [place for place in order if gold[place]]
    best = order[:READ]
    if golds and not set(golds) & set(best):
        best = [*best[:-1], golds[0]]
    right = [number for number, place in enumerate(best) if gold[place]]
    if not right or len(right) == len(best):
        return
    others = pair_texts(wrong.tagged, _ranked(wrong)[1][:_WRONG]) if wrong is not None else []
    yield ReaderQuestion(
        f"{source}/segments", page, question.query, [*answers], pair_texts(question.tagged, best),
        [round(float(scores[place]), 3) for place in best], right, others,
    )  # fmt: skip


def _ranked(question: Question) -> tuple[NDArray[np.float64], list[int]]:
    """Return the scores of the segments by the learned weights, and their places, best first."""
    scores = weights().scores(question.features)
    return scores, np.argsort(-scores, kind="stable").tolist()
