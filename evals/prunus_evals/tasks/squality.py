"""SQuALITY: questions about short stories, with up to four long answers that people wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import rows
from prunus_evals.records import About, Document, Question

DATA = "long/squality"
ABOUT = About(
    title="questions about stories, with long answers; as text or as HTML",
    metrics=("rouge_l", "bleu4", "meteor_exact_stem"),
    files=(f"{DATA}.jsonl.xz",),
    source="SQuALITY v1.3, CC BY 4.0; the stories are in the public domain",
    variants=("text", "html"),
)


def questions(use: Callable[[str], bool], variant: str = "text") -> Iterator[Question]:
    """Yield the questions of the stories for whose id ``use`` is true."""
    for row in rows(DATA):
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
