"""The bodies of requests and responses, as clients see them in OpenAPI. Unknown fields are refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..api.check import LONGEST
from ..core.types import OutputFormat

MOST_PAGES = 1_000
"""Pages of a body at most, whatever the operator allows."""
_MOST_FIELDS = 200
"""Fields of an object at most, unknown ones included."""

Text = Annotated[str, Field(max_length=20_000)]
Short = Annotated[str, Field(max_length=300)]

_PAGE = {"html": "<h1>Bridge</h1><p>The bridge opened in 1932.</p>", "url": "https://example.org/bridge"}


class Bounded(BaseModel):
    """An object with few fields. An error costs memory and time for each wrong field, so they are counted first."""

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _MOST_FIELDS:
            raise ValueError(f"an object of {len(value)} fields; it may have {_MOST_FIELDS}")
        return value


class RequestBody(Bounded):
    """A body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class PageGiven(RequestBody):
    """One page: its content, or its address, which the server then fetches."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_PAGE]})

    html: str | None = Field(None, description="The page as HTML, or text of the format that `type` names.")
    base64: str | None = Field(None, description="The page as bytes in Base64, for PDF and other binary formats.")
    url: Annotated[str, Field(max_length=4096)] = Field(
        "", description="With content: where the page is from. Alone: the page to fetch."
    )
    name: Short = Field("", description="With content that has no address: how citations name it, as `report.pdf`.")
    type: Short = Field("", description="What the content is: `pdf`, `text/csv`, `.docx`; by default it is found out.")

    @model_validator(mode="after")
    def _one_content(self) -> PageGiven:
        if self.html is not None and self.base64 is not None:
            raise ValueError("give html or base64, not both")
        if self.html is None and self.base64 is None and not self.url:
            raise ValueError("give html, base64 or url")
        return self


Pages = Annotated[list[PageGiven], Field(max_length=MOST_PAGES, fail_fast=True)]
"""Pages of a request. Like every list of a body, it is read up to its first wrong item: each error costs time."""


ShownOnly = Annotated[
    bool, Field(description="Leave out the speaker notes, comments, hidden sheets and hidden slides of documents.")
]


class CleanRequest(RequestBody):
    """Clean one page."""

    page: PageGiven
    format: OutputFormat = "html"
    main: bool = Field(False, description="Keep only the page's own content, without menus and banners.")
    shown_only: ShownOnly = False
    links: bool = True
    images: bool = True
    full: bool = Field(False, description="Full HTML instead of compact HTML.")


class CleanResponse(BaseModel):
    """A cleaned page."""

    format: OutputFormat
    output: str
    metadata: dict[str, Any] = Field(description="Title, authors, dates, language, site, description, address.")
    main_confidence: float | None = Field(
        None, description="With `main`: F of words that the choice is expected to reach, 0 to 1."
    )
    warnings: list[str] = Field(description="What a reader should know of how the page was read.")


class SnapshotGiven(RequestBody):
    """A page that an answer with `keep` cited, by two fields of its citations."""

    document: Annotated[str, Field(max_length=4096)]
    snapshot: Short


class PruneRequest(RequestBody):
    """Keep the evidence of pages for a question."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"pages": [_PAGE], "question": "When did it open?", "budget": 200}]},
    )

    pages: Pages = []
    kept: Short = Field("", description="In place of pages: the `kept` of a response, to prune the same pages again.")
    snapshot: SnapshotGiven | None = Field(None, description="In place of pages: a page that an answer cited.")
    shown_only: ShownOnly = False
    keep: bool = Field(False, description="Keep the pages for ten minutes; the response names them in `kept`.")
    question: Text
    budget: Annotated[int, Field(ge=1)] | None = Field(None, description="Tokens of the output at most.")
    format: OutputFormat = "html"
    also: Annotated[list[OutputFormat], Field(max_length=3, fail_fast=True)] = Field(
        [], description="Further formats to write the same evidence in; the budget holds for `format` alone."
    )
    all_blocks: bool = Field(False, description="List the dropped blocks, too.")
    max_words: Annotated[int, Field(ge=0)] = Field(0, description="Words of a block at most; 0 chooses.")
    breadcrumbs: bool = Field(False, description="Keep all headings above each kept block, not only its own.")
    fill: bool = Field(False, description="Fill the budget, also with what hardly bears on the question.")
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="The response tells `confidence`, the chance that something in the evidence answers; below this it "
        "is the error `nothing_found`.",
    )
    links: bool = False
    images: bool = False
    emphasis: bool = False


class AlsoWritten(BaseModel):
    """The evidence in a further format."""

    output: str
    tokens: int


class PruneResponse(BaseModel):
    """The evidence, and each block with its place, score and fate."""

    model_config = ConfigDict(extra="allow")

    question: str
    format: OutputFormat
    output: str
    tokens: int
    tokens_before: int
    budget: int
    blocks: list[dict[str, Any]]
    documents: list[dict[str, Any]] = Field(description="With `all_blocks` each has an `outline`: its headings.")
    failures: dict[str, str]
    kept: str = Field("", description="The id of the kept pages; empty where they are not kept.")
    confidence: float | None = Field(None, description="With `min_confidence`: the chance that the evidence answers.")
    also: dict[str, AlsoWritten] = Field({}, description="The same evidence in the further formats.")


