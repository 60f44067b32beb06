"""Compare policies with greedy pruning by the real pruner, at equal budgets, on questions with known answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

import prunus
from prunus.core.options import Options
from prunus.core.ports import Embedder
from prunus.core.settings import Settings
from prunus.engines import assemble
from prunus.evidence.block_size import max_words_for
from prunus.evidence.blocks import Blocks
from prunus.evidence.greedy import select
from prunus.evidence.prune import style_of
from prunus.evidence.render import Rendering
from prunus.models.boosted import Boosted
from prunus_evals import stats, tasks
from prunus_evals.metrics import named
from prunus_evals.records import Question, Reply, one_page
from prunus_evals.scoring import output_of, scores_of
from prunus_evals.split import Half
from prunus_evals.systems._documents import page_of
from prunus_evals.tokens import NAME
from prunus_train.data.blocks import TEXTS
from prunus_train.data.blocks import Asked as FromSets
from prunus_train.policy.network import Policy
from prunus_train.policy.scorer import Asked, Chooser
from prunus_train.policy.train import BUDGETS, is_held_out

Pages = Iterable[tuple[Sequence[Question], Sequence[int]]]
"""Questions about one page, each with the budgets at which it is asked."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a way of pruning kept for one question.

    :param survives: 1 where every answer is in the output, else 0.
    """

    task: str
    page: str
    way: str
    budget: int
    survives: float
    tokens: int


SHARES: Final = (0.9, 0.75)
"""Shares of the budget to which ``learned`` is cut, too, for policies that leave some of the budget."""


class Learned:
    """Greedy pruning by the trees alone, as a scorer of blocks."""

    name = "learned"
    fine = False
    one_prompt = False
    tree = None

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return one score per block, float64 [n]."""
        return self.asked.scores(query, blocks)


def run(
    pages: Pages,
    policies: Mapping[str, Policy],
    trees: Boosted,
    report: Callable[[str], None] = lambda _: None,
) -> list[Kept]:
    """Prune every page for its questions in every way.

    The ways: ``hybrid``; ``learned``; ``learned 90 %`` and so on, of the budget, with the blocks of the whole budget;
    each policy, the rest of the budget filled; ``POLICY alone``, not filled.

    :param trees: what ``learned`` and the policies take for trees.
    """
    engines = assemble(Settings(tokenizer=NAME))
    asked = Asked(trees, cast(Embedder, engines.embedder), engines.counter)
    found: list[Kept] = []
    for number, (questions, budgets) in enumerate(pages, 1):
        documents = prunus.read([page_of(one) for one in questions[0].documents])
        for question in questions:
            for budget in budgets:
                for way, text, tokens in _ways(documents, question.question, budget, policies, asked):
                    score = scores_of(question, output_of(Reply(text, "html")), named(["answer"]))["answer"]
                    found.append(Kept(question.task, question.page, way, budget, score, tokens))
        if number % 20 == 0:
            report(f"{number} pages")
    return found


def _ways(
    documents: prunus.Documents, query: str, budget: int, policies: Mapping[str, Policy], asked: Asked
) -> Iterator[tuple[str, str, int]]:
    """Yield each way of pruning with its output and its tokens; nothing where no evidence fits."""
    scorers: dict[str, Any] = {"hybrid": "hybrid", "learned": Learned(asked)}
    scorers |= {name: Chooser(policy, budget, asked) for name, policy in policies.items()}
    for name, scorer in scorers.items():
        try:
            context = prunus.prune(
                documents, query, budget, "html", prunus.Options(scorer=scorer, embedder="static", tokenizer=NAME)
            )
            yield name, context.output, context.tokens
        except prunus.BadBudget:
            yield name, "", 0
    blocks = documents.blocks(max_words_for(documents.words, budget, query))
    rendering = Rendering("html", style_of(Options()), len(documents) > 1)
    for share in SHARES:
        chosen = select(blocks, asked.scores(query, blocks), int(share * budget), asked.counter, rendering)
        yield f"learned {share:.0%}", chosen.output, chosen.tokens
    for name, policy in policies.items():
        chosen = Chooser(policy, budget, asked).alone(documents, query)
        yield f"{name} alone", chosen.output, chosen.tokens


def held_out(questions: Iterable[FromSets]) -> Iterator[tuple[list[Question], list[int]]]:
    """Yield the held-out questions of training sets that have answers, each at the budget that its page was cut for."""
    for number, asked in enumerate(questions):
        if asked.answers and is_held_out(asked.page):
            answers = tuple(spellings[0] for spellings in asked.answers)
            aliases = {spellings[0]: spellings[1:] for spellings in asked.answers}
            question = Question(
                f"{asked.page}#{number}", asked.source, asked.page, one_page(asked.html), asked.query, answers, aliases
            )
            yield [question], [asked.budget]


def of_tasks(names: Sequence[str], half: Half, limit: int | None = None) -> Iterator[tuple[list[Question], list[int]]]:
    """Yield the pages of tasks of the evaluation, each question at every budget.

    :raises DataMissing: the evaluation data is missing.
    """
    for name in names:
        for page in tasks.load(name, half, limit):
            yield page, list(BUDGETS)


def summary(found: Sequence[Kept]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return by task, budget and way the survival of answers and the tokens; ``texts`` are the training sets of texts.

    ``over_hybrid`` and ``over_learned`` are paired differences of survival, with 95 % intervals over pages.
    """
    tables: dict[tuple[str, int], dict[str, dict[str, list[Kept]]]] = {}
    for one in found:
        task = "texts" if one.task in TEXTS else one.task
        ways = tables.setdefault((task, one.budget), {})
        ways.setdefault(one.way, {}).setdefault(one.page, []).append(one)
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for (task, budget), ways in sorted(tables.items()):
        survival = {
            way: {page: [one.survives for one in kept] for page, kept in own.items()} for way, own in ways.items()
        }
        result.setdefault(task, {})[str(budget)] = {
            way: {
                "questions": sum(map(len, own.values())),
                "survival": round(stats.mean(survival[way]).mean, 4),
                "tokens": round(stats.mean({page: [one.tokens for one in kept] for page, kept in own.items()}).mean, 1),
                "over_hybrid": stats.difference(survival[way], survival["hybrid"]).numbers(),
                "over_learned": stats.difference(survival[way], survival["learned"]).numbers(),
            }
            for way, own in ways.items()
        }  # fmt: skip
    return result
