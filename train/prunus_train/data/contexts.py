"""Make many short page parts with many questions from few long pages, as training data for a small model.

A page is cut at a random granularity; some of its blocks are kept (those that the first stage keeps for a question, a
stretch of neighbours, or random ones) and cut into finer blocks. Each page part gets several questions: some made from
its blocks (:mod:`prunus_train.data.synthetic`), and the real questions whose answer is still in it. Further page parts
are made of passages of real questions.
"""

from __future__ import annotations

import html
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import prunus
from prunus.core.registry import make_engine
from prunus.evidence.blocks import Blocks
from prunus.evidence.recut import subset
from prunus.evidence.scorer import Scorer
from prunus_evals import labels
from prunus_evals.labels import Recipe
from prunus_evals.records import Question
from prunus_train.data import synthetic

COARSE = (64, 128, 256)
FINE = (24, 48, 96, 128, 128)
SCORERS = ("bm25", "bm25", "hybrid")
MOST_BLOCKS = 120
WORDS_A_TOKEN = 0.5
"""Words for each token of the budget; the tags take the rest."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of page parts.

    :param budgets: tokens to prune a page to; one of them is drawn each time.
    :param passages: fewest and most passages of a page that is made of passages.
    :param words: words of a passage at most; one of them is drawn each time.
    """

    budgets: Sequence[int] = (256, 384, 512, 768, 1024, 1280)
    passages: tuple[int, int] = (3, 14)
    words: Sequence[int] = (30, 60, 100)

    def up_to(self, longest: int) -> Sizes:
        """Return these sizes without the budgets above ``longest`` tokens; the smallest budget always stays."""
        return replace(self, budgets=[budget for budget in self.budgets if budget <= longest] or [min(self.budgets)])


USUAL = Sizes()

SMALL = Sizes((96, 128, 160), (3, 5), (15, 25))
"""Short pages, for a quick trial without a GPU."""


@dataclass(frozen=True, slots=True)
class PartQuestion:
    """A question about a page part.

    :param target: index of the block that answers it.
    :param kind: index in :data:`prunus_train.packed.KINDS`.
    """

    question: str
    target: int
    kind: int


@dataclass(frozen=True, slots=True)
class Part:
    """A page part with its questions."""

    blocks: Blocks
    asked: Sequence[PartQuestion]


@dataclass(frozen=True, slots=True)
class Passage:
    """A real question with the passage that answers it."""

    title: str
    text: str
    question: str


