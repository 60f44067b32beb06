"""Training samples of the generative pruner (HtmlRAG §3.4.2, "Training a Path-aware Generative Model").

For each question, its page is cleaned, pruned by the first stage to several budgets, and cut into finer blocks; the
block that holds the gold answer is the target. A question whose answer is in no block is left out, as in the paper,
and listed beside the samples.

A sample is one line of JSON: the prompt in its two parts (page first, question last), the numbered paths of all
blocks, the blocks that hold the answer, and the completion (path, then content).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import prunus
from prunus.core.errors import BadBudget
from prunus_evals import labels, tasks
from prunus_evals.labels import PUBLISHED, Recipe
from prunus_evals.records import Document, Question, one_page
from prunus_evals.split import Half
from prunus_evals.tasks.table_qa import nth_table
from prunus_train.data.form import content, form_of
from prunus_train.data.sets import table_pages
from prunus_train.data.sheet import rows_of, same_settings, write_whole
from prunus_train.errors import DataBroken

BUDGETS = (2048, 4096, 8192)
"""Tokens to prune pages to; the paper's samples have 2K to 32K tokens."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One question about one pruned page.

    :param id: id of the question, with the budget, as ``nq#1@2048``.
    :param page_part, question_part: the prompt in two parts, tokenized separately so that a page is read once.
    :param paths: paths of all blocks, in document order.
    :param gold: indexes of the blocks that hold the answer.
    :param target: index of the block whose path is taught.
    :param content: HTML of the target; follows the path in training as an extra signal.
    """

    id: str
    task: str
    page: str
    budget: int
    question: str
    answers: Sequence[str]
    page_part: str
    question_part: str
    paths: Sequence[str]
    gold: Sequence[int]
    target: int
    content: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A question that gives no sample, and the reason."""

    id: str
    reason: str


def of_page(
    questions: Sequence[Question], budgets: Sequence[int], recipe: Recipe = PUBLISHED
) -> Iterator[Sample | LeftOut]:
    """Yield a sample, or the reason why there is none, for each question about one page and each budget."""
    read: tuple[Sequence[Document], prunus.Documents] | None = None
    for question in questions:
        if read is None or read[0] != question.documents:
            pages = [prunus.Page(content=one.content, media_type=one.media_type) for one in question.documents]
            read = (question.documents, prunus.read(pages))
        documents = read[1]
        seen: set[str] = set()
        for budget in budgets:
            yield _sample(documents, question, budget, recipe, seen)


def _sample(
    documents: prunus.Documents, question: Question, budget: int, recipe: Recipe, seen: set[str]
) -> Sample | LeftOut:
    identity = f"{question.id}@{budget}"
    try:
        blocks = labels.pruned(documents, question.question, budget, recipe)
    except BadBudget:
        return LeftOut(identity, "the budget holds no block")
    gold = labels.gold_blocks(blocks, question)
    if not gold:
        return LeftOut(identity, "no block holds the answer")
    if len(blocks) < 2:
        return LeftOut(identity, "a single block leaves nothing to choose")
    form = form_of(blocks, recipe.prompt)
    if form.page_part in seen:
        return LeftOut(identity, "the page is no longer than a smaller budget")
    seen.add(form.page_part)
    target = labels.target_block(blocks, gold, question.question)
    return Sample(
        id=identity,
        task=question.task,
        page=question.page,
        budget=budget,
        question=question.question,
        answers=question.answers,
        page_part=form.page_part,
        question_part=form.question_part(question.question),
        paths=form.paths,
        gold=gold,
        target=target,
        content=content(blocks, target),
    )


@dataclass(frozen=True, slots=True)
class Made:
    """The number of samples and of questions left out in the files, with those of earlier runs."""

    samples: int
    left_out: int


def make(
    path: Path,
    wanted: Sequence[str],
    half: Half = "dev",
    budgets: Sequence[int] = BUDGETS,
    recipe: Recipe = PUBLISHED,
    progress: Callable[[int, int], None] | None = None,
    limit: int | None = None,
) -> Made:
    """Write the samples of tasks as JSONL, and the questions that are left out beside them (``PATH.left_out``).

    Pages are in a fixed order, so that the same call writes the same bytes; after a stop, the same call resumes.

    :param limit: pages of each source at most.
    :raises DataBroken: the file was made with other settings.
    """
    beside = path.with_name(f"{path.name}.left_out")
    same_settings(path, {"tasks": list(wanted), "half": half, "budgets": list(budgets), "recipe": asdict(recipe)})
    done = {row["id"] for part in (path, beside) for row in rows_of(part)}
    pages = [page for name in wanted for page in load(name, half, limit)]
    counts = [0, 0]
    with path.open("a", encoding="utf-8") as samples, beside.open("a", encoding="utf-8") as left_out:
        for number, page in enumerate(pages, 1):
            missing = [question for question in page if any(f"{question.id}@{size}" not in done for size in budgets)]
            for row in of_page(missing, budgets, recipe) if missing else ():
                if row.id not in done:
                    out = samples if isinstance(row, Sample) else left_out
                    out.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            samples.flush()
            left_out.flush()
            if progress is not None:
                progress(number, len(pages))
    for place, part in enumerate((path, beside)):
        counts[place] = sum(1 for _ in read(part))
    return Made(*counts)


def report_of(path: Path, more: Mapping[str, int]) -> dict[str, Any]:
    """Write ``PATH.report.json``, and return it: the samples, and what is left out by reason.

    :param more: questions without a page, by reason.
    """
    reasons = Counter(row["reason"] for row in read(path.with_name(f"{path.name}.left_out"))) + Counter(more)
    budgets = Counter(f"{row['budget']} tokens" for row in read(path))
    report = {"samples": budgets.total(), "left_out": dict(sorted(reasons.items())), "counts": dict(budgets)}
    write_whole(path.with_name(f"{path.name}.report.json"), json.dumps(report, indent=1) + "\n")
    return report


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


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of samples.

    :raises DataBroken: there is no such file.
    """
    if not path.is_file():
        raise DataBroken(f"{path} is not a file of samples; `prunus train data pruner` writes one")
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
