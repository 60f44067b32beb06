"""QuALITY: questions with four choices about long articles, from the official files (JSON lines, without HTML tags).

``quality:hard`` has the questions of the dev file that people in a hurry answered wrong (``difficult``). The labels of
the test file are not published: accuracy on ``quality:test`` is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Lines, Row, find
from prunus_evals.records import About, Document, Question

FILE = "sets/quality/QuALITY.v1.0.1.htmlstripped.{}"
ABOUT = About(
    title="questions with four choices about long articles",
    metrics=("accuracy", "readable"),
    files=(f"{FILE.format('dev')}|{FILE.format('test')}",),
    source="QuALITY v1.0.1, CC BY 4.0: QuALITY.v1.0.1.zip of the authors' release (nyu-mll/quality)",
    variants=("dev", "hard", "test"),
    half="all",
)


def questions(use: Callable[[str], bool], variant: str = "dev") -> Iterator[Question]:
    """Yield the questions of the articles for whose id ``use`` is true."""
    path = find(FILE.format("test" if variant == "test" else "dev"), ABOUT.source)
    documents: dict[str, tuple[Document, ...]] = {}
    for _, row in Lines(path):
        key = row.name("article_id")
        if not use(key):
            continue
        document = Document(key, row.text("article"), "text/plain", row.text("title"))
        asked = documents.setdefault(key, (document,))  # an article stands in the file once for each writer
        for item in row.rows("questions"):
            if variant != "hard" or item.number("difficult"):
                yield _question(item, key, asked, variant)


def _question(item: Row, key: str, documents: tuple[Document, ...], variant: str) -> Question:
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
