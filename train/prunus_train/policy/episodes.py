"""Questions as episodes: the best blocks of a page by the scorer ``learned``, with all that an agent is told of each.

The tokens of a block are approximate: those of its text, and a share for each of its tags. The answer survives if a
kept block of the gold evidence holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus.core.ports import TokenCounter
from prunus.core.text.bm25 import query_terms
from prunus.evidence.blocks import Blocks
from prunus.evidence.score import bm25
from prunus.evidence.score._block_features import NAMES, held_terms
from prunus.evidence.score._signals import groups, rank_headers_below_rows
from prunus.evidence.text_tokens import text_tokens
from prunus.models.boosted import Boosted
from prunus.pages.write.style import CLOSED_BY
from prunus_evals.metrics import matching
from prunus_train.data.blocks import Asked

CANDIDATES: Final = 64
"""Blocks of a page that are offered, the best ones. No budget up to 1,024 tokens holds more than half as many."""

TERMS: Final = 16
"""Terms of a question that are followed."""

ANSWERS: Final = 8
"""Answers of a question, or gold blocks where it has none, that are followed."""

_OPEN_TAG: Final = 3.0
_CLOSED_TAG: Final = 6.0
"""Tokens of a tag without and with an end tag, about: `<td>` has three."""

STATIC: Final = (*NAMES, "odds", "rank", "cost_of_budget", "log_cost", "log_budget")
"""What is known of a candidate before the walk, in the order of the columns of ``static``."""


@dataclass(frozen=True, slots=True)
class Episodes:
    """Questions with their candidates, best first. E: episodes; K: candidates; rows behind the last are empty.

    :param static: what is known of a candidate before the walk, float32 [E, K, len(STATIC)].
    :param cost: tokens of a candidate, about, float32 [E, K]; infinite where there is none.
    :param need: number of what a candidate requires (the header of its table), int32 [E, K]; -1 for nothing.
    :param need_cost: tokens of that, paid once, float32 [E, K].
    :param table, section, place: numbers of table, section and block in the page, int32 [E, K]; -1 outside any.
    :param chance: chance that a candidate holds evidence, as ``learned`` sees it, float32 [E, K].
    :param terms: which terms of the question a candidate holds, bool [E, K, TERMS].
    :param idf: weights of the terms, which add up to 1, float32 [E, TERMS].
    :param holds: which answers a candidate holds, bool [E, K, ANSWERS].
    :param answers: answers of the question that a block of the page holds, int32 [E].
    :param budget: tokens that may be kept, float32 [E].
    """

    static: NDArray[np.float32]
    cost: NDArray[np.float32]
    need: NDArray[np.int32]
    need_cost: NDArray[np.float32]
    table: NDArray[np.int32]
    section: NDArray[np.int32]
    place: NDArray[np.int32]
    chance: NDArray[np.float32]
    terms: NDArray[np.bool_]
    idf: NDArray[np.float32]
    holds: NDArray[np.bool_]
    answers: NDArray[np.int32]
    budget: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.budget)

    def part(self, chosen: NDArray[np.int64]) -> Episodes:
        """Return some of the episodes."""
        return Episodes(*(getattr(self, one.name)[chosen] for one in fields(self)))


def joined(parts: Sequence[Episodes]) -> Episodes:
    """Return episodes together; there is at least one."""
    return Episodes(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Episodes)))


def block_costs(blocks: Blocks, counter: TokenCounter) -> NDArray[np.float64]:
    """Return about how many tokens each block costs, float64 [n]: its text, and its tags."""
    known = blocks.cache.get("policy:costs")
    if isinstance(known, np.ndarray):
        return known
    tokens = text_tokens(blocks, counter)
    tokens.count(range(len(blocks)))
    found = np.zeros(len(blocks))
    for place, block in enumerate(blocks.blocks):
        tags = [tag for tag in blocks.trees[block.document].tag[block.lo : block.hi] if tag]
        closed = sum(tag not in CLOSED_BY for tag in tags)
        found[place] = tokens[place] + _CLOSED_TAG * closed + _OPEN_TAG * (len(tags) - closed)
    blocks.cache["policy:costs"] = found
    return found


def episode(
    query: str,
    blocks: Blocks,
    found: NDArray[np.float32],
    trees: Boosted,
    counter: TokenCounter,
    budget: int,
) -> tuple[Episodes, NDArray[np.int64]]:
    """Return an episode without answers, and the order of all blocks by the trees, int64 [n].

    :param found: the features of all blocks, float32 [n, features].
    """
    odds = trees.scores(found)
    order = np.argsort(-rank_headers_below_rows(odds.copy(), blocks), kind="stable")
    best, count = order[:CANDIDATES], min(len(order), CANDIDATES)
    costs = block_costs(blocks, counter)
    needs = [blocks.blocks[place].requires for place in best.tolist()]
    numbers = {needed: number for number, needed in enumerate(dict.fromkeys(needs))}
    index = bm25.index_of(blocks)
    terms = list(dict.fromkeys(query_terms(query, index.language)))[:TERMS]
    idf = np.asarray([index.idf(term) for term in terms])
    _, own = held_terms(index, terms)
    static = np.column_stack([
        found[best],
        odds[best].clip(-10, 10),
        np.arange(count) / CANDIDATES,
        (costs[best] / budget).clip(0, 1),
        np.log1p(costs[best]),
        np.full(count, np.log(budget)),
    ])  # fmt: skip
    made = Episodes(
        static=_padded(static, 0, np.float32),
        cost=_padded(costs[best], np.inf, np.float32),
        need=_padded(np.asarray([numbers[needed] if needed else -1 for needed in needs]), -1, np.int32),
        need_cost=_padded(np.asarray([costs[list(needed)].sum() for needed in needs]), 0, np.float32),
        table=_padded(groups(blocks, "table")[best], -1, np.int32),
        section=_padded(groups(blocks, "section")[best], -1, np.int32),
        place=_padded(best, -9, np.int32),
        chance=_padded(1 / (1 + np.exp(-odds[best].clip(-30, 30))), 0, np.float32),
        terms=_padded(_wide(own[best], TERMS), False, np.bool_),
        idf=_wide((idf / max(float(idf.sum()), 1e-9))[None], TERMS).astype(np.float32),
        holds=np.zeros((1, CANDIDATES, ANSWERS), bool),
        answers=np.zeros(1, np.int32),
        budget=np.asarray([budget], np.float32),
    )
    return made, order


def asked_episode(asked: Asked, found: NDArray[np.float32], trees: Boosted, counter: TokenCounter) -> Episodes | None:
    """Return the episode of a question whose answers are known; None where everything fits the budget."""
    if block_costs(asked.blocks, counter).sum() <= asked.budget:
        return None
    made, order = episode(asked.query, asked.blocks, found, trees, counter, asked.budget)
    marks = _answer_marks(asked)[:ANSWERS]
    best = order[:CANDIDATES]
    made.holds[0, : len(best), : len(marks)] = np.stack([mark[best] for mark in marks], axis=1)
    made.answers[0] = len(marks)
    return made


def _answer_marks(asked: Asked) -> list[NDArray[np.bool_]]:
    """Return for each answer the gold blocks that hold it; where whole blocks are gold, each of them is an answer."""
    if not asked.answers:
        return [np.arange(len(asked.gold)) == place for place in np.flatnonzero(asked.gold)]
    places = np.flatnonzero(asked.gold).tolist()
    marks = []
    for spellings in asked.answers:
        mark = np.zeros(len(asked.gold), bool)
        mark[[place for place in places if matching.holds(asked.blocks.texts[place], spellings)]] = True
        marks.append(mark)
    return [mark for mark in marks if mark.any()] or [asked.gold]


def _padded(values: NDArray[Any], empty: Any, kind: Any) -> NDArray[Any]:
    """Return one row per candidate, [1, CANDIDATES, …], the rows behind the last filled with ``empty``."""
    full = np.full((1, CANDIDATES, *values.shape[1:]), empty, kind)
    full[0, : len(values)] = values
    return full


def _wide(values: NDArray[Any], columns: int) -> NDArray[Any]:
    """Return rows with columns of zeros added."""
    full = np.zeros((len(values), columns), values.dtype)
    full[:, : values.shape[1]] = values
    return full
