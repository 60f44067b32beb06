"""The ports: what every kind of engine promises. One engine is one file in its room.

Engines that turn texts into numbers are plain, thread-safe and batch-first. Engines that wait for
the outside are ``async``. An engine that needs another is given it; it never looks one up. The port of
stores, ``NodeStore``, stands in :mod:`prunus.index.nodes`, beside what is kept in one.
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


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """What a group may hold. A pair is never parted for its size, so that every tree ends.

    :param tokens: of a group's texts together: what the summariser reads at most. RAPTOR's code: 3,500.
    :param items: children of a parent at most.
    :param fan_out: children of a parent that are aimed at.
    :param seed: of whatever is drawn; the same seed gives the same groups.
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
        """Tell whether a group of so many items and tokens may be."""
        return items <= 2 or (items <= self.items and tokens <= self.tokens)


class Clusterer(Protocol):
    """Groups the items of a layer; overlap is allowed."""

    needs_summaries: bool
    """False: every layer can be fixed before any summary is written."""
    last_layer: int
    """A layer of so many nodes or fewer gets no layer above it."""

    def layer(self, items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
        """Return the groups as arrays of item numbers."""
        ...


class SearchProvider(Protocol):
    """A web search, or anything that answers like one."""

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

    per_page: bool
    """Whether it is called for each page alone, several pages at once."""

    async def extract(self, query: str, tagged: Sequence[Tagged]) -> list[int] | None:
        """Return the chosen tags, or None when nothing bears on it."""
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


class StreamingGenerator(Generator, Protocol):
    """A generator that writes as it goes, from numbered sources."""

    def stream(
        self, query: str, sources: Sequence[NumberedSource], turns: Sequence[Message] = ()
    ) -> AsyncIterator[Event]:
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


@dataclass(frozen=True, slots=True)
class TokenTree:
    """Block paths, tokenised apart from prompt and content, as a tree of tokens (HtmlRAG §3.4.2).

    Nodes stand in preorder. Node 0 carries no token: it is the end of the prompt.

    :param token: token of each node, int [n]; -1 for node 0.
    :param parent: parent of each node, int [n]; -1 for node 0.
    :param depth: tokens of the path down to each node, int [n]; 0 for node 0.
    :param needed: whether a branching node stands at or below a node, bool [n]: a model reads these and no others.
    :param branching: nodes with several children, rising.
    :param children: the children of each branching node, in its order: one int array a branching node.
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
        """Tokens behind the prompt on the longest way that must be read."""
        return int(self.depth[self.needed].max(initial=0))

    def path(self, node: int) -> list[int]:
        """Return the tokens from the end of the prompt down to a node."""
        found: list[int] = []
        while node > 0:
            found.append(int(self.token[node]))
            node = int(self.parent[node])
        return found[::-1]


@dataclass(frozen=True, slots=True)
class Branches:
    """What a model says of every branching node of a TokenTree, and what that cost.

    :param logits: for each branching node one number a child, float [children], in the tree's order: logits,
        or log probabilities over the whole vocabulary. A constant added to all children of a node changes nothing.
    :param forwards: passes of the model, or requests.
    :param tokens: tokens that were read.
    :param reused: tokens of the prompt that were known from before and not read again.
    """

    logits: Sequence[Floats]
    forwards: int = 0
    tokens: int = 0
    reused: int = 0


class PathScorer(Protocol):
    """A language model that says how likely each branch of a token tree is (HtmlRAG §3.4.2)."""

    real: bool
    """Whether a call asks a model elsewhere."""
    decode: Callable[[Sequence[int]], list[str]] | None
    """Returns the text of each token, to be shown; None where the back-end does not know it."""

    @property
    def stop(self) -> int:
        """The token that stands where a path ends and a longer one goes on: the end of a text; -1 for none."""
        ...

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each path alone: no special tokens, nothing before it, nothing after it."""
        ...

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        """Return the logits of every branch behind a prompt.

        :raises OverWindow: prompt and paths together are over the model's window.
        :raises OutsideFailed: the model gives no such numbers, or took too long.
        """
        ...
