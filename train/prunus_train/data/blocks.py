"""Questions with the features of their blocks, to train the scorer ``trees``.

They come from training sets: ``table_qa`` (whole pages with tables, where the gold table is known) and ``text/NAME``
(documents as lists of units, some of them gold), which are written as pages of paragraphs, tables and questions with
answers. A page is cut as ``prune`` cuts it for several budgets. Other pages stand beside some of them, as in a call
with several documents. Seeds are names, so that the same sets give the same examples.
"""

from __future__ import annotations

import html
import random
import re
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
from prunus.engines import assemble
from prunus.evidence.block_size import max_words_for
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score._block_features import NAMES, features
from prunus.pages.tree import Tree
from prunus_evals.data import Row, rows
from prunus_evals.labels import in_place
from prunus_evals.metrics import matching
from prunus_evals.records import Question, one_page
from prunus_evals.split import digest
from prunus_evals.tasks.table_qa import nth_table

BUDGETS: Final = (256, 512, 1024, 2048)
"""Budgets whose granularities are taken, in turns."""

_BEST: Final = 50
_OTHERS: Final = 30
"""Wrong blocks of a question that are kept: so many of the best by ``hybrid``, and so many others."""

_BESIDE: Final = 0.3
"""Share of questions with further pages beside their own."""


@dataclass(frozen=True, slots=True)
class Texts:
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
    "qed_en": Texts(119, 12),
    "clapnq_en": Texts(143, 12, whole=True),
    "covidqa_en": Texts(46, 1, 5),
    "evidence_inference_en": Texts(60, 1, 2, whole=True),
    "jaquad_ja": Texts(50, 1, 2),
    "piaf_fr": Texts(120, 1, 3),
    "arcd_ar": Texts(50, 4, 2),
    "faquad_pt": Texts(60, 6, 2),
    "cmrc2018_zh": Texts(60, 6, 2),
    "tatqa_en": Texts(100, 1, 3),
    "fetaqa_en": Texts(150, 3, 1, whole=True),
    "ottqa_en": Texts(150, 1, 2),
    "faq_docs_multi": Texts(125, 1, 3, whole=True),
    "qmsum_en": Texts(40, 1, 4, whole=True),
}
"""Sets of texts whose licence is certain."""

_TABLE_PAGES: Final = 500
_TABLE_EACH: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with all blocks of its pages.

    :param page: the page or document that it is about.
    :param html: the first page of the blocks, as it was read.
    :param gold: which blocks hold the evidence, bool [blocks].
    :param answers: lists of spellings, each of which must survive; empty where whole blocks are the evidence.
    :param budget: the budget in tokens for whose granularity the pages were cut.
    """

    source: str
    page: str
    query: str
    html: str
    blocks: Blocks
    gold: NDArray[np.bool_]
    answers: tuple[tuple[str, ...], ...]
    budget: int


@dataclass(frozen=True, slots=True)
class Example:
    """A question with some blocks of its pages.

    :param page: the page or document that it is about.
    :param features: float32 [blocks, features], in the order of ``NAMES``.
    :param gold: which blocks hold the evidence, bool [blocks].
    """

    source: str
    page: str
    features: NDArray[np.float32]
    gold: NDArray[np.bool_]


def load(sets: Path, report: Callable[[str], None], share: float = 1.0) -> list[Example]:
    """Return the examples of all training sets.

    :param sets: folder of the training sets.
    :param share: share of the pages to use, for a quick trial.
    :raises DataMissing: a file of the data is missing.
    """
    embedder = cast(Embedder, assemble(Settings()).embedder)
    return [
        sampled(asked.source, asked.page, asked.query, features(asked.query, asked.blocks, embedder), asked.gold)
        for asked in questions(sets, report, share)
    ]


def questions(
    sets: Path, report: Callable[[str], None], share: float = 1.0, budgets: Sequence[int] = BUDGETS
) -> Iterator[Asked]:
    """Yield the questions of all training sets, each with the blocks of its pages.

    :param budgets: budgets whose granularities are taken, in turns.
    :raises DataMissing: a file of the data is missing.
    """
    for name in ("table_qa/questions", "table_qa/pages", *(f"text/{name}" for name in TEXTS)):
        next(rows(name, sets), None)  # a missing file is said before the work of minutes
    sources = [("table_qa", from_tables(sets, share, report, budgets))]
    sources += [(name, from_texts(name, sets, share, budgets)) for name in TEXTS]
    for name, found in sources:
        count = 0
        for asked in found:
            count += 1
            yield asked
        report(f"{name}: {count} questions")


def from_tables(
    sets: Path, share: float, report: Callable[[str], None], budgets: Sequence[int] = BUDGETS
) -> Iterator[Asked]:
    """Yield questions about whole pages with tables: blocks of the gold table that hold an answer are gold."""
    asked: dict[str, list[Row]] = {}
    for row in rows("table_qa/questions", sets):
        if row["in_gold_table"] and row["in_visible_text"] and not row["answer_in_question"]:
            asked.setdefault(row["page"], []).append(row)
    seed, before = random.Random("table_qa"), list[Tree]()
    pages = (page for page in rows("table_qa/pages", sets) if page["page"] in asked)
    for number, page in enumerate(islice(pages, max(2, int(_TABLE_PAGES * share)))):
        own = list(prunus.read(page["html"]).trees)
        chosen = sorted(asked[page["page"]], key=lambda row: digest(row["id"]))[:_TABLE_EACH]
        turn = seed.randrange(len(budgets))
        cuts: dict[tuple[int, bool], Blocks] = {}  # a page is cut once for the questions of one size
        for place, row in enumerate(chosen):
            beside = before if seed.random() < _BESIDE else []
            budget = budgets[(turn + place // 2) % len(budgets)]
            words = max_words_for(sum(tree.words[-1] for tree in own), budget, row["question"])
            key = (words, bool(beside))
            if key not in cuts:
                cuts[key] = cut([*own, *beside], words)
            blocks = cuts[key]
            gold = _gold_of_table(blocks, row, page["html"])
            if gold.any():
                answers = tuple((answer,) for answer in row["answers"])
                yield Asked("table_qa", page["page"], row["question"], page["html"], blocks, gold, answers, budget)
        before = [*own, *before][:2]
        if (number + 1) % 50 == 0:
            report(f"table_qa: {number + 1} pages")


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


def from_texts(name: str, sets: Path, share: float = 1.0, budgets: Sequence[int] = BUDGETS) -> Iterator[Asked]:
    """Yield questions about the first documents of a set of texts."""
    use, seed = TEXTS[name], random.Random(name)
    documents = groupby(rows(f"text/{name}", sets), key=lambda row: row["units"][:3])
    count = max(use.together, int(use.documents * share))
    firsts = [list(islice(group, 3 * use.each)) for _, group in islice(documents, count)]
    for start in range(0, len(firsts), use.together):
        group = firsts[start : start + use.together]
        page = page_of([asked[0] for asked in group])
        tree = prunus.read(page).trees[0]
        units = _units_of(tree.canonical, [unit for asked in group for unit in asked[0]["units"]])
        cuts: dict[int, Blocks] = {}
        first, turn = 0, seed.randrange(len(budgets))
        for asked in group:
            seed.shuffle(asked)
            for place, row in enumerate(asked[: use.each]):
                budget = budgets[(turn + place // 2) % len(budgets)]
                words = max_words_for(tree.words[-1], budget, row["question"])
                if words not in cuts:
                    cuts[words] = cut([tree], words)
                blocks = cuts[words]
                gold = _gold_of_units(blocks, units[first : first + len(row["units"])], row, use.whole)
                if gold.any() and not gold.all():
                    answers = () if use.whole else _spellings(row["answers"])
                    yield Asked(name, asked[0]["id"], row["question"], page, blocks, gold, answers, budget)
            first += len(asked[0]["units"])


def _spellings(answers: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the answers of a text as spellings of one."""
    kept = tuple(answer for answer in answers if answer.strip())
    return (kept,) if kept else ()


