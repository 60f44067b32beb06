"""JSON requests to a service, through the egress door: bounded, timed, tried again where that can help.

A service that is busy (429) or broken for a moment (5xx, no connection) is asked again after a pause
that doubles, or after what its ``Retry-After`` says. The key goes into the header and nowhere else:
it is cut out of whatever a service answers before that becomes a message.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ..core.errors import BadInput, OutsideFailed, one_line
from .retry import Retries, retry_after, wish

if TYPE_CHECKING:
    import httpx

    from ..core.ports import Door

TRIES: Final = 4
"""Requests in all before a service counts as failed."""

LONGEST_PAUSE: Final = 60.0
"""Seconds; a service that wants more is not waited for."""

MAX_BYTES: Final = 64 << 20
"""Of an answer; 2,048 vectors of 3,072 numbers written out are below it."""

_MOST_SAID: Final = 64 << 10
"""Bytes of a failed answer that are looked at."""

BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of a service that may answer in a moment."""


class Refused(OutsideFailed):
    """A service understood the request and does not want it: too long, too many, unknown model.

    :param status: of the answer.
    """

    def __init__(self, message: str, *, subject: str, status: int) -> None:
        super().__init__(message, subject=subject)
        self.status = status


@dataclass(frozen=True, slots=True)
class Service:
    """A service that takes and gives JSON.

    :param url: the whole address.
    :param door: the way to the network.
    :param key: sent as a bearer token; '' sends none.
    :param seconds: time-out of one request.
    :param sleep, now: waiting and the clock, for tests.
    """

    url: str
    door: Door
    key: str = ""
    seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def __repr__(self) -> str:
        return f"Service({self.url!r})"  # never the key

    def post(self, body: Mapping[str, Any]) -> Any:
        """Send a request and return the answer, read as JSON.

        :raises BadInput: the key is missing or refused.
        :raises Refused: the service does not want this request.
        :raises OutsideFailed: the service cannot be reached, stays broken, or answers no JSON.
        """
        return Retries(TRIES, longest=LONGEST_PAUSE).call(lambda: self._once(body), sleep=self.sleep)

    def _once(self, body: Mapping[str, Any]) -> Any:
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {self.key}"} if self.key else {})
        with (
            reaching(self.url, f"no answer within {self.seconds:g} s"),
            self.door.client(self.url, seconds=self.seconds) as client,
            client.stream("POST", self.url, json=body, headers=headers) as answer,
        ):
            content = self._whole(answer)
        if answer.status_code in BUSY:
            asked = retry_after(answer.headers, self.now())
            said = f"answers {answer.status_code}{wish(asked)}{ending(content, self.key)}"
            raise OutsideFailed(f"{self.url}: {said}", subject=self.url, may_pass=True, retry_after=asked)
        return self._read(answer.status_code, content)

    def _whole(self, answer: httpx.Response) -> bytes:
        """Read an answer up to the limit."""
        parts, size, end = [], 0, time.monotonic() + self.seconds
        for part in answer.iter_bytes():
            size += len(part)
            if time.monotonic() > end:  # a time-out of httpx is for one piece, and pieces may drip for ever
                raise OutsideFailed(f"{self.url}: no whole answer within {self.seconds:g} s", subject=self.url)
            if size > MAX_BYTES:
                raise OutsideFailed(f"{self.url}: answers more than {MAX_BYTES >> 20} MiB", subject=self.url)
            parts.append(part)
        return b"".join(parts)

    def _read(self, status: int, content: bytes) -> Any:
        if status in (401, 403):
            what = "refuses the key" if self.key else "wants a key"
            raise BadInput(f"{self.url}: {what} (HTTP {status}){ending(content, self.key)}", subject=self.url)
        if status >= 300:
            raise Refused(f"{self.url}: HTTP {status}{ending(content, self.key)}", subject=self.url, status=status)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise OutsideFailed(
                f"{self.url}: the answer is not JSON{ending(content, self.key)}", subject=self.url
            ) from error


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One request of an ``async`` engine.

    :param body: sent as JSON; None sends none.
    :param endpoint: the address that the operator wrote down; '' where there is none.
    :param seconds: for the whole exchange.
    :param max_bytes: of the answer, unpacked.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any = None
    endpoint: str = ""
    seconds: float = 20.0
    max_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class JsonReply:
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


