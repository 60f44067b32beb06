"""The environment: the candidates of a page are offered best first, and each is kept or dropped, until none fits.

Many episodes walk at once. What does not fit any more is passed over without a choice. To keep every block that fits is
what greedy pruning does.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from prunus_train.policy.episodes import STATIC, Episodes

STATE: Final = (
    "left",  # share of the budget that is left
    "cost_of_left",  # tokens of the block, and of what it requires, over the tokens left
    "need_unpaid",  # tokens of what it requires and is not kept yet, over the budget
    "kept",  # log of the number of kept blocks
    "chance_kept",  # chance that a kept block holds evidence, as if they were independent
    "covered",  # share of the question's terms, by idf, in kept blocks
    "adds",  # share of the terms that this block would add
    "table_kept",  # share of the budget that went into this block's table
    "section_kept",  # … into its section
    "beside_kept",  # a neighbour of the block is kept
    "passed",  # share of the candidates that were offered
)
"""What the agent is told of its own choices so far."""

INPUTS: Final = len(STATIC) + len(STATE)

DROP: Final = 0
KEEP: Final = 1


class Walk:
    """A batch of episodes in progress.

    :param price: reward that is lost if the whole budget is spent.
    """

    def __init__(self, episodes: Episodes, price: float) -> None:
        self.episodes, self.price = episodes, price
        size, width = episodes.cost.shape
        self.kept = np.zeros((size, width), bool)
        self.paid = np.zeros((size, width), bool)  # what the candidate requires is kept
        self.prices = np.zeros(
            (size, width), np.float32
        )  # tokens of a candidate, and of what it requires and is unpaid
        self.left = episodes.budget.copy()
        self.found = np.zeros((size, episodes.holds.shape[2]), bool)
        self.covered = np.zeros(episodes.idf.shape, bool)
        self.at = np.full(size, -1)
        self.done = np.zeros(size, bool)
        self._advance()

    def _advance(self) -> None:
        """Go on to the next candidate that fits; an episode without one is done."""
        rows = self.open()
        self.prices[rows] = self.episodes.cost[rows] + np.where(self.paid[rows], 0, self.episodes.need_cost[rows])
        ahead = np.arange(self.kept.shape[1])[None] > self.at[rows, None]
        fits = ahead & (self.prices[rows] <= self.left[rows, None])
        some = fits.any(axis=1)
        self.done[rows[~some]] = True
        self.at[rows[some]] = fits[some].argmax(axis=1)

    def states(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return what the agent sees of some episodes that are not done, float32 [rows, INPUTS]."""
        all_, at, budget = self.episodes, self.at[rows], self.episodes.budget[rows]
        kept, left, price = self.kept[rows], self.left[rows], self.prices[rows, at]
        spent = np.where(kept, np.where(np.isfinite(all_.cost[rows]), all_.cost[rows], 0), 0)
        new = all_.terms[rows, at] & ~self.covered[rows]
        shares = []
        for group in (all_.table, all_.section):
            own = group[rows, at][:, None]
            shares.append((spent * ((group[rows] == own) & (own >= 0))).sum(axis=1) / budget)
        beside = (kept & (np.abs(all_.place[rows] - all_.place[rows, at][:, None]) == 1)).any(axis=1)
        state = np.column_stack([
            left / budget,
            price / np.maximum(left, 1),
            (price - all_.cost[rows, at]) / budget,
            np.log1p(kept.sum(axis=1)),
            1 - np.where(kept, 1 - all_.chance[rows], 1).prod(axis=1),
            (self.covered[rows] * all_.idf[rows]).sum(axis=1),
            (new * all_.idf[rows]).sum(axis=1),
            *shares,
            beside,
            at / kept.shape[1],
        ])  # fmt: skip
        return np.concatenate([all_.static[rows, at], state.astype(np.float32)], axis=1)

    def step(self, rows: NDArray[np.int64], keep: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Keep or drop the candidate of each row, and go on; return the reward of each, float32 [rows].

        The reward is the share of the answers that survive from now on, less the price of the tokens.
        """
        all_, chosen = self.episodes, rows[keep]
        at = self.at[chosen]
        price = self.prices[chosen, at]
        new = all_.holds[chosen, at] & ~self.found[chosen]
        reward = np.zeros(len(rows), np.float32)
        reward[keep] = new.sum(axis=1) / np.maximum(all_.answers[chosen], 1) - self.price * price / all_.budget[chosen]
        self.found[chosen] |= new
        self.covered[chosen] |= all_.terms[chosen, at]
        self.kept[chosen, at] = True
        need = all_.need[chosen, at][:, None]
        self.paid[chosen] |= (all_.need[chosen] == need) & (need >= 0)
        self.left[chosen] -= price
        self._advance()
        return reward

    def open(self) -> NDArray[np.int64]:
        """Return the episodes that are not done."""
        return np.flatnonzero(~self.done)

    def survival(self) -> NDArray[np.float64]:
        """Return the share of the answers that survive, by episode."""
        return np.asarray(self.found.sum(axis=1) / np.maximum(self.episodes.answers, 1), np.float64)

    def spent(self) -> NDArray[np.float64]:
        """Return the share of the budget that is spent, by episode."""
        return np.asarray(1 - self.left / self.episodes.budget, np.float64)
