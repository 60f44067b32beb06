"""The pairs of a run: two answers to the same question and prompt, from evidence of the same budget, by one reader."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.records import Outcome
from prunus_evals.store import Store

Group = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question.

    :param id: a digest of everything but the answers.
    :param group: what tables show together: task, budget, reader, and the prompt that a run named for all questions.
    :param question: the text of the question.
    :param answers: that of the first system, and that of the second.
    :param caveats: what tables must say of the readers; see :class:`.records.Outcome`.
    """

    id: str
    group: Group
    page: str
    question: str
    answers: tuple[str, str]
    caveats: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both answers are the same text."""
        return self.answers[0] == self.answers[1]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs between two systems of a run.

    :param names: of the two systems.
    :param alone: how many answers have no partner, because the other system did not answer the question.
    """

    names: tuple[str, str]
    found: Sequence[Pair]
    alone: int


def row_of(outcome: Outcome) -> str:
    """Return the name of a system with its reader."""
    return f"{outcome.system} > {outcome.reader}"


def load(
    store: Store, names: tuple[str, str], limit: int | None = None, outcomes: Sequence[Outcome] | None = None
) -> Pairs:
    """Return the pairs of two systems, in the order of their ids, which is a random one.

    :param names: systems, as ``chunks_bm25:whole``; or systems with readers, as ``chunks_bm25:whole > openai:m``. The
        beginning of a name, as ``chunks_bm25``, will do where one system of the run has it.
    :param limit: pairs at most.
    :param outcomes: those whose answers are compared; None for all of the run.
    :raises UnknownName: the run has no such system, or several.
    :raises EvalError: a system has no answers, the two share no question, or the run does not keep its questions.
    """
    outcomes = store.outcomes() if outcomes is None else outcomes
    if not outcomes:
        raise EvalError("the run is empty: nothing was measured yet")
    names = _whole(outcomes, names[0]), _whole(outcomes, names[1])
    if names[0] == names[1]:
        raise EvalError(f"{names[0]} cannot be compared with itself")
    by_row = all(" > " in name for name in names)
    first, second = (_answers(outcomes, name, by_row) for name in names)
    shared = [key for key in first if key in second]
    if not shared:
        raise EvalError(f"{names[0]} and {names[1]} answered no question with the same budget, reader and prompt")
    found = [_pair(store, names, first[key], second[key], by_row) for key in shared]
    alone = len(first) + len(second) - 2 * len(shared)
    return Pairs(names, sorted(found, key=lambda pair: pair.id)[:limit], alone)


def _whole(outcomes: Sequence[Outcome], name: str) -> str:
    """Return the whole name of a system, or of a system with its reader, that is in the run."""
    known = dict.fromkeys(outcome.system for outcome in outcomes)
    start, mark, reader = name.partition(" > ")
    among = dict.fromkeys(row_of(outcome) for outcome in outcomes) if mark else known
    if name in among:
        return name
    found = [one for one in among if one.startswith(f"{start}:") and one.endswith(mark + reader)]
    if len(found) > 1:
        raise UnknownName(f"{name} stands for several systems of this run; name one of: {', '.join(found)}")
    if not found:
        raise UnknownName(f"{name} is not in this run; its systems are: {', '.join(known)}")
    return found[0]


def _answers(outcomes: Sequence[Outcome], name: str, by_row: bool) -> dict[tuple[object, ...], Outcome]:
    """Return the outcomes of a system with an answer; of a question that was measured twice, the last."""
    own = [outcome for outcome in outcomes if name in (outcome.system, row_of(outcome))]
    answered = [outcome for outcome in own if outcome.reading is not None]
    if not answered:
        raise EvalError(f"{name} has no answers in this run: make them with prunus eval run --reader")
    return {
        (outcome.task, outcome.question, outcome.budget, "" if by_row else outcome.reader, outcome.prompt_name): outcome
        for outcome in answered
    }


def _pair(store: Store, names: tuple[str, str], first: Outcome, second: Outcome, by_row: bool) -> Pair:
    facts = store.question(first.task, first.question)
    if facts is None:
        raise EvalError(
            f"the run does not keep question {first.question} of {first.task}: run it again in a new folder"
        )
    reader = "" if by_row else first.reader
    key = json.dumps([first.task, first.question, first.budget, reader, first.prompt_name, *names])
    answers = tuple(outcome.reading.text if outcome.reading else "" for outcome in (first, second))
    return Pair(
        id=hashlib.sha256(key.encode()).hexdigest()[:16],
        group=(first.task, first.budget, reader, first.prompt_name),
        page=first.page,
        question=facts["question"],
        answers=(answers[0], answers[1]),
        caveats=tuple(dict.fromkeys(outcome.caveat for outcome in (first, second) if outcome.caveat)),
    )
