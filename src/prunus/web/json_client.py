"""JSON requests to a service through the egress door, with limits, timeouts and retries.

After a busy response (429) or a transient failure (5xx, no connection) the request is retried, after a pause
that doubles each time, or after the pause of the ``Retry-After`` header. The key is sent only in the header,
and it is removed from the text of a response before an error message quotes it.
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
from ..core.text.secrets import hide_logins, hide_secrets
from .retry import Retries, retry_after, wait_hint

if TYPE_CHECKING:
    import httpx

    from ..core.ports import Door

TRIES: Final = 4
"""Most requests for one call, the first included."""

LONGEST_PAUSE: Final = 60.0
"""Longest pause before a retry, in seconds; a service that asks for more fails at once."""

MAX_BYTES: Final = 64 << 20
"""Most bytes of a response; 2,048 vectors of 3,072 numbers as JSON text fit."""

_MAX_ERROR_BYTES: Final = 64 << 10
"""Most bytes of an error response to parse."""

WRONG_SHAPE: Final = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""What reading a JSON value of another shape raises; a reader of replies catches all of them."""

BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which a retry may succeed."""


class ServiceRefused(OutsideFailed):
    """A service rejected the request: too long, too many items, unknown model.

    :param status: the HTTP status.
    :param content: the body of the response.
    """

    def __init__(self, message: str, *, subject: str, status: int, content: bytes = b"") -> None:
        super().__init__(message, subject=subject)
        self.status = status
        self.content = content


@dataclass(frozen=True, slots=True)
class Service:
    """A service with JSON requests and responses.

    :param url: the whole URL of the requests.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param seconds: timeout of one request.
    :param tries: requests for one call at most, the first included.
    :param sleep, now: waiting, and the clock in seconds since 1970; tests replace them.
    """

    url: str
    door: Door
    key: str = ""
    seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    tries: int = TRIES

    def __repr__(self) -> str:
        return f"Service({hide_secrets(self.url)!r})"  # never the key

    def post(self, body: Mapping[str, Any]) -> Any:
        """Post a JSON body; return the JSON value of the response.

        :raises BadInput: the key is missing or refused.
        :raises ServiceRefused: the service rejects the request.
        :raises OutsideFailed: the service cannot be reached, all retries fail, or the response is not JSON.
        """
        return Retries(self.tries, longest=LONGEST_PAUSE).call(lambda: self._send_once("POST", body), sleep=self.sleep)

    def get(self) -> Any:
        """Return the JSON value at the URL; the errors are those of :meth:`post`."""
        return Retries(self.tries, longest=LONGEST_PAUSE).call(lambda: self._send_once("GET", None), sleep=self.sleep)

    def _send_once(self, method: str, body: Mapping[str, Any] | None) -> Any:
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {self.key}"} if self.key else {})
        with (
            network_errors(self.url, f"no response within {self.seconds:g} s"),
            self.door.client(self.url, seconds=self.seconds) as client,
            client.stream(method, self.url, json=without_surrogates(body), headers=headers) as response,
        ):
            content = self._read_body(response)
        if response.status_code in BUSY:
            wait = retry_after(response.headers, self.now())
            why = f"HTTP {response.status_code}{wait_hint(wait)}{error_suffix(content, self.key)}"
            raise OutsideFailed(f"{self.url}: {why}", subject=self.url, may_pass=True, retry_after=wait)
        return self._parse(response.status_code, content)

    def _read_body(self, response: httpx.Response) -> bytes:
        """Read a response up to the limits of bytes and time."""
        parts, size, deadline = [], 0, time.monotonic() + self.seconds
        for part in response.iter_bytes():
            size += len(part)
            # httpx's timeout is for one read, and a server may send pieces for ever
            if time.monotonic() > deadline:
                raise OutsideFailed(f"{self.url}: no complete response within {self.seconds:g} s", subject=self.url)
            if size > MAX_BYTES:
                raise OutsideFailed(f"{self.url}: the response is over {MAX_BYTES >> 20} MiB", subject=self.url)
            parts.append(part)
        return b"".join(parts)

    def _parse(self, status: int, content: bytes) -> Any:
        if status in (401, 403):
            reason = "refuses the key" if self.key else "needs a key"
            raise BadInput(f"{self.url}: {reason} (HTTP {status}){error_suffix(content, self.key)}", subject=self.url)
        if status >= 300:
            why = f"{self.url}: HTTP {status}{error_suffix(content, self.key)}"
            raise ServiceRefused(why, subject=self.url, status=status, content=content)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise OutsideFailed(
                f"{self.url}: the response is not JSON{error_suffix(content, self.key)}", subject=self.url
            ) from error


@dataclass(frozen=True, slots=True)
class JsonCall:
    """One request of an async engine.

    :param body: sent as JSON; None sends no body.
    :param endpoint: base URL that the operator configured; '' without one.
    :param seconds: time limit of the whole exchange.
    :param max_bytes: most bytes of the response after decompression.
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
    """A complete response with any status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


async def exchange(door: Door, call: JsonCall) -> JsonReply:
    """Send one request and read its response; redirects are not followed.

    :raises OutsideFailed: no connection, no complete response in time, or a response over the limit. The message
        names only the host, because the URL may hold a key.
    """
    host = urlsplit(call.url).hostname or "?"
    with network_errors(host, f"no complete response within {call.seconds:g} s"):
        async with (
            asyncio.timeout(call.seconds),
            door.async_client(call.endpoint, seconds=call.seconds) as client,
            client.stream(
                call.method, call.url, json=without_surrogates(call.body), headers=dict(call.headers)
            ) as response,
        ):
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > call.max_bytes:
                    raise OutsideFailed(f"{host}: the response is over {call.max_bytes >> 20} MiB", subject=host)
                parts.append(part)
            return JsonReply(response.status_code, response.headers, b"".join(parts))


@contextmanager
def network_errors(where: str, timeout_reason: str) -> Iterator[None]:
    """Turn the errors of the HTTP library into OutsideFailed; the errors of the egress door pass unchanged.

    :param where: the service, at the start of the message. The message shows no URL, which may hold a key.
    :param timeout_reason: the rest of the message after a timeout.
    :raises OutsideFailed: the HTTP library raised an error.
    """
    import httpx

    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        sent = not isinstance(error, httpx.ConnectTimeout)
        raise OutsideFailed(f"{where}: {timeout_reason}", subject=where, may_pass=True, sent=sent) from error
    except httpx.TransportError as error:
        kind, sent = type(error).__name__, not isinstance(error, httpx.ConnectError)
        raise OutsideFailed(
            f"{where}: no connection, or it broke off ({kind})", subject=where, may_pass=True, sent=sent
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OutsideFailed(f"{where}: the request failed ({type(error).__name__})", subject=where) from error


def endpoint(spec: str, shapes: tuple[str, ...], kind: str) -> tuple[str, str, str]:
    """Split the model part of an ``http`` spec into (shape, URL, name of the model).

    The forms are ``https://host/v1#name``, ``//host/v1#name`` (the rest of the spec ``http://host/v1#name`` after
    its kind), and either with a shape before it: ``tei+https://host``.

    :param shapes: the known request formats; the shape is '' if the spec names none.
    :param kind: kind of the engine, for the message.
    :raises BadInput: the spec holds no URL, or a URL with a user name or password.
    """
    if hide_logins(spec) != spec:  # first: a password may hold what separates the parts of a spec
        raise BadInput(f"{kind}: a URL may hold no user name or password; give the key as a setting", subject=kind)
    address, _, model = spec.partition("#")
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
        raise BadInput(f"{kind}: {address!r} is not a URL; write {kind}:https://host/v1#model", subject=kind) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{kind} needs a URL: {kind}:https://host/v1#model, not {address or 'nothing'!r}", subject=kind)
    return shape, address.rstrip("/"), model


def without_surrogates(value: Any) -> Any:
    """Return a JSON value without lone surrogates, which cannot be sent as UTF-8: each becomes '?'."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {name: without_surrogates(item) for name, item in value.items()}
    return [without_surrogates(item) for item in value] if isinstance(value, list) else value


def error_text(content: bytes) -> str:
    """Return the text of an error response: the message of a JSON body, else the whole body."""
    try:
        message = error_message(json.loads(content))
    except (ValueError, RecursionError):
        message = ""
    return message or content.decode("utf-8", "replace")


def error_message(body: Any) -> str:
    """Return the message of a JSON error in any of the usual formats; '' without one."""
    for _ in range(4):  # services nest the message, as in {"error": {"message": …}}
        if isinstance(body, Mapping):
            body = next((body[name] for name in ("error", "message", "detail", "msg") if body.get(name)), "")
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)[:2000] if body else ""


def error_suffix(content: bytes, key: str) -> str:
    """Return the text of an error response as the end of a message, without the key; '' for a web page."""
    text = error_text(content[:_MAX_ERROR_BYTES])
    reason = "" if text.lstrip().startswith("<") else one_line(text, [key])
    return f": {reason}" if reason else ""
