"""The tasks: sets of questions by name, one file a kind; see :class:`.task.Task`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from prunus.core.text.near import did_you_mean
from prunus_evals.errors import DataMissing, EvalError, MetricError, UnknownName
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import answers_survive, gold_table, table_survives
from prunus_evals.records import LeftOut, Output, Question, Reply
from prunus_evals.split import Wanted, digest, half
from prunus_evals.tasks import (  # noqa: F401 - they register tasks
    filings,
    long_texts,
    needle,
    own,
    pages,
    paragraphs,
    sentences,
)
from prunus_evals.tasks.task import TASKS, Page, Record, Task, Use, task
from prunus_evals.visible import html_text

T = TypeVar("T")
GROUPS = {"page_qa": ("websrc", "nq")}


def names() -> list[str]:
    """Return the names of all tasks, without variants."""
    return sorted(TASKS)


def about(name: str) -> Task:
    """Return what is known of a task, with the metrics of its variant.

    :raises UnknownName: there is no such task or variant.
    """
    base, _, variant = name.partition(":")
    if base not in TASKS:
        if base.endswith((".jsonl", ".json")):
            raise UnknownName(f"unknown task {name}; a file of questions of your own is named own:{name}")
        raise UnknownName.among("task", base, [*names(), *GROUPS])
    task = TASKS[base]
    if variant and variant not in task.variants and not task.path:
        known = f"its variants are: {', '.join(task.variants)}" if task.variants else "it has no variants"
        raise UnknownName(f"unknown variant {variant} of task {base}; {known}{did_you_mean(variant, task.variants)}")
    return replace(task, metrics=task.variant_metrics.get(_variant(name, task), task.metrics))


def expand(wanted: str) -> list[str]:
    """Return the task names of a comma-separated list of tasks and groups of tasks.

    :raises UnknownName: there is no such task.
    """
    found: list[str] = []
    for name in filter(None, (part.strip() for part in wanted.split(","))):
        if name not in GROUPS:
            about(name)
        found.extend(GROUPS.get(name, (name,)))
    return found


def check(name: str, metrics: Sequence[Metric]) -> None:
    """Check a file that a task is given, as far as can be known before anything is run.

    :param metrics: those that a run asks for by their names.
    :raises EvalError: the file is missing or wrong, or no question of it has what a metric compares with.
    """
    task = about(name)
    if task.check is None:
        return
    waiting = list(metrics)
    for question in task.check(_variant(name, task)):
        waiting = [metric for metric in waiting if not _applies(metric, question)]
    if waiting:
        raise MetricError(
            f"{waiting[0].name} applies to no question of {name}: give them what it compares with "
            "('answers', 'references' or 'evidence'), or take other metrics"
        )


def _applies(metric: Metric, question: Question) -> bool:
    """Return whether a question has what a metric compares with: an output that has everything gets a number."""
    ranking = tuple(document.id for document in question.documents)
    reply = Reply("text", "text", quotes=("text",), ranking=ranking, facts={"spans": []})
    return metric.score(question, Output(reply, "text", "text")) is not None


def checked(question: Question) -> Question | None:
    """Return a question if it is fair, else None.

    Its answers must be visible in the whole page, and no answer may occur in the question: else keeping words of the
    question would count as keeping evidence. A gold table in a hidden part of the page is dropped from the question.
    """
    if any(answers_survive([answer], question.question) for answer in question.answers):
        return None
    visible = html_text(question.html)
    if not answers_survive(question.answers, visible):
        return None
    if question.gold_table and not table_survives(gold_table(question.gold_table), visible)[0]:
        return replace(question, gold_table=None)
    return question


def groups(
    name: str,
    wanted: Wanted,
    limit: int | None = None,
    left_out: list[LeftOut] | None = None,
    count: Callable[[int], None] | None = None,
) -> Iterator[list[Question]]:
    """Yield the questions of a task by page, one page at a time.

    Pages are in the order of their keys' digests, so that a limit (in pages) takes a sample that does not depend on
    the order of the file. A page of a task with ``pages`` is read when its turn comes. The task of a question is the
    name that was asked for.

    :param name: a task, with a variant after a colon where it has several.
    :param left_out: takes the questions of these pages that are not asked.
    :param count: told the number of pages at most, before the first.
    :raises UnknownName: there is no such task or variant.
    :raises DataMissing: the data is not here; the message says where it comes from.
    :raises DataWrong: the data is not in its format; the message names file and line.
    """
    task = about(name)
    left = [] if left_out is None else left_out
    listed = sorted(_pages(task, name, wanted), key=lambda page: digest(page[0]))
    if count is not None:
        count(len(listed) if limit is None else min(limit, len(listed)))
    yielded = 0
    for _, read in listed:
        if limit is not None and yielded >= limit:
            break
        questions: list[Question] = []
        for record in _sourced(task, read):
            fair = checked(record) if task.checked and isinstance(record, Question) else record
            if isinstance(fair, Question):
                questions.append(fair if fair.task == name else replace(fair, task=name))
            else:
                left.append(fair or LeftOut(record.page, _id(record), "its answer is hidden, or in the question"))
        if questions:
            yielded += 1
            yield questions


def _pages(task: Task, name: str, wanted: Wanted) -> list[Page]:
    """Return the pages of a half, in the order of the file.

    :raises DataMissing: the data is not here; the message says where it comes from.
    """

    def use(key: str) -> bool:
        return wanted in ("all", half(key))

    def read() -> list[Any]:
        return list(task.read(use, _variant(name, task)))

    records = _sourced(task, read)
    if task.by_page:
        return records
    by_key: dict[str, list[Record]] = {}
    for record in records:
        by_key.setdefault(record.page, []).append(record)
    return [(key, own_records.copy) for key, own_records in by_key.items()]


def _sourced(task: Task, read: Callable[[], Sequence[T]]) -> list[T]:
    """Return what a function reads; an error about missing data says where the data comes from."""
    try:
        return list(read())
    except DataMissing as error:
        if not task.files:
            raise
        raise DataMissing(f"{error}; source: {task.source}") from error


def _id(record: Record) -> str:
    return record.id if isinstance(record, Question) else record.question


def load(name: str, wanted: Wanted, limit: int | None = None) -> list[list[Question]]:
    """Return the questions of a task by page; see :func:`groups`."""
    return list(groups(name, wanted, limit))


def _variant(name: str, task: Task) -> str:
    return name.partition(":")[2] or next(iter(task.variants), "")


@task(
    "wrong_page",
    title="questions of another task, asked of a wrong page",
    metrics=("turned_away",),
    files=("page_qa/nq.jsonl.xz|table_qa/pages.jsonl.xz|page_qa/websrc.jsonl.xz|multilingual/xquad_de.jsonl.xz",),
    source="that of the other task",
    variants=("nq", "table_qa", "websrc", "xquad:de", "xquad:zh"),
)
def wrong_page(use: Use, variant: str = "") -> Iterator[Question]:
    """Questions of another task, each asked of the next page of its half: the best answer is none.

    The next page is that in the order of the keys' digests, after the last the first. It may hold the answer by chance.
    """
    own_pages = [page for page in groups(variant, "all") if use(page[0].page)]
    for page, following in zip(own_pages, [*own_pages[1:], *own_pages[:1]], strict=True):
        if len(own_pages) > 1:  # a single page is no wrong one
            for question in page:
                yield replace(
                    question,
                    task=f"wrong_page:{variant}",
                    documents=following[0].documents,
                    gold=(),
                    gold_table=None,
                    element_id=None,
                    labels={**question.labels, "page": "wrong"},
                )


TOGETHER = 20
"""Pages of a question of ``many_pages``."""


@task(
    "many_pages",
    title="questions of another task, each asked of twenty pages at once; for costs",
    metrics=("answer",),
    files=("table_qa/pages.jsonl.xz|page_qa/nq.jsonl.xz",),
    source="that of the other task",
    variants=("table_qa", "nq"),
)
def many_pages(use: Use, variant: str = "table_qa") -> Iterator[Question]:
    """Questions of another task, each asked of its page and of the nineteen that follow it in its half.

    The order is that of the keys' digests. No page stands in two questions, so that no vector is known from an earlier
    one. The pages stand for the results of a search; most are longer than those, since they are whole articles.

    :raises EvalError: the half has fewer pages.
    """
    firsts = [page[0] for page in groups(variant, "all") if use(page[0].page)]
    if len(firsts) < TOGETHER:
        raise EvalError(f"{variant} has {len(firsts)} pages, not {TOGETHER}: take the other half, or another set")
    for start in range(0, len(firsts) - TOGETHER + 1, TOGETHER):
        group = firsts[start : start + TOGETHER]
        documents = [replace(one, id=f"{n}-{one.id}") for n, page in enumerate(group) for one in page.documents]
        yield replace(
            group[0],
            id=f"{group[0].id} of {TOGETHER} pages",
            task=f"many_pages:{variant}",
            documents=tuple(documents),
            gold=(),
            gold_table=None,
            element_id=None,
        )
