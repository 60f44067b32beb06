"""DuReader: Chinese questions about five pages each, some of which annotators chose; the pages are shuffled.

**Title and first characters stand for a search engine's snippet**, because the set has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prunus_evals.data import rows
from prunus_evals.records import About, Document, LeftOut, Question, Span
from prunus_evals.split import digest
from prunus_evals.tasks import Asked, seeded_by

DATA = "rank/dureader"
SNIPPET = 100
"""Characters of a text that serve, after its title, as the snippet."""

ABOUT = About(
    title="Chinese questions about five pages, some of which annotators chose",
    metrics=("ndcg", "hit@1", "hit@3", "rouge_l", "bleu4"),
    files=(f"{DATA}.jsonl.xz",),
    source="DuReader 2.0 demo, Apache-2.0",
)


def shuffled(key: str, question: str, texts: Sequence[tuple[str, str]]) -> tuple[list[Document], list[str]]:
    """Return texts as documents in an order that only their question decides, and the address of each text.

    The addresses do not reveal the places of the texts.

    :param texts: title and text of each.
    """
    order = list(range(len(texts)))
    seeded_by(key + question).shuffle(order)
    urls = [f"https://example.org/{digest(question + str(number))[:12]}" for number in order]
    documents = [
        Document(url, text, "text/plain", title, url, f"{title} {text[:SNIPPET]}")
        for url, (title, text) in zip(urls, (texts[number] for number in order), strict=True)
    ]
    return documents, [urls[order.index(number)] for number in range(len(texts))]


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Asked]:
    """Yield the questions for whose text ``use`` is true; pages that were chosen are gold."""
    for row in rows(DATA):
        asked = row.text("question")
        if not use(asked):
            continue
        texts = [(page.text("title"), "\n".join(page.texts("paragraphs"))) for page in row.rows("documents")]
        documents, urls = shuffled(asked, asked, texts)
        if not row.texts("answers") and not any(page["is_selected"] for page in row.rows("documents")):
            yield LeftOut(asked, str(row["id"]), "annotators chose no page and wrote no answer")
            continue
        chosen = [number for number, page in enumerate(row.rows("documents")) if page["is_selected"]]
        yield Question(
            id=str(row["id"]),
            task="dureader",
            page=asked,
            documents=documents,
            question=asked,
            kind="long",
            references=row.texts("answers"),
            gold=tuple(Span(urls[number], 0, len(texts[number][1])) for number in chosen),
        )
