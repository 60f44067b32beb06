"""The common part of all network search providers: JSON requests through the egress door, and checks of responses.

A provider is a class with two methods, :meth:`Provider.ask` and :meth:`Provider.rows`. This module handles keys,
limits, failures, unsupported filters, and the checks of the returned hits.

Languages and countries are written as callers write them; each provider gets the codes that its API takes.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar, Final, Literal
from urllib.parse import urlencode, urlsplit

from ...core.errors import BadInput, OutsideFailed, one_line
from ...core.ports import Door
from ...core.text.numbers import bounded_int
from ...core.text.secrets import hide_logins, hide_secrets
from ...core.types import Hit, Results, SearchRequest
from ..json_client import JsonCall, error_suffix, exchange
from ..retry import Retries, retry_after, wait_hint

LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")
COUNTRY: Final = re.compile(r"[A-Za-z]{2}")

_OLD_LANGUAGES: Final = {"iw": "he", "in": "id", "ji": "yi", "cmn": "zh", "nb": "no"}
"""Former and equivalent codes, by which one code stands for a language in all tables."""

_TRADITIONAL: Final = frozenset({"tw", "hk", "mo"})
"""Countries whose Chinese is written in traditional characters."""

_LIKELIEST: Final = {"pt": "br"}
"""The region that a language without one means, after Unicode's likely subtags."""


def same(codes: str) -> dict[str, str]:
    """Return a table of codes, separated by spaces, that a provider writes as callers do."""
    return {code: code for code in codes.split()}


def language_of(request: SearchRequest) -> str:
    """Return the language of a request without script and region, as ``zh``; '' where none is asked for."""
    code = re.split("[-_]", request.language.lower(), maxsplit=1)[0]
    return _OLD_LANGUAGES.get(code, code)


def country_of(request: SearchRequest) -> str:
    """Return the country of a request as ISO 3166-1 writes it, in capitals; '' where none is asked for."""
    code = request.country.upper()
    return "GB" if code == "UK" else code


def look_up(request: SearchRequest, table: Mapping[str, str]) -> str:
    """Return a provider's code of the language that a request asks for; '' where the provider has none.

    The region of the tag decides between variants (``pt-BR``), else the request's country, else the likeliest one.

    :param table: the provider's codes by language or by language and variant, as ``pt-br`` and ``zh-hant``, all in
        small letters; Norwegian is ``no``, Hebrew ``he``, Chinese ``zh-hans`` and ``zh-hant``.
    """
    language = language_of(request)
    parts = re.split("[-_]", request.language.lower())[1:]
    region = next((part for part in parts if len(part) == 2), country_of(request).lower())
    if language == "zh":
        script = "hant" if "hant" in parts or ("hans" not in parts and region in _TRADITIONAL) else "hans"
        return table.get(f"zh-{script}", table.get("zh", ""))
    variant = f"{language}-{region or _LIKELIEST.get(language, '')}"
    return table.get(variant, table.get(language, ""))


PATIENCE: Final = 10.0
"""Longest Retry-After, in seconds, after which a request is retried (once)."""

RANGES: Final = ("day", "week", "month", "year")
"""Named time ranges; the other form is two dates: ``2024-01-01..2024-06-30``."""

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
    """A request to a search provider failed.

    :param kind: ``rate`` (too many requests, or no credit), ``key`` (missing or refused), ``malformed``
        (unexpected response), ``refused`` (another error), ``unreachable``.
    """

    def __init__(
        self, message: str, *, subject: str, kind: Kind, may_pass: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, subject=subject, may_pass=may_pass, retry_after=retry_after)
        self.kind: Kind = kind


@dataclass(frozen=True, slots=True)
class Ask:
    """A request in the format of a provider.

    :param params: query parameters of the URL; '' and None are omitted.
    :param body: posted as JSON; None makes a GET request.
    """

    url: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = None


