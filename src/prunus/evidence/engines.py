"""The engines of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.ports import LLM, Embedder, Extractor, Generator, TokenCounter
from .scorer import Scorer

if TYPE_CHECKING:
    from ..models.meter import Meter


@dataclass(frozen=True, slots=True)
class Spare:
    """Engines that need no model; they take over where the model's engines fail or would exceed a limit."""

    extractor: Extractor
    generator: Generator


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of one call, and their names.

    :param scorer: the scorer of the only stage, or of the first of two stages.
    :param second_scorer: the scorer of the second stage; None where there is only one stage.
    :param first: when the first of two stages runs: ``always``; ``large``: if the pages exceed the intermediate
        budget; ``never``: only if a prompt exceeds the model's window.
    :param llm: the language model, if one is configured; its meter counts every call.
    :param spare: the engines that take over where the model's engines fail.
    :param meter: the cost of the whole call so far, and its limits.
    """

    counter: TokenCounter
    scorer: Scorer
    extractor: Extractor
    generator: Generator
    names: Mapping[str, str] = field(default_factory=dict)
    second_scorer: Scorer | None = None
    first: str = "large"
    llm: LLM | None = None
    embedder: Embedder | None = None
    spare: Spare | None = None
    meter: Meter | None = None
