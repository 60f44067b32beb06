"""The state of one answer in the making: the question, the engines, the evidence, and what it may still cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, cast

from ..core.errors import BadBudget, BadInput, Failures
from ..core.options import Options
from ..core.ports import LLM, Embedder, Extractor, Generator, Segment, StreamingGenerator
from ..evidence.documents import Documents
from ..evidence.two_stage import Engines
from ..models.meter import Meter
from .chat import Conversation
from .check import Reference
from .pictures import Pages
from .trace import StageTimer

if TYPE_CHECKING:
    from .find_pages import WebEngines

OVERHEAD: Final = 900
"""About how many tokens the instructions, the question and the heads of the sources take."""

LEAST_ROOM: Final = 1_500
"""Fewest tokens for which the model is called: instructions, a little evidence and a short answer."""


@dataclass(frozen=True, slots=True)
class Spare:
    """Engines that need no model; they take over where the model's engines fail or would exceed a limit."""

    extractor: Extractor
    generator: Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEngines(Engines):
    """The engines of an answer: those that choose evidence, and those that make an answer of it.

    :param llm: the language model, if one is configured; every call of it is counted by ``meter``.
    :param embedder: compares a written answer with the pages.
    :param spare: the engines that take over where the model's engines fail; None without a model.
    :param meter: the cost of the whole answer so far, and its limits.
    :param web: the engines that find and read pages; None for an answer that does not search the web.
    :param min_confidence: chance that a passage answers below which there is no answer without a model.
    """

    extractor: Extractor
    generator: Generator
    embedder: Embedder
    meter: Meter
    llm: LLM | None = None
    spare: Spare | None = None
    web: WebEngines | None = None
    min_confidence: float = 0.0


class Finder(Protocol):
    """Indexes that are searched along with pages (implemented in :mod:`prunus.index.evidence`)."""

    location: str
    """The name of the indexes in messages: their paths."""

    def find(self, question: str, pages: Documents, budget: int) -> Documents:
        """Return the pages, followed by the documents that each index finds within ``budget`` tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and how it is to be answered.

    :param budget: tokens of evidence; None follows the model's window.
    :param rewritten: a self-contained form of the question, by which passages are chosen; '' for the question itself.
    :param chat: earlier turns and their sources; this turn is added to it.
    :param indexes: searched too; the documents found compete with the pages.
    """

    question: str
    budget: int | None = None
    options: Options = field(default_factory=Options)
    rewritten: str = ""
    chat: Conversation | None = None
    indexes: Finder | None = None

    @property
    def full_question(self) -> str:
        """The text by which passages are chosen."""
        return self.rewritten or self.question


@dataclass(slots=True)
class Run:
    """The state of one answer in the making.

    :param names: the spec of each engine, by port.
    :param references: the numbered pages that the generator is shown.
    :param tagged: the segments of the evidence, from which an extractor chose.
    :param chosen: the extracted segments.
    :param text: the answer written so far.
    :param pages: reads the pictures of the evidence; None: the model gets no pictures.
    :param pictures: the pictures of each document, as ``data:`` addresses.
    :param cited: numbers of the references that the answer cites.
    :param likeliest: the highest chance that the passages of a group of pages answer, where an extractor tells.
    """

    asked: Asked
    engines: AnswerEngines
    stages: StageTimer
    failures: Failures
    names: dict[str, str]
    references: list[Reference] = field(default_factory=list)
    tagged: Sequence[Segment] = ()
    chosen: list[Segment] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    text: str = ""
    pages: Pages | None = None
    pictures: dict[str, list[str]] = field(default_factory=dict)
    cited: set[int] = field(default_factory=set)
    likeliest: float = 0.0

    @property
    def writer(self) -> StreamingGenerator | None:
        """The generator, where it writes with a model; else None."""
        return cast(StreamingGenerator, self.engines.generator) if self.engines.generator.writes else None

    def afford(self) -> float:
        """Return about how many tokens the model may still use; infinity without a limit."""
        llm = self.engines.llm
        return llm.affordable() if llm is not None else math.inf

    def seconds(self, share: float) -> float | None:
        """Return a share of the remaining seconds; None without a limit."""
        left = self.stages.meter.seconds_left
        return None if left == math.inf else left * share


def start(asked: Asked, engines: AnswerEngines, failures: Failures | None = None) -> Run:
    """Begin an answer.

    :raises BadInput: the question is empty.
    :raises BadBudget: the budget is below 1.
    """
    if not asked.question.strip():
        raise BadInput("the question is empty", subject="query")
    if asked.budget is not None and asked.budget < 1:
        raise BadBudget(f"a budget of {asked.budget} tokens holds nothing; give at least 1", subject=str(asked.budget))
    stages = StageTimer(engines.meter, asked.options.trace)
    return Run(asked, engines, stages, Failures() if failures is None else failures, dict(engines.names))


def tokens_for_evidence(afford: float) -> int:
    """Return how many of the affordable tokens may be evidence; the rest is for the answer."""
    return 10**9 if afford == math.inf else max(1, int(afford * 0.7) - OVERHEAD)
