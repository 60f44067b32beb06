"""The options of one call, the same in the library, the command line, HTTP and MCP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .errors import BadInput


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a whole answer: model tokens, USD and wall seconds; 0 is no limit."""

    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WebOptions:
    """Options of the web search of an answer. '' leaves a choice to the plan.

    :param count: hits requested for each query.
    :param read: pages that are read and ranked at most.
    :param pages: best-ranked pages that the answer is made from at most.
    :param ranking: ranks pages by ``hybrid`` (BM25 and embeddings), ``paper`` (the embedder, Internet-SAG §3.2) or
        ``reranker``.
    :param language, country: codes, as ``de`` and ``DE``.
    :param time_range: ``day``, ``week``, ``month``, ``year``, or ``2024-01-01..2024-06-30``.
    :param topic: ``news`` and others, where a provider has them.
    :param always: search even where the plan says that no search is needed.
    :param unread: where no page is relevant to the question, let the model answer without pages, with a warning.
    :param pictures: pictures of the evidence that are sent to a model that accepts them, at most.
    """

    count: int = 10
    read: int = 20
    pages: int = 5
    ranking: Literal["hybrid", "paper", "reranker"] = "hybrid"
    language: str = ""
    country: str = ""
    time_range: str = ""
    include_domains: Sequence[str] = ()
    exclude_domains: Sequence[str] = ()
    safe_search: bool = True
    topic: str = ""
    always: bool = False
    unread: bool = False
    pictures: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one call. '' and 0 leave the choice to settings, or to Prunus.

    An engine is named by its spec, as ``bm25``, ``onnx:FOLDER`` or ``path/to/file.py:Class``, or given as an object
    with the methods of its port.

    :param scorer: engine that scores blocks: ``hybrid``, ``trees``, ``bm25``, ``embedding``.
    :param second_scorer: engine that scores the blocks that the first of two stages kept: ``generative:MODEL``,
        ``crossencoder``, …
    :param stages: 2 for two stages, 1 for one; 0 for two where a second scorer is named and the pages are over the
        intermediate budget.
    :param coarse_budget: token budget of the first of two stages.
    :param coarse_words: words of a block at most in the first of two stages; ``max_words`` is for the second.
    :param embedder: engine that embeds texts: ``static``, ``minilm``, ``multilingual``, ``onnx:FOLDER``, an address.
    :param reranker: engine that scores pairs of question and text, for the scorer ``crossencoder`` and, where it was
        trained for them, for quotes.
    :param llm: the language model.
    :param tokenizer: engine that counts tokens: ``smollm2``, ``approx``, ``hf:PATH``.
    :param search: providers of web search, separated by commas.
    :param planner: engine that decides whether to search, and with which queries: ``rules``, ``llm``.
    :param extractor: engine that chooses sentences: ``sentences``, ``sentences:N`` for N at most, ``tags``.
    :param generator: engine that writes the answer: ``quotes``, ``llm``.
    :param trace: called with a ``prunus.core.types.Trace`` when a stage of an answer ends.
    :param min_confidence: chance that a quote answers the question, 0 to 1, below which there is no answer without a
        model; None follows the setting (0.2), 0 always answers.
    :param max_words: words of a block at most; 0 chooses by page, budget and question.
    :param units: ``blocks``, or ``leaves`` of the DOM (the ablation of HtmlRAG §4.6.2).
    :param breadcrumbs: keep all headings above each kept block, paid from the budget; else the innermost one.
    :param fill: fill the budget with blocks that hardly bear on the question; else it is a ceiling.
    :param links: write the targets of links into pruned output.
    :param images: write the addresses of pictures into pruned output.
    :param emphasis: write bold, italics and their kin into pruned output.
    :param full: write full HTML instead of compact HTML.
    :param pretty: write full HTML, indented.
    """

    scorer: str | Any = ""
    second_scorer: str | Any = ""
    stages: int = 0
    coarse_budget: int = 0
    coarse_words: int = 0
    embedder: str | Any = ""
    reranker: str | Any = ""
    llm: str | Any = ""
    tokenizer: str | Any = ""
    search: str | Any = ""
    planner: str | Any = ""
    extractor: str | Any = ""
    generator: str | Any = ""
    min_confidence: float | None = None
    max_words: int = 0
    units: Literal["blocks", "leaves"] = "blocks"
    breadcrumbs: bool = False
    fill: bool = False
    links: bool = False
    images: bool = False
    emphasis: bool = False
    full: bool = False
    pretty: bool = False
    limits: Limits = field(default_factory=Limits)
    web: WebOptions = field(default_factory=WebOptions)
    trace: Callable[[Any], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the types of all options but the engines, which their ports check.

        :raises BadInput: an option is of another type than its default.
        """
        for option in fields(self):
            value, plain = getattr(self, option.name), _PLAIN.get(option.type)
            if plain and (not isinstance(value, plain) or (plain is int and isinstance(value, bool))):
                raise BadInput(f"option {option.name}: {value!r} is not of type {plain.__name__}", subject=option.name)


_PLAIN: dict[Any, type] = {"int": int, "bool": bool, "Limits": Limits, "WebOptions": WebOptions}
"""The types of options that are no engines, by their names in the class."""
