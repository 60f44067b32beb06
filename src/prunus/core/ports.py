"""The ports: one protocol for each kind of engine, and the data that engines exchange.

Engines that turn texts into numbers are synchronous, thread-safe and take batches. Engines that wait for a service
are ``async``. An engine gets the engines that it needs from its constructor; it never looks one up. The port of
stores, ``NodeStore``, is in :mod:`prunus.index.nodes`.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .events import Event
from .types import Message, Page, Passage, Plan, Results, SearchRequest, Span, Summary

if TYPE_CHECKING:
    import httpx  # slow to load: only code that makes requests loads it

Ints = NDArray[np.int64]
Floats = NDArray[np.float32] | NDArray[np.float64]
Vectors = NDArray[np.float32]


class TokenCounter(Protocol):
    """Counts the tokens of texts."""

    def count(self, texts: Sequence[str]) -> Ints:
        """Return the tokens of each text, int [n]; special tokens are not counted."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def identity(self) -> str:
        """What the vectors depend on: two engines of one identity give the same; '' for the engine's name."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector; 0: not known before the first one."""
        ...

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Vectors:
        """Return float32 [n, dim] of unit norm."""
        ...


class Reranker(Protocol):
    """Scores pairs of a question and a text, read together by the model.

    It may declare two numbers for the scorer ``crossencoder``: ``above``, the most code points of headings and lead
    before a block (400), and ``beside``, the weight that the cheap score has beside its own, counted in standard
    deviations of the candidates (0). For the extractor ``sentences`` it may declare ``added``, the weight of its score
    beside the learned score of a segment (0: it reads no segments), and ``languages``, the codes of those that it
    reads (() for all).
    """

    def rerank(self, query: str, texts: Sequence[str]) -> Floats:
        """Return one score for each text, float [n]; higher is better."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterItems:
    """The items of one layer of an index, as a clusterer gets them.

    :param vectors: float32 [n, dim] of unit norm.
    :param tokens: tokens of each item, int [n].
    :param documents: document of each item.
    :param order: position of each item in its document, int [n].
    """

    vectors: Vectors
    tokens: Ints
    documents: Sequence[str]
    order: Ints


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """Limits of the groups of a layer. A pair is never split for its size: otherwise a layer might not shrink.

    :param tokens: tokens that the summariser reads for one group at most. RAPTOR's code uses 3,500.
    :param items: children of a parent at most.
    :param fan_out: children of a parent to aim at.
    :param seed: seed of random choices; the same seed gives the same groups.
    :raises BadInput: no tokens, fewer than two items, or a fan-out below 2.
    """

    tokens: int = 3500
    items: int = 24
    fan_out: int = 7
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.items < 2 or self.fan_out < 2 or self.seed < 0:
            raise BadInput(
                f"groups of {self.fan_out} to {self.items} items and {self.tokens} tokens, seed {self.seed}: give at "
                "least 2, 2, 1 and 0",
                subject="limits",
            )

    def fits(self, items: int, tokens: int) -> bool:
        """Tell whether a group of so many items and tokens is within the limits."""
        return items <= 2 or (items <= self.items and tokens <= self.tokens)


class Clusterer(Protocol):
    """Groups the items of a layer; an item may be in several groups.

    Where it has ``by_shards = True``, a large layer is split by direction, and it gets each shard by itself.
    """

    needs_summaries: bool
    """Whether a layer above the first can only be grouped once the summaries below it are written."""
    last_layer: int
    """A layer of so many nodes or fewer gets no layer above it."""

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return the groups as arrays of item numbers."""
        ...


class SearchProvider(Protocol):
    """A web search, or any other source of hits."""

    name: str

    @property
    def lacks_key(self) -> bool:
        """Whether it needs a key and has none."""
        ...

    @property
    def lacks_address(self) -> bool:
        """Whether it needs an address and has none."""
        ...

    async def search(self, request: SearchRequest) -> Results:
        """Return hits in the provider's order."""
        ...


class Door(Protocol):
    """The egress door: the only way to the network, passed to every engine that makes requests.

    :param endpoint: an address from the operator's settings. This client alone may reach its scheme, host and port
        even where they are internal.
    """

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        """Return a client that checks every request.

        :param seconds: timeout of this client; 0 is the door's default.
        """
        ...

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        """Return an ``async`` client that checks every request."""
        ...


