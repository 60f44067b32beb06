"""NarrativeQA over whole stories (books and film scripts): questions with two reference answers.

The data is the authors' release: ``documents.csv``, ``qaps.csv``, and the stories that its script downloads, as
``tmp/<document_id>.content``. A story is read when its turn comes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from prunus_evals.data import Row, find
from prunus_evals.errors import DataMissing, DataWrong
from prunus_evals.records import About, Document, Question
from prunus_evals.tasks import Asked, Page

FOLDER = "sets/narrativeqa"
STORIES = FOLDER + "/tmp"  # noqa: S108 - a folder of the release
ABOUT = About(
    title="questions about whole books and film scripts",
    metrics=("rouge_l", "rouge_l_stem", "bleu1", "bleu4", "meteor_exact_stem"),
    files=(f"{FOLDER}/qaps.csv", f"{FOLDER}/documents.csv", STORIES),
    source="NarrativeQA, Apache-2.0: google-deepmind/narrativeqa, whose script downloads the stories into tmp",
    variants=("test", "valid"),
    half="all",
)


def pages(use: Callable[[str], bool], variant: str = "test") -> Iterator[Page]:
    """Yield the stories of a set for whose id ``use`` is true, each with a function that reads it."""
    asked: dict[str, list[Row]] = {}
    for row in _table(find(f"{FOLDER}/qaps.csv", ABOUT.source)):
        if row.text("set") == variant:
            asked.setdefault(row.text("document_id"), []).append(row)
    stories = find(STORIES, ABOUT.source)
    for row in _table(find(f"{FOLDER}/documents.csv", ABOUT.source)):
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


def _read(path: Path, story: Row, asked: Sequence[Row], variant: str) -> Sequence[Asked]:
    key = story.text("document_id")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataMissing(f"the story {path} cannot be read ({error.strerror}); source: {ABOUT.source}") from error
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
