"""Questions with the best blocks, or the best segments, of their pages: what ``prunus train reader`` learns from.

A page is read, cut and ranked by the functions that pruning and the extractor ``sentences`` call, so that a candidate
looks in training as it does in use. Gold is what holds the answer at its known position. A question about segments may
bring the best segments of a wrong page, so that the model learns what an answer is, and not only which segment is the
best. Only sets whose licence is certain are read, in English.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import prunus
from prunus.answer.extract._features import Question as Segments
from prunus.answer.extract._weights import weights
from prunus.answer.extract.sentences import READ, pair_texts
from prunus.core.settings import Settings
from prunus.engines import prune_engines
from prunus.evidence.blocks import Blocks
from prunus.evidence.documents import Documents
from prunus.evidence.score._signals import above_texts
from prunus_evals.bm25 import BM25
from prunus_evals.data import Row, rows
from prunus_evals.errors import MetricError
from prunus_evals.labels import gold_blocks
from prunus_evals.metrics import matching
from prunus_evals.records import Question, one_page
from prunus_evals.split import digest, half
from prunus_evals.tasks.pages import nth_table
from prunus_train.data.quotes import PageCutter, is_gold
from prunus_train.data.sets import english_documents, is_used, letters, page_of, table_pages, with_rows

ABOVE: Final = 200
"""Most code points of breadcrumbs before a text, as the engine ``prunus`` reads them."""

CANDIDATES: Final = 32
"""Best blocks of a page that are kept for a question; gold beyond them is added."""

_WORDS: Final = (16, 32, 48, 48)
"""Words per block: the sizes that pruning takes for small and large budgets."""

TEXTS: Final = {
    "qed_en": (240, 2, 5), "clapnq_en": (290, 2, 5), "covidqa_en": (92, 8, 1), "ottqa_en": (1200, 2, 1),
    "tatqa_en": (550, 3, 2), "fetaqa_en": (1500, 2, 4), "evidence_inference_en": (200, 1, 1),
    "faq_docs_multi": (150, 3, 1),
}  # fmt: skip
"""Sets of texts for blocks: documents that are used, questions of each, and documents that make a page."""

SEGMENT_TEXTS: Final = {
    "qed_en": (240, 2, 6), "clapnq_en": (290, 2, 6), "covidqa_en": (92, 8, 1), "ottqa_en": (1200, 2, 1),
    "tatqa_en": (550, 4, 2), "fetaqa_en": (1500, 2, 3), "faq_docs_multi": (150, 3, 1),
}  # fmt: skip
"""The same for segments."""

_FEW: Final = 8
"""Questions of a page of ``table_qa`` at most; about segments the first three are also asked of a wrong page."""

_WRONG: Final = 8
"""Segments of a wrong page that are kept, the best."""

_TOGETHER: Final = 6
"""Passages of ``nq_passages`` that make a page: the gold one and those that BM25 confuses with it."""


@dataclass(frozen=True, slots=True)
class ReaderQuestion:
    """A question and its candidates, best first by the cheap score.

    :param source: the set; ``…/segments`` where the candidates are segments, else they are blocks.
    :param page: what the held-out part is drawn by.
    :param answers: the short answers; [] where none are known.
    :param texts: each candidate as the model reads it.
    :param cheap: score of each: of segments by the learned weights, of blocks in standard deviations from their mean.
    :param gold: indices of the candidates that hold the answer.
    :param wrong: the best candidates of a page that does not answer; [] where it is not asked of one.
    """

    source: str
    page: str
    question: str
    answers: Sequence[str]
    texts: Sequence[str]
    cheap: Sequence[float]
    gold: Sequence[int]
    wrong: Sequence[str] = ()

    @property
    def held_out(self) -> bool:
        """Whether the question is for validation only: one page in sixteen."""
        return digest(self.page)[1] == "0"


def make(folder: Path, sets: Path, report: Callable[[str], None], share: float = 1.0) -> list[ReaderQuestion]:
    """Return the questions of all sets; what an earlier call has made in the folder is read from it.

    :param sets: folder of the training sets.
    :param share: of the documents of each set.
    :raises DataMissing: a file of the data is missing.
    """
    makers: dict[str, Callable[[], Iterator[ReaderQuestion]]] = {
        "tables": partial(block_tables, sets, share),
        "nq_passages": partial(block_passages, share),
        **{name: partial(block_texts, name, sets, share) for name in TEXTS},
        "tables/segments": partial(segment_tables, sets, share),
        "nq_passages/segments": partial(segment_passages, share),
        **{f"{name}/segments": partial(segment_texts, name, sets, share) for name in SEGMENT_TEXTS},
    }
    found: list[ReaderQuestion] = []
    for name, maker in makers.items():
        file_name = name.replace("/", "-")
        path = folder / (f"{file_name}.jsonl" if share == 1 else f"{file_name}-{share:g}.jsonl")
        if not path.exists():
            part = path.with_suffix(".part")
            with part.open("w", encoding="utf-8") as file:
                for question in maker():
                    file.write(json.dumps(asdict(question), ensure_ascii=False) + "\n")
            part.replace(path)
        with path.open(encoding="utf-8") as lines:
            made = [ReaderQuestion(**json.loads(line)) for line in lines]
        report(f"{name}: {len(made)} questions")
        found += made
    return found


def _pages_of_texts(
    name: str, sets: Path, share: float, use: tuple[int, int, int]
) -> Iterator[tuple[str, Documents, list[Row]]]:
    """Yield pages of a set of texts, several short documents together: a name, the page, and its questions."""
    size, few, together = use
    firsts = english_documents(name, sets, share, size, few)
    for start in range(0, len(firsts), together):
        group = firsts[start : start + together]
        page = prunus.read(page_of([with_rows(questions[0]) for questions in group]))
        yield f"{name}:{group[0][0]['id']}", page, [row for questions in group for row in questions]


Passages = list[tuple[str, str]]
"""Text and title of each."""


def _passages(share: float, best: int) -> Iterator[tuple[Row, Passages, Passages]]:
    """Yield questions of the dev half of ``nq_passages``, each with the passages of its page, and those but gold.

    :param best: of so many first passages by BM25 some stand beside the gold one.
    """
    found = [row for row in rows("rank/nq_passages") if half(row["gold_title"]) == "dev"]
    texts = list({row["gold_text"]: row["gold_title"] for row in found}.items())
    index = BM25([text for text, _ in texts])
    for row in found:
        if not is_used(row["gold_title"], share):
            continue
        order = np.argsort(-index.scores(row["question"]), kind="stable")[:best].tolist()
        others = [texts[place] for place in order if texts[place][0] != row["gold_text"]][: _TOGETHER - 1]
        own = [*others, (row["gold_text"], row["gold_title"])]
        random.Random(row["question"]).shuffle(own)
        yield row, own, others


def _page(passages: Passages) -> Documents:
    return prunus.read(page_of([{"title": title, "units": [text], "kind": "sentence"} for text, title in passages]))


# --- blocks --------------------------------------------------------------------------------------


def block_tables(sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about whole pages with tables."""
    for page, chosen in table_pages(sets, _FEW):
        if not is_used(page["page"], share):
            continue
        documents = prunus.read(page["html"])
        for row in chosen:
            try:
                table = nth_table(page["html"], int(row["table_index"]))
            except MetricError:
                continue  # the page has fewer tables than the question counts
            question = Question(
                row["id"], "tables", page["page"], one_page(page["html"]), row["question"], tuple(row["answers"]),
                gold_table=table,
            )  # fmt: skip
            yield from _with_blocks(question, documents, partial(_in_table, question))


