"""The files of training sets: whole pages with tables (``table_qa``), and documents as lists of units (``text``)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from prunus_evals.data import Row, rows
from prunus_evals.split import digest

_ROWS: Final = frozenset({"row+passage", "paragraph+row"})


def check_files(sets: Path, texts: Sequence[str]) -> None:
    """Look for the files of ``table_qa`` and of sets of texts before the work of minutes.

    :raises DataMissing: one is missing.
    """
    for name in ("table_qa/questions", "table_qa/pages", *(f"text/{name}" for name in texts)):
        next(rows(name, sets), None)


def table_pages(sets: Path, few: int | None = None) -> Iterator[tuple[Row, list[Row]]]:
    """Yield each page of ``table_qa`` that has questions, and these.

    A question counts if its answer is in the gold table and in the visible page, and not in the question.

    :param few: questions of a page at most, drawn by the digests of their ids; None: all, as they stand in the file.
    """
    questions: dict[str, list[Row]] = {}
    for row in rows("table_qa/questions", sets):
        if row["in_gold_table"] and row["in_visible_text"] and not row["answer_in_question"]:
            questions.setdefault(row["page"], []).append(row)
    for page in rows("table_qa/pages", sets):
        if page["page"] in questions:
            own = questions[page["page"]]
            yield page, own if few is None else sorted(own, key=lambda row: digest(row["id"]))[:few]


def english_documents(name: str, sets: Path, share: float, size: int, few: int) -> list[list[Any]]:
    """Return the first English documents of a set of texts, each as the rows of some of its questions.

    :param share: of the documents.
    :param size: documents at the share 1.
    :param few: questions of a document at most.
    """
    english = (row for row in rows(f"text/{name}", sets) if row["lang"] == "en")
    found: list[list[Any]] = []
    for _, of_one in groupby(english, key=lambda row: row["units"][:3]):
        questions = list(of_one)
        if is_used(str(questions[0]["id"]), share):
            found.append(sorted(questions, key=lambda row: digest(str(row["id"])))[:few])
        if len(found) >= max(1, round(size * share)):
            break
    return found


def with_rows(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document whose units are all rows of tables as one of that kind, others as they are."""
    if document["kind"] in _ROWS and document["units"] and all(" | " in unit for unit in document["units"]):
        return {**document, "kind": "row"}
    return document


def page_of(documents: Sequence[Mapping[str, Any]], *, split_rows: bool = False) -> str:
    """Return a page of one document, or of several with a heading each.

    :param split_rows: whether units that are rows become tables among the paragraphs, under the document's heading;
        otherwise all units of a document of rows are one table.
    """
    several = len(documents) > 1
    title = "Articles" if several else html.escape(documents[0]["title"] or "")
    body = "".join(_body(document, several, split_rows) for document in documents)
    return f"<!DOCTYPE html><title>{title}</title><h1>{title}</h1>{body}"


def _body(document: Mapping[str, Any], several: bool, split_rows: bool) -> str:
    """Return the units of a document as HTML: sentences of one paragraph, rows of tables, or paragraphs."""
    units, kind = [html.escape(unit) for unit in document["units"]], document["kind"]
    title = html.escape(document["title"] or "")
    lead = f"<h2>{title}</h2>" if title and several else ""
    if kind.startswith("sentence"):
        return f"{lead}<p>{' '.join(units)}</p>"

    def is_row(pair: tuple[str, str]) -> bool:
        return kind in ("row", "paragraph") and " | " in pair[1] if split_rows else kind == "row"

    heads = [html.escape(head) for head in document.get("heads") or [""] * len(units)]
    parts = [lead] if split_rows else []
    for table, pairs in groupby(zip(heads, units, strict=True), key=is_row):
        if table:
            lines = [f"<tr><td>{unit.replace(' | ', '<td>')}" for _, unit in pairs]
            parts.append(f"<table>{lines[0].replace('<td>', '<th>')}{''.join(lines[1:])}</table>")
        else:
            parts += [(f"<h2>{head}</h2>" if head else "") + f"<p>{unit}</p>" for head, unit in pairs]
    return "".join(parts)


def is_used(key: str, share: float) -> bool:
    """Tell whether a document belongs to a share of a set; a larger share holds a smaller one."""
    return int(digest(key)[2:6], 16) < share * 65536


def letters(text: str) -> str:
    """Return the letters and digits of a text alone, by which units are found in pages."""
    return re.sub(r"\W+", "", text)
