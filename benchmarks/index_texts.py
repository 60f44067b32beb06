"""The texts of `benchmarks.index`: stories and meetings, one after the other, to a number of tokens.

What goes beyond the real text is synthetic: a story or meeting again, its sentences in a seeded random
order, so that chunks are new and words are as frequent as before.
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
    """Documents of about so many tokens, and questions about the real ones.

    :param synthetic: tokens of shuffled text among them.
    """

    documents: list[tuple[str, str]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    tokens: int = 0
    synthetic: int = 0


def _real() -> Iterator[tuple[str, str, list[str]]]:
    """Yield (name, text, questions) of every story, then of every meeting."""
    for row in rows("long/squality"):
        yield f"story {row['passage_id']}", row["text"], [one["question"] for one in row["questions"]]
    for row in rows("long/qmsum"):
        said = "\n".join(f"{turn['speaker']}: {turn['content']}" for turn in row["turns"])
        asked = [one["query"] for one in [*row["general"], *row["specific"]]]
        yield f"meeting {row['doc_id']}", said, asked


def shuffled(text: str, seed: int) -> str:
    """Return the sentences of a text in another order, the same for the same seed."""
    said = [" ".join(one.split()) for one in sentences(text)]
    random.Random(f"{SHUFFLED_BY} {seed}").shuffle(said)
    return " ".join(one for one in said if one)


def corpus(wanted: int, counter: TokenCounter) -> Corpus:
    """Return documents of about ``wanted`` tokens; the last one is cut."""
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
