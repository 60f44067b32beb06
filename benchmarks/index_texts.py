"""The texts of `benchmarks.index`: stories, then meetings, up to a number of tokens.

Text beyond the real texts is synthetic: the stories and meetings again, with their sentences in a seeded random order,
so that the chunks are new and the words keep their frequencies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from prunus.core.ports import TokenCounter
from prunus.core.text.words import sentences
from prunus_evals.data import rows

SHUFFLED_BY = 20261121
"""Seed of the synthetic texts."""


@dataclass(slots=True)
class Corpus:
    """Documents, and questions about the real documents.

    :param tokens: tokens of all documents.
    :param synthetic: tokens of the synthetic documents.
    """

    documents: list[tuple[str, str]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    tokens: int = 0
    synthetic: int = 0


def _real() -> Iterator[tuple[str, str, list[str]]]:
    """Yield (name, text, questions) of every story, then of every meeting."""
    for row in rows("long/squality"):
        yield f"story {row['passage_id']}", row["text"], [question["question"] for question in row["questions"]]
    for row in rows("long/qmsum"):
        text = "\n".join(f"{turn['speaker']}: {turn['content']}" for turn in row["turns"])
        questions = [query["query"] for query in [*row["general"], *row["specific"]]]
        yield f"meeting {row['doc_id']}", text, questions


def shuffled(text: str, seed: int) -> str:
    """Return the sentences of a text in another order, the same for the same seed."""
    lines = [" ".join(sentence.split()) for sentence in sentences(text)]
    random.Random(f"{SHUFFLED_BY} {seed}").shuffle(lines)
    return " ".join(line for line in lines if line)


def corpus(wanted: int, counter: TokenCounter) -> Corpus:
    """Return documents of about ``wanted`` tokens; the last document is cut."""
    found = Corpus()
    real = list(_real())
    turn = 0
    while found.tokens < wanted:
        for name, text, questions in real:
            document = shuffled(text, turn) if turn else text
            size = int(counter.count([document])[0])
            left = wanted - found.tokens
            if size > left:
                document = document[: max(1, len(document) * left // size)]
                size = int(counter.count([document])[0])
            found.documents.append((f"{name} shuffled {turn}" if turn else name, document))
            found.tokens += size
            found.synthetic += size if turn else 0
            found.questions += [] if turn else questions
            if found.tokens >= wanted or left <= size:
                return found
        turn += 1
    return found
