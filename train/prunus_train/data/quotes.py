"""Questions with the segments of their pages, to train the extractor ``sentences``.

They are of the dev halves of evaluation tasks, and of parts of training sets: ``text/NAME`` (a
document as a list of units, some of them gold) and ``table_qa`` (whole pages with tables, as in the evaluation data).
Nothing is random but which questions of a document are asked; the seed is the name of the set.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import prunus
from prunus.answer.extract._features import Question
from prunus.answer.extract.sentences import cosines
from prunus.core.options import Options
from prunus.core.settings import Settings
from prunus.engines import answer_engines
from prunus.evidence.documents import Documents
from prunus.evidence.passages import passages_of
from prunus.evidence.prune import prune
from prunus.evidence.segments import segments
from prunus_evals import tasks
from prunus_evals.data import rows
from prunus_evals.metrics import matching
from prunus_train.data.sample_file import rows_of
from prunus_train.data.sets import check_files, letters, page_of, table_pages

TASKS: Final = ("table_qa", "nq", "websrc", "xquad:de", "xquad:zh")
_FEW: Final = 4
"""Questions of each XQuAD article, the first by their digests, as in the quality gate."""

_BUDGET: Final = 4096
"""Tokens of evidence for an answer without a model, as by default in ``prunus.ask``."""

_EACH: Final = 2
"""Questions of a document or a page of a training set."""

_TABLE_PAGES: Final = 320
"""Pages of ``table_qa`` that are used, the first with a question."""

_TEXTS: Final = {
    "squad_en": (240, 6), "qed_en": (240, 6), "clapnq_en": (250, 6), "hotpotqa_en": (120, 1), "cmrc2018_zh": (150, 6),
    "drcd_zh": (60, 1), "jaquad_ja": (30, 1), "piaf_fr": (60, 1), "faq_docs_multi": (120, 1), "fetaqa_en": (200, 1),
    "tatqa_en": (60, 1),
}  # fmt: skip
"""Sets of texts: how many documents are used, the first, and how many make a page: several where each is short."""

_WHOLE: Final = frozenset({"clapnq_en", "fetaqa_en"})
"""Sets whose answers are free texts: all of a gold unit is gold. Elsewhere it is what holds an answer in one."""


@dataclass(frozen=True, slots=True)
class QuoteExample:
    """A question with the segments of its page.

    :param gold: which of them hold the answer.
    :param held: which of them stand in a passage that holds it.
    :param wrong: the same question with the segments of another page.
    :param dev: whether it is of the dev half of the evaluation data.
    """

    source: str
    own: Question
    gold: NDArray[np.bool_]
    held: NDArray[np.bool_]
    wrong: Question | None
    dev: bool


class PageCutter:
    """Cuts pages into the segments that the extractor is shown for a question."""

    def __init__(self) -> None:
        self._engines = answer_engines(Settings())
        self._embedder = self._engines.embedder

    def question(self, query: str, documents: Documents) -> Question | None:
        """Return a question with the segments of a page; None where nothing is kept of it."""
        kept = prune(documents, query, _BUDGET, "html", Options(), self._engines).kept
        tagged = segments(kept, {tree.document: tree for tree in documents.trees})
        return Question(query, tagged, cosines(self._embedder, query, tagged)) if tagged else None


def load(sets: Path, report: Callable[[str], None], questions: Path | None = None) -> list[QuoteExample]:
    """Return the examples of the dev half and of the training sets.

    :param sets: folder of the training sets.
    :param questions: a file of `prunus train data questions`.
    :raises DataMissing: a file of the data is missing.
    """
    check_files(sets, list(_TEXTS))
    cutter, found = PageCutter(), list[QuoteExample]()
    sources = [(name, from_task(name, cutter)) for name in TASKS]
    sources.append(("tables", from_tables(sets, cutter)))
    sources += [(name, from_texts(name, sets, cutter)) for name in _TEXTS]
    if questions is not None:
        sources.append(("questions", from_questions(questions, cutter)))
    for name, examples in sources:
        before = len(found)
        found += examples
        report(f"{name}: {len(found) - before} questions")
    return found


def from_task(name: str, cutter: PageCutter) -> Iterator[QuoteExample]:
    """Yield the questions of the dev half of an evaluation task; the wrong page is the next one, as there."""
    pages = [page[:_FEW] if name.startswith("xquad") else page for page in tasks.load(name, "dev")]
    following = prunus.read(pages[0][0].html)
    for page in reversed(pages):
        own = prunus.read(page[0].html)
        for asked in page:
            question = cutter.question(asked.question, own)
            if question is not None:
                gold = np.asarray([matching.holds(segment.text, asked.answers) for segment in question.tagged])
                held = _in_passages(question, own, gold, asked.answers)
                yield QuoteExample(name, question, gold, held, cutter.question(asked.question, following), dev=True)
        following = own


def from_tables(sets: Path, cutter: PageCutter) -> Iterator[QuoteExample]:
    """Yield questions about the first whole pages with tables; the wrong page is the one before."""
    before: Documents | None = None
    for page, chosen in islice(table_pages(sets, _EACH), _TABLE_PAGES):
        own = prunus.read(page["html"])
        yield from _examples("tables", chosen, own, before, cutter)
        before = own


def from_texts(name: str, sets: Path, cutter: PageCutter) -> Iterator[QuoteExample]:
    """Yield questions about the first documents of a set of texts; the wrong page is the one before."""
    size, together = _TEXTS[name]
    seed = random.Random(name)
    documents = groupby(rows(f"text/{name}", sets), key=lambda row: row["units"][:3])
    firsts = [list(islice(group, 3 * _EACH)) for _, group in islice(documents, size)]
    before: Documents | None = None
    for start in range(0, len(firsts), together):
        group = firsts[start : start + together]
        own = prunus.read(page_of([asked[0] for asked in group]))
        for asked in group:
            seed.shuffle(asked)
        yield from _examples(name, [row for asked in group for row in asked[:_EACH]], own, before, cutter)
        before = own


def from_questions(path: Path, cutter: PageCutter) -> Iterator[QuoteExample]:
    """Yield the questions that a model wrote about pages; the wrong page is the one before."""
    before: Documents | None = None
    by_page = groupby(rows_of(path), key=lambda row: row["pages"])
    for pages, asked in by_page:
        own = prunus.read(pages[0]["html"])
        for row in asked:
            yield from _examples("questions", [row], own, before, cutter)
        before = own


def _examples(
    source: str, chosen: Sequence[dict[str, Any]], own: Documents, before: Documents | None, cutter: PageCutter
) -> Iterator[QuoteExample]:
    """Yield the questions that have gold; the first of them is asked of the wrong page, too."""
    for place, row in enumerate(chosen):
        question = cutter.question(row["question"], own)
        gold = [is_gold(source, row, segment.text) for segment in question.tagged] if question else []
        if question is not None and any(gold):
            wrong = cutter.question(row["question"], before) if before is not None and not place else None
            found = np.asarray(gold)
            held = _in_passages(question, own, found, [answer for answer in row["answers"] if answer.strip()])
            yield QuoteExample(source, question, found, held, wrong, dev=False)


def _in_passages(
    question: Question, pages: Documents, gold: NDArray[np.bool_], answers: Sequence[str]
) -> NDArray[np.bool_]:
    """Tell which segments stand in a passage that holds an answer."""
    trees = {tree.document: tree for tree in pages.trees}
    held = gold.copy()
    for place in np.flatnonzero(~gold).tolist() if answers else ():
        [passage] = passages_of([question.tagged[place]], trees)
        held[place] = matching.holds(passage.text, answers)
    return held


def is_gold(source: str, row: Mapping[str, Any], text: str) -> bool:
    """Tell whether a segment holds an answer and is of a gold unit, as far as the set marks them."""
    answers, own = [answer for answer in row["answers"] if answer.strip()], letters(text)
    if "gold" in row:
        units = [letters(row["units"][place]) for place in row["gold"]]
        if not own or not any(own in unit or (unit and unit in own) for unit in units):
            return False
        if not answers or source in _WHOLE:
            return True
    return matching.holds(text, answers)
