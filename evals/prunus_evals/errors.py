"""The errors of evaluations."""

from __future__ import annotations


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
    """There is no task or system of this name."""


class ReaderFailed(EvalError):
    """A language model cannot be reached, refuses, does not finish, or answers what cannot be read.

    The model is a reader or a judge, or works inside a system.
    """


class Unreachable(ReaderFailed):
    """A language model cannot be reached, or does not answer in time."""


class SystemFailed(EvalError):
    """A system failed at a question; the message names both."""
