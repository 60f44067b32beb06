"""2WikiMultiHopQA: questions that need several paragraphs.

``twowiki:tags`` and ``twowiki:answer`` read the official file, whose supporting sentences are tags; ``twowiki:sample``
reads the sample of the data folder, which has whole paragraphs and no supporting sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Row, find, listed, rows
from prunus_evals.records import About, Question
from prunus_evals.tasks._paragraphs import Paragraph, question_of
from prunus_evals.tasks.hotpot import ANSWERS, TAGS

OFFICIAL = "sets/2wikimultihopqa/dev.json"
SAMPLE = "extract/2wiki"
SOURCE = "2WikiMultiHopQA, Apache-2.0: dev.json of the authors' release (Alab-NII/2wikimultihop)"
ABOUT = About(
    title="questions that need several paragraphs, with supporting sentences as tags",
    metrics=ANSWERS,
    files=(f"{OFFICIAL}|{SAMPLE}.jsonl.xz",),
    source=SOURCE,
    variants=("sample", "answer", "tags"),
)
METRICS = {"tags": TAGS, "sample": ("answer", "em_share", "token_f1", "accuracy")}


def questions(use: Callable[[str], bool], variant: str = "sample") -> Iterator[Question]:
    """Yield the questions for whose id ``use`` is true."""
    task = f"twowiki:{variant}"
    if variant == "sample":
        yield from sample(task, SAMPLE, use)
        return
    for row in listed(find(OFFICIAL, SOURCE)):
        key = row.text("_id")
        if use(key):
            asked = (row.text("question"), row.text("answer"))
            yield question_of(task, key, *asked, _paragraphs(row), variant == "tags")


def sample(task: str, data: str, use: Callable[[str], bool]) -> Iterator[Question]:
    """Yield the questions of a sample with whole paragraphs."""
    for row in rows(data):
        key = row.text("id")
        if use(key):
            paragraphs = [Paragraph(page.text("title"), (page.text("text"),)) for page in row.rows("paragraphs")]
            yield question_of(task, key, row.text("question"), row.text("answer"), paragraphs)


def _paragraphs(row: Row) -> list[Paragraph]:
    """Return the paragraphs of an official row.

    :raises DataWrong: the context has another form, or a supporting fact names no sentence of it.
    """
    found: list[Paragraph] = []
    for title, sentences in map(_pair(row, "context"), row.items_of("context")):
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise row.wrong("'context' must be pairs of a title and a list of sentences")
        found.append(Paragraph(title, [f"{sentence} " for sentence in sentences], []))
    for title, place in map(_pair(row, "supporting_facts"), row.items_of("supporting_facts")):
        named = [page for page in found if page.title == title]
        if not named or not isinstance(place, int) or not 0 <= place < len(named[0].sentences):
            raise row.wrong(f"the supporting fact {title!r}, {place} names no sentence of the context")
    facts = {(title, place) for title, place in row.items_of("supporting_facts")}
    seen: set[str] = set()
    for number, page in enumerate(found):
        if page.title not in seen:  # a fact of a title that stands twice is in the first
            places = [place for place in range(len(page.sentences)) if (page.title, place) in facts]
            found[number] = Paragraph(page.title, page.sentences, places)
        seen.add(page.title)
    return found


def _pair(row: Row, name: str) -> Callable[[object], tuple[str, object]]:
    def pair(value: object) -> tuple[str, object]:
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
            raise row.wrong(f"{name!r} must be pairs that begin with a title")
        return value[0], value[1]

    return pair
