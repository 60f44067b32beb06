"""Questions about stories, meetings, research papers and long articles."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from prunus_evals.data import Lines, Row, find, rows, whole
from prunus_evals.errors import DataMissing, DataWrong
from prunus_evals.records import Document, Question, Span
from prunus_evals.tasks.task import Page, Record, Use, task

SQUALITY_DATA = "long/squality"


@task(
    "squality",
    title="questions about stories, with long answers; as text or as HTML",
    metrics=("rouge_l", "bleu4", "meteor_exact_stem"),
    files=(f"{SQUALITY_DATA}.jsonl.xz",),
    source="SQuALITY v1.3, CC BY 4.0; the stories are in the public domain",
    variants=("text", "html"),
)
def squality(use: Use, variant: str = "text") -> Iterator[Question]:
    """SQuALITY: questions about short stories, with up to four long answers that people wrote."""
    for row in rows(SQUALITY_DATA):
        key = row.text("passage_id")
        if not use(key):
            continue
        media_type = "text/html" if variant == "html" else "text/plain"
        documents = (Document(key, row.text(variant), media_type),)
        for item in row.rows("questions"):
            yield Question(
                id=f"{key}#{item.number('n')}",
                task=f"squality:{variant}",
                page=key,
                documents=documents,
                question=item.text("question"),
                kind="long",
                references=item.texts("references"),
            )


QMSUM_DATA = "long/qmsum"


def meeting(row: Row) -> tuple[str, list[int]]:
    """Return a meeting as lines, one per turn, and where each turn begins; the last number is the end of the text."""
    starts, parts, length = [], [], 0
    for turn in row.rows("turns"):
        starts.append(length)
        parts.append(f"{turn.text('speaker')}: {turn.text('content')}\n")
        length += len(parts[-1])
    return "".join(parts), [*starts, length]


def marked(row: Row, query: Row, starts: list[int]) -> list[tuple[int, int]]:
    """Return the places of the turns that people marked for a question; a last turn beyond the end is the last one.

    :raises DataWrong: they are not pairs of numbers of turns.
    """
    last = len(starts) - 2
    spans = []
    for pair in query.items_of("relevant_text_span"):
        try:
            first, end = (int(number) for number in pair)
        except (TypeError, ValueError) as error:
            raise row.wrong(f"'relevant_text_span' must be pairs of numbers, not {pair!r}") from error
        if not 0 <= first <= min(end, last):
            raise row.wrong(f"turns {first} to {end} are marked, of {last + 1}")
        spans.append((starts[first], starts[min(end, last) + 1]))
    return spans


@task(
    "qmsum",
    title="questions about meetings, with the turns that people marked",
    metrics=("gold_recall_4grams", "rouge_l", "bleu4", "meteor_exact_stem"),
    files=(f"{QMSUM_DATA}.jsonl.xz",),
    source="QMSum, MIT",
    variants=("specific", "general", "all"),
    variant_metrics={"general": ("rouge_l", "bleu4", "meteor_exact_stem")},
)
def qmsum(use: Use, variant: str = "specific") -> Iterator[Question]:
    """QMSum: questions about meetings.

    ``qmsum:specific`` asks about a part of a meeting, whose turns people marked; ``qmsum:general`` about all of it.
    ``qmsum:all`` asks the questions of ``specific`` of all meetings at once.
    """
    found = [(row.text("doc_id"), row, *meeting(row)) for row in rows(QMSUM_DATA)]
    every = tuple(Document(key, text, "text/plain") for key, _, text, _ in found)
    for (key, row, _, starts), own in zip(found, every, strict=True):
        for number, query in enumerate(row.rows("general" if variant == "general" else "specific") if use(key) else ()):
            spans = marked(row, query, starts) if variant != "general" else []
            yield Question(
                id=f"{key}#{number}",
                task=f"qmsum:{variant}",
                page=key,
                documents=every if variant == "all" else (own,),
                question=query.text("query"),
                kind="long",
                references=(query.text("answer"),),
                gold=tuple(Span(key, start, end) for start, end in spans),
            )


FOLDER = "sets/narrativeqa"
STORIES = FOLDER + "/tmp"  # noqa: S108 - a folder of the release


@task(
    "narrativeqa",
    title="questions about whole books and film scripts",
    metrics=("rouge_l", "rouge_l_stem", "bleu1", "bleu4", "meteor_exact_stem"),
    files=(f"{FOLDER}/qaps.csv", f"{FOLDER}/documents.csv", STORIES),
    source="NarrativeQA, Apache-2.0: google-deepmind/narrativeqa, whose script downloads the stories into tmp",
    variants=("test", "valid"),
    half="all",
    by_page=True,
)
def narrativeqa(use: Use, variant: str = "test") -> Iterator[Page]:
    """NarrativeQA over whole stories (books and film scripts): questions with two reference answers.

    The data is the authors' release: ``documents.csv``, ``qaps.csv``, and the stories that its script downloads, as
    ``tmp/<document_id>.content``. A story is read when its turn comes.
    """
    asked: dict[str, list[Row]] = {}
    for row in _table(find(f"{FOLDER}/qaps.csv")):
        if row.text("set") == variant:
            asked.setdefault(row.text("document_id"), []).append(row)
    stories = find(STORIES)
    for row in _table(find(f"{FOLDER}/documents.csv")):
        key = row.text("document_id")
        if key in asked and use(key):
            yield key, partial(_read, stories / f"{key}.content", row, asked[key], variant)


def _table(path: Path) -> Iterator[Row]:
    """Yield the rows of a table with a line of names."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        try:
            for row in lines:
                place = f"{path}, line {lines.line_num}"
                if None in row or None in row.values():
                    raise DataWrong(f"{place}: has not as many fields as the table has names")
                yield Row(place, row)
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataWrong(f"{path}, line {lines.line_num + 1}: {error}") from error


