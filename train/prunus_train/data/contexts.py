"""Many short pages from few long ones, each with many questions: what a small model can learn from.

A page is cut at a random granularity, some of its blocks are kept (as the first stage keeps them for a
question, a stretch, or at random), and the rest is cut finer. Each page part is asked several times:
by its own blocks (:mod:`prunus_train.data.synthetic`), and by the real question where its answer is
still there. Passages of real questions are put together to pages too.
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
from prunus.evidence.render import Rendering, render_blocks
from prunus.evidence.scorer import Scorer
from prunus_evals.records import Question
from prunus_train.data import labels, synthetic
from prunus_train.data.labels import Recipe

COARSE = (64, 128, 256)
FINE = (24, 48, 96, 128, 128)
SCORERS = ("bm25", "bm25", "hybrid")
MOST_BLOCKS = 120
WORDS_A_TOKEN = 0.5
"""Words that a token of budget buys, tags included."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large page parts are.

    :param budgets: tokens that a page is pruned to, one of them drawn each time.
    :param passages: fewest and most passages of a page that is put together.
    :param words: words of a passage at most, one of them drawn each time.
    """

    budgets: Sequence[int] = (256, 384, 512, 768, 1024, 1280)
    passages: tuple[int, int] = (3, 14)
    words: Sequence[int] = (30, 60, 100)

    def up_to(self, longest: int) -> Sizes:
        """Return the same without budgets above a number of tokens; the smallest stays."""
        return replace(self, budgets=[one for one in self.budgets if one <= longest] or [min(self.budgets)])


USUAL = Sizes()

SMALL = Sizes((96, 128, 160), (3, 5), (15, 25))
"""Short pages, to see on a processor that a model learns."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a page part, and the block that is to be found."""

    question: str
    target: int
    kind: int


@dataclass(frozen=True, slots=True)
class Part:
    """A page part with its questions."""

    blocks: Blocks
    asked: Sequence[Asked]


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

    :param count: how many to try.
    :param each: questions a part.
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
                asked.append(Asked(question.question, labels.target_block(blocks, gold, question.question), 1))
        chance.shuffle(asked)
        asked = asked[: each // 2] + _from_blocks(blocks, each - min(len(asked), each // 2), chance)
        if asked:
            yield Part(blocks, asked)


def of_passages(
    passages: Sequence[Passage], count: int, each: int, chance: random.Random, sizes: Sizes = USUAL
) -> Iterator[Part]:
    """Yield pages that are put together from passages of real questions, under their titles or without."""
    for _ in range(count):
        some = chance.sample(passages, min(len(passages), chance.randint(*sizes.passages)))
        longest = chance.choice(sizes.words)
        titles, shape = chance.random() < 0.6, chance.choice(("p", "div", "li", "tr"))
        parts = []
        for one in some:
            text = html.escape(" ".join(one.text.split()[:longest]))
            head = f"<h2>{html.escape(one.title)}</h2>" if titles and shape in ("p", "div") else ""
            cell = f"<td>{html.escape(one.title)}<td>{text}" if shape == "tr" else text
            parts.append(f"{head}<{shape}>{cell}</{shape}>")
        around = {"li": "ul", "tr": "table"}.get(shape, "div")
        blocks = _read(f"<{around}>{''.join(parts)}</{around}>").blocks(chance.choice((32, 64, 128)))
        if not 2 <= len(blocks) <= MOST_BLOCKS:
            continue
        asked = []
        for one in chance.sample(some, min(len(some), each)):
            start = " ".join(one.text.split()[:12])
            found = [index for index, text in enumerate(blocks.texts) if start in " ".join(text.split())]
            if found:
                asked.append(Asked(one.question, found[0], 2))
        if asked:
            yield Part(blocks, asked)


def recipe(chance: random.Random) -> Recipe:
    """Return a random recipe; the published granularity among them."""
    return Recipe(chance.choice(SCORERS), chance.choice(COARSE), chance.choice(FINE))


def _read(source: str) -> prunus.Documents:
    return prunus.read(prunus.Page(content=source, media_type="text/html"))


def _kept(documents: prunus.Documents, real: Question | None, chance: random.Random, budget: int) -> Blocks | None:
    """Keep some of a page: for a real question, for one of its own blocks, a stretch, or at random.

    Words stand for tokens here: the exact budget of the product costs ten times as much, and what is
    learned from does not need it.
    """
    chosen = recipe(chance)
    coarse = documents.blocks(chosen.coarse)
    order = list(range(len(coarse)))
    asked = real.question if real is not None else ""
    if not asked and chance.random() < 0.4:
        index = chance.choices(order, [1 + weight for weight in synthetic.weights(coarse)])[0]
        asked = synthetic.question(coarse, index, chance)
    if asked:
        scores = _scorer(chosen.first_stage).score(asked, coarse)
        order = [int(index) for index in np.argsort(-np.asarray(scores, np.float64), kind="stable")]
    elif chance.random() < 0.5:
        start = chance.randrange(len(order))
        order = order[start:] + order[:start]
    else:
        chance.shuffle(order)
    kept = _filled(coarse, order, budget * WORDS_A_TOKEN)
    if not any(coarse.texts[index].strip() for index in kept):
        return None
    return _read(render_blocks(coarse, sorted(kept), Rendering())).blocks(chosen.fine)


def _filled(blocks: Blocks, order: Sequence[int], words: float) -> set[int]:
    """Take blocks in order, each with the header that it needs, while the words last; pass over those too large."""
    kept: set[int] = set()
    for index in order:
        wanted = {index, *blocks.blocks[index].requires} - kept
        size = sum(blocks.blocks[one].words + 1 for one in wanted)
        if size <= words:
            kept |= wanted
            words -= size
    return kept


@cache
def _scorer(name: str) -> Scorer:
    scorer: Scorer = make_engine("scorer", name, embedder=make_engine("embedder", "static"))
    return scorer


def _from_blocks(blocks: Blocks, count: int, chance: random.Random) -> list[Asked]:
    """Let blocks ask for themselves."""
    weights = synthetic.weights(blocks)
    if not any(weights):
        return []
    asked = []
    for index in chance.choices(range(len(blocks)), weights, k=count):
        made = synthetic.question(blocks, index, chance)
        if made:
            asked.append(Asked(made, index, 0))
    return asked
