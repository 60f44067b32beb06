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
    """What needs no model, and takes over where the model's engines fail or would go over a limit."""

    extractor: Extractor
    generator: Generator


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of one call, and their names.

    :param scorer: of the only stage, or of the first of two.
    :param fine: of the second stage; None where there is one.
    :param first: when the first of two stages runs: ``always``, ``large`` (pages over the intermediate budget), or
        ``never``, unless a prompt is over a window.
    :param llm: the language model, where one is configured; every call is counted.
    :param spare: what takes over where the model's engines fail.
    :param meter: what the whole call has cost so far, and may cost.
    """

    counter: TokenCounter
    scorer: Scorer
    extractor: Extractor
    generator: Generator
    names: Mapping[str, str] = field(default_factory=dict)
    fine: Scorer | None = None
    first: str = "large"
    llm: LLM | None = None
    embedder: Embedder | None = None
    spare: Spare | None = None
    meter: Meter | None = None