class LanguageModel:
    """What a language model says of itself, with what holds where it says nothing; engines inherit it."""

    name: str = "model"
    model: str = ""
    """Which model it is, for prices and messages."""
    real: bool = True
    """Whether a call asks a model; False where replies are scripted."""
    free: bool = False
    """Whether calls cost no money."""
    sees_pictures: bool = False
    context_window: int = 0
    """Tokens of prompt and reply together; 0: not known."""
    count: Callable[[Sequence[str]], Ints] | None = None
    """Counts tokens as the model does; None where it cannot."""

    async def ask_window(self) -> int:
        """Return the context window, asking the model's server where only it knows; 0: not known."""
        return self.context_window

    def room(self, messages: Sequence[Message]) -> float:
        """Return the largest ``max_tokens`` that a call with these messages may ask for; infinite without a limit."""
        return math.inf

    def affordable(self) -> float:
        """Return about how many tokens may still be used; infinite without a limit."""
        return math.inf


LANGUAGE_MODEL: Final = tuple("model real free sees_pictures context_window count ask_window room affordable".split())
"""The members of :class:`LanguageModel` that an engine of another package may leave out."""


class LLM(Protocol):
    """A language model: a :class:`LanguageModel` that streams."""

    name: str
    model: str
    real: bool
    free: bool
    sees_pictures: bool
    context_window: int
    count: Callable[[Sequence[str]], Ints] | None

    async def ask_window(self) -> int:
        """See :class:`LanguageModel`."""
        ...

    def room(self, messages: Sequence[Message]) -> float:
        """See :class:`LanguageModel`."""
        ...

    def affordable(self) -> float:
        """See :class:`LanguageModel`."""
        ...

    def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield token events and one usage event."""
        ...


class Planner(Protocol):
    """Decides whether to search, and with which queries."""

    async def plan(self, conversation: Sequence[Message], now: datetime) -> Plan:
        """Return the plan.

        :param now: the time that words like "today" refer to.
        """
        ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """A segment that an extractor chose.

    :param tag: of the segment.
    :param confidence: the chance that it answers the question, 0 to 1; None where the extractor cannot tell.
    :param how: how it was found, where its numbers or its place decided, as "largest of Capacity".
    """

    tag: int
    confidence: float | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A slice of a page that can be quoted, with a number, its tag, by which an extractor chooses it.

    :param tag: from 1; 0 for a segment that no extractor is shown.
    :param score: score of the segment's block.
    :param above: headings of the segment, a line each: title, headings, table caption and header, lead of its list.
    :param label: context that is not in the segment itself: the header of its table, the lead of its list.
    :param shown: a row with its empty cells in place; '' for what is shown as it is.
    :param choice: what the extractor knows of a segment that it chose.
    """

    tag: int
    text: str
    span: Span
    score: float = 0.0
    above: str = ""
    label: str = ""
    kind: Literal["sentence", "row", "pair", "list", "code"] = "sentence"
    shown: str = ""
    choice: Chosen | None = None

    @property
    def passage(self) -> Passage:
        """The segment as a passage of an answer."""
        confidence, how = (None, "") if self.choice is None else (self.choice.confidence, self.choice.how)
        return Passage(self.text, (self.span,), self.score, self.label, self.shown, confidence=confidence, how=how)


class Extractor(Protocol):
    """Chooses the segments that are relevant to a question."""

    per_page: bool
    """Whether it is called for each page alone, several pages at once."""

    async def extract(self, query: str, tagged: Sequence[Segment]) -> list[Chosen] | None:
        """Return the chosen segments, best first, or None when no segment is relevant."""
        ...


class Generator(Protocol):
    """Writes the answer from passages."""

    verbatim: bool
    """Whether it only repeats passages; then summaries are replaced by the pages' own words."""
    writes: bool
    """Whether it is a :class:`StreamingGenerator`."""

    async def generate(self, query: str, passages: Sequence[Passage]) -> str:
        """Return the answer's text with citation markers."""
        ...


