"""Network addresses and host names that no page may lead to.

Prunus keeps its own table: the standard library's ``is_global`` changes between Python versions, and it
calls multicast addresses and several IPv6 forms with an embedded IPv4 address global.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_DENIED: Final = (
    # IPv4: the special-purpose registry and the reserved ranges
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-nat"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "reserved"),  # AS112
    ("192.52.193.0/24", "reserved"),  # AMT
    ("192.88.99.0/24", "6to4"),  # its relays
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved"),  # AS112
    ("198.18.0.0/15", "benchmark"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    # IPv6: named ranges, so that the reason is exact; any address outside 2000::/3 is refused anyway
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "ipv4-mapped"),
    ("::ffff:0:0:0/96", "ipv4-translated"),
    ("::/96", "ipv4-compatible"),
    ("64:ff9b::/96", "nat64"),
    ("64:ff9b:1::/48", "nat64"),
    ("100::/64", "discard"),
    ("100:0:0:1::/64", "reserved"),
    ("2001::/32", "teredo"),
    ("2001:2::/48", "benchmark"),
    ("2001:10::/28", "orchid"),
    ("2001:20::/28", "orchid"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "reserved"),  # AS112
    ("3ffe::/16", "reserved"),  # the former 6bone
    ("3fff::/20", "documentation"),
    ("5f00::/16", "reserved"),  # segment routing
    ("fc00::/7", "unique-local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)

DENIED: Final[tuple[tuple[Network, str], ...]] = tuple((ip_network(net), kind) for net, kind in _DENIED)
"""Refused networks, each with its kind in one word."""

_GLOBAL_V6: Final = IPv6Network("2000::/3")

METADATA: Final = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds
        "169.254.169.253",
        "169.254.169.123",
        "169.254.170.2",  # containers' credentials
        "169.254.170.23",
        "169.254.42.42",
        "168.63.129.16",  # a public address that reaches the virtual machine's host agent
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
    )
)
"""Addresses at which clouds serve a machine's credentials; ``allow_hosts`` opens them only by the exact address."""

METADATA_NAMES: Final = frozenset(
    ("metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal", "instance-data",
     "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.platformequinix.com")
)  # fmt: skip

_INTERNAL_SUFFIXES: Final = frozenset(
    # RFC 6761, 6762, 8375, 9476, and names that routers and offices use
    "localhost localdomain local internal intranet private corp home lan test invalid example onion alt arpa "
    "home.arpa ip6-localhost ip6-loopback "
    # public DNS services that resolve to the address written in the name, or to loopback
    "nip.io sslip.io xip.io localtest.me lvh.me vcap.me traefik.me local.gd 1u.ms rbndr.us".split()
)
"""Suffixes of internal host names. Checked before name resolution, because a proxy would resolve them for us."""


def denied(address: Address) -> str:
    """Return why an address is refused, in one word; '' for a public address."""
    if address in METADATA:
        return "metadata"
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "link-local"
    for network, kind in DENIED:
        if address.version == network.version and address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_V6:
        return "reserved"
    return ""


def embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, to which its traffic goes; None without one."""
    if isinstance(address, IPv4Address):
        return None
    value = int(address)
    if address.teredo is not None:
        return address.teredo[1]
    if address.sixtofour is not None:
        return address.sixtofour
    kind = next((kind for network, kind in DENIED if network.version == 6 and address in network), "")
    if kind in ("ipv4-mapped", "ipv4-translated", "ipv4-compatible", "nat64"):
        return IPv4Address(value & 0xFFFFFFFF)
    return None


def is_metadata(address: Address) -> bool:
    """Tell whether an address, or the IPv4 address embedded in it, serves cloud credentials."""
    return address in METADATA or embedded(address) in METADATA


def internal_name(host: str) -> str:
    """Return ``metadata`` or ``name`` for the name of an internal host; '' for any other name.

    :param host: lower case, without a trailing dot.
    """
    if host in METADATA_NAMES:
        return "metadata"
    labels = host.split(".")
    if len(labels) == 1:
        return "name"
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return "name" if any(suffix in _INTERNAL_SUFFIXES for suffix in suffixes) else ""
