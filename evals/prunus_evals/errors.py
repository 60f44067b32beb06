"""What can go wrong in an evaluation."""

from __future__ import annotations


class EvalError(Exception):
    """Base of every error that this package raises on purpose."""


class DataMissing(EvalError):
    """Real data is needed and is not there."""


class MetricError(EvalError):
    """A metric cannot be computed; a table never lacks a number silently."""


class BudgetBroken(EvalError):
    """A system returned more tokens than the budget that it was given."""

    def __init__(self, system: str, question: str, budget: int, tokens: int) -> None:
        super().__init__(f"{system}: {tokens} tokens for a budget of {budget} ({question})")
        self.system = system
        self.question = question
        self.budget = budget
        self.tokens = tokens


class UnknownName(EvalError):
    """A task or a system that does not exist was asked for."""
