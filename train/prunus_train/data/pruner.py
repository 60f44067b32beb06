"""Samples of the generative pruner (HtmlRAG §3.4.2, "Training a Path-aware Generative Model").

For each question, its page is cleaned, pruned by the first stage to several budgets, and cut into finer blocks; the
block that holds the gold answer is the target. A question whose answer is in no block is left out, as in the paper.

A sample is the prompt that inference sends, the numbered paths of all blocks, the indexes of those that hold the
answer, and the reply: the path of the target, then its content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import prunus
from prunus.core.errors import BadBudget, PrunusError
from prunus.evidence.numbered_paths import content_of, number, path_prompt
from prunus.pages.clean.parse import source_text
from prunus.pages.sources import is_address
from prunus_evals import labels, tasks
from prunus_evals.data import Lines, Row
from prunus_evals.errors import DataWrong
from prunus_evals.labels import PUBLISHED, PrunerRecipe
from prunus_evals.records import Document, Question, one_page
from prunus_evals.split import Half, digest
from prunus_evals.tasks.pages import nth_table
from prunus_train.data.sample_file import SampleFile, SampleUnit, rows_of
from prunus_train.data.sets import table_pages
from prunus_train.errors import DataBroken, TrainError
from prunus_train.llm.samples import ChatSample, as_row

FAILURES = 5
"""After so many failed searches one after another a provider counts as out of reach."""


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
    paths, right = tuple(page.paths), tuple(gold)
    return ChatSample(f"{question.id}@{budget}", "pruner", messages, reply, paths, right, recipe.prompt)


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


# --- pages for bare questions: HtmlRAG takes questions of open sets, each with a couple of pages of a search engine ---


def gather(
    bare: Path, out: Path, provider: str, count: int, progress: Callable[[int, int], None]
) -> tuple[int, dict[str, int]]:
    """Write a file for ``own:OUT`` with the pages of each question; return the questions and what has no page.

    A killed call goes on: what was found is never searched again.

    :param bare: JSON lines with ``question`` and ``answers``, as ``{"question": "…", "answers": ["…"]}``.
    :param provider: spec of a search provider.
    :param count: pages of a question at most.
    :raises DataBroken: a line is wrong; the message names it.
    :raises TrainError: the provider cannot be reached.
    """
    questions = _questions(bare)
    beside = out.with_name(f"{out.name}.none")
    done = {row["id"] for path in (out, beside) for row in rows_of(path)}
    failed, skipped = 0, 0
    with out.open("a", encoding="utf-8") as found, beside.open("a", encoding="utf-8") as none:
        for number, (identity, question, answers) in enumerate(questions, 1):
            if identity not in done:
                try:
                    pages = _pages(question, provider, count)
                    failed = 0
                except PrunusError as error:
                    failed, skipped = failed + 1, skipped + 1
                    if failed >= min(FAILURES, len(questions)):
                        raise TrainError(f"{error}; what was found is kept: run the same command to go on") from error
                    progress(number, len(questions))
                    continue
                row: dict[str, Any] = {"id": identity, "question": question, "answers": answers, "pages": pages}
                file = found if pages else none
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                done.add(identity)  # the same question may stand in two lines
            progress(number, len(questions))
    lost = {"the search found no page": len(rows_of(beside)), "the search failed": skipped}
    return len(rows_of(out)), {reason: count for reason, count in lost.items() if count}


def _questions(path: Path) -> list[tuple[str, str, list[Any]]]:
    try:
        found = [_question(row) for _, row in Lines(path)]
    except DataWrong as error:
        raise DataBroken(str(error)) from error
    if not found:
        raise DataBroken(f'{path} holds no question; a line is {{"question": "…", "answers": ["…"]}}')
    return found


def _question(row: Row) -> tuple[str, str, list[Any]]:
    text, answers = row.text("question"), row.items_of("answers")
    if not text.strip() or not answers:
        raise row.wrong("a question has a text and at least one answer")
    return row.name("id") if "id" in row else digest(text)[:12], text, answers


def _pages(question: str, provider: str, count: int) -> list[dict[str, str]]:
    """Return the first pages of a search that can be read as HTML."""
    pages: list[dict[str, str]] = []
    for hit in prunus.search(question, provider).hits:
        if len(pages) == count:
            break
        seen: list[prunus.Page] = []
        try:
            prunus.read(hit.url if is_address(hit.url) else Path(hit.url), done=seen.append)
        except PrunusError:
            continue  # a page that cannot be read is none; the next hit takes its place
        content = seen[0].content if seen else b""
        text = source_text(content) if isinstance(content, bytes) else content
        if text.strip() and "<" in text:
            pages.append({"html": text, "url": hit.url, "title": hit.title})
    return pages
