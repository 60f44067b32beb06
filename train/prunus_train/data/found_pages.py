"""Pages for bare questions and answers: found by a search, and kept with their questions in a file of your own.

HtmlRAG makes its samples so (§3.4.2): questions of open sets, each with a couple of pages of a search engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import prunus
from prunus.core.errors import PrunusError
from prunus.pages.clean.parse import source_text
from prunus.pages.sources import is_address
from prunus_evals.data import Lines, Row
from prunus_evals.errors import DataWrong
from prunus_evals.split import digest
from prunus_train.data.sample_file import rows_of
from prunus_train.errors import DataBroken, TrainError

FAILURES = 5
"""After so many failed searches one after another a provider counts as out of reach."""


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
