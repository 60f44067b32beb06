"""What the tools of the Model Context Protocol take and return, as clients see it in the schemas of the tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from ..api.check import LONGEST
from ..web.page_errors import ErrorType
from .wire import RequestBody

Question = Annotated[
    str, Field(min_length=1, max_length=20_000, description="What you want to know, as one whole question.")
]
Budget = Annotated[int, Field(ge=0, description="Tokens of evidence at most; 0: as this server is set.")]
Address = Annotated[str, Field(min_length=1, max_length=4096)]


def listed(value: Any) -> Any:
    """Return a list where a model gives one text."""
    return [value] if isinstance(value, str) else value


class SearchCall(RequestBody):
    """Arguments of `search`."""

    query: Annotated[str, Field(min_length=1, max_length=2_000, description="Keywords, as for a search engine.")]
    count: Annotated[int, Field(ge=1, le=20, description="Hits at most.")] = 10


class ReadCall(RequestBody):
    """Arguments of `read`."""

    pages: Annotated[list[Address], Field(min_length=1, max_length=20, fail_fast=True), BeforeValidator(listed)] = (
        Field(description="Addresses of pages or documents; or paths of files, where files are allowed.")
    )
    question: Annotated[str, Field(max_length=20_000)] = Field(
        "", description="What you want to know, as one whole question; without it the page itself comes back."
    )
    main: bool = Field(
        True, description="Without a question: only a page's own content; false: with menus, banners and footers, too."
    )
    outline: bool = Field(False, description="Only the headings, with the start and the tokens of each.")
    start: Annotated[int, Field(ge=0)] = Field(
        0, description="Where to go on: next_start, or a start of an outline, with the same main."
    )
    max_tokens: Annotated[int, Field(ge=0)] = Field(
        0, description="Tokens at most, of all pages together; 0: as this server is set."
    )


class MapCall(RequestBody):
    """Arguments of `map`."""

    url: Address = Field(description="Where the site begins; what lies below its folder is the site.")
    question: Annotated[str, Field(max_length=20_000)] = Field(
        "", description="What you look for: addresses that promise most come first."
    )
    count: Annotated[int, Field(ge=1, le=1_000, description="Addresses at most.")] = 50
    scope: Literal["prefix", "host", "domain"] = Field(
        "prefix", description="The folder of url, its host, or its domain."
    )


class AskCall(RequestBody):
    """Arguments of `ask`."""

    question: Question
    pages: Annotated[list[Address], Field(max_length=20, fail_fast=True)] = Field(
        [], description="Addresses that the user named. Leave it out to search the web; never guess an address."
    )
    budget: Budget = 0


class CheckCall(RequestBody):
    """Arguments of `check`."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST, description="The text whose claims are checked.")]
    pages: Annotated[list[Address], Field(min_length=1, max_length=20, fail_fast=True), BeforeValidator(listed)] = (
        Field(description="Addresses of the pages to check against; [2] behind a claim means the second.")
    )


class IndexAskCall(RequestBody):
    """Arguments of `index_ask`."""

    index: Annotated[str, Field(max_length=64, description="Name of the collection.")]
    question: Question
    documents: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=100, fail_fast=True)] = Field(
        [], description="Addresses of documents of it, or patterns with *, as https://docs.example.org/en/2.0/*."
    )
    since: Annotated[str, Field(max_length=40)] = Field(
        "", description="Only documents published since 2026-01-31, or in the last 24h, 7d, 2w."
    )
    budget: Budget = 0


class SearchHit(BaseModel):
    """A page that a search found."""

    url: str
    title: str
    snippet: str
    published: str = Field(description="Date, '' where it is not known.")


class SearchResult(BaseModel):
    """Result of `search`."""

    hits: list[SearchHit]
    warnings: list[str]


class PageError(BaseModel):
    """Why a page could not be read."""

    type: ErrorType
    message: str


class ReadPage(BaseModel):
    """What was read of one page."""

    url: str
    title: str
    published: str
    text: str = Field(description="Markdown, word for word without a question; with one, … marks gaps.")
    tokens: int = Field(description="Tokens of the text.")
    total_tokens: int = Field(description="Tokens of the page, or of its own content where only that is read.")
    start: int
    next_start: int | None = Field(description="The start of what follows; null at the end.")
    under: str = Field(description="The headings, and the head of the table, that a later part stands under.")
    left_out: list[str] = Field(description="With a question: headings below which nothing was chosen.")
    notice: str = Field(description="What was left out.")
    resource: str = Field(description="Resource with the whole page; '' where it is not kept.")
    warnings: list[str]
    error: PageError | None


class ReadResult(BaseModel):
    """Result of `read`."""

    pages: list[ReadPage]
    confidence: float | None = Field(description="Chance that the text answers the question; null without one.")
    warnings: list[str]


class MapResult(BaseModel):
    """Result of `map`."""

    urls: list[str]
    notice: str = Field(description="What was left out, and why.")


class CitedSource(BaseModel):
    """A place that an answer cites."""

    number: int = Field(description="The n of its mark [n] in the answer.")
    url: str
    title: str
    published: str
    read_at: str = Field(description="When the page was fetched; '' for what was not.")
    place: str = Field(
        description="Where the quote stands, as `page 2` or `sheet Costs, row 5`; '' without such parts."
    )
    quote: str = Field(description="The words of the page, letter for letter.")
    found: bool = Field(description="Whether the quote was found in the page, checked by code.")
    resource: str = Field(description="Resource with the whole page; '' where it is not kept.")


class ClaimResult(BaseModel):
    """A claim of a text."""

    text: str
    verdict: Literal["supported", "partly", "not supported"]
    support: float = Field(description="0 to 1.")
    reason: str = Field(description="What the pages lack or say otherwise; '' where nothing is to be told.")
    quotes: list[str] = Field(description="The words of the pages that decide, the nearest first.")


class CheckResult(BaseModel):
    """Result of `check`."""

    claims: list[ClaimResult]
    failures: dict[str, str] = Field(description="Pages that could not be read, each with the reason.")


class AskResult(BaseModel):
    """Result of `ask` and `index_ask`."""

    answer: str
    sources: list[CitedSource]
    unsupported: list[str] = Field(description="Sentences of the answer that no page supports.")
    claims: list[ClaimResult] = Field(description="What a model stated, with verdicts; empty where pages are quoted.")
    warnings: list[str]
    failures: dict[str, str] = Field(description="Pages that could not be read, each with the reason.")
