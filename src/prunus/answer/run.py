"""One answer under way: what was asked, with which engines, and what it may still cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from ..core.errors import BadBudget, BadInput, Failures
from ..core.options import Options
from ..core.ports import StreamingGenerator, Tagged
from ..evidence.documents import Documents
from ..evidence.engines import Engines
from ..models.meter import Meter
from .baselines import MODES
from .chat import Conversation
from .check import Reference
from .pictures import Pages
from .trace import Stages

OVERHEAD: Final = 900
"""Tokens of the instructions, the question and the sources' heads, about."""

LEAST_ROOM: Final = 1_500
"""Tokens below which no model is asked: instructions, a little evidence and a short answer."""


class Finder(Protocol):
    """What finds further evidence: indexes that are asked along with pages (:mod:`prunus.index.find`)."""

    place: str
    """How messages call them."""

    def find(self, question: str, pages: Documents, budget: int) -> Documents:
        """Return the pages, and after them what the indexes find, each within a budget of tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and how it is answered.

    :param budget: tokens of evidence; None follows the model's window.
    :param about: what passages are chosen for, where the question does not stand alone.
    :param chat: earlier turns and their sources; takes this one in.
    :param indexes: are asked too; what they find competes with the pages.
    """

    question: str
    budget: int | None = None
    options: Options = field(default_factory=Options)
    about: str = ""
    chat: Conversation | None = None
    indexes: Finder | None = None

    @property
    def sought(self) -> str:
        """What passages are chosen for."""
        return self.about or self.question


@dataclass(slots=True)
class Run:
    """One answer under way.

    :param pages: reads addresses, for the pictures of the evidence; None sends none along.
    :param pictures: of each document, as ``data:`` addresses.
    :param cited: numbers of the references that the answer cites.
    """

    asked: Asked
    engines: Engines
    stages: Stages
    failures: Failures
    names: dict[str, str]
    references: list[Reference] = field(default_factory=list)
    chosen: list[Tagged] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    text: str = ""
    pages: Pages | None = None
    pictures: dict[str, list[str]] = field(default_factory=dict)
    cited: set[int] = field(default_factory=set)

    @property
    def writer(self) -> StreamingGenerator | None:
        """The generator, where it writes with a model."""
        return cast(StreamingGenerator, self.engines.generator) if self.engines.generator.writes else None

    def afford(self) -> float:
        """Return about how many tokens the model may still use."""
        llm = self.engines.llm
        return llm.affordable() if llm is not None else math.inf

    def seconds(self, share: float) -> float | None:
        """Return a share of the seconds that are left; None without a limit."""
        left = self.stages.meter.seconds_left
        return None if left == math.inf else left * share


def start(asked: Asked, engines: Engines, failures: Failures | None = None, stages: Stages | None = None) -> Run:
    """Begin an answer.

    :raises BadInput: no such mode, or one that needs a model, and there is none.
    """
    if asked.options.mode not in MODES:
        raise BadInput(f"no mode is called {asked.options.mode!r}; there are: {', '.join(MODES)}", subject="mode")
    if not asked.question.strip():
        raise BadInput("the question is empty", subject="query")
    if asked.budget is not None and asked.budget < 1:
        raise BadBudget(f"a budget of {asked.budget} tokens holds nothing; give at least 1", subject=str(asked.budget))
    stages = stages or Stages(engines.meter or Meter(asked.options.limits), asked.options.trace)
    run = Run(asked, engines, stages, Failures() if failures is None else failures, dict(engines.names))
    if asked.options.mode != "default" and run.writer is None:
        raise BadInput(f"mode {asked.options.mode} gives pages to a model; name one with --llm", subject="mode")
    return run


def tokens_for_evidence(afford: float) -> int:
    """Return how many of the tokens that are left may be evidence; the rest is for the answer."""
    return 10**9 if afford == math.inf else max(1, int(afford * 0.7) - OVERHEAD)
