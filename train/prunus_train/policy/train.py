"""Train pruning policies: make the episodes, learn by each method, and compare the walks with greedy pruning.

A quarter of the documents is held out. What the scorer ``learned`` says of a training document comes from trees that
did not see it, so that the agent does not learn to trust them too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from prunus.core.ports import Embedder
from prunus.core.settings import Settings
from prunus.engines import assemble
from prunus.evidence.score._block_features import features
from prunus.models.boosted import Boosted
from prunus_evals.split import digest
from prunus_evals.tokens import NAME
from prunus_train import blocks
from prunus_train.data.blocks import Asked, questions, sampled
from prunus_train.errors import DataBroken
from prunus_train.policy.episodes import Episodes, asked_episode, joined
from prunus_train.policy.learn import LEARNERS, Plan, Report, figures
from prunus_train.policy.network import Policy

BUDGETS: Final = (256, 512, 1024)
"""Budgets of the episodes, in turns."""

_HELD_OUT: Final = "0123"
"""First hexadecimal digits of the digests of held-out documents, as for ``prunus train blocks``."""

_FOLDS: Final = 3

Found = tuple[Asked, NDArray[np.float32]]
"""A question, and the features of all its blocks."""


@dataclass(frozen=True, slots=True)
class Data:
    """The episodes.

    :param trees: trees that did not see the held-out documents.
    """

    train: Episodes
    held: Episodes
    trees: Boosted


def is_held_out(page: str) -> bool:
    """Return whether a document is held out."""
    return digest(page)[0] in _HELD_OUT


def make(sets: Path, report: Callable[[str], None], share: float = 1.0) -> Data:
    """Return the episodes of the training sets.

    :param share: share of the pages to use, for a quick trial.
    :raises DataMissing: a file of the data is missing.
    :raises DataBroken: too few documents are held out, or left to train on.
    """
    engines = assemble(Settings(tokenizer=NAME))  # tokens as the evaluation counts them
    embedder = cast(Embedder, engines.embedder)
    found: list[Found] = [
        (asked, features(asked.query, asked.blocks, embedder)) for asked in questions(sets, report, share, BUDGETS)
    ]
    held = [one for one in found if is_held_out(one[0].page)]
    parts: list[list[Found]] = [[] for _ in range(_FOLDS)]
    for one in found:
        if not is_held_out(one[0].page):
            parts[int(digest(one[0].page)[1], 16) % _FOLDS].append(one)
    if not held or not all(parts):
        raise DataBroken("the training sets have too few documents: some are held out, and three parts are trained on")
    folds, trees = _trees(parts)
    report("trees: fitted")
    counter = engines.counter
    train = [
        asked_episode(asked, own, fold, counter) for part, fold in zip(parts, folds, strict=True) for asked, own in part
    ]
    beside = [asked_episode(asked, own, trees, counter) for asked, own in held]
    kept, apart = ([one for one in some if one is not None] for some in (train, beside))
    if not kept or not apart:
        raise DataBroken("every page of the training sets fits the budgets: there is nothing to choose")
    report(f"episodes: {len(kept)} to train on, {len(apart)} held out")
    return Data(joined(kept), joined(apart), trees)


def _trees(parts: Sequence[Sequence[Found]]) -> tuple[list[Boosted], Boosted]:
    """Return for each part the trees of the other parts, and the trees of all parts; scores are log-odds."""
    examples = [
        [sampled(asked.source, asked.page, asked.query, own, asked.gold) for asked, own in part] for part in parts
    ]
    folds, scores, gold = [], [], []
    for place, part in enumerate(examples):
        others = [one for number, other in enumerate(examples) if number != place for one in other]
        folds.append(blocks.fit(others, blocks.PLAN))
        scores += [folds[-1].scores(one.features) for one in part]
        gold += [one.gold for one in part]
    said, truth = np.concatenate(scores), np.concatenate(gold)
    everything = blocks.fit([one for part in examples for one in part], blocks.PLAN)
    return [blocks.as_odds(fold, said, truth) for fold in folds], blocks.as_odds(everything, said, truth)


def learn(data: Data, plan: Plan, methods: Sequence[str], report: Report) -> tuple[dict[str, Policy], dict[str, Any]]:
    """Return the trained policies by method, and the figures of held-out episodes, of greedy pruning, too."""
    found: dict[str, Any] = {"greedy": by_budget(data.held, plan.price, None)}
    made: dict[str, Policy] = {}
    for method in methods:
        made[method] = LEARNERS[method](data.train, data.held, plan, report)
        found[method] = by_budget(data.held, plan.price, made[method])
    return made, found


def by_budget(episodes: Episodes, price: float, policy: Policy | None) -> dict[str, dict[str, float]]:
    """Return the figures of all episodes, and of those of each budget."""
    found = {"all": {"episodes": len(episodes), **figures(episodes, price, policy)}}
    for budget in sorted(set(episodes.budget.tolist())):
        part = episodes.part(np.flatnonzero(episodes.budget == budget))
        found[str(int(budget))] = {"episodes": len(part), **figures(part, price, policy)}
    return found
