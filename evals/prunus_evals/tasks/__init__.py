"""The tasks of questions about a given page, one file each; the file's name is the task's name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace

from prunus_evals.errors import UnknownName
from prunus_evals.metrics import answers_survive, gold_table, table_survives
from prunus_evals.records import Question
from prunus_evals.split import Half, digest, half
from prunus_evals.visible import html_text

GROUPS = {"page_qa": ("websrc", "nq")}


def names() -> list[str]:
    """Return the names of all question tasks."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")


def expand(wanted: str) -> list[str]:
    """Return the task names of a comma-separated list of tasks and groups of tasks.

    :raises UnknownName: there is no such task.
    """
    found: list[str] = []
    for name in filter(None, (part.strip() for part in wanted.split(","))):
        if name not in GROUPS and name not in names():
            known = ", ".join([*names(), *GROUPS])
            raise UnknownName(f"unknown task {name}; the tasks are: {known}")
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


def load(name: str, wanted: Half, limit: int | None = None) -> list[list[Question]]:
    """Return the fair questions of a task's half, grouped by page.

    Pages are in the order of their keys' digests, so that a limit (in pages) takes a sample that does not depend on
    the order of the file.
    """
    module = importlib.import_module(f"{__name__}.{name}")
    pages: dict[str, list[Question]] = {}
    records: Iterator[Question] = module.questions(lambda key: half(key) == wanted)
    for record in records:
        pages.setdefault(record.page, []).append(record)
    groups: list[list[Question]] = []
    for key in sorted(pages, key=digest):
        if limit is not None and len(groups) >= limit:
            break
        fair = [record for record in map(checked, pages[key]) if record is not None]
        if fair:
            groups.append(fair)
    return groups
