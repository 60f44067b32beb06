"""RGB: passages of a search engine, some of which answer the question.

``rgb:en`` and ``rgb:zh`` ask with noise: of five passages one to five answer (the label ``noise`` is the share of those
that do not). ``rgb:en_counterfactual`` and ``rgb:zh_counterfactual`` give passages whose answer was made wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prunus_evals.data import Row, rows
from prunus_evals.records import About, Document, LeftOut, Question
from prunus_evals.tasks import Asked, seeded_by

PASSAGES = 5
NOISE = (0.0, 0.2, 0.4, 0.6, 0.8)
ABOUT = About(
    title="passages with noise, and passages whose answer is wrong",
    metrics=("answer", "em_share"),
    files=("rank/rgb_en_fact.jsonl.xz|rank/rgb_zh_fact.jsonl.xz",),
    source="RGB, CC BY-NC-SA 4.0; internal use",
    variants=("en", "zh", "en_counterfactual", "zh_counterfactual"),
)
METRICS = {"en_counterfactual": ("em_share",), "zh_counterfactual": ("em_share",)}


def questions(use: Callable[[str], bool], variant: str = "en") -> Iterator[Asked]:
    """Yield the questions for whose text ``use`` is true."""
    language, _, wrong = variant.partition("_")
    for row in rows(f"rank/rgb_{language}_fact"):
        asked = row.text("query")
        if not use(asked):
            continue
        if wrong:
            yield _question(row, variant, "counterfactual", row.texts("positive_wrong")[:PASSAGES])
            continue
        good, noise = row.texts("positive"), row.texts("negative")
        for share in NOISE:
            others = round(PASSAGES * share)
            if len(good) >= PASSAGES - others and len(noise) >= others:
                yield _question(row, variant, f"{share:.1f}", [*good[: PASSAGES - others], *noise[:others]])
            else:
                yield LeftOut(asked, f"{row['id']}#{share:.1f}", "it has too few passages for this share of noise")


def _question(row: Row, variant: str, noise: str, texts: Sequence[str]) -> Question:
    asked, key = row.text("query"), f"{row['id']}#{noise}"
    order = list(texts)
    seeded_by(f"{asked}\0{noise}").shuffle(order)
    spellings = _answers(row)
    return Question(
        id=key,
        task=f"rgb:{variant}",
        page=asked,
        documents=[Document(f"{key}/{number}", text, "text/plain") for number, text in enumerate(order)],
        question=asked,
        answers=tuple(answer for answer, *_ in spellings),
        aliases={answer: tuple(others) for answer, *others in spellings if others},
        labels={"noise": noise},
        prompt="several" if len(spellings) > 1 else "",
    )


def _answers(row: Row) -> list[list[str]]:
    """Return the spellings of each answer: all items of a list are wanted, and an item can be a list of spellings.

    :raises DataWrong: an answer is neither a text nor a list of texts.
    """
    wanted = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    found = [item if isinstance(item, list) else [item] for item in wanted]
    if not found or not all(item and all(isinstance(text, str) and text for text in item) for item in found):
        raise row.wrong("'answer' must be a text, or a list of texts and lists of texts")
    return found
