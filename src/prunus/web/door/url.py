"""The one URL parser: the door dials exactly the host it returns, and it refuses every ambiguous URL.

It reads http and https URLs as browsers do (WHATWG URL), and refuses where parsers disagree: user names,
backslashes before the path, hosts written as numbers, with percent signs, or with letters that only look
like ASCII. It repairs only the path and the query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote

import idna

from ...core.text.numbers import bounded_int
from .addresses import Address
from .errors import RefusedUrl

LONGEST: Final = 8192
"""Most code points of a URL."""

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUAD: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

_PATH_SAFE: Final = "/%:@!$&'()*+,;=-._~"
_QUERY_SAFE: Final = _PATH_SAFE + "?[]|"

WRITE_IT_PLAIN: Final = "write the host plainly, as in https://example.org/page"


@dataclass(frozen=True, slots=True)
class Url:
    """A checked URL.

    :param host: a lower-case ASCII name without a trailing dot, or an address in its canonical form without brackets.
    :param address: the parsed address; None if the host is a name.
    :param port: always set, from the scheme if the URL holds none.
    :param target: path and query as sent in the request.
    :param fragment: kept for the reader, never sent.
    """

    scheme: str
    host: str
    port: int
    target: str
    fragment: str = ""
    address: Address | None = None

    @property
    def netloc(self) -> str:
        """Host, and port unless it is the scheme's default, as in the Host header."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def bare(self) -> str:
        """The URL without query and fragment, for messages: a query may hold a key."""
        return self.origin + self.target.partition("?")[0]

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> Url:
    """Parse a URL.

    :raises RefusedUrl: it is no http or https URL, or it is ambiguous.
    """
    if len(text) > LONGEST:
        raise RefusedUrl(text, "syntax", f"{len(text)} characters are too many for a URL", f"at most {LONGEST}")
    if _CONTROL.search(text):
        raise RefusedUrl(text, "syntax", "a URL holds no control characters, tabs or line ends", "take them out")
    scheme, rest = _scheme(text)
    if not rest.startswith("//"):
        raise RefusedUrl(text, "syntax", f"'//' must follow '{scheme}:'", WRITE_IT_PLAIN)
    authority, target, fragment = _split_authority(rest[2:])
    if "@" in authority:
        raise RefusedUrl(text, "credentials", "a URL with a user name or password is not read", "take it out")
    host, port = _host_and_port(text, authority, scheme)
    name, address = parse_host(host, text)
    return Url(scheme, name, port, _target(target), fragment, address)


def parse_host(host: str, text: str = "") -> tuple[str, Address | None]:
    """Parse a host; return its canonical form, and its address (None for a name).

    :param host: a name, an IPv4 address, or an IPv6 address in brackets.
    :param text: the whole URL, for the message.
    :raises RefusedUrl: it is none of these, or it is ambiguous.
    """
    text = text or host
    if not host:
        raise RefusedUrl(text, "host", "there is no host", WRITE_IT_PLAIN)
    if host.startswith("["):
        return _parse_ipv6(host, text)
    name = _ascii(host, text).lower()
    name = name[:-1] if name.endswith(".") else name
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _parse_ipv4(name, text)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise RefusedUrl(text, "host", "this is not a host name", WRITE_IT_PLAIN)
    if "xn--" in name:
        _check_international(name, text)
    return name, None


def resolve(base: Url, reference: str) -> Url:
    """Resolve a reference, a redirect or a link, against its base URL (RFC 3986 §5.2).

    :raises RefusedUrl: like :func:`parse_url`.
    """
    if _SCHEME.match(reference):
        return parse_url(reference)
    if reference.startswith("//"):
        return parse_url(f"{base.scheme}:{reference}")
    reference, _, fragment = reference.partition("#")
    path = base.target.partition("?")[0]
    if reference.startswith("/"):
        target = reference
    elif reference.startswith("?"):
        target = path + reference
    elif reference:
        target = path.rpartition("/")[0] + "/" + reference
    else:
        target = base.target
    return replace(parse_url(base.origin + target), fragment=fragment or base.fragment)


