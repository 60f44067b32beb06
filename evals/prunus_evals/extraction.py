"""Sentences that bear a question out, among those of several pages: precision, recall and F1.

``extract/hotpot``: questions with ten paragraphs each, two of which hold the supporting sentences. Every
paragraph becomes a page (title, heading, text); the pages of a question stand in an order fixed by their
digest. A sentence counts as chosen when at least half of its letters lie in what a system chose; a passage
that covers no sentence counts as a wrong one. Numbers are means over questions, as HotpotQA counts them.
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
from prunus_evals.bm25 import BM25
from prunus_evals.data import rows
from prunus_evals.errors import UnknownName
from prunus_evals.split import Half, digest, half

DATA = "extract/hotpot"
BUDGET = 4096
"""Tokens of evidence that Prunus looks at; all pages of a question are fewer."""

DEFAULT = "prunus,bm25:3,bm25title:3,everything"
MEASURES = ("f1", "precision", "recall")

Place = tuple[int, int]
"""A sentence: the number of its page, and its own in the page."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its pages as (title, sentences), and the sentences that bear it out."""

    key: str
    text: str
    pages: Sequence[tuple[str, Sequence[str]]]
    supporting: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a system chose: sentences, and how many passages that are none."""

    places: frozenset[Place]
    strays: int = 0


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one system by question."""

    system: str
    by_question: Mapping[str, Mapping[str, float]]
    chosen: float
    seconds: float


System = Callable[[Question], Choice]


def load(wanted: Half, limit: int | None = None) -> list[Question]:
    """Return the questions of a half; the key of a question is its id."""
    found = [_question(row) for row in rows(DATA) if half(row["id"]) == wanted]
    return sorted(found, key=lambda one: digest(one.key))[:limit]


def _question(row: Mapping[str, Any]) -> Question:
    gold = [
        (page["title"], page["sentences"], facts)
        for page, facts in zip(row["gold"], row["supporting_facts"], strict=True)
    ]
    others = [(page["title"], page["sentences"], ()) for page in row["distractors"]]
    pages = sorted([*gold, *others], key=lambda page: digest(row["id"] + page[0]))
    supporting = frozenset((number, place) for number, page in enumerate(pages) for place in page[2])
    return Question(row["id"], row["question"], [(title, texts) for title, texts, _ in pages], supporting)


# --- systems -------------------------------------------------------------------------------------


def make(name: str) -> System:
    """Return a system: ``prunus``, ``bm25:K``, ``bm25title:K`` (sentences with their page's title), ``everything``."""
    kind, _, count = name.partition(":")
    if name == "prunus":
        return _prunus
    if name == "everything":
        return lambda question: Choice(frozenset(_places(question)))
    if kind in ("bm25", "bm25title") and count.isdigit():
        return lambda question: _bm25(question, int(count), kind == "bm25title")
    raise UnknownName(f"no extraction is called {name}; there are prunus, bm25:K, bm25title:K, everything")


def _places(question: Question) -> list[Place]:
    return [(number, place) for number, (_, texts) in enumerate(question.pages) for place in range(len(texts))]


def _bm25(question: Question, count: int, titled: bool) -> Choice:
    places = _places(question)
    texts = [
        (question.pages[page][0] + " " if titled else "") + question.pages[page][1][place] for page, place in places
    ]
    best = np.argsort(-BM25(texts).scores(question.text), kind="stable")[:count].tolist()
    return Choice(frozenset(places[index] for index in best))


def as_page(title: str, sentences: Sequence[str]) -> str:
    """Return a paragraph as a page."""
    shown = html.escape(title)
    text = html.escape("".join(sentences))
    return f"<!DOCTYPE html><title>{shown}</title><h1>{shown}</h1><p>{text}</p>"


def _prunus(question: Question) -> Choice:
    pages = prunus.read([as_page(title, texts) for title, texts in question.pages])
    passages = prunus.extract(question.text, pages, BUDGET)
    numbers = {tree.document: number for number, tree in enumerate(pages.trees)}
    chosen: set[Place] = set()
    strays = 0
    for passage in passages:
        page = numbers[passage.spans[0].document]
        held = covered(passage.text, question.pages[page][1])
        chosen.update((page, place) for place in held)
        strays += not held
    return Choice(frozenset(chosen), strays)


def covered(passage: str, sentences: Sequence[str]) -> list[int]:
    """Return the sentences of which at least half the letters lie in a passage, white space aside."""
    letters = ["".join(one.split()) for one in sentences]
    whole, part = "".join(letters), "".join(passage.split())
    start = whole.find(part)
    if start < 0 or not part:
        return []
    found, begin = [], 0
    for number, one in enumerate(letters):
        shared = min(begin + len(one), start + len(part)) - max(begin, start)
        if one and 2 * shared >= len(one):
            found.append(number)
        begin += len(one)
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
        found.append(Scores(name, scores, float(np.mean(sizes)), seconds))
    return found


def score(choice: Choice, supporting: frozenset[Place]) -> dict[str, float]:
    """Return precision, recall and F1 of a choice; all 0 where nothing was chosen."""
    right, size = len(choice.places & supporting), len(choice.places) + choice.strays
    precision = right / size if size else 0.0
    recall = right / len(supporting)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"f1": f1, "precision": precision, "recall": recall}


def summary(found: Sequence[Scores], which: Half) -> dict[str, object]:
    """Return everything that a table shows, ready for JSON; the first system is compared with each other."""
    systems: dict[str, object] = {}
    for one in found:
        numbers: dict[str, object] = {}
        for measure in MEASURES:
            estimate = stats.mean(_values(one, measure))
            numbers[measure] = [estimate.mean, estimate.low, estimate.high]
        if one is not found[0]:
            gap = stats.difference(_values(found[0], "f1"), _values(one, "f1"))
            numbers["first_minus_this"] = [gap.mean, gap.low, gap.high]
        systems[one.system] = numbers | {"chosen": one.chosen, "seconds": one.seconds}
    questions = len(found[0].by_question) if found else 0
    return {"half": which, "task": "hotpot", "questions": questions, "systems": systems}


def _values(one: Scores, measure: str) -> dict[str, list[float]]:
    return {key: [numbers[measure]] for key, numbers in one.by_question.items()}


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as plain text."""
    first = next(iter(result["systems"]), "")
    lines = [f"hotpot, {result['half']} half, {result['questions']} questions: sentences that bear the question out"]
    lines.append(f"{'system':14}{'F1':>22}{'precision':>11}{'recall':>8}{'chosen':>8}   {first} minus it, F1")
    for name, one in result["systems"].items():
        gap = "{:+.3f} [{:+.3f} {:+.3f}]".format(*one["first_minus_this"]) if "first_minus_this" in one else ""
        f1 = "{:.3f} [{:.3f} {:.3f}]".format(*one["f1"])
        lines.append(
            f"{name:14}{f1:>22}{one['precision'][0]:11.3f}{one['recall'][0]:8.3f}{one['chosen']:8.1f}   {gap}".rstrip()
        )
    return "\n".join(lines)
