"""Samples of the generative pruner (HtmlRAG §3.4.2, "Training a Path-aware Generative Model").

For each question, its page is cleaned, pruned by the first stage to several budgets, and cut into finer blocks; the
block that holds the gold answer is the target. A question whose answer is in no block is left out, as in the paper.

A sample is the prompt that inference sends, the numbered paths of all blocks, the indexes of those that hold the
answer, and the reply: the path of the target, then its content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import prunus
from prunus.core.errors import BadBudget
from prunus.evidence.numbered_paths import content_of, number, path_prompt
from prunus_evals import labels, tasks
from prunus_evals.labels import PUBLISHED, PrunerRecipe
from prunus_evals.records import Document, Question, one_page
from prunus_evals.split import Half
from prunus_evals.tasks.table_qa import nth_table
from prunus_train.data.sample_file import SampleFile, SampleUnit
from prunus_train.data.sets import table_pages
from prunus_train.llm.samples import ChatSample, as_row


def of_page(
    questions: Sequence[Question], budgets: Sequence[int], recipe: PrunerRecipe = PUBLISHED
) -> Iterator[SampleUnit]:
    """Yield what becomes of each question about one page: a sample for each budget, or the reason why there is none."""
    read: tuple[Sequence[Document], prunus.Documents] | None = None
    for question in questions:
        if read is None or read[0] != question.documents:
            pages = [prunus.Page(content=one.content, media_type=one.media_type) for one in question.documents]
            read = (question.documents, prunus.read(pages))
        unit, seen = SampleUnit(question.id), set[str]()
        for budget in budgets:
            made = _sample(read[1], question, budget, recipe, seen)
            if isinstance(made, str):
                unit.left_out.append(made)
            else:
                unit.kept.append(as_row(made))
                unit.counts.append(f"{budget} tokens")
        yield unit


def _sample(
    documents: prunus.Documents, question: Question, budget: int, recipe: PrunerRecipe, seen: set[str]
) -> ChatSample | str:
    """Return a sample, or the reason why there is none.

    :param seen: the pages of smaller budgets, as the model reads them.
    """
    try:
        blocks = labels.pruned(documents, question.question, budget, recipe)
    except BadBudget:
        return "the budget holds no block"
    gold = labels.gold_blocks(blocks, question)
    if not gold:
        return "no block holds the answer"
    if len(blocks) < 2:
        return "a single block leaves nothing to choose"
    page = number(blocks, prompt=recipe.prompt)
    if page.html in seen:
        return "the page is no longer than a smaller budget"
    seen.add(page.html)
    target = labels.target_block(blocks, gold, question.question)
    messages = tuple(path_prompt(question.question, page.html, recipe.prompt))
    reply = (page.paths[target], content_of(blocks, target))
    return ChatSample(f"{question.id}@{budget}", "pruner", messages, reply, tuple(page.paths), tuple(gold))


def make(
    path: Path, wanted: Sequence[str], half: Half, budgets: Sequence[int], recipe: PrunerRecipe,
    progress: Callable[[int, int], None], limit: int | None = None, lost: dict[str, int] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write the samples of tasks; return the report. The same call writes the same bytes.

    :param limit: pages of each source at most.
    :param lost: questions without a page, by reason, for the report.
    :raises DataBroken: the file was made with other settings.
    """
    settings = {"tasks": list(wanted), "half": half, "budgets": list(budgets), "recipe": asdict(recipe)}
    with SampleFile(path, settings) as file:
        pages = [page for name in wanted for page in load(name, half, limit)]
        for done, page in enumerate(pages, 1):
            for unit in of_page([question for question in page if question.id not in file.done], budgets, recipe):
                file.add(unit)
            progress(done, len(pages))
        return file.finish(lambda rows: (rows, lost or {}))


def load(name: str, half: Half, limit: int | None = None) -> list[list[Question]]:
    """Return the questions of a source by page: a task of the evaluations, ``own:FILE``, or ``sets:FOLDER``.

    :param half: of a task; a file of your own and training sets are taken whole.
    :param limit: pages at most.
    """
    if name.startswith("sets:"):
        return list(islice(from_sets(Path(name.removeprefix("sets:"))), limit))
    found = tasks.load(name, "all") if name.startswith("own:") else tasks.load(name, half)
    return found[:limit]


def from_sets(folder: Path) -> Iterator[list[Question]]:
    """Yield the questions of each page of ``FOLDER/table_qa`` (WikiTableQuestions): whole articles and their tables.

    A question counts whose answer is in its table and in the visible page, and not in the question.
    """
    for page, questions in table_pages(folder):
        documents = one_page(page["html"])
        yield [
            Question(
                row["id"], "table_qa", page["page"], documents, row["question"], tuple(row["answers"]),
                gold_table=nth_table(page["html"], int(row["table_index"])),
            )
            for row in questions
        ]  # fmt: skip
