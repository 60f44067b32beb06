"""The tasks, one file each; the file's name is the task's name.

A file has ``ABOUT`` (an :class:`.records.About`) and ``questions(use, variant)``, which yields the questions of the
pages for whose key ``use`` is true; ``variant`` is one of ``ABOUT.variants``, or ''. A file whose pages do not fit into
memory together has ``pages(use, variant)`` instead: it yields each page's key with a function that reads the page's
questions. In both, a question that is not asked is yielded as a :class:`.records.LeftOut`.

Where a file sets ``CHECKED``, questions that are not fair are left out; see :func:`checked`. Where it has ``METRICS``,
these are the metrics of some of its variants. Where it has ``GIVEN``, a path stands in place of a variant, and
``check(variant)`` yields all questions before anything is run; see :func:`check`.
"""

from __future__ import annotations

import heapq
import importlib
import pkgutil
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

from prunus.core.text.near import did_you_mean
from prunus_evals.errors import MetricError, UnknownName
from prunus_evals.records import About, LeftOut, Output, Question, Reply
from prunus_evals.split import Wanted, digest, half

if TYPE_CHECKING:
    from prunus_evals.metrics import Metric

Asked = Question | LeftOut
"""What a task yields."""

GROUPS = {"page_qa": ("websrc", "nq")}


def names() -> list[str]:
    """Return the names of all tasks, without variants."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")


def shown(name: str) -> str:
    """Return the name of a task as lists show it: with what it is given, as ``own:FILE``."""
    file = getattr(_module(name), "GIVEN", "")
    return f"{name}:{file}" if file else name


def about(name: str) -> About:
    """Return what is known of a task, with the metrics of its variant.

    :raises UnknownName: there is no such task or variant.
    """
    module = _module(name)
    found: About = module.ABOUT
    return replace(found, metrics=getattr(module, "METRICS", {}).get(_variant(name, module), found.metrics))


def expand(wanted: str) -> list[str]:
    """Return the task names of a comma-separated list of tasks and groups of tasks.

    :raises UnknownName: there is no such task.
    """
    found: list[str] = []
    for name in filter(None, (part.strip() for part in wanted.split(","))):
        if name not in GROUPS:
            _module(name)
        found.extend(GROUPS.get(name, (name,)))
    return found


def check(name: str, metrics: Sequence[Metric]) -> None:
    """Check a file that a task is given, as far as can be known before anything is run.

    :param metrics: those that a run asks for by their names.
    :raises EvalError: the file is missing or wrong, or no question of it has what a metric compares with.
    """
    module = _module(name)
    if not hasattr(module, "GIVEN"):
        return
    waiting = list(metrics)
    for question in module.check(_variant(name, module)):
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
    from prunus_evals.metrics.matching import answers_survive, gold_table, table_survives  # here: they need the extra
    from prunus_evals.visible import html_text

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
    module = _module(name)
    check = checked if getattr(module, "CHECKED", False) else None
    left = [] if left_out is None else left_out
    pages = sorted(_pages(module, name, wanted), key=lambda page: digest(page[0]))
    if count is not None:
        count(len(pages) if limit is None else min(limit, len(pages)))
    found = 0
    for _, read in pages:
        if limit is not None and found >= limit:
            break
        asked: list[Question] = []
        for record in read():
            fair = check(record) if check and isinstance(record, Question) else record
            if isinstance(fair, Question):
                asked.append(fair if fair.task == name else replace(fair, task=name))
            else:
                left.append(fair or LeftOut(record.page, _id(record), "its answer is hidden, or in the question"))
        if asked:
            found += 1
            yield asked


Page = tuple[str, Callable[[], Sequence[Asked]]]
"""The key of a page, and a function that reads its questions."""


def _pages(module: ModuleType, name: str, wanted: Wanted) -> Iterator[Page]:
    """Yield the pages of a half, in the order of the file."""

    def use(key: str) -> bool:
        return wanted in ("all", half(key))

    variant = _variant(name, module)
    if hasattr(module, "pages"):
        yield from module.pages(use, variant)
        return
    pages: dict[str, list[Asked]] = {}
    for record in module.questions(use, variant):
        pages.setdefault(record.page, []).append(record)
    for key, records in pages.items():
        yield key, records.copy


def _id(record: Asked) -> str:
    return record.id if isinstance(record, Question) else record.question


def sample(keys: Iterable[str], number: int) -> set[str]:
    """Return a sample of keys that depends on nothing but the keys: those with the smallest digests.

    The digests are not those that decide halves and order, so that halves are drawn alike.
    """
    return set(heapq.nsmallest(number, set(keys), key=lambda key: digest(f"sample\0{key}")))


def seeded_by(key: str) -> random.Random:
    """Return a source of random numbers that depends on nothing but the key."""
    return random.Random(digest(key))


def load(name: str, wanted: Wanted, limit: int | None = None) -> list[list[Question]]:
    """Return the questions of a task by page; see :func:`groups`."""
    return list(groups(name, wanted, limit))


def _variant(name: str, module: ModuleType) -> str:
    return name.partition(":")[2] or next(iter(module.ABOUT.variants), "")


def _module(name: str) -> ModuleType:
    """Return the file of a task.

    :raises UnknownName: there is no such task or variant.
    """
    base, _, variant = name.partition(":")
    if base not in names():
        if base.endswith((".jsonl", ".json")):
            raise UnknownName(f"unknown task {name}; a file of questions of your own is named own:{name}")
        raise UnknownName.among("task", base, [*names(), *GROUPS])
    module = importlib.import_module(f"{__name__}.{base}")
    variants = module.ABOUT.variants
    if variant and variant not in variants and not hasattr(module, "GIVEN"):
        known = f"its variants are: {', '.join(variants)}" if variants else "it has no variants"
        raise UnknownName(f"unknown variant {variant} of task {base}; {known}{did_you_mean(variant, variants)}")
    return module
