"""The records of evaluations: questions, replies, outcomes, and the protocol of a system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Format = Literal["html", "markdown", "text"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one page.

    :param page: key of the page; its digest decides the half.
    :param gold_table: HTML of the table that holds the answer, where it is known.
    :param element_id: value of ``tid`` of the element that holds the answer, where it is known.
    """

    id: str
    task: str
    page: str
    html: str
    question: str
    answers: tuple[str, ...]
    gold_table: str | None = None
    element_id: str | None = None


@dataclass(frozen=True, slots=True)
class Article:
    """A page, and the text of its article as a person marked it."""

    page: str
    html: str
    body: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The evidence that a system kept of a page.

    :param cpu_seconds: set only by a system that works in another process; else the runner measures the time.
    """

    text: str
    format: Format
    cpu_seconds: float | None = None


class Asker(Protocol):
    """A page that a system has prepared for questions."""

    def ask(self, question: str, budget: int) -> Reply:
        """Return the evidence for a question, of at most ``budget`` tokens."""
        ...


class System(Protocol):
    """Something that keeps the evidence of a page within a budget of tokens."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    def prepare(self, html: str) -> Asker:
        """Do the work that does not depend on the question, once for each page."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The scores of one system for one question at one budget.

    :param answer: whether every gold answer is in the output.
    :param tokens: tokens of the output.
    :param cpu_seconds: CPU time, preparation of the page included.
    :param gold_whole: whether the whole gold table or element is in the output; None without one.
    :param gold_share: share of the gold table's words in the output; None without one.
    """

    task: str
    system: str
    page: str
    question: str
    budget: int
    answer: bool
    tokens: int
    cpu_seconds: float
    gold_whole: bool | None = None
    gold_share: float | None = None
