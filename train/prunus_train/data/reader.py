"""Questions with the best blocks of their pages, to train the cross-encoder of ``prunus train reader``.

A page is read, cut and ranked by the functions that pruning calls, so a candidate looks in training as it does in use:
the block's text, its breadcrumbs and the score of the cheap scorer. Gold is what holds the answer at its known place.
Only sets whose licence is certain are read, in English.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import prunus
from prunus.core.settings import Settings
from prunus.engines import assemble
from prunus.evidence.blocks import Blocks
from prunus.evidence.documents import Documents
from prunus.evidence.score._signals import above_texts
from prunus_evals.bm25 import BM25
from prunus_evals.data import rows
from prunus_evals.errors import MetricError
from prunus_evals.labels import gold_blocks
from prunus_evals.records import Question, one_page
from prunus_evals.split import digest, half
from prunus_evals.tasks.table_qa import nth_table
from prunus_train.data import reader_segments
from prunus_train.data.quotes import is_gold, page_of
from prunus_train.data.reader_questions import ReaderQuestion, documents_of, is_used, shaped
from prunus_train.reader_presets import ABOVE

CANDIDATES: Final = 32
"""Best blocks of a page that are kept for a question; gold beyond them is added."""

_WORDS: Final = (16, 32, 48, 48)
"""Words per block: the sizes that pruning takes for small and large budgets."""

_TEXTS: Final = {
    "qed_en": (240, 2, 5), "clapnq_en": (290, 2, 5), "covidqa_en": (92, 8, 1), "ottqa_en": (1200, 2, 1),
    "tatqa_en": (550, 3, 2), "fetaqa_en": (1500, 2, 4), "evidence_inference_en": (200, 1, 1),
    "faq_docs_multi": (150, 3, 1),
}  # fmt: skip
"""Sets of texts: documents that are used, questions of each, and documents that make a page."""

_FEW: Final = 8
"""Questions of a page of ``table_qa`` at most."""

_TOGETHER: Final = 6
"""Passages of ``nq_passages`` that make a page: the gold one and those that BM25 confuses with it."""


def make(folder: Path, sets: Path, report: Callable[[str], None], share: float = 1.0) -> list[ReaderQuestion]:
    """Return the questions of all sets; what an earlier call has made in the folder is read from it.

    :param sets: folder of the training sets.
    :param share: of the documents of each set.
    :raises DataMissing: a file of the data is missing.
    """
    makers: dict[str, Callable[[], Iterator[ReaderQuestion]]] = {
        "tables": partial(from_tables, sets, share),
        "nq_passages": partial(from_passages, share),
        **{name: partial(from_texts, name, sets, share) for name in _TEXTS},
        "tables/segments": partial(reader_segments.from_tables, sets, share),
        "nq_passages/segments": partial(reader_segments.from_passages, share),
        **{
            f"{name}/segments": partial(reader_segments.from_texts, name, sets, share) for name in reader_segments.TEXTS
        },
    }
    found: list[ReaderQuestion] = []
    for name, maker in makers.items():
        file_name = name.replace("/", "-")
        path = folder / (f"{file_name}.jsonl" if share == 1 else f"{file_name}-{share:g}.jsonl")
        if not path.exists():
            part = path.with_suffix(".part")
            with part.open("w", encoding="utf-8") as file:
                for asked in maker():
                    file.write(json.dumps(asdict(asked), ensure_ascii=False) + "\n")
            part.replace(path)
        with path.open(encoding="utf-8") as lines:
            made = [ReaderQuestion(**json.loads(line)) for line in lines]
        report(f"{name}: {len(made)} questions")
        found += made
    return found


def from_tables(sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about whole pages with tables."""
    asked: dict[str, list[Any]] = {}
    for row in rows("table_qa/questions", sets):
        if row["in_gold_table"] and row["in_visible_text"] and not row["answer_in_question"]:
            asked.setdefault(row["page"], []).append(row)
    for page in rows("table_qa/pages", sets):
        if page["page"] not in asked or not is_used(page["page"], share):
            continue
        documents = prunus.read(page["html"])
        for row in sorted(asked[page["page"]], key=lambda row: digest(row["id"]))[:_FEW]:
            try:
                table = nth_table(page["html"], int(row["table_index"]))
            except MetricError:
                continue  # the page has fewer tables than the question counts
            question = Question(
                row["id"], "tables", page["page"], one_page(page["html"]), row["question"], tuple(row["answers"]),
                gold_table=table,
            )  # fmt: skip
            yield from _asked(question, documents, partial(_in_table, question))


