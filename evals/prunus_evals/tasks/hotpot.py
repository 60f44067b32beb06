"""HotpotQA: questions about ten paragraphs, two of which support the answer; ``hotpot:tags`` asks for the sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Row, rows
from prunus_evals.records import About, Question
from prunus_evals.split import digest
from prunus_evals.tasks._paragraphs import Paragraph, question_of

DATA = "extract/hotpot"
ANSWERS = ("answer", "em_share", "token_f1", "accuracy", "tags_f1", "tags_precision", "tags_recall")
TAGS = ("tags_f1", "tags_precision", "tags_recall", "tags_exact")
ABOUT = About(
    title="questions about ten paragraphs, with the sentences that support the answer",
    metrics=ANSWERS,
    files=(f"{DATA}.jsonl.xz",),
    source="HotpotQA, CC BY-SA 4.0",
    variants=("answer", "tags"),
)
METRICS = {"tags": TAGS}


def paragraphs(row: Row) -> list[Paragraph]:
    """Return the paragraphs of a question; the digests of question and title fix their order.

    :raises DataWrong: a supporting sentence is not in its paragraph.
    """
    facts = row.items_of("supporting_facts")
    gold = row.rows("gold")
    if len(facts) != len(gold):
        raise row.wrong(f"{len(gold)} paragraphs have {len(facts)} lists of supporting facts")
    found = [_paragraph(page, places) for page, places in zip(gold, facts, strict=True)]
    found += [_paragraph(page, []) for page in row.rows("distractors")]
    return sorted(found, key=lambda page: digest(row["id"] + page.title))


def _paragraph(row: Row, places: list[int]) -> Paragraph:
    sentences = row.texts("sentences")
    for place in places:
        if not 0 <= place < len(sentences):
            raise row.wrong(f"sentence {place} supports the answer, of {len(sentences)}")
    return Paragraph(row.text("title"), sentences, places)


def questions(use: Callable[[str], bool], variant: str = "answer") -> Iterator[Question]:
    """Yield the questions for whose id ``use`` is true."""
    for row in rows(DATA):
        key = row.text("id")
        if use(key):
            asked = (row.text("question"), row.text("answer"))
            yield question_of(f"hotpot:{variant}", key, *asked, paragraphs(row), variant == "tags")