def _read(path: Path, story: Row, asked: Sequence[Row], variant: str) -> Sequence[Record]:
    key = story.text("document_id")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataMissing(f"the story {path} cannot be read ({error.strerror})") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")  # many of the old files
    html = "<html" in text[:2000].casefold()
    title = story.get("wiki_title", "")
    documents = (Document(key, text, "text/html" if html else "text/plain", title),)
    return [
        Question(
            id=f"{key}#{number}",
            task=f"narrativeqa:{variant}",
            page=key,
            documents=documents,
            question=row.text("question"),
            references=(row.text("answer1"), row.text("answer2")),
            labels={"kind": story.text("kind")},
        )
        for number, row in enumerate(asked)
    ]


QASPER_FILE = "sets/qasper/qasper-{}-v0.3.json"


@task(
    "qasper",
    title="questions about research papers, with answers of four kinds",
    metrics=(
        "qasper_f1",
        "qasper_f1_extractive",
        "qasper_f1_abstractive",
        "qasper_f1_boolean",
        "qasper_f1_none",
        "gold_recall_4grams",
    ),
    files=(f"{QASPER_FILE.format('test')}|{QASPER_FILE.format('dev')}",),
    source="QASPER v0.3, CC BY 4.0: qasper-test-and-evaluator-v0.3.tgz and qasper-train-dev-v0.3.tgz of its authors",
    variants=("test", "dev"),
    half="all",
)
def qasper(use: Use, variant: str = "test") -> Iterator[Question]:
    """QASPER: questions about research papers, from the official JSON.

    Every annotator's answer is a reference, written as the official script writes it: extracted passages joined by
    commas, free words, ``Yes``, ``No`` or ``Unanswerable``; its kind is the script's. The paragraphs that annotators
    marked are gold evidence, where they stand in the text.
    """
    path = find(QASPER_FILE.format(variant))
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
            yield _qasper_question(item, key, document, variant)


def _document(key: str, paper: Row) -> Document:
    """Return a paper as text: title, abstract, and sections with their headings; the abstract is its snippet."""
    parts = [paper.text("title"), paper.text("abstract")]
    for section in paper.rows("full_text"):
        parts += [section["section_name"] or "", *section.texts("paragraphs")]
    text = "\n\n".join(part for part in parts if part)
    return Document(key, text, "text/plain", paper.text("title"), snippet=paper.text("abstract"))


def _qasper_question(item: Row, key: str, document: Document, variant: str) -> Question:
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


QUALITY_FILE = "sets/quality/QuALITY.v1.0.1.htmlstripped.{}"


@task(
    "quality",
    title="questions with four choices about long articles",
    metrics=("accuracy", "readable"),
    files=(f"{QUALITY_FILE.format('dev')}|{QUALITY_FILE.format('test')}",),
    source="QuALITY v1.0.1, CC BY 4.0: QuALITY.v1.0.1.zip of the authors' release (nyu-mll/quality)",
    variants=("dev", "hard", "test"),
    half="all",
)
def quality(use: Use, variant: str = "dev") -> Iterator[Question]:
    """QuALITY: questions with four choices about long articles, from the official files without HTML tags.

    ``quality:hard`` has the questions of the dev file that people in a hurry answered wrong (``difficult``). The labels
    of the test file are not published: accuracy on ``quality:test`` is an error.
    """
    path = find(QUALITY_FILE.format("test" if variant == "test" else "dev"))
    documents: dict[str, tuple[Document, ...]] = {}
    for _, row in Lines(path):
        key = row.name("article_id")
        if not use(key):
            continue
        document = Document(key, row.text("article"), "text/plain", row.text("title"))
        asked = documents.setdefault(key, (document,))  # an article stands in the file once for each writer
        for item in row.rows("questions"):
            if variant != "hard" or item.number("difficult"):
                yield _quality_question(item, key, asked, variant)


def _quality_question(item: Row, key: str, documents: tuple[Document, ...], variant: str) -> Question:
    choices = item.texts("options")
    correct = -1 if variant == "test" and "gold_label" not in item else item.number("gold_label") - 1
    if not (correct == -1 and variant == "test") and not 0 <= correct < len(choices):
        raise item.wrong(f"'gold_label' is {correct + 1}, of {len(choices)} options")
    return Question(
        id=item.text("question_unique_id"),
        task=f"quality:{variant}",
        page=key,
        documents=documents,
        question=item.text("question"),
        kind="choice",
        choices=choices,
        correct=correct,
        labels={"difficult": "yes" if item["difficult"] else "no"} if "difficult" in item else {},
    )
