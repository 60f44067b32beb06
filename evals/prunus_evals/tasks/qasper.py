"""QASPER: questions about research papers, from the official JSON.

Every annotator's answer is a reference, written as the official script writes it: extracted passages joined by commas,
free words, ``Yes``, ``No`` or ``Unanswerable``; its kind is the script's. The paragraphs that annotators marked are
gold evidence, where they stand in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Row, find, whole
from prunus_evals.errors import DataWrong
from prunus_evals.records import About, Document, Question, Span

FILE = "sets/qasper/qasper-{}-v0.3.json"
ABOUT = About(
    title="questions about research papers, with answers of four kinds",
    metrics=(
        "qasper_f1", "qasper_f1_extractive", "qasper_f1_abstractive", "qasper_f1_boolean", "qasper_f1_none",
        "gold_recall_4grams",
    ),
    files=(f"{FILE.format('test')}|{FILE.format('dev')}",),
    source="QASPER v0.3, CC BY 4.0: qasper-test-and-evaluator-v0.3.tgz and qasper-train-dev-v0.3.tgz of its authors",
    variants=("test", "dev"),
    half="all",
)  # fmt: skip


def questions(use: Callable[[str], bool], variant: str = "test") -> Iterator[Question]:
    """Yield the questions of the papers for whose id ``use`` is true."""
    path = find(FILE.format(variant), ABOUT.source)
    papers = whole(path)
    if not isinstance(papers, Row):
        raise DataWrong(f"{path} must be a JSON object of papers")
    for key, paper in papers.items():
        if not use(key):
            continue
        if not isinstance(paper, Row):
            raise DataWrong(f"{path}, paper {key}: must be an object")
        document = _document(key, paper)
        for item in paper.rows("qas"):
            yield _question(item, key, document, variant)


def _document(key: str, paper: Row) -> Document:
    """Return a paper as text: title, abstract, and sections with their headings; the abstract is its snippet."""
    parts = [paper.text("title"), paper.text("abstract")]
    for section in paper.rows("full_text"):
        parts += [section["section_name"] or "", *section.texts("paragraphs")]
    text = "\n\n".join(part for part in parts if part)
    return Document(key, text, "text/plain", paper.text("title"), snippet=paper.text("abstract"))


def _question(item: Row, key: str, document: Document, variant: str) -> Question:
    answers = [given["answer"] for given in item.rows("answers")]
    if not answers or not all(isinstance(answer, Row) for answer in answers):
        raise item.wrong("a question must have answers, each with an object 'answer'")
    written = [_reference(answer) for answer in answers]
    marked = dict.fromkeys(text for answer in answers for text in answer.texts("evidence"))
    places = [(document.content.find(text), text) for text in marked if text]
    return Question(
        id=item.text("question_id"),
        task=f"qasper:{variant}",
        page=key,
        documents=(document,),
        question=item.text("question"),
        prompt="short_or_none",
        references=tuple(text for text, _ in written),
        reference_kinds=tuple(kind for _, kind in written),
        gold=tuple(Span(key, start, start + len(text)) for start, text in places if start >= 0),
    )


def _reference(answer: Row) -> tuple[str, str]:
    """Return an answer as text, and its kind.

    :raises DataWrong: it is of none of the four kinds.
    """
    if answer["unanswerable"]:
        return "Unanswerable", "none"
    if answer["extractive_spans"]:
        return ", ".join(answer.texts("extractive_spans")), "extractive"
    if answer["free_form_answer"]:
        return answer.text("free_form_answer"), "abstractive"
    if isinstance(answer["yes_no"], bool):
        return "Yes" if answer["yes_no"] else "No", "boolean"
    raise answer.wrong("an answer must be unanswerable, passages, free words, yes or no")
