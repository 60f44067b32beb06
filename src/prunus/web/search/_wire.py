"""What every provider on the network does alike: asks for JSON through the door, and reads it with suspicion.

A provider is a class with two methods, :meth:`Provider.ask` and :meth:`Provider.rows`; keys, limits,
failures, filters that are not known, and the checking of what came back are here.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Final, Literal
from urllib.parse import urlencode, urlsplit

from ...core.errors import BadInput, OutsideFailed, one_line
from ...core.ports import Door
from ...core.types import Hit, Results, SearchRequest
from ..json_client import JsonCall, ending, exchange
from ..retry import Retries, retry_after, wish

PATIENCE: Final = 10.0
"""Seconds that are waited, once, where a provider says when to come again."""

RANGES: Final = ("day", "week", "month", "year")
"""Time ranges by name; the other way to write one is ``2024-01-01..2024-06-30``."""

MAX_COUNT: Final = 100
_MAX_PAGE: Final = 100
_LONGEST_QUERY: Final = 2_000
_LONGEST: Final = {"title": 500, "snippet": 4_000, "text": 400_000, "published": 64}
_LONGEST_URL: Final = 8_192
_DATES: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_DOMAIN: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,10}")

Kind = Literal["rate", "key", "malformed", "refused", "unreachable"]


class SearchFailed(OutsideFailed):
    """A provider did not answer as it should.

    :param kind: ``rate`` (asked too often), ``key`` (missing or refused), ``malformed``, ``refused``
        (another status), ``unreachable``.
    """

    def __init__(
        self, message: str, *, subject: str, kind: Kind, may_pass: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, subject=subject, may_pass=may_pass, retry_after=retry_after)
        self.kind: Kind = kind


@dataclass(frozen=True, slots=True)
class Ask:
    """A request in a provider's own words.

    :param params: go behind the address; those that are '' or None are left out.
    :param body: posted as JSON; None makes it a GET.
    """

    url: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = None


def check(request: SearchRequest) -> None:
    """Refuse a request that no provider can be asked.

    :raises BadInput: the message names the field.
    """
    if not request.query.strip():
        raise BadInput("search: the query is empty", subject="query")
    if len(request.query) > _LONGEST_QUERY:
        raise BadInput(f"search: the query is longer than {_LONGEST_QUERY:,} characters", subject="query")
    if not 1 <= request.count <= MAX_COUNT:
        raise BadInput(f"search: count is from 1 to {MAX_COUNT}, not {request.count}", subject="count")
    if not 1 <= request.page <= _MAX_PAGE:
        raise BadInput(f"search: page is from 1 to {_MAX_PAGE}, not {request.page}", subject="page")
    time_range(request)
    for domain in (*request.include_domains, *request.exclude_domains):
        if not _DOMAIN.fullmatch(domain.lower()):
            raise BadInput(f"search: {domain!r} is no domain; write it as example.org", subject=domain)


def time_range(request: SearchRequest) -> tuple[str, date | None, date | None]:
    """Return (name, first day, last day): a name, or two days, or nothing at all.

    :raises BadInput: it is neither.
    """
    said = request.time_range.strip().lower()
    if not said or said in RANGES:
        return said, None, None
    found = _DATES.fullmatch(said)
    try:
        days = [date.fromisoformat(day) for day in found.groups()] if found else []
    except ValueError:
        days = []
    if len(days) == 2 and days[0] <= days[1]:
        return "", days[0], days[1]
    raise BadInput(
        f"search: {request.time_range!r} is no time range; use {', '.join(RANGES)} or 2024-01-01..2024-06-30",
        subject="time_range",
    )


def unsupported(request: SearchRequest, name: str, known: frozenset[str]) -> list[str]:
    """Return one warning a filter that is asked for and that a provider does not have.

    Safe search is on by default and is passed on where there is such a switch; its absence is no warning.
    """
    range_name, first, _ = time_range(request)
    asked = {
        "page": request.page > 1,
        "language": bool(request.language),
        "country": bool(request.country),
        "time_range": bool(range_name),
        "dates": first is not None,
        "include_domains": bool(request.include_domains),
        "exclude_domains": bool(request.exclude_domains),
        "topic": bool(request.topic),
        "want_text": request.want_text,
    }
    warnings = []
    for filter_, wanted in asked.items():
        if wanted and filter_ not in known:
            done = "; done here with what it sent" if filter_.endswith("_domains") else ""
            warnings.append(f"{name}: has no filter {filter_}{done}")
    return warnings


def in_domains(url: str, request: SearchRequest) -> bool:
    """Tell whether an address is of the domains that are wanted, and of none that is not."""
    host = (urlsplit(url).hostname or "").lower()

    def of(domain: str) -> bool:
        return host == domain.lower() or host.endswith("." + domain.lower())

    wanted = not request.include_domains or any(of(domain) for domain in request.include_domains)
    return wanted and not any(of(domain) for domain in request.exclude_domains)


def with_sites(request: SearchRequest) -> str:
    """Return the query with the domains as the operators ``site:`` and ``-site:``."""
    wanted = " OR ".join(f"site:{domain}" for domain in request.include_domains)
    unwanted = " ".join(f"-site:{domain}" for domain in request.exclude_domains)
    grouped = f"({wanted})" if len(request.include_domains) > 1 else wanted
    return " ".join(part for part in (request.query, grouped, unwanted) if part)


def plain(value: Any, kind: str) -> str:
    """Return a field of an answer as plain text: no markup, one kind of space, not endless; '' for what is no text."""
    if not isinstance(value, str):
        return ""
    cut = value[: _LONGEST[kind] * 2].encode("utf-8", "replace").decode("utf-8")
    if kind == "text":
        return cut[: _LONGEST[kind]]
    return " ".join(html.unescape(_TAG.sub("", cut)).split())[: _LONGEST[kind]]


def web_address(value: Any) -> str:
    """Return an address of a page, or '' for anything else."""
    if not isinstance(value, str) or len(value) > _LONGEST_URL or any(c.isspace() or ord(c) < 32 for c in value):
        return ""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018  # raises where it is no number
    except ValueError:
        return ""
    return value if parts.scheme in ("http", "https") and parts.hostname and not parts.username else ""


def at(data: Any, *steps: str) -> Any:
    """Return what stands at a path of keys, None where there is nothing."""
    for step in steps:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


class Provider:
    """A provider on the network (port: SearchProvider).

    :param model: what stands behind the colon of the spec: an address, unless the provider says otherwise.
    :param door: the way to the network.
    :param key: sent to that provider only; never shown.
    :param endpoint: an address that the operator wrote down; '' is the provider's own.
    :param seconds: for one request.
    :param price: US dollars for one request, where the answer does not say what it cost.
    """

    name: ClassVar[str] = ""
    home: ClassVar[str] = ""
    wants_key: ClassVar[bool] = True
    filters: ClassVar[frozenset[str]] = frozenset()
    largest: ClassVar[int] = 20
    """Results of one page at most."""

    def __init__(
        self,
        model: str = "",
        door: Door | None = None,
        key: str = "",
        endpoint: str = "",
        seconds: float = 15.0,
        price: float = 0.0,
    ) -> None:
        self._model, given = self._split(model)
        self._given = given or endpoint
        if self._given and not web_address(self._given):
            raise BadInput(
                f"search {self.name}: {one_line(self._given, [key])!r} is no address; write it as https://host/path",
                subject=self.name,
            )
        self.address = (self._given or self.home).rstrip("/")
        self._door = door
        self._key = key
        self._seconds = seconds
        self._price = price
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._now: Callable[[], float] = time.time

    def __repr__(self) -> str:
        return f"{self.name}({self.address!r})"  # never the key

    @property
    def lacks_key(self) -> bool:
        """Whether it needs a key and has none."""
        return self.wants_key and not self._key

    @property
    def lacks_address(self) -> bool:
        """Whether it needs an address and has none."""
        return not self.address

    def _split(self, model: str) -> tuple[str, str]:
        """Return (model, address) of what stands behind the colon of a spec."""
        return "", model

    def ask(self, request: SearchRequest) -> Ask:
        """Return the request in the provider's own words."""
        raise NotImplementedError

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return the list of results of an answer, each a mapping with url, title, snippet, text, published.

        None says that the answer has not the provider's shape.
        """
        raise NotImplementedError

    def cost(self, data: Mapping[str, Any]) -> float:
        """Return what a request cost, in US dollars."""
        return self._price

    def remaining(self, headers: Mapping[str, str]) -> int:
        """Return how many requests are left by the longest window of the provider; -1 where it does not say."""
        for name in ("x-ratelimit-remaining", "ratelimit-remaining"):
            said = headers.get(name, "").split(",")[-1].split(";")[0].strip()
            if said.isascii() and said.isdigit():
                return min(int(said[:12]), 10**9)
        return -1

    async def search(self, request: SearchRequest) -> Results:
        """Return hits in the provider's order.

        :raises BadInput: the request cannot be asked, or no key or no way to the network was given.
        :raises SearchFailed: the provider did not answer as it should; one line, never with the key.
        """
        check(request)
        warnings = unsupported(request, self.name, self.filters)
        if request.count > self.largest:
            warnings.append(f"{self.name}: gives at most {self.largest} results a page, not {request.count}")
        data, headers = await self._answer(self.ask(request))
        rows = self.rows(data, request)
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise self._failed("the answer has not the shape of its results", "malformed")
        hits = self._hits(rows[:MAX_COUNT], request, warnings)
        cost = self.cost(data)
        return Results(tuple(hits[: request.count]), tuple(warnings), cost, self.remaining(headers))

    def _hits(self, rows: Sequence[Any], request: SearchRequest, warnings: list[str]) -> list[Hit]:
        """Check each result; what has no address of a page is left out, and counted."""
        hits: list[Hit] = []
        lost = 0
        for rank, row in enumerate(rows, 1):
            url = web_address(row.get("url")) if isinstance(row, Mapping) else ""
            if not url:
                lost += 1
            elif in_domains(url, request):
                fields = {name: plain(row.get(name), name) for name in ("title", "snippet", "published")}
                text = plain(row.get("text"), "text") if request.want_text else ""
                hits.append(
                    Hit(url, fields["title"], fields["snippet"], text, fields["published"], "", self.name, rank)
                )
        if lost:
            warnings.append(f"{self.name}: {lost} of {len(rows)} results have no usable address and were left out")
        return hits

    async def _answer(self, ask: Ask) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Send a request, once more where the provider says when to come again, and read the answer."""
        if self.lacks_key:
            raise BadInput(f"search {self.name} needs a key: set search_key", subject=self.name)
        if self._door is None:
            raise BadInput(f"search {self.name} was given no way to the network", subject=self.name)
        params = {name: value for name, value in ask.params.items() if value not in ("", None)}
        url = f"{ask.url}?{urlencode(params, errors='replace')}" if params else ask.url
        headers = {"accept": "application/json", **ask.headers}
        method = "GET" if ask.body is None else "POST"
        call = JsonCall(method, url, headers, _sendable(ask.body), self._given, self._seconds)
        door = self._door

        async def once() -> tuple[Mapping[str, Any], Mapping[str, str]]:
            try:
                reply = await exchange(door, call)
            except OutsideFailed as error:
                raise self._failed(str(error), "unreachable") from error
            wanted = retry_after(reply.headers, self._now())
            return self._read(reply.status, reply.content, wanted), reply.headers

        return await Retries(2, longest=PATIENCE).acall(once, sleep=self._sleep)

    def _read(self, status: int, content: bytes, wanted: float | None) -> Mapping[str, Any]:
        """Return an answer that is a JSON object, or say why it is none."""
        if status in (401, 403):
            what = "refuses the key" if self._key else "refuses the request"
            raise self._failed(f"{what} (HTTP {status}){ending(content, self._key)}{self.hint(status)}", "key")
        if status in (402, 429, 432, 433):  # 402, 432, 433: the plan's credit is spent
            raise self._failed(
                f"asked too often (HTTP {status}){wish(wanted)}{ending(content, self._key)}", "rate", status, wanted
            )
        if status != 200:
            raise self._failed(f"HTTP {status}{ending(content, self._key)}", "refused", status, wanted)
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._failed("the answer is not JSON", "malformed") from error
        if not isinstance(data, Mapping):
            raise self._failed("the answer is not a JSON object", "malformed")
        return data

    def hint(self, status: int) -> str:
        """Return the way out of a refusal, where a provider has a usual one."""
        return ""

    def _failed(self, why: str, kind: Kind, status: int = 0, wanted: float | None = None) -> SearchFailed:
        said = one_line(why, [self._key], 400)
        again = status in (429, 503) and wanted is not None  # each request may cost; only who says when is asked again
        return SearchFailed(
            f"search {self.name}: {said}", subject=self.name, kind=kind, may_pass=again, retry_after=wanted
        )


def _sendable(value: Any) -> Any:
    """Return a body without lone surrogates, which are no characters and cannot be sent."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {name: _sendable(one) for name, one in value.items()}
    return [_sendable(one) for one in value] if isinstance(value, list) else value
