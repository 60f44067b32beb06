"""Needles in a haystack: sentences at a known depth of a text of a known length, and questions that only they answer.

The haystack is made of stories of SQuALITY, cut into sentences; every sentence is a tag, and the needles are the right
ones. Variants: ``base`` has one needle; ``reasoning`` needs several together; ``multi_question`` asks three questions
at once; ``multi_answer`` has one question with several answers, a needle for each.

``length`` is tokens of the whole text (Llama-2's), ``depth`` the percentage of the haystack's tokens that stand before
the first needle, at the nearest end of a sentence. Several needles stand at even distances from there to the end. The
needles of one question are a page: its digest decides the half, and its stories.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from prunus.core.text.sentences import sentences
from prunus_evals.data import rows
from prunus_evals.errors import EvalError
from prunus_evals.records import Document, Question, Span
from prunus_evals.tasks.long_texts import SQUALITY_DATA
from prunus_evals.tasks.task import Page, Use, seeded_by, task
from prunus_evals.tokens import Counter, llama2

LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
DEPTHS = (0, 25, 50, 75, 100)
TOGETHER = 3
"""Questions that ``multi_question`` asks at once."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A question, the sentences about things that no story knows and that answer it together, and the answers."""

    question: str
    sentences: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Haystack:
    """Sentences of stories, each with the white space after it, and the tokens up to the end of each."""

    sentences: Sequence[str]
    ends: Sequence[int]

    def first(self, tokens: int) -> int:
        """Return how many sentences have at most so many tokens together."""
        return bisect.bisect_right(self.ends, tokens)


def needles(variant: str) -> list[Needle]:
    """Return the needles of a variant."""
    known = json.loads(files(__package__).joinpath("needles.json").read_text("utf-8"))
    order = [
        Needle(one["question"], tuple(one["sentences"]), tuple(one["answers"]))
        for one in known["base" if variant == "multi_question" else variant]
    ]
    if variant != "multi_question":
        return order
    seeded_by("multi_question").shuffle(order)
    parts = [order[place:] + order[:place] for place in range(len(order))]
    return [_together(part[:TOGETHER]) for part in parts]


def _together(part: Sequence[Needle]) -> Needle:
    listed = "\n".join(f"{number}. {needle.question}" for number, needle in enumerate(part, 1))
    sentences = tuple(sentence for needle in part for sentence in needle.sentences)
    return Needle(listed, sentences, tuple(answer for needle in part for answer in needle.answers))


@task(
    "needle",
    title="sentences hidden in stories, by length and depth",
    metrics=("tags_f1", "tags_precision", "tags_recall", "tags_exact", "answer", "gold_recall_4grams"),
    files=(f"{SQUALITY_DATA}.jsonl.xz",),
    source="stories of SQuALITY v1.3 (public domain); the needles are ours",
    variants=("base", "reasoning", "multi_question", "multi_answer"),
    half="all",
    by_page=True,
)
def hidden(use: Use, variant: str = "base") -> Iterator[Page]:
    """Yield the needles for whose key ``use`` is true, each with a function that hides them in stories."""
    stories = [row.text("text") for row in rows(SQUALITY_DATA)]
    counter = llama2()
    for number, needle in enumerate(needles(variant)):
        key = f"needle:{variant}:{number}"
        if use(key):
            yield key, partial(grid, key, variant, needle, stories, counter)


def grid(
    key: str,
    variant: str,
    needle: Needle,
    stories: Sequence[str],
    counter: Counter,
    lengths: Sequence[int] = LENGTHS,
    depths: Sequence[int] = DEPTHS,
) -> list[Question]:
    """Return a question for each length and depth."""
    haystack = haystack_of(key, stories, counter, max(lengths))
    return [
        question_of(f"{key}/{length}/{depth}", key, variant, needle, (length, depth), haystack, counter)
        for length, depth in itertools.product(lengths, depths)
    ]


def haystack_of(key: str, stories: Sequence[str], counter: Counter, tokens: int) -> Haystack:
    """Return whole stories, in an order that only the key decides, of at least so many tokens.

    :raises EvalError: all stories together have fewer tokens.
    """
    order = list(range(len(stories)))
    seeded_by(key).shuffle(order)
    found: list[str] = []
    ends: list[int] = []
    for number in order:
        paragraphs = (" ".join(part.split()) for part in stories[number].split("\n\n"))
        sentences = [sentence for part in paragraphs if part for sentence in _sentences(part)]
        for count in counter.count(sentences):
            ends.append((ends[-1] if ends else 0) + count)
        found += sentences
        if ends and ends[-1] >= tokens:
            return Haystack(found, ends)
    raise EvalError(f"the stories have {ends[-1] if ends else 0} tokens, fewer than {tokens}")


def _sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph, each with a space after it."""
    return [f"{sentence.strip()} " for sentence in sentences(paragraph) if sentence.strip()]


def question_of(
    name: str, key: str, variant: str, needle: Needle, place: tuple[int, int], haystack: Haystack, counter: Counter
) -> Question:
    """Return the question with its needles hidden at (length, depth).

    The text has at most ``length`` tokens, and less by no more than about a sentence: sentences are counted alone,
    which is a little more than what they have together.

    :raises EvalError: the needles alone are longer.
    """
    length, depth = place
    own = sum(counter.count([f"{sentence} " for sentence in needle.sentences]))
    size = haystack.first(length - own)
    if not size:
        raise EvalError(f"needles of {own} tokens do not fit into {length}")
    total = haystack.ends[size - 1]
    step = (100 - depth) / len(needle.sentences)
    before = [haystack.first(round(total * (depth + step * number) / 100)) for number in range(len(needle.sentences))]
    sentences: list[str] = []
    tags: list[int] = []
    start = 0
    for sentence, cut in zip(needle.sentences, before, strict=True):
        sentences += haystack.sentences[start:cut]
        tags.append(len(sentences))
        sentences.append(f"{sentence} ")
        start = cut
    sentences += haystack.sentences[start:size]
    starts = list(itertools.accumulate(map(len, sentences), initial=0))
    spans = tuple(Span(name, starts[tag], starts[tag] + len(sentences[tag]) - 1) for tag in tags)
    return Question(
        id=name,
        task=f"needle:{variant}",
        page=key,
        documents=(Document(name, "".join(sentences).rstrip(), "text/plain"),),
        question=needle.question,
        answers=needle.answers,
        kind="tags",
        sentences=tuple(sentence.strip() for sentence in sentences),
        tags=tuple(tags),
        gold=spans,
        labels={"length": str(length), "depth": str(depth)},
    )