def from_passages(share: float) -> Iterator[ReaderQuestion]:
    """Yield questions of the dev half of ``nq_passages``, each with a page of six passages."""
    found = [row for row in rows("rank/nq_passages") if half(row["gold_title"]) == "dev"]
    texts = list({row["gold_text"]: row["gold_title"] for row in found}.items())
    index = BM25([text for text, _ in texts])
    for row in found:
        if not is_used(row["gold_title"], share):
            continue
        order = np.argsort(-index.scores(row["question"]), kind="stable")[:_TOGETHER].tolist()
        chosen = [texts[place] for place in order if texts[place][0] != row["gold_text"]][: _TOGETHER - 1]
        chosen.append((row["gold_text"], row["gold_title"]))
        random.Random(row["question"]).shuffle(chosen)
        documents = [{"title": title, "units": [text], "kind": "sentence"} for text, title in chosen]
        question = Question("", "nq_passages", row["gold_title"], (), row["question"], tuple(row["answers"][:1]))
        gold = {"units": [row["gold_text"]], "gold": [0], "answers": row["answers"]}
        yield from _asked(question, prunus.read(page_of(documents)), partial(_marked, "nq_passages", gold))


def from_texts(name: str, sets: Path, share: float) -> Iterator[ReaderQuestion]:
    """Yield questions about the documents of a set of texts; several short ones make a page."""
    size, few, together = _TEXTS[name]
    firsts = documents_of(name, sets, share, size, few)
    for start in range(0, len(firsts), together):
        group = firsts[start : start + together]
        documents = prunus.read(page_of([shaped(asked[0]) for asked in group]))
        page = f"{name}:{group[0][0]['id']}"
        for row in (row for asked in group for row in asked):
            question = Question(str(row["id"]), name, page, (), row["question"], tuple(row["answers"]))
            yield from _asked(question, documents, partial(_marked, name, row))


def _in_table(question: Question, blocks: Blocks) -> list[int]:
    return gold_blocks(blocks, question)


def _marked(name: str, row: Mapping[str, Any], blocks: Blocks) -> list[int]:
    return [place for place, text in enumerate(blocks.texts) if is_gold(name, row, text)]


def _asked(
    question: Question, documents: Documents, gold_of: Callable[[Blocks], Sequence[int]]
) -> Iterator[ReaderQuestion]:
    """Yield a question with its candidates; nothing where no block, or every block, is gold."""
    words = _WORDS[int(digest(question.question)[0], 16) % len(_WORDS)]
    blocks = documents.blocks(words, "blocks")
    gold = set(gold_of(blocks))
    if not gold or len(gold) > max(1, len(blocks) // 2):
        return
    scores = assemble(Settings(scorer="hybrid"), answers=False).scorer.score(question.question, blocks)
    order = np.argsort(-scores, kind="stable").tolist()
    best = order[:CANDIDATES]
    if not gold & set(best):
        best = [*best[:-1], next(place for place in order if place in gold)]
    spread = float(scores[best].std()) or 1.0
    cheap = [round(float((scores[place] - scores[best].mean()) / spread), 3) for place in best]
    above = above_texts(blocks)
    yield ReaderQuestion(
        question.task,
        question.page,
        question.question,
        [*question.answers],
        [pair_text(above[place], blocks.texts[place][:1000]) for place in best],
        cheap,
        [number for number, place in enumerate(best) if place in gold],
    )


def pair_text(above: str, text: str) -> str:
    """Return a block as the model reads it: breadcrumbs, then text."""
    return f"{above[:ABOVE]}\n{text}" if above else text
