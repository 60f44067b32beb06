"""The egress door: every byte that leaves or enters goes through here, the browser's too.

A URL is read by one parser. Its name is resolved once, every address is checked against a table of our
own, and the checked address is dialled; the same again for every request, so at every redirect too.
Hosts inside are reached only where the operator wrote them down: as the ``endpoint`` of one client, or in
``allow_hosts``. The environment (proxies, .netrc, certificates) is not read.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import anyio
import certifi
import httpcore
import httpx

from ...core.errors import BadInput
from .blocking import Backend
from .decode import accepted
from .errors import FetchFailed, RefusedUrl
from .gate import EgressRules, Gate, default_user_agent
from .network import AsyncBackend, Dialler, Resolver, share, system_resolver, unreachable, untrusted
from .transport import AsyncTransport, Terms, Transport
from .url import Url, parse_host

__all__ = ["Egress", "EgressRules", "FetchFailed", "RefusedUrl", "Resolver", "Url", "system_resolver"]

_KEEP_SECONDS: Final = 20.0
_PROXY_HEAD: Final = 16 * 1024


class Egress:
    """The door (:class:`prunus.core.ports.Door`).

    :param rules: what the operator allows, and the limits; by default nothing inside.
    :param resolver: ``(host, port) -> addresses``; by default the system's. Whatever it answers is checked.
    :raises BadInput: a rule cannot be read; the message names it.
    """

    def __init__(self, rules: EgressRules | None = None, resolver: Resolver = system_resolver) -> None:
        self.rules = rules or EgressRules()
        self._gate = Gate(self.rules)
        self._resolver = resolver
        self.user_agent = self.rules.user_agent or default_user_agent()

    @property
    def request_headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"user-agent": self.user_agent, "accept-encoding": accepted()}

    def check_url(self, url: str) -> Url:
        """Read a URL and check what can be checked without the network.

        :return: the URL whose host, port and target are what is dialled and sent.
        :raises RefusedUrl: with the reason, also as ``kind``.
        """
        return self._gate.url(url)

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        """Return a client for threads; close it, or use it as a context manager.

        Redirects are not followed (``response.extensions["location"]`` says where one leads), cookies are not
        kept, and answers are unpacked within the limits. A request raises RefusedUrl or FetchFailed, never an
        error of the HTTP library's transport.

        :param endpoint: an address that the operator wrote down; exactly its scheme, host and port may be inside,
            for this client only. It is also what relative URLs are joined to.
        :param seconds: for a whole exchange, and between two bytes; 0 for the rules' own.
        """
        terms = self._terms(endpoint, seconds)
        dialler = Dialler(self._gate, self._resolver, terms.endpoint)
        direct = httpcore.ConnectionPool(
            ssl_context=self._tls,
            max_connections=self.rules.max_connections,
            keepalive_expiry=_KEEP_SECONDS,
            network_backend=Backend(dialler),
        )
        proxied = None
        if self._gate.proxy is not None:
            place, credentials = self._proxy()
            proxied = httpcore.HTTPProxy(
                place,
                proxy_auth=credentials,
                ssl_context=self._tls,
                proxy_ssl_context=self._tls_proxy if place.scheme == b"https" else None,
                max_connections=self.rules.max_connections,
                keepalive_expiry=_KEEP_SECONDS,
                network_backend=Backend(Dialler(self._gate, self._resolver, only=self._gate.proxy.url)),
            )
        return httpx.Client(
            transport=Transport(terms, direct, proxied),
            headers=self.request_headers,
            cookies=_no_cookies(),
            trust_env=False,
            follow_redirects=False,
            base_url=str(terms.endpoint or ""),
        )

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        """Return a client for ``async`` code, with HTTP/2; else as :meth:`client`."""
        terms = self._terms(endpoint, seconds)
        dialler = Dialler(self._gate, self._resolver, terms.endpoint)
        direct = httpcore.AsyncConnectionPool(
            ssl_context=self._tls_http2,
            max_connections=self.rules.max_connections,
            keepalive_expiry=_KEEP_SECONDS,
            http2=True,
            network_backend=AsyncBackend(dialler),
        )
        proxied = None
        if self._gate.proxy is not None:
            place, credentials = self._proxy()
            proxied = httpcore.AsyncHTTPProxy(
                place,
                proxy_auth=credentials,
                ssl_context=self._tls_http2,
                proxy_ssl_context=self._tls_proxy if place.scheme == b"https" else None,
                max_connections=self.rules.max_connections,
                keepalive_expiry=_KEEP_SECONDS,
                http2=True,
                network_backend=AsyncBackend(Dialler(self._gate, self._resolver, only=self._gate.proxy.url)),
            )
        return httpx.AsyncClient(
            transport=AsyncTransport(terms, direct, proxied),
            headers=self.request_headers,
            cookies=_no_cookies(),
            trust_env=False,
            follow_redirects=False,
            base_url=str(terms.endpoint or ""),
        )

    async def dial(
        self, host: str, port: int, *, seconds: float = 0.0
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to a host: resolve once, check every address, dial the address that was checked.

        :param host: a name or an address, an IPv6 address with or without brackets.
        :param seconds: to connect; 0 for the rules' own.
        :raises RefusedUrl: the host, its port or one of its addresses is refused.
        :raises FetchFailed: it cannot be reached.
        """
        bare = f"[{host}]" if ":" in host and not host.startswith("[") else host
        name, address = parse_host(bare)
        self._gate.host(name, address, port, f"{bare}:{port}")
        seconds = seconds or self.rules.connect_seconds
        proxy = self._gate.proxy
        if proxy is None or self._gate.direct(Url("http", name, port, "/", address=address)):
            return await self._dial(Dialler(self._gate, self._resolver), name, port, seconds)
        reader, writer = await self._dial(
            Dialler(self._gate, self._resolver, only=proxy.url), proxy.url.host, proxy.url.port, seconds
        )
        try:
            await self._tunnel(reader, writer, f"{name}:{port}", seconds)
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _dial(
        self, dialler: Dialler, host: str, port: int, seconds: float
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a checked address; with TLS where the host is the proxy's and it asks for that."""
        addresses = await dialler.addresses(host, port, seconds)
        proxy = self._gate.proxy.url if self._gate.proxy else None
        secure = proxy is not None and dialler.only == proxy and proxy.scheme == "https"
        last: Exception = OSError("no address")
        ends = anyio.current_time() + seconds
        for number, address in enumerate(addresses):
            left = share(ends - anyio.current_time(), len(addresses) - number)
            try:
                with anyio.fail_after(left):
                    if secure:
                        return await asyncio.open_connection(
                            str(address), port, ssl=self._tls_proxy, server_hostname=host
                        )
                    return await asyncio.open_connection(str(address), port)
            except ssl.SSLError as error:
                raise untrusted(host, error) from error
            except OSError as error:  # TimeoutError too
                last = error
        raise unreachable(host, port, last) from last

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str, seconds: float
    ) -> None:
        """Ask the operator's proxy to connect to a place."""
        assert self._gate.proxy is not None
        proxy = self._gate.proxy
        secret = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode("ascii")
        login = f"Proxy-Authorization: Basic {secret}\r\n" if proxy.user else ""
        try:
            with anyio.fail_after(seconds):
                writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n".encode("ascii"))
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError as error:
            raise FetchFailed(place, "timeout", "the proxy did not answer in time") from error
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise FetchFailed(place, "proxy", "the proxy gave no proper answer") from error
        words = head[:_PROXY_HEAD].split(b"\r\n", 1)[0].split()
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].startswith(b"2"):
            said = b" ".join(words[1:4]).decode("ascii", "replace")
            raise FetchFailed(place, "proxy", f"the proxy refused ({said})")

    def _terms(self, endpoint: str, seconds: float) -> Terms:
        """Return what holds for one client."""
        place = self._gate.endpoint(endpoint) if endpoint else None
        return Terms(self._gate, place, seconds or self.rules.total_seconds, seconds or self.rules.read_seconds)

    def _proxy(self) -> tuple[httpcore.URL, tuple[bytes, bytes] | None]:
        """Return the operator's proxy as the HTTP library wants it."""
        assert self._gate.proxy is not None
        proxy = self._gate.proxy
        place = httpcore.URL(
            scheme=proxy.url.scheme.encode(), host=proxy.url.host.encode(), port=proxy.url.port, target=b"/"
        )
        return place, (proxy.user.encode(), proxy.password.encode()) if proxy.user else None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._context()

    @cached_property
    def _tls_http2(self) -> ssl.SSLContext:
        return self._context()  # one for each protocol: the HTTP library writes what is offered into it

    @cached_property
    def _tls_proxy(self) -> ssl.SSLContext:
        return self._context()

    def _context(self) -> ssl.SSLContext:
        """Return a TLS context that verifies names against public certificates and the operator's own."""
        context = ssl.create_default_context(cafile=certifi.where())
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.rules.ca_file:
            try:
                context.load_verify_locations(cafile=self.rules.ca_file)
            except (OSError, ssl.SSLError) as error:
                reason = getattr(error, "strerror", "") or error
                raise BadInput(
                    f"ca_file: {self.rules.ca_file} cannot be read as PEM ({reason})", subject="ca_file"
                ) from error
        return context


def _no_cookies() -> CookieJar:
    """Return a jar that takes nothing: what one page sets is no other page's business."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))
