"""Every spelling of an internal address is refused with its exact reason, and nothing is dialled."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator

import httpx
import idna
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.web.door.ssrf_vectors import VECTORS
from tests.web.fetch.server import Server, resolver

from prunus.core.errors import BadInput
from prunus.web.door.addresses import DENIED, METADATA, denied, embedded
from prunus.web.door.egress import Egress, EgressRules, RefusedUrl
from prunus.web.door.url import Url, parse_url, resolve


@pytest.fixture(scope="module")
def listening() -> Iterator[Server]:
    """A loopback server that must get no connection in any test of this file."""
    with Server() as server:
        yield server
        assert server.connections == 0
        assert server.requests == []


@pytest.fixture(scope="module")
def door(listening: Server) -> Egress:
    """A door that allows the server's port, so that no vector is refused only for its port; every name is loopback."""
    return Egress(EgressRules(ports=(80, 443, 8080, listening.port)), lambda host, port: ["127.0.0.1", "::1"])


def test_the_table_is_long_and_holds_each_vector_once() -> None:
    assert len(VECTORS) >= 120
    assert len({url for _, url in VECTORS}) == len(VECTORS)


@pytest.mark.parametrize(("kind", "template"), VECTORS, ids=[ascii(url)[:60] for _, url in VECTORS])
def test_a_vector_is_refused_for_its_own_reason(kind: str, template: str, door: Egress, listening: Server) -> None:
    url = template.replace("{p}", str(listening.port))
    with pytest.raises(RefusedUrl) as refused:
        door.check_url(url)
    assert refused.value.kind == kind
    message = str(refused.value)
    assert message.isprintable() and len(message) < 700
    assert refused.value.subject
    assert "password" not in message.replace("user name or password", "")

    with (
        door.client() as client,
        pytest.raises((RefusedUrl, httpx.InvalidURL, httpx.UnsupportedProtocol, idna.IDNAError)),
    ):
        client.get(url)  # whatever the HTTP library makes of it, the transport refuses
    assert listening.connections == 0


@pytest.mark.parametrize(
    ("kind", "host"),
    [
        ("loopback", "127.0.0.1"), ("loopback", "::1"), ("loopback", "[::1]"), ("ambiguous", "0x7f.1"), ("name", "localhost"),
        ("ambiguous", "2130706433"), ("ipv4-mapped", "::ffff:127.0.0.1"), ("metadata", "169.254.169.254"),
        ("host", ""), ("host", "fe80::1%lo"), ("host", "a b"), ("host", "a@b"), ("host", "a/b"), ("loopback", "127.0.0.1."),
        ("loopback", "example.org"),
    ],
)  # fmt: skip
def test_dial_refuses_hosts_inside(kind: str, host: str, door: Egress, listening: Server) -> None:
    with pytest.raises(RefusedUrl) as refused:
        asyncio.run(door.dial(host, listening.port))
    assert refused.value.kind == kind
    assert listening.connections == 0


def test_dial_refuses_ports_that_are_not_allowed(door: Egress) -> None:
    with pytest.raises(RefusedUrl) as refused:
        asyncio.run(door.dial("example.org", 22))
    assert refused.value.kind == "port"


INSIDE = ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fe80::1%lo", "64:ff9b::7f00:1",
          "2002:7f00:1::", "0.0.0.0", "fd00:ec2::254", "ff02::1", "2001:0:7f00:1::"]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