@dataclass(frozen=True, slots=True)
class NumberedSource:
    """A page as the prompt of the answer shows it.

    :param text: the extracted HTML, Markdown or text.
    :param number: number that the answer cites, from 1; 0 takes the place in the list.
    :param pictures: pictures of the evidence as ``data:`` URLs, for a model that accepts them.
    """

    text: str
    title: str = ""
    url: str = ""
    published: str = ""
    number: int = 0
    pictures: Sequence[str] = ()


class StreamingGenerator(Generator, Protocol):
    """A generator that streams the answer from numbered sources."""

    def stream(
        self, query: str, sources: Sequence[NumberedSource], turns: Sequence[Message] = ()
    ) -> AsyncIterator[Event]:
        """Yield token events and one usage event; ``turns`` are the earlier messages of the conversation."""
        ...

    def unsourced(self, query: str, turns: Sequence[Message] = ()) -> AsyncIterator[Event]:
        """Yield an answer without sources and citations."""
        ...


class Summarizer(Protocol):
    """Summarises groups of texts."""

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary for each group, of ``max_tokens`` at most."""
        ...


class Format(Protocol):
    """Turns one kind of document into HTML."""

    media_types: Sequence[str]
    suffixes: Sequence[str]

    def to_html(self, page: Page) -> str | bytes:
        """Return the document as HTML.

        :raises BadPage: the document cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class TokenTree:
    """Block paths as a tree of tokens; the paths are tokenised without prompt and content (HtmlRAG §3.4.2).

    Nodes are in preorder. Node 0 has no token: it is the end of the prompt.

    :param token: token of each node, int [n]; -1 for node 0.
    :param parent: parent of each node, int [n]; -1 for node 0.
    :param depth: tokens on the path to each node, int [n]; 0 for node 0.
    :param needed: whether a node or a node below it branches, bool [n]: a model reads only these nodes.
    :param branching: nodes with several children, ascending.
    :param children: the children of each branching node, in the order of ``branching``: one int array each.
    """

    token: Ints
    parent: Ints
    depth: Ints
    needed: NDArray[np.bool_]
    branching: Ints
    children: Sequence[Ints]

    def __len__(self) -> int:
        return len(self.token)

    @property
    def read(self) -> Ints:
        """The nodes whose tokens a model must read, in preorder."""
        return np.flatnonzero(self.needed[1:]).astype(np.int64) + 1

    @property
    def skipped(self) -> float:
        """The share of tokens that need no inference, 0 to 1; 0 where there is no token."""
        return 1.0 - len(self.read) / (len(self) - 1) if len(self) > 1 else 0.0

    @property
    def deepest(self) -> int:
        """Tokens of the longest path that must be read, without the prompt."""
        return int(self.depth[self.needed].max(initial=0))

    def path(self, node: int) -> list[int]:
        """Return the tokens from the end of the prompt down to a node."""
        result: list[int] = []
        while node > 0:
            result.append(int(self.token[node]))
            node = int(self.parent[node])
        return result[::-1]


@dataclass(frozen=True, slots=True)
class Branches:
    """A model's logits for the branching nodes of a TokenTree, and their cost.

    :param logits: for each branching node one number for each child, float [children], in the tree's order: logits,
        or log probabilities over the whole vocabulary. A constant added to all children of a node changes nothing.
    :param forwards: forward passes of the model, or requests.
    :param tokens: tokens that the model read.
    :param reused: tokens of the prompt that came from a cache.
    """

    logits: Sequence[Floats]
    forwards: int = 0
    tokens: int = 0
    reused: int = 0


class PathScorer(Protocol):
    """A language model that scores each branch of a token tree (HtmlRAG §3.4.2)."""

    real: bool
    """Whether a call asks a model elsewhere."""
    decode: Callable[[Sequence[int]], list[str]] | None
    """Returns the text of each token, to be shown; None where the back-end does not know it."""

    @property
    def prompt(self) -> str:
        """Name of the prompt that the model was trained with; '' where that is not known."""
        ...

    @property
    def stop(self) -> int:
        """The token that ends a path which another path continues: the end-of-text token; -1 for none."""
        ...

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each path alone, without special tokens."""
        ...

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        """Return the logits of every branch, given a prompt.

        :raises OverWindow: prompt and paths together are longer than the model's window.
        :raises OutsideFailed: the service gives no logits, failed or timed out.
        """
        ...
