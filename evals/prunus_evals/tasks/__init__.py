"""The tasks, one file each; the file's name is the task's name.

A file has ``ABOUT`` (an :class:`.records.About`) and ``questions(use, variant)``, which yields the questions of the
pages for whose key ``use`` is true; ``variant`` is one of ``ABOUT.variants``, or ''. Where a file sets ``CHECKED``,
questions that are not fair are left out; see :func:`checked`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType

from prunus_evals.errors import UnknownName
from prunus_evals.metrics.matching import answers_survive, gold_table, table_survives
from prunus_evals.records import About, Question
from prunus_evals.split import Wanted, digest, half
from prunus_evals.visible import html_text

GROUPS = {"page_qa": ("websrc", "nq")}


def names() -> list[str]:
    """Return the names of all tasks, without variants."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")


def about(name: str) -> About:
    """Return what is known of a task.

    :raises UnknownName: there is no such task.
    """
    found: About = _module(name).ABOUT
    return found


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
    name: str, wanted: Wanted, limit: int | None = None, left_out: list[Question] | None = None
) -> Iterator[list[Question]]:
    """Yield the questions of a task by page, one page at a time.

    Pages are in the order of their keys' digests, so that a limit (in pages) takes a sample that does not depend on
    the order of the file.

    :param name: a task, with a variant after a colon where it has several.
    :param left_out: gets the questions that are not fair, see :func:`checked`.
    :raises UnknownName: there is no such task or variant.
    :raises DataMissing: the data is not here; the message says where it comes from.
    """
    module = _module(name)
    variant = name.partition(":")[2] or next(iter(module.ABOUT.variants), "")
    make: Callable[[Callable[[str], bool], str], Iterator[Question]] = module.questions
    pages: dict[str, list[Question]] = {}
    for record in make(lambda key: wanted in ("all", half(key)), variant):
        pages.setdefault(record.page, []).append(record)
    found = 0
    for key in sorted(pages, key=digest):
        if limit is not None and found >= limit:
            break
        asked = pages[key]
        kept = [checked(record) for record in asked] if getattr(module, "CHECKED", False) else asked
        fair = [record for record in kept if record is not None]
        if left_out is not None:
            left_out += [record for record, same in zip(asked, kept, strict=True) if same is None]
        if fair:
            found += 1
            yield fair


def load(name: str, wanted: Wanted, limit: int | None = None) -> list[list[Question]]:
    """Return the questions of a task by page; see :func:`groups`."""
    return list(groups(name, wanted, limit))


def _module(name: str) -> ModuleType:
    """Return the file of a task.

    :raises UnknownName: there is no such task or variant.
    """
    base, _, variant = name.partition(":")
    if base not in names():
        raise UnknownName(f"unknown task {base}; the tasks are: {', '.join([*names(), *GROUPS])}")
    module = importlib.import_module(f"{__name__}.{base}")
    variants = module.ABOUT.variants
    if variant and variant not in variants:
        known = f"its variants are: {', '.join(variants)}" if variants else "it has no variants"
        raise UnknownName(f"unknown variant {variant} of task {base}; {known}")
    return module