def page_of(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return a page of one document, or of several with a heading each."""
    several = len(documents) > 1
    title = "Articles" if several else html.escape(documents[0]["title"] or "")
    body = "".join(_body(document, several) for document in documents)
    return f"<!DOCTYPE html><title>{title}</title><h1>{title}</h1>{body}"


def _body(document: Mapping[str, Any], several: bool) -> str:
    """Return the units of a document as HTML: sentences of one paragraph, rows of a table, or paragraphs."""
    units = [html.escape(unit) for unit in document["units"]]
    title = html.escape(document["title"] or "")
    lead = f"<h2>{title}</h2>" if title and several else ""
    if document["kind"].startswith("sentence"):
        return f"{lead}<p>{' '.join(units)}</p>"
    heads = [html.escape(head) for head in document.get("heads") or [""] * len(units)]
    rows_ = document["kind"] in ("row", "paragraph")
    parts = [lead]
    for table, pairs in groupby(zip(heads, units, strict=True), key=lambda pair: rows_ and " | " in pair[1]):
        if table:
            lines = [f"<tr><td>{unit.replace(' | ', '<td>')}" for _, unit in pairs]
            parts.append(f"<table>{lines[0].replace('<td>', '<th>')}{''.join(lines[1:])}</table>")
        else:
            parts += [(f"<h2>{head}</h2>" if head else "") + f"<p>{unit}</p>" for head, unit in pairs]
    return "".join(parts)


def _units_of(text: str, units: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each unit stands in a page's text, (start, end) in letters of words; (0, 0) if not found."""
    letters, place, found = _letters(text), 0, []
    for unit in units:
        wanted = _letters(unit)
        start = letters.find(wanted, place) if wanted else -1
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
        start, end = end, end + len(_letters(text))
        shared = [(min(end, last) - max(start, first), last - first) for first, last in wanted]
        near = any(2 * both >= min(end - start, size) and both > 0 for both, size in shared)
        gold[place] = near and (whole or not answers or matching.holds(text, answers))
    return gold


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text)


def sampled(source: str, page: str, query: str, found: NDArray[np.float32], gold: NDArray[np.bool_]) -> Example:
    """Return a question with its gold blocks, the best wrong ones by ``hybrid``, and some of the others.

    :param found: the features of all blocks, float32 [blocks, features].
    """
    wrong = np.flatnonzero(~gold)
    order = wrong[np.argsort(-found[wrong, NAMES.index("hybrid")], kind="stable")]
    others = order[_BEST:]
    drawn = random.Random(query).sample(range(len(others)), min(_OTHERS, len(others)))
    kept = np.sort(np.r_[np.flatnonzero(gold), order[:_BEST], others[drawn]].astype(np.int64))
    return Example(source, page, found[kept], gold[kept])
