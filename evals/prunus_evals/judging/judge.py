"""A language model as a judge: it compares two answers in both orders, or grades each (Zheng et al., arXiv 2306.05685).

The forms of the verdicts are those of MT-Bench (``[[A]]``, ``[[7]]``); the words of the prompts are ours. Every reply
is kept in the store of the run, under the prompt and all that a reply depends on: a judge that was stopped goes on
where it was, and is never asked the same thing twice. A reply that cannot be read is asked for once more, with a
stricter instruction; then the verdict is ``unreadable``. So it is where the judge fails at a prompt, as one that is
longer than its window. Every table counts both. Only a judge that cannot be reached, or fails again and again, ends the
run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

from prunus.core.errors import BadInput
from prunus.core.text.numbers import bounded_float
from prunus.core.types import Message
from prunus_evals import prompts, readers
from prunus_evals.errors import ReaderFailed, Unreachable
from prunus_evals.judging.pairs import Pair
from prunus_evals.records import Reading
from prunus_evals.store import Store

T = TypeVar("T")
Better = Literal["A", "B", "tie"]
Verdict = Literal["win", "tie", "lose", "biased", "unreadable", "open"]
"""Of the first system. ``biased``: the orders contradict each other. ``open``: people left it out."""

MAX_TOKENS = 1024
FAILURES = 3
"""After so many failures one after another a judge counts as out of reach."""

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

    def identity(self, store: Store) -> str:
        """Return what its replies depend on, beside the prompt."""
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

    def identity(self, store: Store) -> str:
        """Return its spec, server and options, and the tokens of a reply."""
        return f"{readers.identity(self.name, store)}\0{MAX_TOKENS}"

    @property
    def real(self) -> bool:
        """Whether a model replies."""
        return bool(self._llm.real)

    def reply(self, messages: Sequence[Message]) -> Reading:
        """Return the reply."""
        return readers.ask(self.name, self._llm, messages, MAX_TOKENS)


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """What a judge said to a prompt.

    :param value: None where it could not be read, twice, or the judge failed.
    :param readings: one reply, or two; none where it failed at once.
    :param nonsense: the last reply, where it could not be read.
    :param failed: how it failed.
    """

    value: T | None
    readings: tuple[Reading, ...]
    nonsense: str | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The verdict on a pair.

    :param orders: which answer was better with the first system as A, and with the second as A; None: unreadable.
    :param nonsense: replies that could not be read.
    :param failed: how the judge failed at prompts.
    """

    pair: Pair
    verdict: Verdict
    orders: tuple[Better | None, ...] = ()
    readings: tuple[Reading, ...] = ()
    nonsense: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Graded:
    """The grades of both answers of a pair, from 1 to 10; None: unreadable."""

    pair: Pair
    grades: tuple[float | None, float | None]
    readings: tuple[Reading, ...] = ()
    nonsense: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


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

    :raises ReaderFailed: the judge cannot be reached. What was judged is kept.
    """
    found, asked = [], Asked(judge, store)
    for pair in pairs:
        reads: list[Read[Better]] = [
            asked.read("judge_pair", {"question": pair.question, "answer_a": a, "answer_b": b}, read_better)
            for a, b in (pair.answers, pair.answers[::-1])
        ]
        orders: tuple[Better | None, ...] = tuple(read.value for read in reads)
        found.append(Compared(pair, verdict_of(orders), orders, *_told(reads)))
        progress(len(found))
    asked.end()
    return found


def grade(
    pairs: Iterable[Pair], judge: Judge, store: Store, progress: Callable[[int], None] = lambda done: None
) -> list[Graded]:
    """Grade both answers of every pair, each alone.

    :raises ReaderFailed: the judge cannot be reached. What was judged is kept.
    """
    found, asked = [], Asked(judge, store)
    for pair in pairs:
        reads: list[Read[float]] = [
            asked.read("judge_grade", {"question": pair.question, "answer": answer}, read_grade)
            for answer in pair.answers
        ]
        first, second = reads
        found.append(Graded(pair, (first.value, second.value), *_told(reads)))
        progress(len(found))
    asked.end()
    return found


def _told(reads: Sequence[Read[T]]) -> tuple[tuple[Reading, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the replies to several prompts, those that could not be read, and the failures."""
    return (
        tuple(reading for read in reads for reading in read.readings),
        tuple(read.nonsense for read in reads if read.nonsense is not None),
        tuple(read.failed for read in reads if read.failed),
    )


class Asked:
    """A judge that is asked many things; counts its failures."""

    def __init__(self, judge: Judge, store: Store) -> None:
        self._judge = judge
        self._identity = judge.identity(store)
        self._store = store
        self._replied = False
        self._failures: list[ReaderFailed] = []

    def read(self, prompt: str, fields: Mapping[str, str], parse: Callable[[str], T | None]) -> Read[T]:
        """Ask the judge, and once more where its reply cannot be read.

        :raises ReaderFailed: it cannot be reached.
        """
        readings: list[Reading] = []
        *before, last = messages = prompts.render(prompt, fields)
        (again,) = prompts.render(f"{prompt}_again", {})
        stricter = [*before, replace(last, content=f"{last.content}\n\n{again.content}")]
        for asked in (messages, stricter):
            try:
                readings.append(self._reply(asked))
            except ReaderFailed as error:
                self._note(error)
                return Read(None, tuple(readings), failed=str(error))
            value = parse(readings[-1].text)
            if value is not None:
                return Read(value, tuple(readings))
        return Read(None, tuple(readings), nonsense=readings[-1].text)

    def end(self) -> None:
        """Look whether the judge ever replied.

        :raises ReaderFailed: it only failed.
        """
        if self._failures and not self._replied:
            raise self._failures[-1]

    def _reply(self, messages: list[Message]) -> Reading:
        key = f"{self._identity}\0{prompts.digest(messages)}"
        known = self._store.reply(key)
        if known is None:
            known = self._judge.reply(messages)
            self._store.keep_reply(key, known)
        self._replied = True
        self._failures.clear()
        return known

    def _note(self, error: ReaderFailed) -> None:
        """Note a failure; one that concerns a prompt alone is none of the judge.

        :raises ReaderFailed: the judge cannot be reached.
        """
        if readers.refused(error):
            return
        self._failures.append(error)
        lasting = isinstance(error, Unreachable) or isinstance(error.__cause__, BadInput)
        if lasting or len(self._failures) >= FAILURES:
            raise error
