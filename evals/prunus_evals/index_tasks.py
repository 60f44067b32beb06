"""The data of task ``index``: questions with gold spans in meetings (QMSum) and in foreign articles (XQuAD).

The index holds all documents; only the questions of one half count. ``qmsum`` retrieves from the question's own
meeting, ``qmsum_all`` from all meetings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prunus_evals.data import rows
from prunus_evals.errors import UnknownName
from prunus_evals.split import Half, half
from prunus_evals.tasks import qmsum, xquad

LANGUAGES = ("zh", "ar", "de")
TASKS = ("qmsum", "qmsum_all", *(f"xquad_{language}" for language in LANGUAGES))
BUDGETS = (300, 1000, 2000)


@dataclass(frozen=True, slots=True)
class IndexQuestion:
    """A question and the place of its evidence.

    :param page: the bootstrap draws all questions of a page together.
    :param document: id of the document that holds the evidence.
    :param spans: start and end of the evidence in the document, in code points.
    """

    page: str
    question: str
    document: str
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Task:
    """The documents and questions of a task.

    :param documents: text by id.
    :param within: whether to retrieve only from the question's own document.
    """

    name: str
    documents: Mapping[str, str]
    language: str
    questions: Sequence[IndexQuestion]
    within: bool


def load(name: str, wanted: Half, limit: int | None = None) -> Task:
    """Return a task with the questions of one half.

    :param limit: number of questions, taken evenly over the pages; None takes all.
    :raises UnknownName: there is no such task.
    """
    if name in ("qmsum", "qmsum_all"):
        documents, questions = _qmsum(wanted)
    elif name in TASKS:
        documents, questions = _xquad(name, wanted)
    else:
        raise UnknownName(f"unknown task {name}; the tasks are: {', '.join(TASKS)}")
    language = name.removeprefix("xquad_") if name.startswith("xquad_") else "en"
    return Task(name, documents, language, _evenly(questions, limit), within=name == "qmsum")


def _evenly(questions: list[IndexQuestion], number: int | None) -> list[IndexQuestion]:
    """Return ``number`` questions at even distances, the same on every run."""
    if number is None or number >= len(questions):
        return questions
    return [questions[place * len(questions) // number] for place in range(number)]


def _qmsum(wanted: Half) -> tuple[dict[str, str], list[IndexQuestion]]:
    """Return meetings as lines, one per turn, and questions; the evidence is the turns that people marked."""
    documents: dict[str, str] = {}
    questions: list[IndexQuestion] = []
    for row in rows(qmsum.DATA):
        name = row.text("doc_id")
        documents[name], starts = qmsum.meeting(row)
        if half(name) == wanted:
            for query in row.rows("specific"):
                spans = qmsum.marked(row, query, starts)
                questions.append(IndexQuestion(name, query.text("query"), name, spans))
    return documents, questions


def _xquad(name: str, wanted: Half) -> tuple[dict[str, str], list[IndexQuestion]]:
    """Return articles of several paragraphs, and questions; the evidence is the span of the answer."""
    documents: dict[str, str] = {}
    questions: list[IndexQuestion] = []
    for article in xquad.articles(name.removeprefix("xquad_")):
        title = article.text("title")
        documents[title], starts = xquad.text(article)
        if half(title) == wanted:
            for start, paragraph in zip(starts, article.rows("paragraphs"), strict=True):
                for item in paragraph.rows("qas"):
                    first, last = xquad.span(item, paragraph.text("context"))
                    spans = [(start + first, start + last)]
                    questions.append(IndexQuestion(title, item.text("question"), title, spans))
    return documents, questions
