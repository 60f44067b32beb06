"""Prune the HTML and convert what is kept, or convert the page and refine the text: the same scorers, equal budgets.

HtmlRAG (appendix A) says that the first has the higher upper bound, because it prunes before anything is lost. It gives
no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prunus_evals.harness import NO_READER, Plan
from prunus_evals.records import Outcome
from prunus_evals.studies import Choice, Study, Table, grid, notes, plan
from prunus_evals.studies.htmlrag import HTML_STAND_INS, TASKS, Line, here, measures, sets

BUDGETS = (512, 1024, 2048, 4096)
LINES = (
    Line("pruned HTML, not converted", "prunus:trees:html"),
    Line("pruned, then Markdown", "prunus:trees:markdown"),
    Line("pruned, then text", "prunus:trees:text"),
    Line("Markdown, then pruned (same scorer)", "prunus:trees:markdown@from=markdown"),
    Line("text, then pruned (same scorer)", "prunus:trees:text@from=text"),
    Line("Markdown, then chunks by BM25", "chunks:headings:bm25"),
    Line("Markdown, then chunks by static vectors", "chunks:headings:static"),
    Line("text, then chunks by BM25", "chunks:fixed:bm25"),
    Line("text, then chunks by static vectors", "chunks:fixed:static"),
)
GOLD = ("whole gold table or element", "gold_whole")


def _plans(study: Study, choice: Choice) -> dict[str, Plan]:
    names = tuple(line.system for line in here(LINES)[0])
    return {"conversion": plan(study, choice, names, BUDGETS, metrics=(*measures(study, choice), GOLD[1]))}


def _tables(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    outcomes = found["conversion"]
    usable, gone = here(LINES)
    said = (*notes(study, choice, outcomes), *gone)
    rows = [(line.label, {"system": line.system}) for line in usable]
    budgets = sorted({outcome.budget for outcome in outcomes})
    tables = []
    for reader in choice.readers or (NO_READER,):
        for s in sets(study, choice):
            gold = (GOLD,) if any(GOLD[1] in o.scores for o in outcomes if o.task == s.task) else ()
            for head, metric in (*s.measured(reader), *gold):
                fields = {"task": s.task, "metric": metric, "reader": reader}
                columns = [(f"{budget:,}", {**fields, "budget": budget}) for budget in budgets]
                by = "" if reader == NO_READER else f", answered by {reader}"
                numbers = grid(outcomes, rows, columns, scale=100)
                title = f"Pruned and converted: {s.title}, {head} in percent, by budget{by}"
                tables.append(Table(title, tuple(c for c, _ in columns), numbers, said, digits=1))
    return tables


STUDIES = (
    Study(
        "conversion",
        "prune, then convert; or convert, then refine",
        plans=_plans,
        tables=_tables,
        answers=True,
        paper_tasks=TASKS,
        stand_ins=HTML_STAND_INS,
    ),
)
