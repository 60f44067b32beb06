"""A language model as a judge: it compares two answers in both orders, or grades each (Zheng et al., arXiv 2306.05685).

The forms of the verdicts are those of MT-Bench (``[[A]]``, ``[[7]]``); the words of the prompts are ours. Every reply
is kept under the judge and the prompt in the store of the run: a judge that was stopped goes on where it was, and is
never asked the same thing twice. A reply that cannot be read is asked for once more, with a stricter instruction; then
the verdict is ``unreadable``, which every table counts. A judge that gave no readable verdict at all is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

from prunus.core.text.numbers import bounded_float
from prunus.core.types import Message
from prunus_evals import prompts, readers
from prunus_evals.errors import ReaderFailed
from prunus_evals.judging.pairs import Pair
from prunus_evals.records import Reading
from prunus_evals.store import Store

T = TypeVar("T")
Better = Literal["A", "B", "tie"]
Verdict = Literal["win", "tie", "lose", "biased", "unreadable", "open"]
"""Of the first system. ``biased``: the orders contradict each other. ``open``: people left it out."""

MAX_TOKENS = 1024
LOWEST, HIGHEST = 1.0, 10.0
_BETTER = re.compile(r"\[\[\s{0,3}(A|B|C|tie)\s{0,3}\]\]", re.IGNORECASE)
_WORD = re.compile(r"[\W_]{0,9}(A|B|C|tie)[\W_]{0,9}", re.IGNORECASE)
_GRADE = re.compile(r"\[\[\s{0,3}([0-9]{1,2}(?:\.[0-9]{1,2})?)\s{0,3}(?:/\s{0,3}10\s{0,3})?\]\]")
_NUMBER = re.compile(r"[\s*\"'.\[(]{0,9}([0-9]{1,2}(?:\.[0-9]{1,2})?)(?:\s{0,3}/\s{0,3}10)?[\s*\"'.\])]{0,9}")


class Judge(Protocol):
    """Something that replies to a prompt about answers."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def real(self) -> bool:
        """Whether a model replies; False where replies are scripted."""
        ...

    def reply(self, messages: Sequence[Message]) -> Reading:
        """Return the reply.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish.
        """
        ...


class ModelJudge:
    """A language model of a spec, as of a reader.

    :raises UnknownName: there is no such engine, or it cannot be made.
    """

    def __init__(self, spec: str) -> None:
        self.name = spec
        self._llm = readers.model(spec)

    @property
    def real(self) -> bool:
        """Whether a model replies."""
        return bool(self._llm.real)

    def reply(self, messages: Sequence[Message]) -> Reading:
        """Return the reply."""
        return readers.ask(self.name, self._llm, messages, MAX_TOKENS)


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """What a reply said.

    :param value: None where it could not be read, twice.
    :param readings: one reply, or two.
    """

    value: T | None
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The verdict on a pair.

    :param orders: which answer was better with the first system as A, and with the second as A; None: unreadable.
    """

    pair: Pair
    verdict: Verdict
    orders: tuple[Better | None, ...] = ()
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Graded:
    """The grades of both answers of a pair, from 1 to 10; None: unreadable."""

    pair: Pair
    grades: tuple[float | None, float | None]
    readings: tuple[Reading, ...] = ()


def read_better(reply: str) -> Better | None:
    """Return which answer a reply says is better; None where it says nothing, or several things."""
    found = {mark.upper() for mark in _BETTER.findall(reply)}
    if not found and (word := _WORD.fullmatch(reply)):
        found = {word[1].upper()}
    if len(found) != 1:
        return None
    mark = found.pop()
    return "tie" if mark in ("C", "TIE") else "A" if mark == "A" else "B"


def read_grade(reply: str) -> float | None:
    """Return the grade of a reply; None where it has none from 1 to 10, or several."""
    found = {*_GRADE.findall(reply)}
    if not found and (number := _NUMBER.fullmatch(reply)):
        found = {number[1]}
    grade = bounded_float(found.pop(), None) if len(found) == 1 else None
    return grade if grade is not None and LOWEST <= grade <= HIGHEST else None


def verdict_of(orders: Sequence[Better | None]) -> Verdict:
    """Return the verdict of both orders; it stands only where they agree (Internet-SAG, section 5.1)."""
    straight, turned = orders
    if straight is None or turned is None:
        return "unreadable"
    agreed: dict[tuple[Better, Better], Verdict] = {("A", "B"): "win", ("B", "A"): "lose", ("tie", "tie"): "tie"}
    return agreed.get((straight, turned), "biased")


def compare(
    pairs: Iterable[Pair], judge: Judge, store: Store, progress: Callable[[int], None] = lambda done: None
) -> list[Compared]:
    """Judge every pair in both orders.

    :raises ReaderFailed: the judge failed, or no reply could be read. What was judged is kept.
    """
    found = []
    for pair in pairs:
        sides = [pair.answers, pair.answers[::-1]]
        reads: list[Read[Better]] = [
            _read(judge, store, "judge_pair", {"question": pair.question, "answer_a": a, "answer_b": b}, read_better)
            for a, b in sides
        ]
        orders: tuple[Better | None, ...] = tuple(read.value for read in reads)
        readings = tuple(reading for read in reads for reading in read.readings)
        found.append(Compared(pair, verdict_of(orders), orders, readings))
        progress(len(found))
    _refuse_nonsense(judge, [value for one in found for value in one.orders], found)
    return found


def grade(
    pairs: Iterable[Pair], judge: Judge, store: Store, progress: Callable[[int], None] = lambda done: None
) -> list[Graded]:
    """Grade both answers of every pair, each alone.

    :raises ReaderFailed: the judge failed, or no reply could be read. What was judged is kept.
    """
    found = []
    for pair in pairs:
        first, second = (
            _read(judge, store, "judge_grade", {"question": pair.question, "answer": answer}, read_grade)
            for answer in pair.answers
        )
        found.append(Graded(pair, (first.value, second.value), first.readings + second.readings))
        progress(len(found))
    _refuse_nonsense(judge, [value for one in found for value in one.grades], found)
    return found


def _read(
    judge: Judge, store: Store, prompt: str, fields: Mapping[str, str], parse: Callable[[str], T | None]
) -> Read[T]:
    """Ask a judge, and once more where its reply cannot be read."""
    messages = prompts.render(prompt, fields)
    first = _reply(judge, store, messages)
    value = parse(first.text)
    if value is not None:
        return Read(value, (first,))
    (again,) = prompts.render(f"{prompt}_again", {})
    *before, last = messages
    second = _reply(judge, store, [*before, replace(last, content=f"{last.content}\n\n{again.content}")])
    return Read(parse(second.text), (first, second))


def _reply(judge: Judge, store: Store, messages: list[Message]) -> Reading:
    key = f"{judge.name}\0{prompts.digest(messages)}"
    known = store.reply(key)
    if known is None:
        known = judge.reply(messages)
        store.keep_reply(key, known)
    return known


def _refuse_nonsense(judge: Judge, values: Sequence[object], found: Sequence[Compared] | Sequence[Graded]) -> None:
    if values and all(value is None for value in values):
        last = " ".join(found[-1].readings[-1].text.split())[:80]
        raise ReaderFailed(f"judge {judge.name}: none of its replies about {len(found)} pairs can be read, as {last!r}")