@pytest.mark.parametrize("mixed", ["alone", "after a public one", "before a public one"])
def test_a_public_name_that_resolves_inside_is_refused_whole(address: str, mixed: str, listening: Server) -> None:
    answers = {"alone": [address], "after a public one": ["93.184.215.14", address],
               "before a public one": [address, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]}[mixed]  # fmt: skip
    door = Egress(EgressRules(ports=(listening.port,)), resolver({"public.org": answers}))
    url = f"http://public.org:{listening.port}/"
    assert str(door.check_url(url)) == url  # nothing in the URL itself is wrong
    with door.client() as client, pytest.raises(RefusedUrl) as refused:
        client.get(url)
    assert refused.value.kind == denied(ipaddress.ip_address(address))
    assert f"public.org ({ipaddress.ip_address(address)})" in str(refused.value)

    async def asynchronously() -> None:
        async with door.async_client() as client:
            await client.get(url)

    with pytest.raises(RefusedUrl):
        asyncio.run(asynchronously())
    with pytest.raises(RefusedUrl):
        asyncio.run(door.dial("public.org", listening.port))
    assert listening.connections == 0


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org", "https://example.org/", "http://example.org:8080/a?b=c#d", "https://EXAMPLE.org/Ä ö",
        "https://example.org?x=@127.0.0.1", "https://example.org#@127.0.0.1/", "https://example.org/http://127.0.0.1/",
        "https://bücher.example.com/", "https://xn--bcher-kva.example.com/", "https://1.1.1.1/", "https://[2606:4700::1111]/",
        "https://example.org./", "https://a_b.example.org/", "https://127.0.0.1.example.org/", "https://0x7f.example.org/",
        "https://example.org/a\\b", "https://example.org/?q=a|b[0]", "https://example.org/100%", "https://1.org/",
    ],
)  # fmt: skip
def test_honest_urls_are_read_and_reading_them_again_changes_nothing(text: str, door: Egress) -> None:
    url = door.check_url(text)
    assert parse_url(str(url)) == parse_url(str(parse_url(str(url))))
    theirs = httpx.URL(str(url))
    assert theirs.raw_host.decode() == url.host
    assert theirs.raw_path.decode() == url.target
    assert (theirs.port or {"http": 80, "https": 443}[theirs.scheme]) == url.port


def test_what_stands_after_the_host_does_not_change_it() -> None:
    assert parse_url("https://example.org#@127.0.0.1/").host == "example.org"
    assert parse_url("https://example.org?@127.0.0.1/").host == "example.org"
    assert parse_url("https://example.org/\\@127.0.0.1/").target == "/%5C@127.0.0.1/"
    assert parse_url("https://example.org/a/./b/../../../c").target == "/c"
    assert parse_url("https://bücher.example.com/").host == "xn--bcher-kva.example.com"
    assert parse_url("https://Example.ORG./").host == "example.org"


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("/x", "https://example.org/x"), ("x", "https://example.org/a/x"), ("../x", "https://example.org/x"), ("?y", "https://example.org/a/b?y"),
        ("", "https://example.org/a/b?q"), ("#z", "https://example.org/a/b?q"), ("//other.org/x", "https://other.org/x"),
        ("http://other.org", "http://other.org/"), ("/\\other.org", "https://example.org/%5Cother.org"),
        ("\\\\other.org", "https://example.org/a/%5C%5Cother.org"), (".", "https://example.org/a/"), ("..", "https://example.org/"),
        ("/../../x", "https://example.org/x"), ("x:80/y".replace("x:", "./x:"), "https://example.org/a/x:80/y"),
    ],
)  # fmt: skip
def test_references_are_resolved_by_the_same_parser(reference: str, found: str) -> None:
    assert str(resolve(parse_url("https://example.org/a/b?q#f"), reference)) == found


@pytest.mark.parametrize(
    "reference",
    ["//user@other.org", "javascript:1", "file:///etc/passwd", "http:other", "//", "///x", "https://0x7f.1"],
)
def test_references_that_lead_nowhere_good_are_refused(reference: str) -> None:
    with pytest.raises(RefusedUrl):
        resolve(parse_url("https://example.org/a/b?q#f"), reference)


# --- properties ----------------------------------------------------------------------------------

PUBLIC_DOOR = Egress(EgressRules(), lambda host, port: [])