class WebChoices(RequestBody):
    """Choices of a web search; empty ones are left to the plan."""

    language: Short = ""
    country: Short = ""
    time_range: Short = Field("", description="`day`, `week`, `month`, `year`, or `2024-01-01..2024-06-30`.")
    topic: Short = ""
    include_domains: Annotated[list[Short], Field(max_length=50, fail_fast=True)] = []
    exclude_domains: Annotated[list[Short], Field(max_length=50, fail_fast=True)] = []
    pages: Annotated[int, Field(ge=1, le=20)] = Field(5, description="Pages that the answer is made from at most.")


class SearchBody(RequestBody):
    """Search the web with the providers that the operator chose."""

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    count: Annotated[int, Field(ge=1, le=50)] = 10
    page: Annotated[int, Field(ge=1, le=100)] = 1
    language: Short = ""
    country: Short = ""
    time_range: Short = ""
    topic: Short = ""
    include_domains: Annotated[list[Short], Field(max_length=50, fail_fast=True)] = []
    exclude_domains: Annotated[list[Short], Field(max_length=50, fail_fast=True)] = []


class SearchResponse(BaseModel):
    """The hits, and what the providers said beside them."""

    hits: list[dict[str, Any]]
    warnings: list[str]


class Turn(RequestBody):
    """An earlier turn of a conversation."""

    role: Literal["user", "assistant"]
    content: Text


class OfIndexes(RequestBody):
    """Which documents of indexes are looked at."""

    documents: Annotated[list[Short], Field(max_length=100, fail_fast=True)] = Field(
        [], description="Ids of documents of the indexes, or patterns of them with `*`; without any, all."
    )
    since: Annotated[str, Field(max_length=40)] = Field(
        "", description="Only documents published since `2026-01-31`, or in the last `24h`, `7d`, `2w`."
    )
    max_age: Annotated[str, Field(max_length=40)] = Field("", description="Only documents fetched since then, alike.")


class AskRequest(OfIndexes):
    """Ask a question of pages, indexes and the web; without any of them the web is searched."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"question": "When did the bridge open?", "pages": [_PAGE]}]},
    )

    question: Text
    pages: Pages = []
    indexes: Annotated[list[Short], Field(max_length=20, fail_fast=True)] = Field(
        [], description="Names of indexes of this server."
    )
    search: bool = Field(False, description="Search the web beside the pages and indexes.")
    budget: Annotated[int, Field(ge=1)] | None = Field(None, description="Tokens of evidence at most.")
    quotes: Annotated[int, Field(ge=0, le=50)] = Field(0, description="Quotes at most, without a model; 0 chooses.")
    shown_only: ShownOnly = False
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Chance from 0 to 1 that a quote answers, below which nothing is quoted; 0 always answers."
    )
    web: WebChoices = Field(default_factory=WebChoices)
    turns: Annotated[list[Turn], Field(max_length=20, fail_fast=True)] = Field(
        [], description="Earlier turns, the oldest first."
    )
    max_tokens: Annotated[int, Field(ge=0)] = Field(0, description="Model tokens at most; 0 is no limit.")
    max_usd: Annotated[float, Field(ge=0)] = Field(0.0, description="USD at most; 0 is no limit.")
    stream: bool = Field(False, description="Send server-sent events instead of one JSON body.")
    keep: bool = Field(False, description="Keep the cited pages as snapshots, which `/v1/snapshots/show` shows.")


class AskResponse(BaseModel):
    """An answer whose citations were checked."""

    model_config = ConfigDict(extra="allow")

    question: str
    text: str
    citations: list[dict[str, Any]]
    unsupported: list[str]
    failures: dict[str, str]
    warnings: list[str]
    confidence: float | None = Field(None, description="Chance that a citation answers; null where a model wrote.")
    claims: list[dict[str, Any]] = Field(
        [], description="What a model stated, as in the response of `/v1/check`; empty where pages are quoted."
    )


class NodeTold(BaseModel):
    """A node of a summary tree: a summary, or a leaf, which is a passage of a document."""

    id: int
    layer: int = Field(description="0 for a leaf.")
    tokens: int
    children: int = Field(description="How many nodes are right below it.")
    text: str = Field(description="The summary or the passage; empty for a summary that is not written yet.")
    above: list[str] = Field(description="Of a leaf: the headings above the passage.")
    sentences: list[str] = Field(description="Of a leaf: the sentences of the passage.")
    document: str = Field(description="The document of all leaves below; empty above several documents.")
    title: str
    url: str


class NodesResponse(BaseModel):
    """Some children of a node, or some roots of the tree."""

    index: str
    parent: int | None
    start: int
    total: int = Field(description="How many children or roots there are.")
    nodes: list[NodeTold]
    layers: list[int] = Field(description="The number of nodes of each layer of the tree, the leaves first.")
    documents: int


class RetrieveBody(OfIndexes):
    """Retrieve nodes of an index for a question."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"question": "When did it open?"}]})

    question: Annotated[str, Field(min_length=1, max_length=20_000)]
    budget: Annotated[int, Field(ge=1)] | None = Field(None, description="Tokens of the nodes at most; 2,000.")
    retrieval: Literal["", "hybrid", "collapsed", "traversal", "flat"] = Field(
        "", description="How to search; empty is the index's own way."
    )


