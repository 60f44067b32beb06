"""Questions with gold spans over long texts: meetings (QMSum) and articles in other languages (XQuAD).

All documents are in the index; the questions that are counted are those of one half. A question of QMSum
is asked of its own meeting, and again of all meetings at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prunus_evals.data import rows
from prunus_evals.errors import UnknownName
from prunus_evals.split import Half, half

LANGUAGES = ("zh", "ar", "de")
TASKS = ("qmsum", "qmsum_all", *(f"xquad_{one}" for one in LANGUAGES))
BUDGETS = (300, 1000, 2000)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and where its evidence stands.

    :param page: whose questions are drawn together in the bootstrap.
    :param document: that holds the evidence.
    :param spans: of the evidence, in code points of the document.
    """

    page: str
    question: str
    document: str
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Task:
    """Documents and questions.

    :param documents: text by id.
    :param within: whether a question is asked of its own document alone.
    """

    name: str
    documents: Mapping[str, str]
    language: str
    questions: Sequence[Asked]
    within: bool


def load(name: str, wanted: Half, limit: int | None = None) -> Task:
    """Return a task with the questions of one half.

    :param limit: questions, taken evenly over the pages; None takes all.

    :raises UnknownName: there is no such task.
    """
    if name in ("qmsum", "qmsum_all"):
        documents, questions = _qmsum(wanted)
    elif name in TASKS:
        documents, questions = _xquad(name, wanted)
    else:
        raise UnknownName(f"no index task is called {name}; there are {', '.join(TASKS)}")
    language = name.removeprefix("xquad_") if name.startswith("xquad_") else "en"
    return Task(name, documents, language, _evenly(questions, limit), within=name == "qmsum")


def _evenly(questions: list[Asked], number: int | None) -> list[Asked]:
    """Return so many questions at even distances: the same ones on every run."""
    if number is None or number >= len(questions):
        return questions
    return [questions[place * len(questions) // number] for place in range(number)]


def _qmsum(wanted: Half) -> tuple[dict[str, str], list[Asked]]:
    """Meetings as lines, a turn each; the evidence is the turns that people marked."""
    documents: dict[str, str] = {}
    questions: list[Asked] = []
    for row in rows("long/qmsum"):
        name = row["doc_id"]
        starts, text = [], ""
        for turn in row["turns"]:
            starts.append(len(text))
            text += f"{turn['speaker']}: {turn['content']}\n"
        ends = [*starts[1:], len(text)]
        documents[name] = text
        if half(name) == wanted:
            for one in row["specific"]:
                marked = [(int(first), int(last)) for first, last in one["relevant_text_span"]]
                spans = [(starts[first], ends[min(last, len(ends) - 1)]) for first, last in marked]
                questions.append(Asked(name, one["query"], name, spans))
    return documents, questions


def _xquad(name: str, wanted: Half) -> tuple[dict[str, str], list[Asked]]:
    """Articles of some paragraphs; the evidence is the answer where it stands."""
    documents: dict[str, str] = {}
    questions: list[Asked] = []
    for row in rows(f"multilingual/{name}"):
        title, text = row["title"], ""
        for paragraph in row["paragraphs"]:
            start = len(text)
            text += paragraph["context"] + "\n\n"
            if half(title) == wanted:
                for one in paragraph["qas"]:
                    first = start + int(one["start"])
                    questions.append(Asked(title, one["question"], title, [(first, first + len(one["answer"]))]))
        documents[title] = text
    return documents, questions
