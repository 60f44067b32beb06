"""The fast selection takes the blocks that a slow, plain one takes, and counts no text that its words rule out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.strategies import articles, worded_documents

from prunus.core.registry import make_engine
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.greedy import select
from prunus.evidence.prune import with_breadcrumbs
from prunus.evidence.render import Rendering, render_blocks
from prunus.evidence.text_tokens import TextTokens, text_tokens
from prunus.pages.clean.walk import clean_tree

COUNTERS = {name: make_engine("tokenizer", name) for name in ("smollm2", "approx")}
PAGE = "".join(f"<h2>Part {part}</h2>" + f"<p>{'Some words of the page. ' * 8}</p>" * 30 for part in range(20))


class Counting:
    """A counter that notes what it counted."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        self.texts += texts
        return np.asarray(COUNTERS["approx"].count(texts), np.int64)


def blocks_of(pages: Sequence[str], max_words: int) -> Blocks:
    trees = [clean_tree(page) for page in pages]
    return cut([tree for tree in trees if tree.words[-1]], max_words)


def slowly_selected(blocks: Blocks, ranking: Any, budget: int, counter: Any, rendering: Rendering) -> list[int]:
    """Take blocks by rank with what they need, if the whole output then fits, until a pass over all adds none."""
    requires = with_breadcrumbs(blocks)
    kept: set[int] = set()
    added = True
    while added:
        added = False
        for index in np.argsort(-ranking, kind="stable").tolist():
            if index not in kept:
                group = [index]
                for needed in group:
                    group += [other for other in requires[needed] if other not in kept and other not in group]
                output = render_blocks(blocks, sorted(kept.union(group)), rendering)
                if int(counter.count([output])[0]) <= budget:
                    kept.update(group)
                    added = True
    return sorted(kept)


@settings(max_examples=25)
@given(
    st.lists(st.one_of(articles(), worded_documents.map(lambda made: made.html)), min_size=1, max_size=3),
    st.sampled_from((3, 8, 20)),
    st.integers(0, 1000),
    st.sampled_from(sorted(COUNTERS)),
    st.floats(0.02, 1.0),
    st.booleans(),
)
def test_the_fast_selection_is_the_slow_one(
    pages: list[str], max_words: int, seed: int, name: str, share: float, headers: bool
) -> None:
    blocks, counter, rendering = blocks_of(pages, max_words), COUNTERS[name], Rendering(headers=headers)
    if not len(blocks):
        return
    ranking = np.random.default_rng(seed).permutation(len(blocks)).astype(np.float64)
    whole = int(counter.count([render_blocks(blocks, range(len(blocks)), rendering)])[0])
    budget = max(1, int(whole * share))
    chosen = select(blocks, ranking, budget, counter, rendering, with_breadcrumbs(blocks))
    assert chosen.kept == slowly_selected(blocks, ranking, budget, counter, rendering)
    assert chosen.output == (render_blocks(blocks, chosen.kept, rendering) if chosen.kept else "")


@given(st.lists(articles(), min_size=1, max_size=2), st.sampled_from((3, 20)), st.floats(0.0, 1.2))
def test_texts_exceed_a_limit_exactly_when_their_sum_does(pages: list[str], max_words: int, share: float) -> None:
    blocks = blocks_of(pages, max_words)
    counts = COUNTERS["smollm2"].count([" ".join(text.split()) for text in blocks.texts])
    tokens = TextTokens(blocks, COUNTERS["smollm2"])
    assert (tokens.lower_bounds() <= counts).all()
    limit = float(counts.sum()) * share
    assert tokens.exceed(limit) == (counts.sum() > limit)
    assert [tokens[index] for index in range(len(blocks))] == counts.tolist()


def test_texts_that_cannot_fit_are_not_counted() -> None:
    counter = Counting()
    blocks = blocks_of([PAGE] * 4, 48)
    select(blocks, np.arange(len(blocks), dtype=np.float64), 300, counter, Rendering(headers=True))
    texts = {" ".join(text.split()) for text in blocks.texts}
    counted = [text for text in counter.texts if text in texts]
    assert 0 < len(counted) < len(blocks) / 2


@pytest.mark.parametrize("times", [1, 3])
def test_texts_are_counted_once_for_all_questions(times: int) -> None:
    counter = Counting()
    blocks = blocks_of([PAGE], 48)
    for _ in range(times):
        text_tokens(blocks, counter).count(range(len(blocks)))
    assert len(counter.texts) == len(blocks)
