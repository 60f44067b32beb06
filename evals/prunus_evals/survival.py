"""Task ``survival``: run systems on questions and score their outputs; used by the reports and the gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from prunus_evals import metrics
from prunus_evals.errors import BudgetBroken
from prunus_evals.records import Asker, Outcome, Question, Reply, System
from prunus_evals.tokens import Counter
from prunus_evals.visible import visible_text

BUDGETS = (512, 1024, 2048, 4096)
ELEMENT_ATTRIBUTE = "tid"


def _gold(question: Question, visible: str) -> tuple[bool | None, float | None]:
    if question.gold_table is not None:
        return metrics.table_survives(metrics.gold_table(question.gold_table), visible)
    if question.element_id is not None:
        element = metrics.element_text(question.html, ELEMENT_ATTRIBUTE, question.element_id)
        kept = metrics.answers_survive([element], visible)
        return kept, float(kept)
    return None, None


def score(question: Question, system: str, budget: int, reply: Reply, counter: Counter, cpu: float) -> Outcome:
    """Score one reply.

    :raises BudgetBroken: the reply has more tokens than the budget.
    """
    tokens = counter.count([reply.text])[0]
    if tokens > budget:
        raise BudgetBroken(system, question.id, budget, tokens)
    visible = visible_text(reply.text, reply.format)
    whole, share = _gold(question, visible)
    return Outcome(
        task=question.task,
        system=system,
        page=question.page,
        question=question.id,
        budget=budget,
        answer=metrics.answers_survive(question.answers, visible),
        tokens=tokens,
        cpu_seconds=cpu,
        gold_whole=whole,
        gold_share=share,
    )


def _page(system: System, page: Sequence[Question], budgets: Sequence[int], counter: Counter) -> Iterable[Outcome]:
    start = time.process_time()
    asker: Asker = system.prepare(page[0].html)
    prepared = time.process_time() - start
    for question in page:
        for budget in budgets:
            start = time.process_time()
            reply = asker.ask(question.question, budget)
            answered = time.process_time() - start
            # a user who has one question pays for the whole preparation of its page
            cpu = reply.cpu_seconds if reply.cpu_seconds is not None else prepared + answered
            yield score(question, system.name, budget, reply, counter, cpu)


def run(
    pages: Sequence[Sequence[Question]],
    systems: Sequence[System],
    budgets: Sequence[int],
    counter: Counter,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Run every system on every question of every page at every budget, and score the replies."""
    outcomes: list[Outcome] = []
    for done, page in enumerate(pages, 1):
        for system in systems:
            outcomes.extend(_page(system, page, budgets, counter))
        if progress is not None:
            progress(done, len(pages))
    return outcomes
