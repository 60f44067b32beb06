"""Questions with the features of their blocks, to train the scorer ``trees``.

They come from training sets: ``table_qa`` (whole pages with tables, where the gold table is known) and ``text/NAME``
(documents as lists of units, some of them gold), which are written as pages of paragraphs, tables and questions with
answers. A page is cut as ``prune`` cuts it for several budgets. Other pages stand beside some of them, as in a call
with several documents. Seeds are names, so that the same sets give the same examples.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

import prunus
from prunus.core.ports import Embedder
from prunus.core.settings import Settings
from prunus.engines import one_engine
from prunus.evidence.blocks import Blocks, cut, max_words_for
from prunus.evidence.score._block_features import NAMES, features
from prunus.pages.tree import Tree
from prunus_evals.data import rows
from prunus_evals.labels import in_place
from prunus_evals.metrics import matching
from prunus_evals.records import Question, one_page
from prunus_evals.tasks.pages import nth_table
from prunus_train.data.sets import check_files, letters, page_of, table_pages

BUDGETS: Final = (256, 512, 1024, 2048)
"""Budgets whose granularities are taken, in turns."""

_BEST: Final = 50
_OTHERS: Final = 30
"""Wrong blocks of a question that are kept: so many of the best by ``hybrid``, and so many others."""

_BESIDE: Final = 0.3
"""Share of questions with further pages beside their own."""


@dataclass(frozen=True, slots=True)
class TextSet:
    """How a set of texts is used.

    :param documents: how many documents, the first ones.
    :param together: documents of one page.
    :param each: questions of a document.
    :param whole: all of a gold unit is gold; otherwise what holds an answer in one.
    """

    documents: int
    together: int = 1
    each: int = 2
    whole: bool = False


TEXTS: Final = {
    "qed_en": TextSet(119, 12),
    "clapnq_en": TextSet(143, 12, whole=True),
    "covidqa_en": TextSet(46, 1, 5),
    "evidence_inference_en": TextSet(60, 1, 2, whole=True),
    "jaquad_ja": TextSet(50, 1, 2),
    "piaf_fr": TextSet(120, 1, 3),
    "arcd_ar": TextSet(50, 4, 2),
    "faquad_pt": TextSet(60, 6, 2),
    "cmrc2018_zh": TextSet(60, 6, 2),
    "tatqa_en": TextSet(100, 1, 3),
    "fetaqa_en": TextSet(150, 3, 1, whole=True),
    "ottqa_en": TextSet(150, 1, 2),
    "faq_docs_multi": TextSet(125, 1, 3, whole=True),
    "qmsum_en": TextSet(40, 1, 4, whole=True),
}
"""Sets of texts whose licence is certain."""

_TABLE_PAGES: Final = 500
_TABLE_EACH: Final = 4


@dataclass(frozen=True, slots=True)
class BlockExample:
    """A question with some blocks of its pages.

    :param page: the page or document that it is about.
    :param features: float32 [blocks, features], in the order of ``NAMES``.
    :param gold: which blocks hold the evidence, bool [blocks].
    """

    source: str
    page: str
    features: NDArray[np.float32]
    gold: NDArray[np.bool_]


def load(sets: Path, report: Callable[[str], None], share: float = 1.0) -> list[BlockExample]:
    """Return the examples of all training sets.

    :param sets: folder of the training sets.
    :param share: share of the pages to use, for a quick trial.
    :raises DataMissing: a file of the data is missing.
    """
    check_files(sets, list(TEXTS))
    embedder, examples = cast(Embedder, one_engine("embedder", Settings())), list[BlockExample]()
    sources = [("table_qa", from_tables(sets, share, embedder))]
    sources += [(name, from_texts(name, sets, share, embedder)) for name in TEXTS]
    for name, of_set in sources:
        before = len(examples)
        examples += of_set
        report(f"{name}: {len(examples) - before} questions")
    return examples


def from_tables(sets: Path, share: float, embedder: Embedder) -> Iterator[BlockExample]:
    """Yield questions about whole pages with tables: blocks of the gold table that hold an answer are gold."""
    seed, before = random.Random("table_qa"), list[Tree]()
    for page, chosen in islice(table_pages(sets, _TABLE_EACH), max(2, int(_TABLE_PAGES * share))):
        own = list(prunus.read(page["html"]).trees)
        turn = seed.randrange(len(BUDGETS))
        cuts: dict[tuple[int, bool], Blocks] = {}  # a page is cut once for the questions of one size
        for number, row in enumerate(chosen):
            beside = before if seed.random() < _BESIDE else []
            budget = BUDGETS[(turn + number // 2) % len(BUDGETS)]
            words = max_words_for(sum(tree.words[-1] for tree in own), budget, row["question"])
            key = (words, bool(beside))
            if key not in cuts:
                cuts[key] = cut([*own, *beside], words)
            gold = _gold_of_table(cuts[key], row, page["html"])
            if gold.any():
                yield sampled("table_qa", page["page"], row["question"], cuts[key], gold, embedder)
        before = [*own, *before][:2]


def _gold_of_table(blocks: Blocks, row: Mapping[str, Any], page: str) -> NDArray[np.bool_]:
    """Mark the blocks of the gold table that hold an answer; they are of the first document."""
    question = Question(
        row["id"], "table_qa", row["page"], one_page(page), row["question"], answers=tuple(row["answers"]),
        gold_table=nth_table(page, int(row["table_index"])),
    )  # fmt: skip
    texts = [matching.normalise(text) for text in blocks.texts]
    answers = [matching.normalise(answer) for answer in question.answers]
    inside = in_place(texts, question) or [True] * len(texts)
    held = (any(matching.occurs(answer, text) for answer in answers) for text in texts)
    own = (block.document == 0 for block in blocks.blocks)
    return np.fromiter((all(marks) for marks in zip(own, inside, held, strict=True)), bool, len(texts))


def from_texts(name: str, sets: Path, share: float, embedder: Embedder) -> Iterator[BlockExample]:
    """Yield questions about the first documents of a set of texts."""
    use, seed = TEXTS[name], random.Random(name)
    documents = groupby(rows(f"text/{name}", sets), key=lambda row: row["units"][:3])
    count = max(use.together, int(use.documents * share))
    firsts = [list(islice(group, 3 * use.each)) for _, group in islice(documents, count)]
    for start in range(0, len(firsts), use.together):
        group = firsts[start : start + use.together]
        page = page_of([asked[0] for asked in group], split_rows=True)
        tree = prunus.read(page).trees[0]
        units = _units_of(tree.canonical, [unit for asked in group for unit in asked[0]["units"]])
        cuts: dict[int, Blocks] = {}
        first, turn = 0, seed.randrange(len(BUDGETS))
        for asked in group:
            seed.shuffle(asked)
            for place, row in enumerate(asked[: use.each]):
                budget = BUDGETS[(turn + place // 2) % len(BUDGETS)]
                words = max_words_for(tree.words[-1], budget, row["question"])
                if words not in cuts:
                    cuts[words] = cut([tree], words)
                gold = _gold_of_units(cuts[words], units[first : first + len(row["units"])], row, use.whole)
                if gold.any() and not gold.all():
                    yield sampled(name, asked[0]["id"], row["question"], cuts[words], gold, embedder)
            first += len(asked[0]["units"])


def _units_of(text: str, units: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each unit stands in a page's text, (start, end) in letters of words; (0, 0) if not found."""
    whole, place, found = letters(text), 0, []
    for unit in units:
        wanted = letters(unit)
        start = whole.find(wanted, place) if wanted else -1
        found.append((start, start + len(wanted)) if start >= 0 else (0, 0))
        place = found[-1][1] or place
    return found


