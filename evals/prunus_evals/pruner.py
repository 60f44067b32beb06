"""Task ``pruner``: rank the blocks by a generative pruner, against chance, BM25 and the other scorers.

Every scorer ranks the blocks that ``prune --scorer generative:MODEL`` with the same sizes asks the model about: the
fine blocks that the first stage keeps within its budget (HtmlRAG §3.4.2), under their paths in the whole page. A block
is right when it holds the gold answer (in the gold table or element, where that is known). A question for which the
first stage kept no right block is left out for all scorers and counted: it does not test the second stage.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import prunus
from prunus.core.errors import BadBudget, OverWindow
from prunus.core.settings import Settings
from prunus.engines import Maker
from prunus.evidence.blocks import Blocks
from prunus_evals import stats, tasks
from prunus_evals.bm25 import BM25
from prunus_evals.labels import PrunerRecipe, gold_blocks, pruned
from prunus_evals.metrics.ranked import of_rank
from prunus_evals.records import Question
from prunus_evals.split import Half

METRICS = ("hit@1", "hit@3", "mrr")
BASELINES = ("chance", "bm25")
Ranks = dict[str, dict[str, list[float]]]
"""Metric → page → one number for each question."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question about a pruned page, and the right blocks."""

    question: Question
    blocks: Blocks
    gold: Sequence[int]


@dataclass(slots=True)
class Judged:
    """The measured numbers.

    :param ranks: the metrics by system.
    :param seconds: wall time by system, over all questions.
    :param left_out: number of questions that were left out, by reason.
    :param blocks: number of blocks of each case.
    """

    ranks: dict[str, Ranks] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)


Scoring = Callable[[str, Blocks], NDArray[Any]]


def scoring(system: str, prompt: str) -> Scoring:
    """Return a scoring function of blocks: ``bm25`` of the baselines, or a scorer of Prunus.

    :param system: ``bm25``, ``hybrid``, ``embedding``, ``generative:MODEL``, … as for ``prune --scorer``.
    :param prompt: the prompt that a generative model was trained on.
    """
    if system == "bm25":
        return lambda query, blocks: BM25(blocks.texts).scores(query)
    engine = Maker(Settings(path_options={"prompt": prompt}), prunus.Options()).make_second_scorer(system)
    return lambda query, blocks: np.asarray(engine.score(query, blocks))


def cases(questions: Sequence[Question], budget: int, recipe: PrunerRecipe, left_out: dict[str, int]) -> list[Case]:
    """Return the cases of one page; count the questions that are left out in ``left_out``."""
    documents = prunus.read(prunus.Page(content=questions[0].html, media_type="text/html"))
    found = []
    for question in questions:
        try:
            blocks = pruned(documents, question.question, budget, recipe)
            gold = gold_blocks(blocks, question)
        except BadBudget:  # the first stage keeps nothing
            gold = []
        reason = "" if gold else "pruned away by the first stage"
        if gold and len(gold) == len(blocks):
            reason = "nothing to choose"
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            found.append(Case(question, blocks, gold))
    return found


def measured(scores: NDArray[Any], gold: Sequence[int]) -> dict[str, float]:
    """Return the metrics of one ranking; equal scores are ranked in document order."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    rank = 1 + min(int(np.flatnonzero(order == index)[0]) for index in gold)
    numbers = of_rank(rank)
    return {name: numbers[name] for name in METRICS}


def chance(blocks: int, gold: int) -> dict[str, float]:
    """Return the exact expectation of each metric for a random order.

    :param blocks: number of blocks.
    :param gold: number of right blocks among them.
    """

    def missed(first: int) -> float:
        return math.comb(blocks - gold, first) / math.comb(blocks, first) if first <= blocks - gold else 0.0

    mrr = sum((missed(rank - 1) - missed(rank)) / rank for rank in range(1, blocks - gold + 2))
    return {"hit@1": 1 - missed(1), "hit@3": 1 - missed(min(3, blocks)), "mrr": mrr}


def judge(
    pages: Sequence[Sequence[Question]],
    systems: Mapping[str, Scoring],
    budget: int,
    recipe: PrunerRecipe,
    progress: Callable[[int, int], None] | None = None,
) -> Judged:
    """Let every system rank the blocks of every question; add ``chance``, which is computed exactly."""
    judged = Judged()
    for done, page in enumerate(pages, 1):
        for case in cases(page, budget, recipe, judged.left_out):
            _judge_case(judged, case, systems)
        if progress is not None:
            progress(done, len(pages))
    return judged


def _judge_case(judged: Judged, case: Case, systems: Mapping[str, Scoring]) -> None:
    found = {"chance": chance(len(case.blocks), len(case.gold))}
    for name, score in systems.items():
        start = time.perf_counter()
        try:
            scores = score(case.question.question, case.blocks)
        except OverWindow:
            judged.left_out["over the model's window"] = judged.left_out.get("over the model's window", 0) + 1
            return
        judged.seconds[name] = judged.seconds.get(name, 0.0) + time.perf_counter() - start
        found[name] = measured(scores, case.gold)
    for name, metrics in found.items():
        ranks = judged.ranks.setdefault(name, {metric: {} for metric in METRICS})
        for metric, value in metrics.items():
            ranks[metric].setdefault(case.question.page, []).append(value)
    judged.blocks.append(len(case.blocks))


def load(wanted: str, half: Half, limit: int | None = None) -> list[list[Question]]:
    """Return the questions of tasks by page."""
    return [page for name in tasks.expand(wanted) for page in tasks.load(name, half, limit)]


def summary(judged: Judged, about: Mapping[str, object], model: str) -> dict[str, object]:
    """Return the numbers of the table, ready for JSON.

    :param about: what was run, added to the result.
    :param model: the system that the others are compared with.
    """
    systems: dict[str, dict[str, object]] = {}
    for name, ranks in judged.ranks.items():
        row: dict[str, object] = {}
        for metric in METRICS:
            row[metric] = stats.mean(ranks[metric]).numbers()
            if name != model and model in judged.ranks:
                row[f"{metric} behind"] = stats.difference(judged.ranks[model][metric], ranks[metric]).numbers()
        row["seconds"] = round(judged.seconds.get(name, 0.0), 2)
        systems[name] = row
    blocks = round(float(np.mean(judged.blocks)), 1) if judged.blocks else 0.0
    return {**about, "questions": len(judged.blocks), "blocks": blocks, "left_out": judged.left_out, "systems": systems}


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as plain text: means with 95 % intervals, and the model's lead over each system."""
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(result["left_out"].items())) or "none"
    lines = [
        f"{result['task']}, {result['half']} half, budget {result['budget']}: "
        f"{stats.counted(result['questions'], 'question')}, "
        f"{result['blocks']} blocks each; left out: {left_out}",
        f"{'system':34}" + "".join(f"{metric:>24}" for metric in METRICS),
    ]
    for name, row in result["systems"].items():
        lines.append(f"{name[-34:]:34}" + "".join(f"{stats.shown(row[metric]):>24}" for metric in METRICS))
    for name, row in result["systems"].items():
        if f"{METRICS[0]} behind" in row:
            leads = "".join(f"{stats.shown(row[f'{metric} behind'], signed=True):>24}" for metric in METRICS)
            lines.append(f"{'lead over ' + name[-24:]:34}" + leads)
    return "\n".join(lines)
