"""Questions with the best blocks of their pages, to train the cross-encoder of ``prunus train reader``.

A page is read, cut and ranked by the functions that pruning calls, so a candidate looks in training as it does in use:
the block's text, its breadcrumbs and the score of the cheap scorer. Gold is what holds the answer at its known place.
Only sets whose licence is certain are read, in English.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
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
from prunus_evals.records import Question, one_page
from prunus_evals.split import digest, half
from prunus_evals.tasks.table_qa import nth_table
from prunus_train.data.labels import gold_blocks
from prunus_train.data.quotes import is_gold, page_of

CANDIDATES: Final = 32
"""Best blocks of a page that are kept for a question; gold beyond them is added."""

_WORDS: Final = (16, 32, 48, 48)
"""Words per block: the sizes that pruning takes for small and large budgets."""

_ROWS: Final = frozenset({"row", "row+passage", "paragraph+row"})

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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its candidates, best first by the cheap scorer.

    :param page: what the held-out part is drawn by.
    :param above, texts: breadcrumbs and text of each candidate.
    :param cheap: score of each by the cheap scorer, in standard deviations from their mean.
    :param gold: indices of the candidates that hold the answer.
    :param answers: the short answers; [] where none are known.
    """

    source: str
    page: str
    question: str
    answers: Sequence[str]
    above: Sequence[str]
    texts: Sequence[str]
    cheap: Sequence[float]
    gold: Sequence[int]

    @property
    def held_out(self) -> bool:
        """Whether the question is for validation only: one page in sixteen."""
        return digest(self.page)[1] == "0"


def make(folder: Path, sets: Path, report: Callable[[str], None], share: float = 1.0) -> list[Asked]:
    """Return the questions of all sets; what an earlier call has made in the folder is read from it.

    :param sets: folder of the training sets.
    :param share: of the documents of each set.
    :raises DataMissing: a file of the data is missing.
    """
    makers: dict[str, Callable[[], Iterator[Asked]]] = {
        "tables": partial(from_tables, sets, share),
        "nq_passages": partial(from_passages, share),
        **{name: partial(from_texts, name, sets, share) for name in _TEXTS},
    }
    found: list[Asked] = []
    for name, maker in makers.items():
        path = folder / (f"{name}.jsonl" if share == 1 else f"{name}-{share:g}.jsonl")
        if not path.exists():
            part = path.with_suffix(".part")
            with part.open("w", encoding="utf-8") as file:
                for asked in maker():
                    file.write(json.dumps(asdict(asked), ensure_ascii=False) + "\n")
            part.replace(path)
        with path.open(encoding="utf-8") as lines:
            made = [Asked(**json.loads(line)) for line in lines]
        report(f"{name}: {len(made)} questions")
        found += made
    return found


def from_tables(sets: Path, share: float) -> Iterator[Asked]:
    """Yield questions about whole pages with tables."""
    asked: dict[str, list[Any]] = {}
    for row in rows("table_qa/questions", sets):
        if row["in_gold_table"] and row["in_visible_text"] and not row["answer_in_question"]:
            asked.setdefault(row["page"], []).append(row)
    for page in rows("table_qa/pages", sets):
        if page["page"] not in asked or not _used(page["page"], share):
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


def from_passages(share: float) -> Iterator[Asked]:
    """Yield questions of the dev half of ``nq_passages``, each with a page of six passages."""
    found = [row for row in rows("rank/nq_passages") if half(row["gold_title"]) == "dev"]
    texts = list({row["gold_text"]: row["gold_title"] for row in found}.items())
    index = BM25([text for text, _ in texts])
    for row in found:
        if not _used(row["gold_title"], share):
            continue
        order = np.argsort(-index.scores(row["question"]), kind="stable")[:_TOGETHER].tolist()
        chosen = [texts[place] for place in order if texts[place][0] != row["gold_text"]][: _TOGETHER - 1]
        chosen.append((row["gold_text"], row["gold_title"]))
        random.Random(row["question"]).shuffle(chosen)
        documents = [{"title": title, "units": [text], "kind": "sentence"} for text, title in chosen]
        question = Question("", "nq_passages", row["gold_title"], (), row["question"], tuple(row["answers"][:1]))
        gold = {"units": [row["gold_text"]], "gold": [0], "answers": row["answers"]}
        yield from _asked(question, prunus.read(page_of(documents)), partial(_marked, "nq_passages", gold))


def from_texts(name: str, sets: Path, share: float) -> Iterator[Asked]:
    """Yield questions about the documents of a set of texts; several short ones make a page."""
    size, few, together = _TEXTS[name]
    english = (row for row in rows(f"text/{name}", sets) if row["lang"] == "en")
    firsts: list[list[Any]] = []
    for _, of_one in groupby(english, key=lambda row: row["units"][:3]):
        asked = list(of_one)
        if _used(str(asked[0]["id"]), share):
            firsts.append(sorted(asked, key=lambda row: digest(str(row["id"])))[:few])
        if len(firsts) >= max(1, round(size * share)):
            break
    for start in range(0, len(firsts), together):
        group = firsts[start : start + together]
        documents = prunus.read(page_of([_shaped(asked[0]) for asked in group]))
        page = f"{name}:{group[0][0]['id']}"
        for row in (row for asked in group for row in asked):
            question = Question(str(row["id"]), name, page, (), row["question"], tuple(row["answers"]))
            yield from _asked(question, documents, partial(_marked, name, row))


def _shaped(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document as ``page_of`` takes it: rows of tables, or paragraphs."""
    if row["kind"] in _ROWS and row["kind"] != "row":
        rows_ = [unit for unit in row["units"] if " | " in unit]
        if rows_ and len(rows_) == len(row["units"]):
            return {**row, "kind": "row"}
    return row


def _used(key: str, share: float) -> bool:
    return int(digest(key)[2:6], 16) < share * 65536


def _in_table(question: Question, blocks: Blocks) -> list[int]:
    return gold_blocks(blocks, question)


def _marked(name: str, row: Mapping[str, Any], blocks: Blocks) -> list[int]:
    return [place for place, text in enumerate(blocks.texts) if is_gold(name, row, text)]


def _asked(question: Question, documents: Documents, gold_of: Callable[[Blocks], Sequence[int]]) -> Iterator[Asked]:
    """Yield a question with its candidates; nothing where no block, or every block, is gold."""
    words = _WORDS[int(digest(question.question)[0], 16) % len(_WORDS)]
    blocks = documents.blocks(words, "blocks")
    gold = set(gold_of(blocks))
    if not gold or len(gold) > max(1, len(blocks) // 2):
        return
    scores = assemble(Settings(), answers=False).scorer.score(question.question, blocks)
    order = np.argsort(-scores, kind="stable").tolist()
    best = order[:CANDIDATES]
    if not gold & set(best):
        best = [*best[:-1], next(place for place in order if place in gold)]
    spread = float(scores[best].std()) or 1.0
    cheap = [round(float((scores[place] - scores[best].mean()) / spread), 3) for place in best]
    above = above_texts(blocks)
    yield Asked(
        question.task,
        question.page,
        question.question,
        [*question.answers],
        [above[place][:700] for place in best],
        [blocks.texts[place][:1000] for place in best],
        cheap,
        [number for number, place in enumerate(best) if place in gold],
    )