def _scheme(text: str) -> tuple[str, str]:
    """Return the scheme in lower case, and the rest after its colon."""
    match = _SCHEME.match(text)
    scheme = match.group(1).lower() if match else ""
    if not match or scheme not in DEFAULT_PORTS:
        why = f"the scheme {scheme}: is not supported" if match else "this is not a whole URL"
        raise RefusedUrl(text, "scheme", why, "begin it with https:// or http://")
    return scheme, text[match.end() :]


def _split_authority(rest: str) -> tuple[str, str, str]:
    """Split the text after '//' into authority, target and fragment."""
    cut = re.search(r"[/?#]", rest)
    authority = rest[: cut.start()] if cut else rest
    target, _, fragment = rest[len(authority) :].partition("#")
    return authority, target, fragment


def _host_and_port(text: str, authority: str, scheme: str) -> tuple[str, int]:
    """Split an authority into host and port."""
    if "\\" in authority or any(char.isspace() for char in authority):
        raise RefusedUrl(text, "ambiguous", "a host with backslashes or spaces is ambiguous", WRITE_IT_PLAIN)
    if authority.startswith("["):
        host, bracket, after = authority.partition("]")
        host += bracket
        if not bracket or (after and not after.startswith(":")):
            raise RefusedUrl(text, "host", "the brackets around the address are not closed", WRITE_IT_PLAIN)
        colon, digits = after[:1], after[1:]
    else:
        host, colon, digits = authority.partition(":")
    if not colon:
        return host, DEFAULT_PORTS[scheme]
    port = bounded_int(digits, 0, most=65536) if _PORT.fullmatch(digits) else 0
    if not 0 < port < 65536:
        raise RefusedUrl(text, "port", "the text after ':' is no port", "a port is a number from 1 to 65535")
    return host, port


def _ascii(host: str, text: str) -> str:
    """Return a name in ASCII (IDNA 2008), and refuse letters that only look like ASCII."""
    if host.isascii():
        return host
    labels = []
    for label in host.split("."):
        if label.isascii():
            labels.append(label)
            continue
        try:
            encoded = idna.encode(label, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError) as error:
            raise RefusedUrl(text, "host", "this is no international name", "write its xn-- form") from error
        if not encoded.lower().startswith("xn--"):
            why = "the host has letters that look like ASCII but are not, or that are invisible"
            raise RefusedUrl(text, "ambiguous", why, WRITE_IT_PLAIN)
        labels.append(encoded)
    return ".".join(labels)


def _check_international(name: str, text: str) -> None:
    """Refuse an xn-- name that cannot be decoded (IDNA 2008): the HTTP library fails on it."""
    try:
        idna.decode(name)
    except (idna.IDNAError, UnicodeError) as error:
        raise RefusedUrl(text, "host", "the host's xn-- form is not valid", "write the host's letters") from error


def _parse_ipv4(name: str, text: str) -> tuple[str, Address]:
    """Parse an IPv4 address: only four decimal numbers, although systems accept other forms."""
    if not _QUAD.fullmatch(name) or any(bounded_int(part, 256, most=256) > 255 for part in name.split(".")):
        why = "a host written as a number is ambiguous"
        raise RefusedUrl(text, "ambiguous", why, "write an IPv4 address as four decimal numbers, as in 1.2.3.4")
    return name, IPv4Address(name)


def _parse_ipv6(host: str, text: str) -> tuple[str, Address]:
    """Parse an IPv6 address in brackets, without a zone."""
    if "%" in host:
        raise RefusedUrl(text, "host", "an address with a zone is internal", WRITE_IT_PLAIN)
    try:
        address = IPv6Address(host[1:-1])
    except (AddressValueError, ValueError) as error:
        raise RefusedUrl(text, "host", "the brackets hold no IPv6 address", WRITE_IT_PLAIN) from error
    return str(address), address


def _target(target: str) -> str:
    """Return path and query as sent: percent-encoded, without dot segments."""
    path, mark, query = target.partition("?")
    path = quote(_STRAY_PERCENT.sub("%25", path), safe=_PATH_SAFE)
    query = quote(_STRAY_PERCENT.sub("%25", query), safe=_QUERY_SAFE)
    return _without_dots(path) + mark + query


def _without_dots(path: str) -> str:
    """Remove '.' and '..' from a path (RFC 3986 §5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