def block_passages(share: float) -> Iterator[ReaderQuestion]:
    """Yield questions of the dev half of ``nq_passages``, each with a page of six passages."""
    for row, own, _ in _passages(share, _TOGETHER):
        question = Question("", "nq_passages", row["gold_title"], (), row["question"], tuple(row["answers"][:1]))
        gold = {"units": [row["gold_text"]], "gold": [0], "answers": row["answers"]}
        yield from _with_blocks(question, _page(own), partial(_in_unit, "nq_passages", gold))


def block_texts(name: str, sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about the documents of a set of texts."""
    for page, documents, questions in _pages_of_texts(name, sets, share, TEXTS[name]):
        for row in questions:
            question = Question(str(row["id"]), name, page, (), row["question"], tuple(row["answers"]))
            yield from _with_blocks(question, documents, partial(_in_unit, name, row))


def _in_table(question: Question, blocks: Blocks) -> list[int]:
    return gold_blocks(blocks, question)


def _in_unit(name: str, row: Mapping[str, Any], blocks: Blocks) -> list[int]:
    return [place for place, text in enumerate(blocks.texts) if is_gold(name, row, text)]


def _with_blocks(
    question: Question, documents: Documents, gold_of: Callable[[Blocks], Sequence[int]]
) -> Iterator[ReaderQuestion]:
    """Yield a question with its best blocks; nothing where no block, or more than half of them, is gold."""
    words = _WORDS[int(digest(question.question)[0], 16) % len(_WORDS)]
    blocks = documents.blocks(words, "blocks")
    gold = set(gold_of(blocks))
    if not gold or len(gold) > max(1, len(blocks) // 2):
        return
    scores = prune_engines(Settings(scorer="hybrid")).scorer.score(question.question, blocks)
    order = np.argsort(-scores, kind="stable").tolist()
    best = order[:CANDIDATES]
    if not gold & set(best):
        best = [*best[:-1], next(place for place in order if place in gold)]
    spread = float(scores[best].std()) or 1.0
    cheap = [round(float((scores[place] - scores[best].mean()) / spread), 3) for place in best]
    above = above_texts(blocks)
    yield ReaderQuestion(
        question.task, question.page, question.question, [*question.answers],
        [pair_text(above[place], blocks.texts[place][:1000]) for place in best], cheap,
        [number for number, place in enumerate(best) if place in gold],
    )  # fmt: skip


def pair_text(above: str, text: str) -> str:
    """Return a block as the model reads it: breadcrumbs, then text."""
    return f"{above[:ABOVE]}\n{text}" if above else text


# --- segments ------------------------------------------------------------------------------------


def segment_tables(sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about whole pages with tables; the wrong page is the one before."""
    cutter = PageCutter()
    before: Documents | None = None
    for page, chosen in table_pages(sets, _FEW):
        if not is_used(page["page"], share):
            continue
        own = prunus.read(page["html"])
        for place, row in enumerate(chosen):
            question = cutter.question(row["question"], own)
            if question is not None:
                gold = [matching.holds(segment.text, row["answers"]) for segment in question.tagged]
                wrong = cutter.question(row["question"], before) if before is not None and place < 3 else None
                yield from _with_segments("tables", page["page"], row["answers"], question, gold, wrong)
        before = own


def segment_passages(share: float) -> Iterator[ReaderQuestion]:
    """Yield questions of the dev half of ``nq_passages``, each with a page of six passages, and one without its own."""
    cutter = PageCutter()
    for row, own, others in _passages(share, _TOGETHER + 2):
        question, wrong = (cutter.question(row["question"], _page(part)) for part in (own, others))
        if question is not None:
            passage = letters(row["gold_text"])
            gold = [
                letters(segment.text) in passage and matching.holds(segment.text, row["answers"])
                for segment in question.tagged
            ]
            yield from _with_segments("nq_passages", row["gold_title"], row["answers"][:3], question, gold, wrong)


def segment_texts(name: str, sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about the documents of a set of texts; every other one is also asked of the page before."""
    cutter = PageCutter()
    before: Documents | None = None
    for page, own, questions in _pages_of_texts(name, sets, share, SEGMENT_TEXTS[name]):
        for place, row in enumerate(questions):
            question = cutter.question(row["question"], own)
            if question is not None:
                gold = [is_gold(name, row, segment.text) for segment in question.tagged]
                wrong = cutter.question(row["question"], before) if before is not None and not place % 2 else None
                yield from _with_segments(name, page, row["answers"], question, gold, wrong)
        before = own


def _with_segments(
    source: str, page: str, answers: Sequence[str], question: Segments, gold: Sequence[bool], wrong: Segments | None
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


def _ranked(question: Segments) -> tuple[NDArray[np.float64], list[int]]:
    """Return the scores of the segments by the learned weights, and their indexes, best first."""
    scores = weights().scores(question.features)
    return scores, np.argsort(-scores, kind="stable").tolist()
