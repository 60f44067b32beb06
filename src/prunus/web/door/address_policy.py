"""The checks of the egress door: which URLs may be requested, and which addresses may be dialled.

Nothing here uses the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import metadata
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import unquote

from ...core.errors import BadInput
from .addresses import Address, Network, denied, embedded, internal_name, is_metadata
from .errors import RefusedUrl
from .url import Url, parse_host, parse_url

_MIB: Final = 1024 * 1024

MOST_ADDRESSES: Final = 64
"""Most addresses of one name; no honest DNS answer holds more."""


def default_user_agent() -> str:
    """Return name, version and home page of the installed package: ``Prunus/1.0 (+https://…)``."""
    about = metadata("prunus")
    pages = (page.partition(",") for page in about.get_all("Project-URL") or ())
    home = next((link.strip() for label, _, link in pages if label.strip().lower() == "homepage"), "")
    return f"Prunus/{about['Version']}" + (f" (+{home})" if home else "")


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What the operator allows, and the limits of one exchange, in seconds and bytes.

    :param allow_hosts: internal hosts that may be reached: ``name``, ``name:port``, an address, ``[::1]:8000``, or
        a network such as ``10.2.0.0/16``. A network also allows names that resolve into it. A port in an entry
        is allowed in addition to ``ports``. Addresses that serve cloud credentials need an entry with exactly
        that address.
    :param ports: ports that may be requested.
    :param proxy: ``http://`` or ``https://`` URL, with a user name and password if it needs them. The proxy then
        resolves the names; internal addresses and internal names in URLs stay refused.
    :param ca_file: PEM file of certificates to trust in addition to the public ones.
    :param connect_seconds: time limit of name resolution, of connecting and of TLS, each.
    :param read_seconds: time limit between two bytes.
    :param total_seconds: time limit of a whole exchange; for a page, redirects and retries included.
    :param max_redirects: redirects followed for one page.
    :param max_wire_bytes, max_bytes: size of a response, as sent and after decompression.
    :param max_header_bytes: size of the response headers.
    :param max_connections: open connections of one client.
    :param user_agent: '' names Prunus, its version and its home page.
    """

    allow_hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = (80, 443, 8080, 8443)
    proxy: str = ""
    ca_file: str = ""
    connect_seconds: float = 10.0
    read_seconds: float = 20.0
    total_seconds: float = 60.0
    max_redirects: int = 10
    max_wire_bytes: int = 32 * _MIB
    max_bytes: int = 64 * _MIB
    max_header_bytes: int = 64 * 1024
    max_connections: int = 100
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class _Grant:
    """One entry of ``allow_hosts``: a host or a network, and its port (0 for any)."""

    host: str
    port: int
    network: Network | None


class Gate:
    """Checks URLs, hosts and addresses against one set of rules.

    :raises BadInput: a rule cannot be parsed; the message names it.
    """

    def __init__(self, rules: EgressRules) -> None:
        self.rules = rules
        self._grants = tuple(_parse_grant(entry) for entry in rules.allow_hosts)
        self.proxy = _proxy(rules.proxy) if rules.proxy else None

    def endpoint(self, text: str) -> Url:
        """Parse a URL that the operator configured; its host may be internal, its port any.

        :raises RefusedUrl: the text is not a URL.
        """
        return parse_url(text)

    def url(self, text: str, endpoint: Url | None = None) -> Url:
        """Check a URL without the network: scheme, credentials, host, port, internal names and addresses.

        :param endpoint: scheme, host and port that the operator allows for this client.
        :raises RefusedUrl: a check fails; the message says which.
        """
        url = parse_url(text)
        if endpoint is not None and (url.host, url.port) == (endpoint.host, endpoint.port):
            if url.scheme != endpoint.scheme:
                why = f"the operator configured this host with {endpoint.scheme}"
                raise RefusedUrl(text, "scheme", why, f"use {endpoint.origin}")
            return url
        self.host(url.host, url.address, url.port, text)
        return url

    def host(self, host: str, address: Address | None, port: int, text: str) -> None:
        """Check a parsed host and port without the network.

        :raises RefusedUrl: a check fails; the message says which.
        """
        allowed_ports = {grant.port for grant in self._grants if _covers(grant, host, address)}
        if port in allowed_ports:
            return
        if 0 not in allowed_ports:
            kind = internal_name(host) if address is None else self._denied(address, port)
            if kind:
                raise _internal_host_error(text, host, kind)
        if port not in self.rules.ports:
            ports = ", ".join(map(str, self.rules.ports))
            raise RefusedUrl(text, "port", f"port {port} is not allowed", f"allowed: {ports} (setting ports)")
        if self.proxy is not None and address is not None and address.version == 6:
            why = "an IPv6 address cannot be requested through a proxy"
            raise RefusedUrl(text, "host", why, "write the host's name")

    def trusted(self, host: str, port: int, endpoint: Url | None = None) -> bool:
        """Tell whether the operator configured this host and port."""
        if endpoint is not None and (endpoint.host, endpoint.port) == (host, port):
            return True
        return any(grant.network is None and grant.host == host and grant.port in (0, port) for grant in self._grants)

    def direct(self, url: Url, endpoint: Url | None = None) -> bool:
        """Tell whether a URL is requested without the proxy: an allowed internal host lies on this side of it."""
        if self.proxy is None:
            return True
        named = any(_covers(grant, url.host, url.address) and grant.port in (0, url.port) for grant in self._grants)
        inside = internal_name(url.host) if url.address is None else denied(url.address)
        return named or bool(endpoint is not None and _same_origin(url, endpoint) and inside)

    def addresses(self, host: str, port: int, answers: Iterable[str], endpoint: Url | None = None) -> list[Address]:
        """Check every address of a resolved host; one refused address refuses the host.

        :param answers: the resolver's addresses.
        :return: the addresses to dial, in the resolver's order.
        :raises RefusedUrl: an address is internal, or there are more than :data:`MOST_ADDRESSES`.
        """
        trusted = self.trusted(host, port, endpoint)
        checked: dict[Address, None] = {}
        for answer in answers:
            address = _parse_address(answer, host)
            exact = trusted and str(address) == host
            kind = "" if exact else self._denied(address, port)
            if kind and not (trusted and not is_metadata(address)):
                raise _internal_host_error(host, str(address) if str(address) == host else f"{host} ({address})", kind)
            checked[address] = None
            if len(checked) > MOST_ADDRESSES:
                raise RefusedUrl(host, "host", f"it has more than {MOST_ADDRESSES} addresses", "name another host")
        return list(checked)

    def _denied(self, address: Address, port: int) -> str:
        """Return why an address is refused; '' for a public address or a network that the operator allows."""
        kind = denied(address)
        if not kind or kind == "metadata":
            return kind
        for grant in self._grants:
            network = grant.network
            inside = network is not None and network.version == address.version and address in network
            if inside and grant.port in (0, port):
                inner = embedded(address)
                return self._denied(inner, port) if inner is not None else ""
        return kind


def _covers(grant: _Grant, host: str, address: Address | None) -> bool:
    """Tell whether an entry of ``allow_hosts`` covers this host as it is written in the URL."""
    if grant.network is None:
        return grant.host == host
    inside = address is not None and address.version == grant.network.version and address in grant.network
    return address is not None and inside and not is_metadata(address) and embedded(address) is None


def _same_origin(left: Url, right: Url) -> bool:
    return (left.scheme, left.host, left.port) == (right.scheme, right.host, right.port)


def _parse_address(answer: str, host: str) -> Address:
    """Parse an address from the resolver."""
    try:
        return ip_address(answer)
    except ValueError as error:
        raise RefusedUrl(host, "host", f"its address cannot be parsed: {answer!r}", "name another host") from error


def _internal_host_error(text: str, host: str, kind: str) -> RefusedUrl:
    """Return the error for an internal host."""
    description = "the name of an internal host" if kind == "name" else f"a {kind} address, which no page may lead to"
    if kind == "metadata":
        description = "an address at which clouds serve credentials"
    return RefusedUrl(text, kind, f"{host} is {description}", "the operator may allow it with the setting allow_hosts")


def _parse_grant(entry: str) -> _Grant:
    """Parse one entry of ``allow_hosts``."""
    text = entry.strip()
    try:
        if "/" in text:
            return _Grant("", 0, ip_network(text))
        if text.count(":") > 1 and not text.startswith("["):
            return _Grant(parse_host(f"[{text}]")[0], 0, None)
        host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            return _Grant(parse_host(text)[0], 0, None)
        url = parse_url(f"http://{host}:{port}")
        return _Grant(url.host, url.port, None)
    except (ValueError, RefusedUrl) as error:
        way_out = "write a host, host:port, an address, or a network as 10.0.0.0/8"
        raise BadInput(f"allow_hosts: {entry!r} cannot be parsed; {way_out}", subject="allow_hosts") from error


@dataclass(frozen=True, slots=True)
class Proxy:
    """The operator's proxy: its URL, and its user name and password ('' for none)."""

    url: Url
    user: str
    password: str


def _proxy(text: str) -> Proxy:
    """Parse the proxy's URL, the only URL that may hold credentials."""
    scheme, mark, rest = text.partition("://")
    credentials, at_sign, address = rest.rpartition("@")
    user, _, password = credentials.partition(":")
    try:
        url = parse_url(f"{scheme}{mark}{address if at_sign else rest}")
    except RefusedUrl as error:
        raise BadInput(f"proxy: {error.why}; write http://host:port", subject="proxy") from error
    return Proxy(url, unquote(user), unquote(password))