def in_network(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
) -> st.SearchStrategy[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    low, high = int(network.network_address), int(network.broadcast_address)
    made = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    return st.integers(low, high).map(made)


addresses_inside = st.sampled_from([network for network, _ in DENIED]).flatmap(in_network)


def spellings(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[str]:
    """Return the spellings of an address that some system or parser accepts."""
    if isinstance(address, ipaddress.IPv6Address):
        words = address.exploded.split(":")
        mixed = ":".join(words[:6]) + ":" + str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        return [f"[{text}]" for text in (str(address), address.exploded, address.exploded.upper(), mixed)]
    value, parts = int(address), [int(part) for part in str(address).split(".")]
    dotted = ".".join
    return [
        str(address), f"{address}.", str(value), hex(value), oct(value).replace("o", ""), f"0X{value:X}",
        dotted(f"{part:#x}" for part in parts), dotted(f"0{part:o}" for part in parts), dotted(f"{part:03}" for part in parts),
        f"{parts[0]}.{value & 0xFFFFFF}", f"{parts[0]}.{parts[1]}.{value & 0xFFFF}",
        str(address).translate({48 + digit: 0xFF10 + digit for digit in range(10)}), str(address).replace(".", "。"),
        str(address).replace(".", "%2e"), f"user@{address}", f"[::ffff:{address}]", f"[::{address}]",
        f"[64:ff9b::{address}]", f"[{ipaddress.IPv6Address((0x2002 << 112) | (value << 80))}]",
        f"[{ipaddress.IPv6Address((0x20010000 << 96) | (value ^ 0xFFFFFFFF))}]",
    ]  # fmt: skip


@given(addresses_inside)
def test_an_address_inside_is_refused_in_every_spelling(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert denied(address)
    for spelling in spellings(address):
        with pytest.raises(RefusedUrl):
            PUBLIC_DOOR.check_url(f"http://{spelling}/")


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_found(address: ipaddress.IPv4Address) -> None:
    value = int(address)
    for text in (f"::ffff:{address}", f"::{address}", f"64:ff9b::{address}", str(ipaddress.IPv6Address((0x2002 << 112) | (value << 80))),
                 str(ipaddress.IPv6Address((0x20010000 << 96) | (value ^ 0xFFFFFFFF)))):  # fmt: skip
        outer = ipaddress.IPv6Address(text)
        assert denied(outer)
        assert embedded(outer) == address or int(outer) in (0, 1)


AUTHORITIES = st.lists(
    st.sampled_from(
        [
            *"abz019.:@#/?\\%[]-_ \t",
            "127.0.0.1",
            "localhost",
            "::1",
            "example.org",
            "0x7f",
            "%2e",
            "。",
            "１",
            "ß",
            "é",
            "xn--",
            "\u200b",
            "ﬀ",
        ]
    ),
    max_size=8,
).map("".join)


@given(
    st.one_of(
        AUTHORITIES.map("http://{}".format),
        AUTHORITIES.map("https://{}/p?q#f".format),
        st.text(max_size=60).map("http://".__add__),
        st.text(max_size=60),
    )
)
@example("http://a?\\@b")
@example("http://a/%")
@example("http://a/[")
@example("http://xn--a")
def test_any_text_is_refused_or_read_exactly_as_it_is_dialled(text: str) -> None:
    try:
        url = parse_url(text)
    except RefusedUrl:
        return
    assert isinstance(url, Url)
    assert url.host.isascii() and url.target.isascii() and url.target.startswith("/")
    assert str(parse_url(str(url))) == str(url)
    theirs = httpx.URL(str(url))
    assert (theirs.scheme, theirs.raw_host.decode(), theirs.raw_path.decode()) == (url.scheme, url.host, url.target)
    dialled: list[str] = []

    def resolving(host: str, port: int) -> list[str]:
        dialled.append(host)
        return ["10.0.0.1"]

    door = Egress(EgressRules(ports=(url.port,)), resolving)
    with door.client() as client, pytest.raises(RefusedUrl):
        client.get(str(url)) if url.address is None or denied(url.address) else door.check_url("http://10.0.0.1/")
    assert dialled in ([], [url.host])


# --- what the operator allows --------------------------------------------------------------------


def allowed(entry: str, url: str, *, ports: tuple[int, ...] = (80, 443)) -> bool:
    try:
        Egress(EgressRules(allow_hosts=(entry,), ports=ports)).check_url(url)
    except RefusedUrl:
        return False
    return True


@pytest.mark.parametrize(
    ("entry", "yes", "no"),
    [
        ("127.0.0.1", ["http://127.0.0.1/"], ["http://127.0.0.2/", "http://localhost/", "http://127.0.0.1:8000/", "http://127.1/", "http://[::ffff:127.0.0.1]/"]),
        ("127.0.0.1:8000", ["http://127.0.0.1:8000/"], ["http://127.0.0.1/", "http://127.0.0.1:8001/"]),
        ("localhost", ["http://localhost/", "https://LOCALHOST./"], ["http://127.0.0.1/", "http://a.localhost/"]),
        ("wiki.corp:8000", ["http://wiki.corp:8000/"], ["http://wiki.corp/", "http://other.corp:8000/"]),
        ("10.1.0.0/16", ["http://10.1.2.3/"], ["http://10.2.0.1/", "http://10.1.2.3:22/", "http://[::ffff:10.1.2.3]/", "http://10.66307/"]),
        ("::1", ["http://[::1]/"], ["http://[::]/", "http://[::2]/"]),
        ("[::1]:8000", ["http://[::1]:8000/"], ["http://[::1]/"]),
        ("[::1]", ["http://[::1]/"], ["http://[::1]:8000/"]),
        ("fd00::/8", ["http://[fd00::1]/"], ["http://[fd00:ec2::254]/", "http://[fc00::1]/"]),
        ("0.0.0.0/0", ["http://10.0.0.1/", "http://127.0.0.1/"], ["http://169.254.169.254/", "http://100.100.100.200/", "http://[::1]/"]),
        ("169.254.169.254", ["http://169.254.169.254/"], ["http://169.254.169.253/"]),
        ("64:ff9b::/96", ["http://[64:ff9b::808:808]/"], ["http://[64:ff9b::7f00:1]/", "http://[64:ff9b::a9fe:a9fe]/"]),
        ("::/0", ["http://[::1]/"], ["http://[::ffff:127.0.0.1]/", "http://[::ffff:169.254.169.254]/", "http://127.0.0.1/"]),
    ],
)  # fmt: skip
def test_allow_hosts_opens_exactly_what_is_written(entry: str, yes: list[str], no: list[str]) -> None:
    assert [url for url in yes if not allowed(entry, url)] == []
    assert [url for url in no if allowed(entry, url)] == []


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "http://127.0.0.1/",
        "10.0.0.1/8",
        "a b",
        "127.1",
        "host:0",
        "host:99999",
        "*.corp",
        "user@host",
        "fe80::1%lo",
        "10.0.0.0/33",
    ],
)
def test_an_entry_that_cannot_be_read_is_named(entry: str) -> None:
    with pytest.raises(BadInput, match="allow_hosts"):
        Egress(EgressRules(allow_hosts=(entry,)))


def test_a_name_that_the_operator_allows_still_leads_to_no_credentials() -> None:
    for address in map(str, METADATA):
        door = Egress(EgressRules(allow_hosts=("wiki.corp",)), resolver({"wiki.corp": [address]}))
        with door.client() as client, pytest.raises(RefusedUrl) as refused:
            client.get("http://wiki.corp/")
        assert refused.value.kind == "metadata"
    door = Egress(EgressRules(allow_hosts=("wiki.corp",)), resolver({"wiki.corp": ["::ffff:169.254.169.254"]}))
    with door.client() as client, pytest.raises(RefusedUrl):
        client.get("http://wiki.corp/")