def check(request: SearchRequest) -> None:
    """Check the fields of a request that every provider shares.

    :raises BadInput: a field is invalid; the message names it.
    """
    if not request.query.strip():
        raise BadInput("search: the query is empty", subject="query")
    if len(request.query) > _LONGEST_QUERY:
        raise BadInput(f"search: the query is longer than {_LONGEST_QUERY:,} characters", subject="query")
    if not 1 <= request.count <= MAX_COUNT:
        raise BadInput(f"search: count is from 1 to {MAX_COUNT}, not {request.count}", subject="count")
    if not 1 <= request.page <= _MAX_PAGE:
        raise BadInput(f"search: page is from 1 to {_MAX_PAGE}, not {request.page}", subject="page")
    if request.language not in ("", "auto") and not LANGUAGE.fullmatch(request.language):
        raise BadInput(f"search: {request.language!r} is not a language code; write it as de", subject="language")
    if request.country and not COUNTRY.fullmatch(request.country):
        raise BadInput(f"search: {request.country!r} is not a country code; write it as DE", subject="country")
    time_range(request)
    for domain in (*request.include_domains, *request.exclude_domains):
        if not _DOMAIN.fullmatch(domain.lower()):
            raise BadInput(f"search: {domain!r} is not a domain; write it as example.org", subject=domain)


def time_range(request: SearchRequest) -> tuple[str, date | None, date | None]:
    """Parse the time range of a request into (name, first day, last day).

    A named range has no days, two dates have the name '', and without a range all are empty.

    :raises BadInput: the range is neither a name nor two dates.
    """
    name = request.time_range.strip().lower()
    if not name or name in RANGES:
        return name, None, None
    dates = _DATES.fullmatch(name)
    try:
        days = [date.fromisoformat(day) for day in dates.groups()] if dates else []
    except ValueError:
        days = []
    if len(days) == 2 and days[0] <= days[1]:
        return "", days[0], days[1]
    raise BadInput(
        f"search: {request.time_range!r} is not a time range; use {', '.join(RANGES)} or 2024-01-01..2024-06-30",
        subject="time_range",
    )


