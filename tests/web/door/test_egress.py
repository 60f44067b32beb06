"""The egress door: every kind of client reaches the hosts that the operator configured, and no other internal host."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import trustme
from tests.web.fetch.server import Http2Server, Proxy, Server, door_to, redirect_to, resolver, respond

from prunus.core import ports
from prunus.core.errors import BadInput, PrunusError
from prunus.web.door.egress import Egress, EgressRules, FetchFailed, RefusedUrl, system_resolver

Get = Callable[..., httpx.Response]


def blocking(
    door: Egress, url: str, endpoint: str = "", seconds: float = 0.0, method: str = "GET", **options: object
) -> httpx.Response:
    with door.client(endpoint, seconds=seconds) as client:
        return client.request(method, url, **options)  # type: ignore[arg-type]


def asynchronous(
    door: Egress, url: str, endpoint: str = "", seconds: float = 0.0, method: str = "GET", **options: object
) -> httpx.Response:
    async def get() -> httpx.Response:
        async with door.async_client(endpoint, seconds=seconds) as client:
            return await client.request(method, url, **options)  # type: ignore[arg-type]

    return asyncio.run(get())


@pytest.fixture(params=[blocking, asynchronous])
def get(request: pytest.FixtureRequest) -> Get:
    found: Get = request.param
    return found


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_the_door_keeps_its_port() -> None:
    for name in ("client", "async_client"):
        assert (
            inspect.signature(getattr(Egress, name)).parameters
            == inspect.signature(getattr(ports.Door, name)).parameters
        )


# --- endpoints -----------------------------------------------------------------------------------


def test_an_endpoint_opens_exactly_its_scheme_host_and_port(get: Get) -> None:
    door = Egress(resolver=lambda host, port: ["127.0.0.1"])
    with Server() as server, Server() as other:
        endpoint = server.url("/v1")
        assert get(door, server.url("/v1/models"), endpoint).text == "hello"
        assert get(door, server.url("/elsewhere"), endpoint).text == "hello"
        assert get(door, "/models", endpoint).text == "hello"  # what is relative is joined to it
        assert server.targets() == ["/v1/models", "/elsewhere", "/v1/models"]
        for url in (other.url(), server.url().replace("http:", "https:"), server.url(host="localhost"), server.url(host="127.0.0.2"),
                    server.url(host="[::1]"), "http://127.0.0.1/", "http://169.254.169.254/", server.url(host="public.org")):  # fmt: skip
            with pytest.raises(RefusedUrl):
                get(door, url, endpoint)
        with pytest.raises(RefusedUrl):
            get(door, server.url())  # and only for the client that was made for it
        assert other.connections == 0 and len(server.requests) == 3


def test_an_endpoint_by_name_may_resolve_inside(get: Get) -> None:
    with Server() as server:
        door = Egress(resolver=resolver({"llm.corp": ["127.0.0.1"], "cloud.corp": ["169.254.169.254"]}))
        url = server.url("/v1", host="llm.corp")
        assert get(door, url, url).text == "hello"
        url = server.url("/v1", host="cloud.corp")
        with pytest.raises(RefusedUrl) as refused:
            get(door, url, url)
        assert refused.value.kind == "metadata"


def test_an_endpoints_scheme_is_part_of_it_on_a_port_that_is_open_to_all(get: Get) -> None:
    with Server() as server:
        door = Egress(EgressRules(ports=(server.port,)), resolver({"llm.example.org": ["127.0.0.1"]}))
        with pytest.raises(RefusedUrl) as refused:
            get(door, server.url(host="llm.example.org"), f"https://llm.example.org:{server.port}")
        assert refused.value.kind == "scheme" and server.connections == 0


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6_is_spoken_where_the_operator_allows_it(get: Get) -> None:
    with Server() as server:
        door = Egress(
            EgressRules(allow_hosts=(f"[::1]:{server.port}", f"six.corp:{server.port}")),
            resolver({"six.corp": ["::1"]}),
        )
        assert get(door, server.url(host="[::1]")).text == "hello"
        assert get(door, server.url(host="[0:0:0:0:0:0:0:1]")).text == "hello"
        assert get(door, server.url(host="six.corp")).text == "hello"
        assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


def test_an_endpoint_that_redirects_is_not_followed(get: Get) -> None:
    with Server() as other, Server() as server:
        server.routes = redirect_to(other.url())
        answer = get(Egress(), server.url(), server.url(), follow_redirects=True)
        assert answer.status_code == 302 and answer.extensions["location"] == other.url()
        assert other.connections == 0


@pytest.mark.parametrize(
    "endpoint", ["localhost:8000", "http://user:password@127.0.0.1/", "ftp://127.0.0.1/", "http://0x7f.1/", "/v1"]
)
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(RefusedUrl) as refused:
        Egress().client(endpoint)
    assert "user:" not in str(refused.value)


def test_a_client_has_a_time_of_its_own(get: Get) -> None:
    with Server() as server:
        server.routes = lambda request, connection: (server.wait(0.5), respond("late")(request, connection))  # type: ignore[func-returns-value]
        door = Egress(EgressRules(read_seconds=0.1, total_seconds=0.2))
        assert get(door, server.url(), server.url(), seconds=5.0).text == "late"
        with pytest.raises(FetchFailed) as failed:
            get(door, server.url(), server.url())
        assert failed.value.kind == "timeout"


def test_bodies_are_sent_and_streams_are_read_piece_by_piece(get: Get) -> None:
    got: list[bytes] = []
    with Server(respond("data: a\n\ndata: b\n\n", "Content-Type: text/event-stream")) as server:
        assert (
            get(
                Egress(),
                server.url(),
                server.url(),
                method="POST",
                json={"a": 1},
                headers={"Authorization": "Bearer x"},
            ).status_code
            == 200
        )
        assert server.requests[0].headers["authorization"] == "Bearer x"
        assert server.requests[0].headers["content-type"] == "application/json"
        with Egress().client(server.url()) as client, client.stream("GET", server.url()) as stream:
            got += stream.iter_lines()  # type: ignore[arg-type]
    assert got == ["data: a", "", "data: b", ""]


def test_a_key_in_a_query_stays_out_of_messages(get: Get) -> None:
    with Server() as server:
        url = server.url("/search?key=secret")
    for door, asked in (
        (Egress(), url),
        (Egress(), "http://127.0.0.1/?key=secret"),
        (door_to(), "https://nowhere.example.org/?key=secret"),
    ):
        with pytest.raises(PrunusError) as failed:
            get(door, asked, url if asked == url else "")
        assert "secret" not in str(failed.value) and "secret" not in failed.value.subject


def test_nothing_of_the_environment_is_read(get: Get, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Server() as server, Server() as trap:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, trap.url())
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        assert get(door_to(server), server.url()).text == "hello"
        assert trap.connections == 0 and "authorization" not in server.requests[0].headers


def test_cookies_are_not_kept() -> None:
    with Server(respond("x", "Set-Cookie: a=b")) as server, door_to(server).client() as client:
        client.get(server.url())
        client.get(server.url())
    assert "cookie" not in server.requests[1].headers


def test_sockets_of_the_machine_cannot_be_asked_for() -> None:
    door = Egress()
    with door.client() as client, pytest.raises(RefusedUrl):
        client._transport._direct._network_backend.connect_unix_socket("/run/docker.sock")  # type: ignore[attr-defined]


# --- the system's resolver -----------------------------------------------------------------------


def test_the_systems_resolver_returns_addresses() -> None:
    assert "127.0.0.1" in system_resolver("localhost", 80) or "::1" in system_resolver("localhost", 80)


def test_a_first_address_that_does_not_answer_gives_way_to_the_next(get: Get) -> None:
    with Server() as server:
        door = door_to(
            server, names={"wiki.corp": ["127.0.0.3", "127.0.0.1"]}, allow_hosts=(f"wiki.corp:{server.port}",)
        )
        assert get(door, server.url(host="wiki.corp")).text == "hello"


def test_a_name_without_an_address_and_one_with_too_many(get: Get) -> None:
    many = [f"93.184.{number}.1" for number in range(100)]
    door = door_to(names={"none.org": [], "many.org": many, "odd.org": ["not an address"]})
    with pytest.raises(FetchFailed) as failed:
        get(door, "http://none.org/")
    assert failed.value.kind == "dns"
    for host in ("many.org", "odd.org"):
        with pytest.raises(RefusedUrl):
            get(door, f"http://{host}/")


def test_a_network_that_is_allowed_lets_names_resolve_into_it(get: Get) -> None:
    with Server() as server:
        door = Egress(
            EgressRules(allow_hosts=("127.0.0.0/8",), ports=(server.port,)),
            resolver({"wiki.example.org": ["127.0.0.1"]}),
        )
        assert get(door, server.url(host="wiki.example.org")).text == "hello"


# --- dial ----------------------------------------------------------------------------------------


def test_dial_connects_to_the_checked_address() -> None:
    asked = []

    def resolving(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"]

    async def talk(door: Egress, port: int) -> bytes:
        reader, writer = await door.dial("wiki.corp", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: wiki.corp\r\n\r\n")
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return line

    with Server() as server:
        door = Egress(EgressRules(allow_hosts=(f"wiki.corp:{server.port}",)), resolving)
        assert asyncio.run(talk(door, server.port)) == b"HTTP/1.1 200 OK\r\n"
        assert asked == [("wiki.corp", server.port)]
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(talk(door, server.port))
    assert failed.value.kind == "connect"


# --- the operator's proxy ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    authority = trustme.CA()
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("public.org").configure_cert(context)
    return context, str(path)


def test_a_proxy_carries_http_and_tls_and_resolves_the_names(get: Get, tls: tuple[ssl.SSLContext, str]) -> None:
    with Server() as server, Proxy(("127.0.0.1", server.port)) as proxy:
        door = Egress(EgressRules(proxy=proxy.url()), resolver({}))
        assert get(door, "http://public.org/a?b").text == "hello"
        assert (proxy.requests[0].target, server.targets()) == ("http://public.org/a?b", ["/a?b"])
    with Server(tls=tls[0]) as server, Proxy(("127.0.0.1", server.port)) as proxy:
        door = Egress(EgressRules(proxy=proxy.url(), ca_file=tls[1]), resolver({}))
        assert get(door, "https://public.org/").text == "hello"
        assert (proxy.requests[0].method, proxy.requests[0].target) == ("CONNECT", "public.org:443")
        with pytest.raises(FetchFailed) as failed:
            get(door, "https://other.org/")
        assert failed.value.kind == "tls"  # the name is verified through the tunnel


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "http://localhost/", "http://db.internal/",
     "http://127.0.0.1.nip.io/", "http://metadata.google.internal/", "http://0x7f.1/", "https://127.0.0.1/", "http://[2606:4700::1111]/"],
)  # fmt: skip
def test_behind_a_proxy_what_is_plainly_inside_stays_refused(get: Get, url: str) -> None:
    with Server() as server, Proxy(("127.0.0.1", server.port)) as proxy:
        with pytest.raises(RefusedUrl):
            get(Egress(EgressRules(proxy=proxy.url())), url)
        assert proxy.connections == 0


def test_behind_a_proxy_what_the_operator_allows_inside_is_reached_without_it(get: Get) -> None:
    with Server() as server, Proxy(("127.0.0.1", 9)) as proxy:
        names = {"wiki.corp": ["127.0.0.1"]}
        door = Egress(EgressRules(proxy=proxy.url(), allow_hosts=(f"wiki.corp:{server.port}",)), resolver(names))
        assert get(door, server.url(host="wiki.corp")).text == "hello"
        assert get(door, server.url(), server.url()).text == "hello"
        assert proxy.connections == 0


def test_a_proxy_gets_its_password(get: Get) -> None:
    with Server() as server, Proxy(("127.0.0.1", server.port), password="Basic dXNlcjpwOnc=") as proxy:
        url = proxy.url().replace("http://", "http://user:p%3Aw@")
        door = Egress(EgressRules(proxy=url), resolver({}))
        assert get(door, "http://public.org/").text == "hello"
        wrong = Egress(EgressRules(proxy=url.replace("p%3Aw", "no")), resolver({}))
        assert get(wrong, "http://public.org/").status_code == 407
        with pytest.raises(FetchFailed) as failed:
            get(wrong, "https://public.org/")
        assert failed.value.kind == "proxy" and "407" in str(failed.value)


def test_dial_goes_through_the_proxy_too() -> None:
    async def talk(door: Egress, host: str) -> bytes:
        reader, writer = await door.dial(host, 443)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return line

    with Server() as server, Proxy(("127.0.0.1", server.port)) as proxy:
        door = Egress(EgressRules(proxy=proxy.url()), resolver({}))
        assert asyncio.run(talk(door, "public.org")) == b"HTTP/1.1 200 OK\r\n"
        assert proxy.requests[0].target == "public.org:443"
        with pytest.raises(RefusedUrl):
            asyncio.run(talk(door, "127.0.0.1"))
    with Server() as server, Proxy(("127.0.0.1", server.port), password="Basic x") as proxy:
        with pytest.raises(FetchFailed) as failed:
            asyncio.run(talk(Egress(EgressRules(proxy=proxy.url()), resolver({})), "public.org"))
        assert failed.value.kind == "proxy"


@pytest.mark.parametrize(
    "proxy", ["proxy:3128", "socks5://127.0.0.1:1080", "http://", "http://a:secret@", "ftp://a:secret@proxy/"]
)
def test_a_proxy_that_cannot_be_read_is_named_without_its_password(proxy: str) -> None:
    with pytest.raises(BadInput, match="proxy") as bad:
        Egress(EgressRules(proxy=proxy))
    assert "secret" not in str(bad.value)


# --- HTTP/2 --------------------------------------------------------------------------------------


def test_http2_is_spoken_where_a_server_offers_it(tls: tuple[ssl.SSLContext, str]) -> None:
    tls[0].set_alpn_protocols(["h2", "http/1.1"])
    with Http2Server(tls=tls[0]) as server:
        door = Egress(
            EgressRules(ca_file=tls[1], allow_hosts=(f"public.org:{server.port}",)),
            resolver({"public.org": ["127.0.0.1"]}),
        )

        async def several() -> list[httpx.Response]:
            async with door.async_client() as client:
                return list(
                    await asyncio.gather(
                        *(client.get(server.url(f"/{number}", host="public.org")) for number in range(5))
                    )
                )

        answers = asyncio.run(several())
        assert {(answer.http_version, answer.text) for answer in answers} == {("HTTP/2", "by http/2")}
        assert len(server.requests) == 5 and server.connections == 1