def _gold_of_units(
    blocks: Blocks, units: Sequence[tuple[int, int]], row: Mapping[str, Any], whole: bool
) -> NDArray[np.bool_]:
    """Mark the blocks that share half of themselves, or half of a gold unit, with gold units."""
    gold = np.zeros(len(blocks), bool)
    answers = [answer for answer in row["answers"] if answer.strip()]
    wanted = [units[place] for place in row["gold"] if units[place][1]]
    end = 0
    for place, text in enumerate(blocks.texts):
        start, end = end, end + len(letters(text))
        shared = [(min(end, last) - max(start, first), last - first) for first, last in wanted]
        near = any(2 * both >= min(end - start, size) and both > 0 for both, size in shared)
        gold[place] = near and (whole or not answers or matching.holds(text, answers))
    return gold


def sampled(
    source: str, page: str, query: str, blocks: Blocks, gold: NDArray[np.bool_], embedder: Embedder
) -> BlockExample:
    """Return a question with its gold blocks, the best wrong ones by ``hybrid``, and some of the others."""
    found = features(query, blocks, embedder)
    wrong = np.flatnonzero(~gold)
    order = wrong[np.argsort(-found[wrong, NAMES.index("hybrid")], kind="stable")]
    others = order[_BEST:]
    drawn = random.Random(query).sample(range(len(others)), min(_OTHERS, len(others)))
    kept = np.sort(np.r_[np.flatnonzero(gold), order[:_BEST], others[drawn]].astype(np.int64))
    return BlockExample(source, page, found[kept], gold[kept])
