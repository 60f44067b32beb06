"""The ports: what every kind of engine promises. One engine is one file in its room.

Engines that turn texts into numbers are plain, thread-safe and batch-first. Engines that wait for
the outside are ``async``. An engine that needs another is given it; it never looks one up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .events import Event
from .html.blocks import Blocks
from .types import Message, Page, Passage, Plan, Results, SearchRequest, Span, Summary

if TYPE_CHECKING:
    import httpx  # loaded only where something is fetched

Ints = NDArray[np.int64]
Floats = NDArray[np.float32] | NDArray[np.float64]
Vectors = NDArray[np.float32]


class TokenCounter(Protocol):
    """Counts what texts cost a model."""

    def count(self, texts: Sequence[str]) -> Ints:
        """Return the tokens of each text, int [n]; special tokens are not counted."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Vectors:
        """Return float32 [n, dim] of unit norm."""
        ...


class Scorer(Protocol):
    """Scores blocks for a question."""

    def score(self, query: str, blocks: Blocks) -> Floats:
        """Return one number a block, float [n]; higher is better."""
        ...


class Reranker(Protocol):
    """Scores texts for a question, each pair read together."""

    def rerank(self, query: str, texts: Sequence[str]) -> Floats:
        """Return one number a text, float [n]; higher is better."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterItems:
    """What a clusterer sees of a layer.

    :param vectors: float32 [n, dim] of unit norm.
    :param tokens: int [n].
    :param documents: the document of each item.
    :param order: position of each item in its document, int [n].
    """

    vectors: Vectors
    tokens: Ints
    documents: Sequence[str]
    order: Ints


class Clusterer(Protocol):
    """Groups the items of a layer; overlap is allowed."""

    needs_summaries: bool
    """False: every layer can be fixed before any summary is written."""

    def layer(self, items: ClusterItems, limits: Any) -> list[Ints]:
        """Return the groups as arrays of item numbers."""
        ...


class SearchProvider(Protocol):
    """A web search, or anything that answers like one."""

    async def search(self, request: SearchRequest) -> Results:
        """Return hits in the provider's order."""
        ...


class Door(Protocol):
    """The only way to the network: every engine that talks to the outside is given it.

    :param endpoint: an address that the operator wrote down; its scheme, host and port, and nothing
        else, may then be internal, for this client only.
    """

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        """Return a client whose every request is checked; ``seconds`` is a time-out of its own."""
        ...

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        """The same for ``async`` engines."""
        ...


class Fetcher(Protocol):
    """Reads pages from the outside, through the egress door."""

    async def fetch(self, url: str) -> Page:
        """Return the page; raises OutsideFailed or BadPage."""
        ...


class LLM(Protocol):
    """A language model."""

    def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield token events and one usage event."""
        ...


class Planner(Protocol):
    """Decides whether to search, and for what."""

    async def plan(self, conversation: Sequence[Message], now: datetime) -> Plan:
        """Return the plan; the clock is an input."""
        ...


@dataclass(frozen=True, slots=True)
class Tagged:
    """A segment with its tag, for extractors that name only tags.

    :param score: the score of the block that it stands in.
    :param above: what stands above it, a line each: title, headings, caption and header, lead of its list.
    :param label: what a reader of the segment needs besides: the header of its table, the lead of its list.
    :param kind: ``sentence``, ``row``, ``pair`` (a term and its definitions), ``list`` or ``code``.
    """

    tag: int
    text: str
    span: Span
    score: float = 0.0
    above: str = ""
    label: str = ""
    kind: str = "sentence"


class Extractor(Protocol):
    """Chooses the segments that bear on a question."""

    async def extract(self, query: str, tagged: Sequence[Tagged]) -> list[int] | None:
        """Return the chosen tags, or None when nothing bears on it.

        An engine that says ``per_page = True`` is asked about each page alone, several pages at once.
        """
        ...


class Generator(Protocol):
    """Writes the answer from passages."""

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the answer's text with citation markers."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A page as the model that answers is shown it.

    :param text: the extracted HTML, Markdown or text.
    :param number: as the answer cites it, from 1; 0 is its place in the list.
    :param pictures: of the evidence, as ``data:`` addresses, for a model that sees them.
    """

    text: str
    title: str = ""
    url: str = ""
    published: str = ""
    number: int = 0
    pictures: Sequence[str] = ()


class Writer(Generator, Protocol):
    """A generator that writes as it goes, from numbered sources."""

    def stream(self, query: str, sources: Sequence[Source], turns: Sequence[Message] = ()) -> AsyncIterator[Event]:
        """Yield token events and one usage event; ``turns`` say what was asked and answered before."""
        ...

    def unsourced(self, query: str, turns: Sequence[Message] = ()) -> AsyncIterator[Event]:
        """Yield an answer that rests on no source, and cites nothing."""
        ...


class Summarizer(Protocol):
    """Summarises groups of texts."""

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary a group."""
        ...


class Format(Protocol):
    """Turns one kind of document into HTML."""

    media_types: Sequence[str]
    suffixes: Sequence[str]

    def to_html(self, page: Page) -> str | bytes:
        """Return the document as HTML; raises BadPage."""
        ...


class Store(Protocol):
    """Keeps an index: transactional, versioned."""

    def add(self, document: str, nodes: Sequence[Any]) -> None:
        """Add a document's nodes; acknowledged means durable."""
        ...

    def delete(self, document: str) -> None:
        """Remove a document."""
        ...

    def get(self, ids: Sequence[int]) -> list[Any]:
        """Return nodes by id."""
        ...

    def search(self, vector: Vectors | None, terms: str, count: int) -> list[tuple[int, float]]:
        """Return (node, score) by dense and lexical search."""
        ...


class PathScorer(Protocol):
    """Scores block paths with a language model (HtmlRAG §3.4.2)."""

    def log_probabilities(self, prompt: str, paths: Sequence[str]) -> Floats:
        """Return log P of each path given the prompt, float [n]."""
        ...
