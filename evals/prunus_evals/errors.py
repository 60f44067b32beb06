"""The errors of evaluations."""

from __future__ import annotations

from collections.abc import Iterable

from prunus.core.text.near import did_you_mean


class EvalError(Exception):
    """Base of every expected error of this package."""


class DataMissing(EvalError):
    """The evaluation data, the reference package or a tokenizer is missing."""


class DataWrong(EvalError):
    """A data file holds something that its format does not allow; the message names the file and the line."""


class MetricError(EvalError):
    """A metric cannot be computed. It is raised so that no table lacks a number silently."""


class BudgetBroken(EvalError):
    """A system returned more tokens than its budget."""

    def __init__(self, system: str, question: str, budget: int, tokens: int) -> None:
        super().__init__(f"{system}: {tokens} tokens for a budget of {budget} ({question})")
        self.system = system
        self.question = question
        self.budget = budget
        self.tokens = tokens


class UnknownName(EvalError):
    """There is no task, system, metric or the like of this name."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str]) -> UnknownName:
        """Return the error for a name that is none of the known ones; it says which was meant, else all of them.

        :param kind: what is named, as ``task``.
        """
        there = list(known)
        if near := did_you_mean(name, there):
            return cls(f"unknown {kind} {name}{near} (prunus eval list shows all)")
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        return cls(f"unknown {kind} {name}; the {plural} are: {', '.join(there)}")


class ReaderFailed(EvalError):
    """A language model cannot be reached, refuses, does not finish, or answers what cannot be read.

    The model is a reader or a judge, or works inside a system.
    """


class Unreachable(ReaderFailed):
    """A language model cannot be reached, or does not answer in time."""


class SystemFailed(EvalError):
    """A system failed at a question; the message names both."""