def of_page(
    questions: Sequence[Question], count: int, each: int, chance: random.Random, sizes: Sizes = USUAL
) -> Iterator[Part]:
    """Yield page parts of one page.

    :param questions: the real questions about the page.
    :param count: number of parts to try; a part that is too small, too large or without questions is dropped.
    :param each: questions of a part at most.
    """
    documents = _read(questions[0].html)
    for number in range(count):
        real = chance.choice(questions) if number % 3 == 0 else None
        blocks = _kept(documents, real, chance, chance.choice(sizes.budgets))
        if blocks is None or not 2 <= len(blocks) <= MOST_BLOCKS:
            continue
        asked = []
        for question in questions if real is not None else ():
            gold = labels.gold_blocks(blocks, question)
            if gold and len(gold) < len(blocks):
                asked.append(PartQuestion(question.question, labels.target_block(blocks, gold, question.question), 1))
        chance.shuffle(asked)
        asked = asked[: each // 2] + _from_blocks(blocks, each - min(len(asked), each // 2), chance)
        if asked:
            yield Part(blocks, asked)


def of_passages(
    passages: Sequence[Passage], count: int, each: int, chance: random.Random, sizes: Sizes = USUAL
) -> Iterator[Part]:
    """Yield pages that are made of passages of real questions, with or without their titles."""
    for _ in range(count):
        some = chance.sample(passages, min(len(passages), chance.randint(*sizes.passages)))
        longest = chance.choice(sizes.words)
        titles, shape = chance.random() < 0.6, chance.choice(("p", "div", "li", "tr"))
        parts = []
        for passage in some:
            text = html.escape(" ".join(passage.text.split()[:longest]))
            head = f"<h2>{html.escape(passage.title)}</h2>" if titles and shape in ("p", "div") else ""
            cell = f"<td>{html.escape(passage.title)}<td>{text}" if shape == "tr" else text
            parts.append(f"{head}<{shape}>{cell}</{shape}>")
        around = {"li": "ul", "tr": "table"}.get(shape, "div")
        blocks = _read(f"<{around}>{''.join(parts)}</{around}>").blocks(chance.choice((32, 64, 128)))
        if not 2 <= len(blocks) <= MOST_BLOCKS:
            continue
        asked = []
        for passage in chance.sample(some, min(len(some), each)):
            start = " ".join(passage.text.split()[:12])
            found = [index for index, text in enumerate(blocks.texts) if start in " ".join(text.split())]
            if found:
                asked.append(PartQuestion(passage.question, found[0], 2))
        if asked:
            yield Part(blocks, asked)


def recipe(chance: random.Random) -> Recipe:
    """Return a random recipe; the published granularity is one of them."""
    first_stage, coarse, fine = chance.choice(SCORERS), chance.choice(COARSE), chance.choice(FINE)
    return Recipe(first_stage, coarse, min(coarse, fine))


def _read(source: str) -> prunus.Documents:
    return prunus.read(prunus.Page(content=source, media_type="text/html"))


def _kept(documents: prunus.Documents, real: Question | None, chance: random.Random, budget: int) -> Blocks | None:
    """Return the finer blocks of a part of a page, with their paths in the whole page; None if it has no text.

    The part is what the first stage keeps for a real or a made question, a stretch of blocks, or random blocks. Its
    size is estimated in words: counting tokens takes ten times as long, and training data need no exact budget.
    """
    chosen = recipe(chance)
    expanded = documents.expanded(chosen.coarse, chosen.fine)
    coarse = expanded.coarse
    order = list(range(len(coarse)))
    query = real.question if real is not None else ""
    if not query and chance.random() < 0.4:
        index = chance.choices(order, [1 + weight for weight in synthetic.weights(coarse)])[0]
        query = synthetic.question(coarse, index, chance)
    if query:
        scores = _scorer(chosen.first_stage).score(query, coarse)
        order = [int(index) for index in np.argsort(-np.asarray(scores, np.float64), kind="stable")]
    elif chance.random() < 0.5:
        start = chance.randrange(len(order))
        order = order[start:] + order[:start]
    else:
        chance.shuffle(order)
    kept = _filled(coarse, order, budget * WORDS_A_TOKEN)
    if not any(coarse.texts[index].strip() for index in kept):
        return None
    return subset(expanded.blocks, expanded.inside(kept))


def _filled(blocks: Blocks, order: Sequence[int], words: float) -> set[int]:
    """Take blocks in order, each with the headers that it requires, up to a number of words; skip blocks too large."""
    kept: set[int] = set()
    for index in order:
        wanted = {index, *blocks.blocks[index].requires} - kept
        size = sum(blocks.blocks[number].words + 1 for number in wanted)
        if size <= words:
            kept |= wanted
            words -= size
    return kept


@cache
def _scorer(name: str) -> Scorer:
    scorer: Scorer = make_engine("scorer", name, embedder=make_engine("embedder", "static"))
    return scorer


def _from_blocks(blocks: Blocks, count: int, chance: random.Random) -> list[PartQuestion]:
    """Make questions from randomly chosen blocks."""
    weights = synthetic.weights(blocks)
    if not any(weights):
        return []
    asked = []
    for index in chance.choices(range(len(blocks)), weights, k=count):
        made = synthetic.question(blocks, index, chance)
        if made:
            asked.append(PartQuestion(made, index, 0))
    return asked
