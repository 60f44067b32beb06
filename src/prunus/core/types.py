"""The data types that flow between the stages: pages, contexts, passages, citations, answers, hits, plans.

Trees and blocks are in :mod:`prunus.pages.tree` and :mod:`prunus.evidence.blocks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from .options import Limits as Limits
from .options import Options as Options
from .options import WebOptions as WebOptions

OutputFormat = Literal["html", "markdown", "text"]
"""Output format of a document."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it was read from the network or a file.

    :param content: the bytes as received, or decoded text.
    :param url, final_url: the requested address, and the address after redirects.
    :param media_type: media type by the transport or the file name; '' when unknown.
    :param charset: encoding by the transport; '' when unknown.
    :param snapshot: sha256 of the content, hex.
    :param wall: why the response is not the page's content (a bot wall, a consent wall, a login, a soft 404, a parked
        domain, an empty shell); '' for content.
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
class Metadata:
    """What a page or document says about itself; '' and () where it does not say it.

    :param title: without the site's name; of a page that says none its heading, else the name of its file.
    :param authors: names, in the page's order.
    :param published, modified: ISO 8601, as exact as the page is: ``2024``, ``2024-11``, ``2024-11-05`` or
        ``2024-11-05T08:30:00+00:00``.
    :param language: a language tag, as ``en`` or ``pt-BR``.
    :param site: the name of the site.
    :param address: the canonical address, absolute, http or https.
    """

    title: str = ""
    authors: Sequence[str] = ()
    published: str = ""
    modified: str = ""
    language: str = ""
    site: str = ""
    description: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a document: (document, start, end) in code points of its canonical text."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """One block after pruning: its place, score and size, and whether it was kept.

    :param document: number of the document, from 0.
    :param path: numbered path of tags, as ``html1/body/div2/p``.
    :param score: the scorer's number; higher is better.
    :param words: visible words.
    :param kept: whether it is in the output.
    :param role: ``scored``: kept or dropped by its score; ``header``: kept because a kept block needs it; ``cut``: a
        part of a block that was too large.
    :param stage: the stage that gave the score, 1 or 2. A block that the second stage did not score has the
        first stage's score. Scores of different stages cannot be compared.
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
    """One document of a context: its address and title, and how many of its blocks were kept."""

    document: str
    url: str
    title: str
    kept: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Passage:
    """Extracted text with the spans that it was taken from.

    :param spans: places of the text in the documents.
    :param score: score of its block; higher is better.
    :param label: context that is not in the text itself: the header of its table, the lead of its list.
    :param shown: a row of a table with its empty cells in place; '' for what is shown as it is.
    :param marks: the words inside that were chosen, where they are not the whole text.
    :param confidence: the chance that it answers the question, 0 to 1; None where a model chose it.
    :param how: how it was found, where its numbers or its place decided, as "largest of Capacity".
    """

    text: str
    spans: Sequence[Span]
    score: float = 0.0
    label: str = ""
    shown: str = ""
    marks: Sequence[Span] = ()
    confidence: float | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered source of an answer.

    :param number: from 1, as written in the answer.
    :param snapshot: sha256 of the page that was read.
    :param quote: the words of the page, letter for letter.
    :param span: place of the quote in the document's canonical text.
    :param xpath: the element in the HTML5-parsed page; '' where the quote is not found.
    :param found: whether the quote equals the page's text at ``span``, checked by code.
    :param support: how well the quote supports the sentence that cites it, 0 to 1.
    :param authors, site: who wrote the page and where, as the page says; () and '' where it does not.
    :param marks: the words of the quote that answer, where they are not the whole quote.
    :param confidence: the chance that the quote answers the question, 0 to 1; None where a model chose it.
    :param how: how it was found, where its numbers or its place decided, as "largest of Capacity".
    :param place: where the quote stands in a document with pages, slides, sheets or chapters, as ``page 2`` and
        ``sheet Costs, row 5``; '' in others.
    :param read_at: when the page was fetched, ISO 8601; '' for what was not fetched.
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
    authors: Sequence[str] = ()
    site: str = ""
    marks: Sequence[Span] = ()
    place: str = ""
    confidence: float | None = None
    how: str = ""
    read_at: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Cost of an answer: model tokens, USD, and wall seconds by stage."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its checked citations.

    :param unsupported: sentences of the answer that no page supports.
    :param engines: engine specs by kind.
    :param failures: error messages by the page, query or engine that failed.
    :param spent: cost by stage.
    :param warnings: limits of the evidence that the caller should know.
    :param confidence: the chance that a citation answers the question, 0 to 1; None where a model chose or wrote.
    :param claims: what a model stated from pages, sentence by sentence, each with a verdict; () where pages are quoted.
    """

    text: str
    citations: Sequence[Citation]
    unsupported: Sequence[str] = ()
    engines: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    failures: Mapping[str, str] = field(default_factory=dict)
    spent: Mapping[str, Usage] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    confidence: float | None = None
    claims: Sequence[CheckedClaim] = ()

    def __str__(self) -> str:
        return self.text


Verdict = Literal["supported", "partly", "not supported"]


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim of a text, checked against pages.

    :param support: how likely a page bears it out, 0 to 1, where as many claims are borne out as are not.
    :param citations: the sentences and rows that decide, the nearest first; its ``support`` is the share of the
        claim's words that each holds.
    :param reason: what the page lacks or says otherwise; '' where nothing is to be told.
    :param by: what gave the verdict: ``words`` of the pages, or a ``model``; ``support`` is of the words in any case.
    """

    text: str
    verdict: Verdict
    support: float
    citations: Sequence[Citation] = ()
    reason: str = ""
    by: Literal["words", "model"] = "words"


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text whose claims were checked against pages.

    :param claims: its sentences, in order.
    :param failures: error messages by the page that could not be read.
    """

    claims: Sequence[CheckedClaim]
    failures: Mapping[str, str] = field(default_factory=dict)

    def count(self, verdict: Verdict) -> int:
        """Return how many claims have a verdict."""
        return sum(claim.verdict == verdict for claim in self.claims)


@dataclass(frozen=True, slots=True)
class FilledField:
    """A field of a schema, filled from pages.

    :param path: the names that lead to it, joined by dots.
    :param value: None where nothing was found.
    :param citation: the words of the page that say it; None where there are none.
    :param reason: why there is no value, or no citation; '' where there are both.
    :param how: what gave the value: ``label “…”``, ``passage``, ``data of the page``, ``model``.
    """

    path: str
    value: Any
    citation: Citation | None
    reason: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Filled:
    """A JSON object by a schema, filled from pages.

    :param data: the object. A field of which nothing was found is None, whether or not the schema allows that.
    :param fields: every field with its citation, or the reason why it is None.
    :param engines: engine specs by kind.
    :param failures: error messages by the page or engine that failed.
    """

    data: Mapping[str, Any]
    fields: Sequence[FilledField]
    engines: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    failures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """A record of one stage of a run: its wall seconds and details."""

    stage: str
    seconds: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result.

    :param snippet: the provider's extract of the page.
    :param text: the full text of the page, which some providers send; else ''.
    :param rank: place among the provider's hits.
    """

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
    """One search query of a plan, with its filters."""

    text: str
    language: str = ""
    time_range: str = ""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request to a search provider, in names that are the same for all providers.

    :param count: hits wanted on a result page.
    :param page: result page, from 1.
    :param language, country: codes, as ``de`` and ``DE``.
    :param time_range: as in :class:`~prunus.core.options.WebOptions`.
    :param want_text: ask for the full text of the pages, where the provider has it.
    """

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
    """The response of a search provider.

    :param warnings: filters of the request that the provider does not support, and sources of its own that failed.
    :param usd: cost of the request.
    :param remaining: requests that are left in the provider's quota; -1 when unknown.
    """

    hits: Sequence[Hit]
    warnings: Sequence[str] = ()
    usd: float = 0.0
    remaining: int = -1


NO_PLAN: Final = "planned by rules, because the model gave no plan"
"""How the reason of a plan begins where a model should have made it and failed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision whether to search, its reason, and the queries."""

    needs_search: bool
    reason: str
    queries: Sequence[SearchQuery] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of several texts, and its cost."""

    text: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str
    pictures: Sequence[str] = ()  # data: URLs