def unsupported(request: SearchRequest, name: str, known: frozenset[str]) -> list[str]:
    """Return a warning for every requested filter that a provider lacks.

    Safe search is on by default, so a provider without it causes no warning.

    :param name: the provider's name.
    :param known: names of the provider's filters.
    """
    range_name, first, _ = time_range(request)
    requested = {
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
    for filter_, wanted in requested.items():
        if wanted and filter_ not in known:
            done = "; done here with what it sent" if filter_.endswith("_domains") else ""
            warnings.append(f"{name}: has no filter {filter_}{done}")
    return warnings


def in_domains(url: str, request: SearchRequest) -> bool:
    """Tell whether a URL passes the domain filters of a request; subdomains match too."""
    host = (urlsplit(url).hostname or "").lower()

    def matches(domain: str) -> bool:
        return host == domain.lower() or host.endswith("." + domain.lower())

    wanted = not request.include_domains or any(matches(domain) for domain in request.include_domains)
    return wanted and not any(matches(domain) for domain in request.exclude_domains)


def query_with_sites(request: SearchRequest) -> str:
    """Return the query with the domain filters as operators ``site:`` and ``-site:``."""
    wanted = " OR ".join(f"site:{domain}" for domain in request.include_domains)
    unwanted = " ".join(f"-site:{domain}" for domain in request.exclude_domains)
    grouped = f"({wanted})" if len(request.include_domains) > 1 else wanted
    return " ".join(part for part in (request.query, grouped, unwanted) if part)


def plain_text(value: Any, kind: str) -> str:
    """Return a field of a response as text: without tags, with single spaces, and cut; '' unless it is a string.

    :param kind: ``title``, ``snippet``, ``text`` (only cut, its line breaks stay) or ``published``.
    """
    if not isinstance(value, str):
        return ""
    cut = value[: _LONGEST[kind] * 2].encode("utf-8", "replace").decode("utf-8")
    if kind == "text":
        return cut[: _LONGEST[kind]]
    return " ".join(html.unescape(_TAG.sub("", cut)).split())[: _LONGEST[kind]]


def web_address(value: Any) -> str:
    """Return an http or https URL without credentials; '' for any other value."""
    if not isinstance(value, str) or len(value) > _LONGEST_URL or any(c.isspace() or ord(c) < 32 for c in value):
        return ""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018  # raises for a port that is not a number
    except ValueError:
        return ""
    return value if parts.scheme in ("http", "https") and parts.hostname and not parts.username else ""


def value_at(data: Any, *keys: str) -> Any:
    """Return the value at a path of keys in nested JSON objects; None if it is missing."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


class Provider:
    """A search provider on the network (port: SearchProvider).

    :param model: the part of the spec after the colon: a URL, unless the provider defines another meaning.
    :param door: the egress door.
    :param key: API key, sent only to this provider and never shown.
    :param endpoint: base URL that the operator configured; '' takes the provider's public one.
    :param seconds: time limit of one request.
    :param price: US dollars per request, for responses that do not state their cost.
    """

    name: ClassVar[str] = ""
    home: ClassVar[str] = ""
    wants_key: ClassVar[bool] = True
    filters: ClassVar[frozenset[str]] = frozenset()
    languages: ClassVar[Mapping[str, str]] = {}
    """The provider's codes of languages, as :func:`._codes.look_up` takes them."""

    countries: ClassVar[Mapping[str, str]] = {}
    """The provider's codes of countries, by ISO 3166-1 in capitals."""

    largest: ClassVar[int] = 20
    """Most results per request."""

    def __init__(
        self,
        model: str = "",
        door: Door | None = None,
        key: str = "",
        endpoint: str = "",
        seconds: float = 15.0,
        price: float = 0.0,
    ) -> None:
        self._model, url = self._split(model)
        self._endpoint = url or endpoint
        if self._endpoint and (not web_address(self._endpoint) or hide_logins(self._endpoint) != self._endpoint):
            raise BadInput(
                f"search {self.name}: {one_line(self._endpoint, [key])!r} is not a URL; write it as https://host/path, "
                "without a user name or password",
                subject=self.name,
            )
        self.address = (self._endpoint or self.home).rstrip("/")
        self._door = door
        self._key = key
        self._seconds = seconds
        self._price = price
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._now: Callable[[], float] = time.time

    def __repr__(self) -> str:
        return f"{self.name}({hide_secrets(self.address)!r})"  # never the key

    @property
    def lacks_key(self) -> bool:
        """Whether the provider needs a key and has none."""
        return self.wants_key and not self._key

    @property
    def lacks_address(self) -> bool:
        """Whether the provider needs a URL and has none."""
        return not self.address

    def _split(self, model: str) -> tuple[str, str]:
        """Split the part of a spec after the colon into (model, URL)."""
        return "", model

    def language(self, request: SearchRequest) -> str:
        """Return the provider's code of the language of a request; '' where none is wanted, or it has none."""
        return look_up(request, self.languages) if request.language else ""

    def country(self, request: SearchRequest) -> str:
        """Return the provider's code of the country of a request; '' where none is wanted, or it has none."""
        return self.countries.get(country_of(request), "")

    def ask(self, request: SearchRequest) -> Ask:
        """Return the request in the provider's format."""
        raise NotImplementedError

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """Return the results of a response, each a mapping with url, title, snippet, text, published.

        None means that the response does not have the provider's format.
        """
        raise NotImplementedError

    def failed_sources(self, data: Mapping[str, Any]) -> list[str]:
        """Return the sources that a response names as failed, each with its reason; a metasearch engine has them."""
        return []

    def cost(self, data: Mapping[str, Any]) -> float:
        """Return the cost of a request in US dollars."""
        return self._price

    def remaining(self, headers: Mapping[str, str]) -> int:
        """Return the remaining requests of the provider's longest rate-limit window; -1 if unknown."""
        for name in ("x-ratelimit-remaining", "ratelimit-remaining"):
            # several windows are comma-separated, the longest last
            number = bounded_int(headers.get(name, "").split(",")[-1].split(";")[0], -1, least=-1, most=10**9)
            if number >= 0:
                return number
        return -1

    async def search(self, request: SearchRequest) -> Results:
        """Return hits in the provider's order.

        :raises BadInput: the request is invalid, or the key or the egress door is missing.
        :raises SearchFailed: the request failed; the message is one line without the key.
        """
        if request.language == "auto" and self.name != "searxng":  # only SearXNG guesses the language itself
            request = replace(request, language="")
        check(request)
        warnings = unsupported(request, self.name, self.filters) + self._without_code(request)
        if request.count > self.largest:
            warnings.append(f"{self.name}: gives at most {self.largest} results a page, not {request.count}")
        data, headers = await self._send(self.ask(request))
        rows = self.rows(data, request)
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise self._failed("the response does not have the expected format", "malformed")
        failed = ", ".join(self.failed_sources(data))
        if failed and not rows and request.page == 1:  # nobody knows whether there is anything to find
            raise self._failed(f"found nothing, and no answer came from {failed}", "unreachable")
        if failed:
            warnings.append(f"{self.name}: no answer came from {one_line(failed, [self._key], 300)}")
        hits = self._hits(rows[:MAX_COUNT], request, warnings)
        cost = self.cost(data)
        return Results(tuple(hits[: request.count]), tuple(warnings), cost, self.remaining(headers))

    def _without_code(self, request: SearchRequest) -> list[str]:
        """Return a warning for a language or a country that the provider's filter does not know."""
        asked = {
            "language": (request.language, self.language(request)),
            "country": (request.country, self.country(request)),
        }
        return [
            f"{self.name}: has no filter {filter_} {wanted!r}"
            for filter_, (wanted, code) in asked.items()
            if filter_ in self.filters and wanted and not code
        ]

    def _hits(self, rows: Sequence[Any], request: SearchRequest, warnings: list[str]) -> list[Hit]:
        """Turn checked results into hits; a warning counts the results without a usable URL."""
        hits: list[Hit] = []
        lost = 0
        for rank, row in enumerate(rows, 1):
            url = web_address(row.get("url")) if isinstance(row, Mapping) else ""
            if not url:
                lost += 1
            elif in_domains(url, request):
                fields = {name: plain_text(row.get(name), name) for name in ("title", "snippet", "published")}
                text = plain_text(row.get("text"), "text") if request.want_text else ""
                hits.append(
                    Hit(url, fields["title"], fields["snippet"], text, fields["published"], "", self.name, rank)
                )
        if lost:
            warnings.append(f"{self.name}: {lost} of {len(rows)} results have no usable address and were left out")
        return hits

    async def _send(self, ask: Ask) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Send a request and read its response; retry once after the pause that the provider asks for."""
        if self.lacks_key:
            raise BadInput(f"search {self.name} needs a key: set search_key", subject=self.name)
        if self._door is None:
            raise BadInput(f"search {self.name} needs an egress door", subject=self.name)
        params = {name: value for name, value in ask.params.items() if value not in ("", None)}
        url = f"{ask.url}?{urlencode(params, errors='replace')}" if params else ask.url
        headers = {"accept": "application/json", **ask.headers}
        method = "GET" if ask.body is None else "POST"
        call = JsonCall(method, url, headers, ask.body, self._endpoint, self._seconds)
        door = self._door

        async def send_once() -> tuple[Mapping[str, Any], Mapping[str, str]]:
            try:
                reply = await exchange(door, call)
            except OutsideFailed as error:
                raise self._failed(str(error), "unreachable") from error
            wait = retry_after(reply.headers, self._now())
            return self._read(reply.status, reply.content, wait), reply.headers

        return await Retries(2, longest=PATIENCE).acall(send_once, sleep=self._sleep)

    def _read(self, status: int, content: bytes, wait: float | None) -> Mapping[str, Any]:
        """Return the JSON object of a successful response.

        :param wait: seconds of the Retry-After header; None without one.
        :raises SearchFailed: the status is an error, or the body is not a JSON object.
        """
        said = error_suffix(content, self._key)
        if status in (401, 403):
            refusal = "refuses the key" if self._key else "refuses the request"
            raise self._failed(f"{refusal} (HTTP {status}){said}{self.hint(status)}", "key")
        if status in (402, 429, 432, 433):  # 402, 432, 433: the plan's credit is spent
            raise self._failed(
                f"too many requests (HTTP {status}){wait_hint(wait)}{said}{self.hint(status)}",
                "rate",
                status,
                wait,
            )
        if status != 200:
            raise self._failed(f"HTTP {status}{said}", "refused", status, wait)
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._failed("the response is not JSON", "malformed") from error
        if not isinstance(data, Mapping):
            raise self._failed("the response is not a JSON object", "malformed")
        return data

    def hint(self, status: int) -> str:
        """Return a known remedy for an error status, as the end of a message; '' without one."""
        return ""

    def _failed(self, why: str, kind: Kind, status: int = 0, wait: float | None = None) -> SearchFailed:
        reason = one_line(why, [self._key], 400)
        # a request may cost money, so only a provider that names the pause is asked again
        may_retry = status in (429, 503) and wait is not None
        return SearchFailed(
            f"search {self.name}: {reason}", subject=self.name, kind=kind, may_pass=may_retry, retry_after=wait
        )