async def exchange(door: Door, call: JsonCall) -> JsonReply:
    """Send one request and read its answer; redirects are not followed.

    :raises OutsideFailed: no connection, no whole answer in time, or one over the limit. The message names the
        host alone: an address may hold a key.
    """
    host = urlsplit(call.url).hostname or "?"
    with reaching(host, f"no whole answer within {call.seconds:g} s"):
        async with (
            asyncio.timeout(call.seconds),
            door.async_client(call.endpoint, seconds=call.seconds) as client,
            client.stream(call.method, call.url, json=call.body, headers=dict(call.headers)) as answer,
        ):
            parts, size = [], 0
            async for part in answer.aiter_bytes():
                size += len(part)
                if size > call.max_bytes:
                    raise OutsideFailed(f"{host}: answers more than {call.max_bytes >> 20} MiB", subject=host)
                parts.append(part)
            return JsonReply(answer.status_code, answer.headers, b"".join(parts))


@contextmanager
def reaching(where: str, late: str) -> Iterator[None]:
    """Turn what the HTTP library raises on the way to a service into one line; what the door raises stays.

    :param where: begins the message, which holds no other address: that may hold a key.
    :param late: says what did not come in time.
    """
    import httpx

    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise OutsideFailed(f"{where}: {late}", subject=where, may_pass=True) from error
    except httpx.TransportError as error:
        kind = type(error).__name__
        raise OutsideFailed(
            f"{where}: no connection, or it broke off ({kind})", subject=where, may_pass=True
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OutsideFailed(f"{where}: cannot be asked ({type(error).__name__})", subject=where) from error


def endpoint(given: str, shapes: tuple[str, ...], kind: str) -> tuple[str, str, str]:
    """Split the model of an ``http`` spec into (shape, address, name of the model).

    ``https://host/v1#name``, ``//host/v1#name`` (what is left of the spec ``http://host/v1#name``),
    and with the shape before it: ``tei+https://host``.

    :param shapes: the shapes that there are; '' is returned where none is written.
    :raises BadInput: no address, or one with a user or password in it.
    """
    address, _, model = given.partition("#")
    shape, plus, rest = address.partition("+")
    if plus and shape in shapes:
        address = rest
    else:
        shape = ""
    if address.startswith("//"):
        address = "http:" + address
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise BadInput(f"{kind}: {address!r} is no address", subject=kind) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(
            f"{kind} needs an address: {kind}:https://host/v1#model, not {address or 'nothing'!r}", subject=kind
        )
    if parts.username or parts.password:
        raise BadInput(
            f"{parts.hostname}: an address holds no user or password; give the key as a setting", subject=kind
        )
    return shape, address.rstrip("/"), model


def words_of(content: bytes) -> str:
    """Return what the body of an error says: its message where it is JSON, else the text itself."""
    try:
        found = message_of(json.loads(content))
    except (ValueError, RecursionError):
        found = ""
    return found or content.decode("utf-8", "replace")


def message_of(found: Any) -> str:
    """Return the message of an error that was JSON, in any of the shapes that services give it; '' for none."""
    for _ in range(4):
        if isinstance(found, Mapping):
            found = next((found[name] for name in ("error", "message", "detail", "msg") if found.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)[:2000] if found else ""


def ending(content: bytes, key: str) -> str:
    """Return what a failed answer says, as the end of a message; '' for nothing, and for a web page."""
    words = words_of(content[:_MOST_SAID])
    shown = "" if words.lstrip().startswith("<") else one_line(words, [key])
    return f": {shown}" if shown else ""
