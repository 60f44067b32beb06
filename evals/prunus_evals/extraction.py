"""Task ``extraction``: find the sentences of several pages that support the answer; precision, recall and F1.

``extract/hotpot`` (HotpotQA): each question has ten paragraphs, two of which hold the supporting sentences. Every
paragraph becomes a page (title, heading, text); the digest of a page fixes its place among the question's pages. A
sentence counts as chosen when at least half of its letters lie in a chosen passage; a passage that covers no sentence
counts as a wrong choice. Numbers are means over questions, as in HotpotQA.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import prunus
from prunus_evals import stats
from prunus_evals.data import Row, rows
from prunus_evals.errors import UnknownName
from prunus_evals.metrics.tagged import precision_recall_f1
from prunus_evals.split import Half, digest, half
from prunus_evals.systems.sentences import best
from prunus_evals.systems.tags import Prompted
from prunus_evals.tasks import hotpot

BUDGET = 4096
"""Tokens of evidence for Prunus: more than all pages of a question have."""

DEFAULT = "prunus,bm25:3,bm25title:3,everything"
MEASURES = ("f1", "precision", "recall")

Place = tuple[int, int]
"""A sentence: the index of its page among the question's pages, and its index in the page."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its pages as (title, sentences), and the sentences that support the answer."""

    key: str
    text: str
    pages: Sequence[tuple[str, Sequence[str]]]
    supporting: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Choice:
    """The sentences that a system chose, and the number of chosen passages or tags that cover no sentence.

    :param nonsense: whether a model's reply could not be read; it counts as an empty choice.
    """

    places: frozenset[Place]
    strays: int = 0
    nonsense: bool = False


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one system by question, its mean number of chosen sentences, and its wall time in seconds.

    :param nonsense: replies of a model that could not be read.
    :param real: False where replies are scripted.
    """

    system: str
    by_question: Mapping[str, Mapping[str, float]]
    chosen: float
    seconds: float
    nonsense: int = 0
    real: bool = True


System = Callable[[Question], Choice]


def load(wanted: Half, limit: int | None = None) -> list[Question]:
    """Return the questions of a half, by id; ordered by digest, so that a limit takes a random sample."""
    found = [_question(row) for row in rows(hotpot.DATA) if half(row["id"]) == wanted]
    return sorted(found, key=lambda question: digest(question.key))[:limit]


def _question(row: Row) -> Question:
    pages = hotpot.paragraphs(row)
    supporting = frozenset((number, place) for number, page in enumerate(pages) for place in page.supporting)
    return Question(row["id"], row["question"], [(page.title, page.sentences) for page in pages], supporting)


# --- systems -------------------------------------------------------------------------------------


def make(name: str) -> System:
    """Return a system: ``prunus``, ``bm25:K``, ``bm25title:K`` (sentences with their page's title), ``everything``.

    ``tags:SPEC`` asks a language model by prompt alone, with all sentences in one prompt.

    :raises UnknownName: there is no such system, or the model cannot be made.
    """
    kind, _, count = name.partition(":")
    if name == "prunus":
        return _prunus
    if name == "everything":
        return lambda question: Choice(frozenset(_places(question)))
    if kind in ("bm25", "bm25title") and count.isdigit():
        return lambda question: _bm25(question, int(count), kind == "bm25title")
    if kind == "tags" and name != "tags":
        prompted = Prompted(name.removeprefix("tags:"))
        return lambda question: _prompted(prompted, question)
    raise UnknownName(f"unknown system {name}; the systems are: prunus, bm25:K, bm25title:K, tags:SPEC, everything")


def _prompted(model: Prompted, question: Question) -> Choice:
    places = _places(question)
    named = model.extract(question.text, [question.pages[page][1][place] for page, place in places])
    return Choice(frozenset(places[tag] for tag in named.tags), named.unknown, named.nonsense)


def is_real(name: str) -> bool:
    """Return whether a system's replies are its own; False for a scripted model."""
    return not name.startswith("tags:") or Prompted(name.removeprefix("tags:")).real


def _places(question: Question) -> list[Place]:
    return [(number, place) for number, (_, texts) in enumerate(question.pages) for place in range(len(texts))]


def _bm25(question: Question, count: int, titled: bool) -> Choice:
    places = _places(question)
    texts = [
        (question.pages[page][0] + " " if titled else "") + question.pages[page][1][place] for page, place in places
    ]
    return Choice(frozenset(places[index] for index in best(question.text, texts, count)))


def as_page(title: str, sentences: Sequence[str]) -> str:
    """Return a paragraph as an HTML page."""
    heading = html.escape(title)
    text = html.escape("".join(sentences))
    return f"<!DOCTYPE html><title>{heading}</title><h1>{heading}</h1><p>{text}</p>"


def _prunus(question: Question) -> Choice:
    pages = prunus.read([as_page(title, texts) for title, texts in question.pages])
    passages = prunus.extract(question.text, pages, BUDGET)
    numbers = {tree.document: number for number, tree in enumerate(pages.trees)}
    chosen: set[Place] = set()
    strays = 0
    for passage in passages:
        page = numbers[passage.spans[0].document]
        sentences = covered(passage.text, question.pages[page][1])
        chosen.update((page, place) for place in sentences)
        strays += not sentences
    return Choice(frozenset(chosen), strays)


def covered(passage: str, sentences: Sequence[str]) -> list[int]:
    """Return the indexes of the sentences with at least half of their letters in a passage, without white space."""
    letters = ["".join(sentence.split()) for sentence in sentences]
    whole, part = "".join(letters), "".join(passage.split())
    start = whole.find(part)
    if start < 0 or not part:
        return []
    found, begin = [], 0
    for number, sentence in enumerate(letters):
        shared = min(begin + len(sentence), start + len(part)) - max(begin, start)
        if sentence and 2 * shared >= len(sentence):
            found.append(number)
        begin += len(sentence)
    return found


# --- scores --------------------------------------------------------------------------------------


def run(questions: Sequence[Question], systems: Sequence[str]) -> list[Scores]:
    """Score every system on every question."""
    found = []
    for name in systems:
        system, start = make(name), time.perf_counter()
        choices = {question.key: system(question) for question in questions}
        seconds = time.perf_counter() - start
        scores = {question.key: score(choices[question.key], question.supporting) for question in questions}
        sizes = [len(choice.places) + choice.strays for choice in choices.values()]
        nonsense = sum(choice.nonsense for choice in choices.values())
        found.append(Scores(name, scores, float(np.mean(sizes)), seconds, nonsense, is_real(name)))
    return found


def score(choice: Choice, supporting: frozenset[Place]) -> dict[str, float]:
    """Return precision, recall and F1 of a choice; all are 0 for an empty choice."""
    right, size = len(choice.places & supporting), len(choice.places) + choice.strays
    precision, recall, f1 = precision_recall_f1(right, size, len(supporting))
    return {"f1": f1, "precision": precision, "recall": recall}


def summary(found: Sequence[Scores], which: Half) -> dict[str, object]:
    """Return the numbers of the table, ready for JSON; the first system is compared with each of the others."""
    systems: dict[str, object] = {}
    for scores in found:
        numbers: dict[str, object] = {}
        for measure in MEASURES:
            numbers[measure] = stats.mean(_values(scores, measure)).numbers(None)
        if scores is not found[0]:
            numbers["first_minus_this"] = stats.difference(_values(found[0], "f1"), _values(scores, "f1")).numbers(None)
        systems[scores.system] = numbers | {
            "chosen": scores.chosen, "seconds": scores.seconds, "nonsense": scores.nonsense, "real": scores.real,
        }  # fmt: skip
    questions = len(found[0].by_question) if found else 0
    return {"half": which, "task": "hotpot", "questions": questions, "systems": systems}


def _values(scores: Scores, measure: str) -> dict[str, list[float]]:
    return {key: [numbers[measure]] for key, numbers in scores.by_question.items()}


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as a text table."""
    first = next(iter(result["systems"]), "")
    lines = [f"hotpot, {result['half']} half, {result['questions']} questions: sentences that support the answer"]
    lines.append(f"{'system':14}{'F1':>22}{'precision':>11}{'recall':>8}{'chosen':>8}   {first} minus it, F1")
    for name, row in result["systems"].items():
        gap = stats.shown(row["first_minus_this"], signed=True) if "first_minus_this" in row else ""
        f1 = stats.shown(row["f1"])
        gap += f"   {row['nonsense']} replies that could not be read" if row["nonsense"] else ""
        gap += "" if row["real"] else "   scripted: no model answered"
        lines.append(
            f"{name:14}{f1:>22}{row['precision'][0]:11.3f}{row['recall'][0]:8.3f}{row['chosen']:8.1f}   {gap}".rstrip()
        )
    return "\n".join(lines)
