"""What may be asked for, and which addresses may be dialled: the checks of the egress door, without the network."""

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
"""Addresses of one name; more is no honest answer."""


def default_user_agent() -> str:
    """Return name, version, and the home page that the package names: ``Prunus/1.0 (+https://…)``."""
    about = metadata("prunus")
    pages = (page.partition(",") for page in about.get_all("Project-URL") or ())
    home = next((link.strip() for label, _, link in pages if label.strip().lower() == "homepage"), "")
    return f"Prunus/{about['Version']}" + (f" (+{home})" if home else "")


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What the operator allows, and the limits of one exchange. Seconds and bytes.

    :param allow_hosts: hosts inside that may be reached: ``name``, ``name:port``, an address, ``[::1]:8000``, or a
        network such as ``10.2.0.0/16``. A network also allows names that resolve into it. A port that is
        written is allowed beside ``ports``. Addresses where clouds hand out credentials open only when written
        exactly.
    :param ports: ports that may be asked for.
    :param proxy: ``http://`` or ``https://`` URL, with a user name and password if it needs them. It then resolves
        the names; literal internal addresses and internal names stay refused here.
    :param ca_file: PEM file of certificates that are trusted beside the public ones.
    :param connect_seconds: for resolving, connecting and TLS, each.
    :param read_seconds: between two bytes.
    :param total_seconds: for a whole exchange; for a page, with redirects and retries.
    :param max_wire_bytes, max_bytes: of an answer, as sent and after decompression.
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
    """One entry of ``allow_hosts``: a host or a network, and its port where one is written."""

    host: str
    port: int
    network: Network | None


class Gate:
    """Says what may be asked for and dialled, for one set of rules.

    :raises BadInput: a rule cannot be read; the message names it.
    """

    def __init__(self, rules: EgressRules) -> None:
        self.rules = rules
        self._grants = tuple(_grant(entry) for entry in rules.allow_hosts)
        self.proxy = _proxy(rules.proxy) if rules.proxy else None

    def endpoint(self, text: str) -> Url:
        """Read an address that the operator wrote down; its host may be internal, its port any.

        :raises RefusedUrl: it is no URL.
        """
        return parse_url(text)

    def url(self, text: str, endpoint: Url | None = None) -> Url:
        """Check a URL without the network: scheme, credentials, host, port, internal names and addresses.

        :param endpoint: scheme, host and port that the operator allows for this client.
        :raises RefusedUrl: with the reason.
        """
        url = parse_url(text)
        if endpoint is not None and (url.host, url.port) == (endpoint.host, endpoint.port):
            if url.scheme != endpoint.scheme:
                why = f"the operator wrote this place with {endpoint.scheme}"
                raise RefusedUrl(text, "scheme", why, f"use {endpoint.origin}")
            return url
        self.host(url.host, url.address, url.port, text)
        return url

    def host(self, host: str, address: Address | None, port: int, text: str) -> None:
        """Check a parsed host and port without the network.

        :raises RefusedUrl: with the reason.
        """
        named = {grant.port for grant in self._grants if _names(grant, host, address)}
        if port in named:
            return
        if 0 not in named:
            kind = internal_name(host) if address is None else self._denied(address, port)
            if kind:
                raise _inside(text, host, kind)
        if port not in self.rules.ports:
            allowed = ", ".join(map(str, self.rules.ports))
            raise RefusedUrl(text, "port", f"port {port} is not allowed", f"allowed: {allowed} (setting ports)")
        if self.proxy is not None and address is not None and address.version == 6:
            why = "an IPv6 address cannot be asked for through a proxy"
            raise RefusedUrl(text, "host", why, "write the host's name")

    def trusted(self, host: str, port: int, endpoint: Url | None = None) -> bool:
        """Tell whether the operator wrote down this host and port."""
        if endpoint is not None and (endpoint.host, endpoint.port) == (host, port):
            return True
        return any(grant.network is None and grant.host == host and grant.port in (0, port) for grant in self._grants)

    def direct(self, url: Url, endpoint: Url | None = None) -> bool:
        """Tell whether a URL is reached without the proxy: what the operator allows inside lies on this side."""
        if self.proxy is None:
            return True
        named = any(_names(grant, url.host, url.address) and grant.port in (0, url.port) for grant in self._grants)
        inside = internal_name(url.host) if url.address is None else denied(url.address)
        return named or bool(endpoint is not None and _same_origin(url, endpoint) and inside)

    def addresses(self, host: str, port: int, answers: Iterable[str], endpoint: Url | None = None) -> list[Address]:
        """Check every address that a host resolved to; one that is refused refuses all.

        :param answers: what the resolver said.
        :return: the addresses to dial, in its order.
        :raises RefusedUrl: one of them lies inside.
        """
        trusted = self.trusted(host, port, endpoint)
        found: dict[Address, None] = {}
        for answer in answers:
            address = _address(answer, host)
            exact = trusted and str(address) == host
            kind = "" if exact else self._denied(address, port)
            if kind and not (trusted and not is_metadata(address)):
                raise _inside(host, str(address) if str(address) == host else f"{host} ({address})", kind)
            found[address] = None
            if len(found) > MOST_ADDRESSES:
                raise RefusedUrl(host, "host", f"it has more than {MOST_ADDRESSES} addresses", "name another host")
        return list(found)

    def _denied(self, address: Address, port: int) -> str:
        """Return why an address is refused; '' where it is public, or lies in a network that the operator allows."""
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


def _names(grant: _Grant, host: str, address: Address | None) -> bool:
    """Tell whether an entry of ``allow_hosts`` is about this host as it is written."""
    if grant.network is None:
        return grant.host == host
    inside = address is not None and address.version == grant.network.version and address in grant.network
    return address is not None and inside and not is_metadata(address) and embedded(address) is None


def _same_origin(one: Url, other: Url) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _address(answer: str, host: str) -> Address:
    """Read what a resolver said."""
    try:
        return ip_address(answer)
    except ValueError as error:
        raise RefusedUrl(host, "host", f"its address cannot be read: {answer!r}", "name another host") from error


def _inside(text: str, host: str, kind: str) -> RefusedUrl:
    """Return the error for a host that lies inside."""
    what = "a name for a host inside" if kind == "name" else f"a {kind} address, which no page may lead to"
    if kind == "metadata":
        what = "where clouds keep credentials"
    return RefusedUrl(text, kind, f"{host} is {what}", "the operator may allow it with the setting allow_hosts")


def _grant(entry: str) -> _Grant:
    """Read one entry of ``allow_hosts``."""
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
        raise BadInput(f"allow_hosts: {entry!r} cannot be read; {way_out}", subject="allow_hosts") from error


@dataclass(frozen=True, slots=True)
class Proxy:
    """The operator's proxy: where it is, and the name and password for it, if any."""

    url: Url
    user: str
    password: str


def _proxy(text: str) -> Proxy:
    """Read the proxy's URL; credentials are the operator's own here."""
    scheme, mark, rest = text.partition("://")
    credentials, at, place = rest.rpartition("@")
    user, _, password = credentials.partition(":")
    try:
        url = parse_url(f"{scheme}{mark}{place if at else rest}")
    except RefusedUrl as error:
        raise BadInput(f"proxy: {error.why}; write http://host:port", subject="proxy") from error
    return Proxy(url, unquote(user), unquote(password))