class MapRequest(RequestBody):
    """List the addresses of a site."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"url": "https://docs.example.org/", "question": "backups"}]}
    )

    url: Annotated[str, Field(min_length=1, max_length=4096)]
    question: Annotated[str, Field(max_length=20_000)] = Field(
        "", description="Addresses whose links and paths promise most for it come first."
    )
    scope: Literal["prefix", "host", "domain"] = Field(
        "prefix", description="The folder of `url`, its host, or its domain."
    )
    include: Annotated[list[Short], Field(max_length=50, fail_fast=True)] = Field(
        [], description="Patterns of paths, as in robots.txt."
    )
    exclude: Annotated[list[Short], Field(max_length=50, fail_fast=True)] = []
    depth: Annotated[int, Field(ge=0, le=3)] = Field(1, description="Only `url` itself is read for links with 1.")
    pages: Annotated[int, Field(ge=1, le=30_000)] = Field(1_000, description="Addresses at most.")
    latest: bool = Field(False, description="Of a documentation with versions in its paths, only the latest.")


class MapResponse(BaseModel):
    """The addresses of a site, each page once."""

    start: str = Field(description="The address of the start, after redirects.")
    addresses: list[dict[str, Any]] = Field(description="`url`, `lastmod`, `source` and `depth` of each.")
    left_out: dict[str, int] = Field(description="How many addresses were left out, by reason.")
    endless: list[str] = Field(description="What addresses look like of which there were too many.")
    notes: list[str]
    asked: int = Field(description="Requests for pages and lists.")


class CheckRequest(RequestBody):
    """Check the claims of a text against pages."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "The bridge opened in 1932.", "pages": [_PAGE]}]}
    )

    text: Annotated[str, Field(min_length=1, max_length=LONGEST)] = Field(
        description="Plain text or Markdown, as a model wrote it; `[2]` behind a claim means the second page."
    )
    pages: Annotated[Pages, Field(min_length=1)]
    shown_only: ShownOnly = False
    judge: bool = Field(
        False, description="Ask the language model of this server about each claim, too; needs the scope `ask`."
    )


class CheckResponse(BaseModel):
    """The claims of a text, each with its verdict."""

    claims: list[dict[str, Any]] = Field(
        description="`text`, `verdict` (`supported`, `partly`, `not supported`), `support`, `citations`, `reason`, "
        "and `by`: whether `words` of the pages gave the verdict, or a `model`."
    )
    failures: dict[str, str]


class PathStep(BaseModel):
    """A node on the way from a root."""

    id: int
    place: int = Field(description="Its place among its siblings, from 0.")


class NodeTaken(NodeTold):
    """A node that a question takes."""

    score: float
    path: list[PathStep] = Field(description="From a root to this node itself.")


class RetrievedResponse(BaseModel):
    """The nodes that a question takes, the best first."""

    index: str
    way: str
    tokens: int
    nodes: list[NodeTaken]


class ChoicesResponse(BaseModel):
    """What a client may choose here."""

    fetch: bool = Field(description="Pages may be given by their addresses.")
    search: bool = Field(description="The web can be searched.")
    model: bool = Field(description="A model writes the answers; otherwise they are quotes.")
    indexes: list[str]
    budget: int = Field(description="Tokens of evidence at most.")
    pages: int = Field(description="Pages of a request at most.")
    body_mb: int = Field(description="Size of a request at most, in MiB.")


class PlaceGiven(RequestBody):
    """A place in a page: code points of its canonical text, as `span` of a citation tells them."""

    start: Annotated[int, Field(ge=0, le=1 << 40)]
    end: Annotated[int, Field(ge=0, le=1 << 40)]


class ShowRequest(RequestBody):
    """Show a kept page with places marked; all values are those of its citations."""

    document: Annotated[str, Field(max_length=4096)]
    snapshot: Annotated[str, Field(max_length=200)]
    places: Annotated[list[PlaceGiven], Field(max_length=50, fail_fast=True)] = Field(
        [], description="Places to mark; the browser scrolls to the first."
    )


class ShowResponse(BaseModel):
    """Where a browser finds the page."""

    id: str
    address: str = Field(description="Relative to the root of this server; good for ten minutes.")


class SnapshotsResponse(BaseModel):
    """The pages that are kept for this key, the latest cited first."""

    snapshots: list[dict[str, Any]]


class ErrorBody(BaseModel):
    """What went wrong, in one line."""

    type: str = Field(examples=["bad_input"])
    message: str
    param: str | None = Field(None, description="The field of the request that the error is about.")
    code: str | None = None


class ErrorResponse(BaseModel):
    """The body of every response from 400 on."""

    error: ErrorBody
