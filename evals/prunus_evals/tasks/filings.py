"""Questions about the annual and quarterly reports of companies, as PDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import prunus
from prunus_evals.data import Lines, Row, find
from prunus_evals.records import Document, LeftOut, Question
from prunus_evals.tasks.task import Page, Record, Use, task

FOLDER = "sets/financebench"
QUESTIONS = f"{FOLDER}/data/financebench_open_source.jsonl"

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_CELL = re.compile(r"[\s$€£¥()%*.–—-]*(?:\d[\d,.]*)?[\s$€£¥()%*]*")
"""A line that is a cell of a table: a number with its signs, or an empty one."""

_ROW = re.compile(r"(.*?[^\W\d_][^\d]*?)((?:[\s$€£¥()-]+\d[\d,.]*[)%]*)+)\s*")
"""A line that is a label and the numbers behind it."""

_DOLLARS = re.compile(r"\$(\d{1,12})\.0+")

_NAMED = re.compile(r"(?:line item named|line item name, as seen in the 10K, was): (.+?)\.(?=\s|$)", re.MULTILINE)


@task(
    "financebench",
    title="questions about whole filings of companies, read from PDF",
    metrics=("line_items", "gold_recall_3grams"),
    files=(QUESTIONS,),
    source="FinanceBench, a clone of patronus-ai/financebench as it is, CC BY-NC 4.0",
    by_page=True,
)
def financebench(use: Use, variant: str = "") -> Iterator[Page]:
    """FinanceBench: questions about annual and quarterly reports, each about one PDF of up to some hundred pages.

    Gold are the rows of tables that the answer needs, and the evidence that annotators chose. A row of the evidence is
    needed where the justification names its label as a line item, or computes with one of its numbers.
    """
    by_filing: dict[str, list[Row]] = {}
    for _, row in Lines(find(QUESTIONS)):
        by_filing.setdefault(row.text("doc_name"), []).append(row)
    for name, asked in by_filing.items():
        if use(name):
            yield name, partial(_read, name, asked)


def _read(name: str, asked: Sequence[Row]) -> Sequence[Record]:
    path = find(FOLDER) / "pdfs" / f"{name}.pdf"
    if not path.is_file():
        return [LeftOut(name, row.text("financebench_id"), "its filing is not in the folder pdfs") for row in asked]
    documents = (Document(name, prunus.clean(path)),)
    return [
        Question(
            id=row.text("financebench_id"),
            task="financebench",
            page=name,
            documents=documents,
            question=row.text("question"),
            references=tuple(_spellings(row.text("answer"))),
            evidence=tuple(_evidence(row)),
            table_rows=tuple(needed_rows(row)),
            labels={"type": row.text("question_type")},
        )
        for row in asked
    ]


def _spellings(answer: str) -> Iterator[str]:
    """Yield an answer, and an amount of whole dollars also as filings and readers write it."""
    yield answer
    if amount := _DOLLARS.fullmatch(answer):
        yield f"{int(amount[1]):,}"


def _evidence(row: Row) -> list[str]:
    return [part.text("evidence_text") for part in row.rows("evidence")]


def needed_rows(row: Row) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the evidence that the answer needs, each as its label and its numbers."""
    justification = (row["justification"] or "").replace("\xc2", "")  # a no-break space that was decoded wrongly
    named = {_letters(name) for name in _NAMED.findall(justification)}
    computed = {_value(number) for number in _NUMBER.findall(f"{justification} {row.text('answer')}") if _tells(number)}
    seen: set[str] = set()
    for text in _evidence(row):
        for label, *numbers in table_rows(text):
            key = _letters(label)
            needed = key in named if named else any(_tells(number) and _value(number) in computed for number in numbers)
            if needed and key not in seen:
                seen.add(key)
                yield label, *numbers


def table_rows(text: str) -> list[tuple[str, ...]]:
    """Return the rows of a text that was copied out of a PDF: cells stand in lines of their own, or behind the label.

    A row that is longer than most is cut: a row without a label follows it.
    """
    found: list[list[str]] = []
    label = ""
    for line in filter(None, map(str.strip, text.split("\n"))):
        if _CELL.fullmatch(line):
            if label:
                found.append([label])
                label = ""
            if found:
                found[-1] += _NUMBER.findall(line)
        elif row := _ROW.fullmatch(line):
            found.append([row[1].strip(), *_NUMBER.findall(row[2])])
            label = ""
        else:
            label = line
    rows = [row for row in found if len(row) > 1]
    usual = Counter(map(len, rows)).most_common(1)
    return [tuple(row[: usual[0][0]]) for row in rows]


def _tells(number: str) -> bool:
    """Return whether a number tells its row from others: it has three digits and is no year."""
    return len(re.findall(r"\d", number)) > 2 and not re.fullmatch(r"(?:19|20)\d\d", number)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
