"""The egress door: all network traffic goes through it, the browser's included.

One parser reads every URL. The host name is resolved once, every address is checked against
:mod:`.addresses`, and the connection goes to the checked address. Each request repeats these checks, so a
redirect is checked too. Internal hosts are reachable only if the operator configured them: as the
``endpoint`` of one client, or in ``allow_hosts``. The environment (proxies, .netrc, certificates) is not read.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from functools import cache, cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import anyio
import certifi
import httpcore
import httpx

from ...core.errors import BadInput
from .address_policy import EgressRules, Gate, default_user_agent
from .decode import accept_encoding
from .errors import FetchFailed, RefusedUrl
from .network import AsyncBackend, Backend, Dialler, Resolver, share, system_resolver, unreachable, untrusted
from .transport import AsyncTransport, Terms, Transport
from .url import Url, parse_host

__all__ = ["Egress", "EgressRules", "FetchFailed", "RefusedUrl", "Resolver", "Url", "system_resolver"]

_KEEP_SECONDS: Final = 20.0  # an idle connection stays open for reuse
_PROXY_HEAD: Final = 16 * 1024  # bytes of the proxy's response to CONNECT to parse


class Egress:
    """The egress door (:class:`prunus.core.ports.Door`).

    :param rules: what the operator allows, and the limits; the default allows no internal host.
    :param resolver: ``(host, port) -> addresses``; the system's by default. Every address it returns is checked.
    :raises BadInput: a rule cannot be parsed; the message names it.
    """

    def __init__(self, rules: EgressRules | None = None, resolver: Resolver = system_resolver) -> None:
        self.rules = rules or EgressRules()
        self._gate = Gate(self.rules)
        self._resolver = resolver
        self.user_agent = self.rules.user_agent or default_user_agent()

    @property
    def request_headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"user-agent": self.user_agent, "accept-encoding": accept_encoding()}

    def check_url(self, url: str) -> Url:
        """Parse a URL and make all checks that need no network.

        :return: the parsed URL; exactly its host and port are dialled, and its target is sent.
        :raises RefusedUrl: the URL is not allowed; ``kind`` holds the reason in one word.
        """
        return self._gate.url(url)

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        """Return a blocking client; close it, or use it as a context manager.

        The client does not follow redirects (``response.extensions["location"]`` holds the target), keeps no
        cookies, and decompresses responses within the limits. A request raises RefusedUrl or FetchFailed, never
        a transport error of the HTTP library.

        :param endpoint: a URL that the operator configured. This client may reach exactly its scheme, host and
            port even if the host is internal. Relative URLs are joined to it.
        :param seconds: time limit of a whole exchange, and between two bytes; 0 takes the limits of the rules.
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
            proxy_url, credentials = self._proxy()
            proxied = httpcore.HTTPProxy(
                proxy_url,
                proxy_auth=credentials,
                ssl_context=self._tls,
                proxy_ssl_context=self._tls_proxy if proxy_url.scheme == b"https" else None,
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
        """Return an async client, with HTTP/2; otherwise like :meth:`client`."""
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
            proxy_url, credentials = self._proxy()
            proxied = httpcore.AsyncHTTPProxy(
                proxy_url,
                proxy_auth=credentials,
                ssl_context=self._tls_http2,
                proxy_ssl_context=self._tls_proxy if proxy_url.scheme == b"https" else None,
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
        """Open a connection to a host: resolve it once, check every address, dial a checked address.

        :param host: a name or an address; an IPv6 address with or without brackets.
        :param seconds: time limit to connect; 0 takes the limit of the rules.
        :raises RefusedUrl: the host, its port or one of its addresses is refused.
        :raises FetchFailed: the host cannot be reached.
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
        """Connect to a checked address, with TLS if the host is the operator's ``https`` proxy."""
        addresses = await dialler.addresses(host, port, seconds)
        proxy = self._gate.proxy.url if self._gate.proxy else None
        secure = proxy is not None and dialler.only == proxy and proxy.scheme == "https"
        last_error: Exception = OSError("no address")
        deadline = anyio.current_time() + seconds
        for number, address in enumerate(addresses):
            remaining = share(deadline - anyio.current_time(), len(addresses) - number)
            try:
                with anyio.fail_after(remaining):
                    if secure:
                        return await asyncio.open_connection(
                            str(address), port, ssl=self._tls_proxy, server_hostname=host
                        )
                    return await asyncio.open_connection(str(address), port)
            except ssl.SSLError as error:
                raise untrusted(host, error) from error
            except OSError as error:  # TimeoutError too
                last_error = error
        raise unreachable(host, port, last_error) from last_error

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str, seconds: float
    ) -> None:
        """Ask the operator's proxy to connect to ``host:port``."""
        assert self._gate.proxy is not None
        proxy = self._gate.proxy
        secret = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode("ascii")
        login = f"Proxy-Authorization: Basic {secret}\r\n" if proxy.user else ""
        try:
            with anyio.fail_after(seconds):
                writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n".encode("ascii"))
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError as error:
            raise FetchFailed(target, "timeout", "the proxy did not answer in time") from error
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise FetchFailed(target, "proxy", "the proxy sent no valid response") from error
        status_line = head[:_PROXY_HEAD].split(b"\r\n", 1)[0].split()
        if len(status_line) < 2 or not status_line[0].startswith(b"HTTP/") or not status_line[1].startswith(b"2"):
            reason = b" ".join(status_line[1:4]).decode("ascii", "replace")
            raise FetchFailed(target, "proxy", f"the proxy refused ({reason})")

    def _terms(self, endpoint: str, seconds: float) -> Terms:
        """Return the limits and permissions of one client."""
        endpoint_url = self._gate.endpoint(endpoint) if endpoint else None
        return Terms(self._gate, endpoint_url, seconds or self.rules.total_seconds, seconds or self.rules.read_seconds)

    def _proxy(self) -> tuple[httpcore.URL, tuple[bytes, bytes] | None]:
        """Return the URL and credentials of the operator's proxy for the HTTP library."""
        assert self._gate.proxy is not None
        proxy = self._gate.proxy
        proxy_url = httpcore.URL(
            scheme=proxy.url.scheme.encode(), host=proxy.url.host.encode(), port=proxy.url.port, target=b"/"
        )
        return proxy_url, (proxy.user.encode(), proxy.password.encode()) if proxy.user else None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return _context(self.rules.ca_file, "http1")

    @cached_property
    def _tls_http2(self) -> ssl.SSLContext:
        return _context(self.rules.ca_file, "http2")

    @cached_property
    def _tls_proxy(self) -> ssl.SSLContext:
        return _context(self.rules.ca_file, "proxy")


@cache
def _context(ca_file: str, use: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the public certificates and those of ``ca_file``.

    Made once a process: certificates take 15 ms to load, and a server opens a door for each answer.

    :param use: contexts are separate by use: the HTTP library writes the offered protocols into them.
    """
    context = ssl.create_default_context(cafile=certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", "") or error
            raise BadInput(f"ca_file: {ca_file} cannot be read as PEM ({reason})", subject="ca_file") from error
    return context


def _no_cookies() -> CookieJar:
    """Return a cookie jar that accepts nothing, so that no page sees the cookies of another."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))
