"""Who may call the server: keys, scopes, quotas, origins, hosts and sizes."""

from __future__ import annotations

import json
import socket
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.command import Cli, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need
from tests.index.test_store_contract import server as postgres  # noqa: F401
from tests.serve.filling import key_of
from tests.serve.running import BRIDGE, QUESTION, Running, running

from prunus.core.errors import BadInput
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full

CLEAN = {"page": {"html": BRIDGE}}


def key_for(folder: Path, name: str, *scopes: str, **quotas: int) -> str:
    need("fastapi")
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    state = ServerState(str(folder / "home" / "serve.db"))
    try:
        return new_key(state, name, scopes, **quotas)
    finally:
        state.close()


def test_beyond_this_machine_the_server_does_not_start_without_a_key(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.app import create_app
    from prunus.serve.options import ServeOptions

    settings = load_settings({"home": str(tmp_path / "home")})
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(BadInput, match="keys add"):
            create_app(settings, ServeOptions(host=host))
    create_app(settings, ServeOptions(host="127.0.0.1"))
    key_for(tmp_path, "anna")
    create_app(settings, ServeOptions(host="0.0.0.0"))


def test_where_there_are_keys_every_request_needs_one(tmp_path: Path) -> None:
    key = key_for(tmp_path, "anna")
    with running(tmp_path) as server:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": key}, {"authorization": "Bearer"}):
            reply = server.post("/v1/clean", CLEAN, **headers)
            assert reply.status_code == 401 and reply.headers["www-authenticate"] == "Bearer"
            assert reply.json()["error"]["type"] == "no_key"
            sent = headers.get("authorization") == "Bearer wrong"
            assert ("this key does not work" in reply.text) is sent and ("send Authorization" in reply.text) is not sent
        assert server.http.get("/v1/models").status_code == 401 and server.http.get("/metrics").status_code == 401
        assert server.post("/v1/clean", CLEAN, authorization=f"Bearer {key}").status_code == 200
        assert server.http.get("/healthz").status_code == 200


def test_without_a_key_nothing_of_a_request_is_read(tmp_path: Path) -> None:
    key = key_for(tmp_path, "anna", a_day=1)
    with running(tmp_path) as server:
        for path in ("/v1/clean", "/v1/nothing", "/docs"):
            assert server.http.post(path, content=b"{", headers={"content-type": "application/json"}).status_code == 401
        broken = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        assert server.http.post("/v1/clean", content=b"{", headers=broken).status_code == 400
        assert server.http.post("/v1/clean", content=b"{", headers=broken).status_code == 429  # it counted


def test_a_key_does_only_what_its_scopes_say(tmp_path: Path) -> None:
    key = key_for(tmp_path, "reader", "read")
    with running(tmp_path) as server:
        bearer = f"Bearer {key}"
        assert server.post("/v1/clean", CLEAN, authorization=bearer).status_code == 200
        for path, body in (
            ("/v1/ask", {"question": QUESTION, "pages": [{"html": BRIDGE}]}),
            ("/v1/search", {"query": "x"}),
            ("/v1/chat/completions", {"model": "prunus", "messages": [{"role": "user", "content": "x"}]}),
            ("/v1/check", {"text": "It opened in 1932.", "pages": [{"html": BRIDGE}], "judge": True}),
        ):
            assert server.post(path, body, authorization=bearer).status_code == 403


def test_a_quota_holds_over_servers_that_share_the_state(tmp_path: Path) -> None:
    key = key_for(tmp_path, "robot", a_day=3)
    with running(tmp_path) as first, running(tmp_path) as second:
        statuses = [
            server.post("/v1/clean", CLEAN, authorization=f"Bearer {key}").status_code
            for server in (first, second, first, second, first)
        ]
        assert statuses == [200, 200, 200, 429, 429]
        refused = first.post("/v1/clean", CLEAN, authorization=f"Bearer {key}")
        assert 0 < int(refused.headers["retry-after"]) <= 86_400


def test_keys_and_quotas_are_shared_through_postgresql(postgres: str, tmp_path: Path) -> None:  # noqa: F811
    need("fastapi")
    from prunus.serve.keys import digest_of, new_key, now
    from prunus.serve.state import ServerState

    one, two = ServerState(f"postgres:{postgres}"), ServerState(f"postgres:{postgres}")
    try:
        key = new_key(one, "shared", ("read",), a_minute=2)
        found = two.key(digest_of(key))
        assert found is not None and (found.name, found.scopes, found.a_minute) == ("shared", ("read",), 2)
        waits = [state.count("shared", {"minute": 2}, 600.0) for state in (one, two, one)]
        assert waits == [0, 0, 60] and two.count("shared", {"minute": 2}, 660.0) == 0
        with pytest.raises(BadInput, match="already"):
            new_key(two, "shared", ())
        assert two.revoke("shared", now()) and one.key(digest_of(key)) is None and not one.revoke("shared", now())
    finally:
        one.close()
        two.close()


def test_a_revoked_key_stops_at_once_and_no_key_is_stored(tmp_path: Path, cli: Cli, folder: Path) -> None:  # noqa: F811
    place = str(tmp_path / "home" / "serve.db")
    made = cli("serve", "--state", place, "keys", "add", "anna", "--scope", "read", "--json")
    key = json.loads(made.stdout)["key"]
    listed = cli("serve", "--state", place, "keys", "list").stdout
    assert "anna" in listed and "read" in listed and key not in listed
    rows = sqlite3.connect(place).execute("SELECT * FROM serve_keys").fetchall()
    assert key not in repr(rows) and key.encode() not in Path(place).read_bytes()
    assert Path(place).stat().st_mode & 0o077 == 0
    with running(tmp_path) as server:
        assert server.post("/v1/clean", CLEAN, authorization=f"Bearer {key}").status_code == 200
        assert cli("serve", "--state", place, "keys", "revoke", "anna").exit_code == 0
        assert server.post("/v1/clean", CLEAN, authorization=f"Bearer {key}").status_code == 401
    again = cli("serve", "--state", place, "keys", "revoke", "anna", "--json")
    assert again.exit_code == 2 and "keys list" in only_line(again)
    assert cli("serve", "--state", place, "keys", "add", "b", "--scope", "raed").exit_code == 2
    assert cli("serve", "--state", place, "keys", "add", "../b").exit_code == 2


def test_foreign_pages_in_a_browser_cannot_use_an_open_server(tmp_path: Path) -> None:
    with running(tmp_path, origins=("https://app.example.org",)) as server:
        assert server.post("/v1/clean", CLEAN, origin="https://evil.example").status_code == 403
        assert server.post("/v1/clean", CLEAN, host="evil.example").status_code == 403  # a name that leads here by DNS
        assert server.post("/v1/clean", CLEAN, origin="null").status_code == 403
        assert server.post("/v1/clean", CLEAN, origin=server.url).status_code == 200
        allowed = server.post("/v1/clean", CLEAN, origin="https://app.example.org")
        assert allowed.headers["access-control-allow-origin"] == "https://app.example.org"
        plain = server.http.post("/v1/clean", content=json.dumps(CLEAN), headers={"content-type": "text/plain"})
        assert plain.status_code == 400  # what a form can send without being asked first


def test_every_response_carries_its_id_and_the_headers_of_a_careful_server(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        replies = [
            server.http.get("/healthz"),
            server.post("/v1/clean", {}),
            server.http.get("/x%0d%0aset-cookie:%20a=b"),
        ]
        for reply in replies:
            assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["x-frame-options"] == "DENY"
            assert "default-src 'none'" in reply.headers["content-security-policy"]
            assert "set-cookie" not in reply.headers
        assert len({reply.headers["x-request-id"] for reply in replies}) == 3


def test_a_body_over_the_limit_is_refused_whatever_its_length_is_said_to_be(tmp_path: Path) -> None:
    with running(tmp_path, body_mb=1) as server:
        large = {"page": {"html": "<p>x" * 400_000}}
        assert server.post("/v1/clean", large).status_code == 413
        assert _chunked(server, b'{"page": {"html": "' + b"x" * 2_000_000) == 413
        assert server.post("/v1/clean", CLEAN).status_code == 200


def _chunked(server: Running, body: bytes) -> int:
    """Send a body without a length; return the status."""
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as wire:
        wire.sendall(b"POST /v1/clean HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")  # fmt: skip
        try:
            for start in range(0, len(body), 60_000):
                part = body[start : start + 60_000]
                wire.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            wire.sendall(b"0\r\n\r\n")
        except OSError:
            pass  # refused while it was sent
        return int(wire.recv(64).split()[1])


def test_no_redirect_leads_to_the_host_that_a_request_names(tmp_path: Path) -> None:
    home = str(tmp_path / "home" / "serve.db")
    with running(tmp_path) as server:
        assert server.http.get("/v1/models/", follow_redirects=False).status_code == 404
    key = key_of(home, "anna")
    with running(tmp_path) as server:
        reply = server.http.get("/v1/models/", headers={"host": "stranger.example", **key}, follow_redirects=False)
        assert reply.status_code == 404 and "stranger" not in str(reply.headers)


def test_clients_are_not_told_where_the_model_is() -> None:
    need("fastapi")
    from prunus.serve.mask import Mask

    engines = {
        "llm": "http://10.1.2.3:8000/v1#small",
        "search": "searxng:http://inside:8888,wikipedia",
        "scorer": "bm25",
    }
    told = Mask(load_settings({"llm": engines["llm"]})).record({"engines": engines})
    assert told == {"engines": {"llm": "small", "search": "searxng,wikipedia", "scorer": "bm25"}}
