"""The records that tasks yield and that a run produces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Format = Literal["html", "markdown", "text"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one given page."""

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
    """A page and the article in it that a person marked."""

    page: str
    html: str
    body: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system kept of a page.

    ``cpu_seconds`` is given only by a system that works in another process; else the
    runner measures.
    """

    text: str
    format: Format
    cpu_seconds: float | None = None


class Asker(Protocol):
    """A page that is ready for questions."""

    def ask(self, question: str, budget: int) -> Reply:
        """Return what is kept of the page for a question within a budget."""
        ...


class System(Protocol):
    """Something that keeps the evidence of a page within a budget of tokens."""

    @property
    def name(self) -> str:
        """The name that tables show."""
        ...

    def prepare(self, html: str) -> Asker:
        """Do once what does not depend on the question."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """One system, one question, one budget."""

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
