"""The data that flows between the stages: frozen, slotted, typed. Imports only the options of calls.

The Tree and its Blocks, which carry behaviour, live in :mod:`prunus.pages.clean`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .options import Limits as Limits
from .options import Options as Options
from .options import WebOptions as WebOptions

Format = Literal["html", "markdown", "text"]
"""What a document can be written as."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it was read.

    :param content: the bytes (or the decoded text) as they came.
    :param url, final_url: what was asked for, and where it was found after redirects.
    :param media_type: as named by the transport or the file name; '' when unknown.
    :param charset: as named by the transport; '' when unknown.
    :param snapshot: sha256 of the content, hex.
    :param wall: why this is no content though it was answered as a page (a bot wall, a consent wall, a login, a
        soft 404, a parked domain, an empty shell); '' for content.
    """

    content: bytes | str
    url: str = ""
    final_url: str = ""
    media_type: str = ""
    charset: str = ""
    status: int = 200
    fetched_at: str = ""
    published: str = ""
    snapshot: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    wall: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a document: (document, start, end) in code points of its canonical text."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """What became of one block: its place, score, size and fate.

    :param document: number of the document, from 0.
    :param path: numbered path, as ``html1/body/div2/p``.
    :param score: the scorer's number; higher is better.
    :param words: visible words.
    :param kept: whether it is in the output.
    :param role: ``scored`` on its merit; ``header``: kept because a kept block needs it; ``cut``: a
        part of a block that was too large.
    :param stage: which stage's number the score is, 1 or 2. What the first of two stages dropped, or left
        unread by the second, has the first's; scores of two stages are on scales of their own.
    """

    index: int
    document: int
    path: str
    score: float
    words: int
    kept: bool
    role: Literal["scored", "header", "cut"]
    text: str
    span: Span
    stage: int = 1


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One document of a context."""

    document: str
    url: str
    title: str
    kept: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Context:
    """What survived pruning, rendered in the format that the budget was given for.

    :param output: the evidence, in ``format``.
    :param tokens: tokens of exactly ``output``.
    :param blocks: every block, kept or not, in document order.
    :param seconds: wall time by stage.
    :param engines: which engines made it.
    :param warnings: what the caller should know: what was left out, and why.
    :param trace: a record of each scoring stage, where there were two.
    :param tree: the token tree of a scorer that makes one (``generative``), to be drawn; None of others.
    """

    output: str
    format: Format
    tokens: int
    budget: int
    query: str
    blocks: Sequence[BlockRecord]
    documents: Sequence[DocumentInfo]
    engines: Mapping[str, str]
    seconds: Mapping[str, float]
    max_words: int
    _kept: Sequence[int] = field(repr=False, compare=False)
    _render: Callable[[Format], str] = field(repr=False, compare=False)
    _count: Callable[[str], int] = field(repr=False, compare=False)
    _mark: Callable[[int, bool], str] = field(repr=False, compare=False)
    _before: Callable[[], int] = field(repr=False, compare=False)
    warnings: Sequence[str] = ()
    trace: Sequence[Trace] = field(default=(), compare=False)
    tree: Any = field(default=None, repr=False, compare=False)

    def render(self, format: Format) -> str:
        """Return the same evidence in another format; its tokens may differ, see ``tokens_of``."""
        return self.output if format == self.format else self._render(format)

    def tokens_of(self, format: Format) -> int:
        """Return the tokens of the evidence in ``format``."""
        return self.tokens if format == self.format else self._count(self._render(format))

    def tokens_before(self) -> int:
        """Return the tokens of the cleaned documents, written as the output is, before pruning.

        Counted when it is asked for: it costs a rendering and an encoding of every document.
        """
        return self._before()

    def mark(self, document: int = 0, *, details: bool = False) -> str:
        """Return a document's own source with the kept blocks marked, otherwise letter for letter.

        ``data-prunus="kept"`` goes into the start tags of the elements that were kept, and
        ``data-prunus="kept-text"`` where only words that stand directly in an element were. Bytes are
        decoded as the parser decoded them. A file of another format is marked in the HTML made of it.

        :param document: which of the documents, from 0.
        :param details: say in ``data-prunus-block`` and ``data-prunus-score`` which blocks an element holds.
        :raises BadInput: no such document.
        """
        return self._mark(document, details)

    @property
    def html(self) -> str:
        """The evidence as HTML."""
        return self.render("html")

    @property
    def markdown(self) -> str:
        """The evidence as Markdown."""
        return self.render("markdown")

    @property
    def text(self) -> str:
        """The evidence as plain text."""
        return self.render("text")

    @property
    def kept(self) -> list[BlockRecord]:
        """The blocks that were kept, in document order."""
        return [self.blocks[index] for index in self._kept]

    def __str__(self) -> str:
        return self.output


@dataclass(frozen=True, slots=True)
class Passage:
    """Extracted text with the places that it came from.

    :param label: what a reader of the text needs besides, and is no part of it: the header of its
        table, the lead of its list.
    """

    text: str
    spans: Sequence[Span]
    score: float = 0.0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source of an answer.

    :param number: from 1, as written in the answer.
    :param snapshot: sha256 of the page that was read.
    :param quote: the page's own words, as they stand there.
    :param span: where the quote stands in the document's canonical text.
    :param xpath: the element in the HTML5-parsed page; '' where the quote is not found.
    :param found: whether the quote equals that slice of the page, checked by code.
    :param support: how well the quote bears the sentence that cites it, 0 to 1.
    """

    number: int
    url: str
    title: str
    published: str
    document: str
    snapshot: str
    quote: str
    span: Span
    xpath: str
    found: bool
    support: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost: model tokens, money, and wall seconds by stage."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its checked citations.

    :param unsupported: sentences that no page bears out.
    :param engines: which engines made it, by port.
    :param failures: what went wrong on the way, by page, query or engine.
    :param spent: what each stage cost.
    :param warnings: what the caller should know of how the evidence was found.
    """

    text: str
    citations: Sequence[Citation]
    unsupported: Sequence[str] = ()
    engines: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    failures: Mapping[str, str] = field(default_factory=dict)
    spent: Mapping[str, Usage] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Trace:
    """One record of one stage of a run."""

    stage: str
    seconds: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; ``text`` is the full text that some providers send, apart from the snippet."""

    url: str
    title: str
    snippet: str = ""
    text: str = ""
    published: str = ""
    fetched_at: str = ""
    engine: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One query of a plan, with the filters that it asks for."""

    text: str
    language: str = ""
    time_range: str = ""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What every search provider is asked, whatever its own names are."""

    query: str
    count: int = 10
    page: int = 1
    language: str = ""
    country: str = ""
    time_range: str = ""
    include_domains: Sequence[str] = ()
    exclude_domains: Sequence[str] = ()
    safe_search: bool = True
    topic: str = ""
    want_text: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """What a provider answered; filters that it does not know are warnings."""

    hits: Sequence[Hit]
    warnings: Sequence[str] = ()
    usd: float = 0.0
    remaining: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """Whether to search, why, and for what."""

    needs_search: bool
    reason: str
    queries: Sequence[SearchQuery] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of several texts, and what it cost."""

    text: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str
    pictures: Sequence[str] = ()  # as data: addresses
