"""Addresses as pages, on the command line and in the library, read from a real server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.command import Cli, lines_of, only_line
from tests.extras import need
from tests.web.fetch.server import Server, redirect_to, respond

import prunus
from prunus.core.errors import BadInput, OutsideFailed

BRIDGE = "<title>Bridge</title><h1>Bridge</h1><p>The bridge opened in 1932, with a parade of boats on the river."
FERRY = "<title>Ferry</title><h1>Ferry</h1><p>The ferry leaves at noon, and on Sundays at one o'clock as well."
HTML = "Content-Type: text/html; charset=utf-8"
WALL = """<!doctype html><title>Just a moment...</title><noscript>Enable JavaScript and cookies to continue</noscript>
<script>window._cf_chl_opt={cvId:'3'}</script><div id="challenge-error-text">Checking your browser</div>"""


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> object:
    """Start a server with some pages, which the settings allow."""
    routes = {
        "/robots.txt": respond("User-agent: *\nDisallow: /private\n", "Content-Type: text/plain"),
        "/bridge": respond(BRIDGE, HTML, "Cache-Control: max-age=600"),
        "/ferry": respond(FERRY, HTML),
        "/old": redirect_to("/bridge"),
        "/inside": redirect_to("http://10.0.0.1/secret"),
        "/private/page": respond(FERRY, HTML),
        "/gone": respond("nothing here", status="404 Not Found"),
        "/wall": respond(WALL, HTML, "cf-mitigated: challenge", status="403 Forbidden"),
    }
    with Server(routes) as server:
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", f"127.0.0.1:{server.port}")
        monkeypatch.setenv("PRUNUS_RETRIES", "0")
        monkeypatch.setenv("PRUNUS_BROWSER", "never")
        yield server


def test_a_page_is_written_as_it_came(cli: Cli, web: Server) -> None:
    result = cli("fetch", web.url("/bridge"))
    assert (result.exit_code, result.stdout) == (0, BRIDGE)


def test_json_says_what_is_known_of_a_page(cli: Cli, folder: Path, web: Server) -> None:
    [found] = lines_of(cli("fetch", web.url("/old"), "--json", "-o", "bridge.html"))
    assert found["url"] == web.url("/old") and found["final_url"] == web.url("/bridge")
    assert (found["status"], found["bytes"], found["file"]) == (200, len(BRIDGE), "bridge.html")
    assert len(found["snapshot"]) == 64
    assert (folder / "bridge.html").read_text("utf-8") == BRIDGE


def test_several_pages_each_fail_alone(cli: Cli, folder: Path, web: Server) -> None:
    result = cli("fetch", *(web.url(path) for path in ("/bridge", "/gone", "/ferry")), "-o", "pages")
    assert result.exit_code == 5
    assert "answered 404" in result.stderr and "2 of 3 pages fetched" in result.stderr
    assert sorted(path.read_text("utf-8") for path in (folder / "pages").iterdir()) == sorted([BRIDGE, FERRY])
    assert "give -o FOLDER" in only_line(cli("fetch", web.url("/bridge"), web.url("/ferry")))


@pytest.mark.parametrize(
    ("path", "code", "why"),
    [("/gone", 3, "404"), ("/private/page", 2, "robots.txt"), ("/inside", 2, "private"), ("/wall", 3, "bot")],
)
def test_what_cannot_be_read_is_one_line(cli: Cli, web: Server, path: str, code: int, why: str) -> None:
    result = cli("fetch", web.url(path))
    assert result.exit_code == code
    assert why in only_line(result)


def test_an_internal_address_is_refused_and_nothing_arrives(
    cli: Cli, web: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRUNUS_ALLOW_HOSTS")
    for command in (["fetch"], ["clean"], ["prune", "-q", "When?"], ["ask", "When?"]):
        result = cli(*command, web.url("/bridge"))
        assert result.exit_code == 2 and "loopback" in only_line(result)
    assert web.connections == 0


def test_addresses_stand_beside_files(cli: Cli, folder: Path, web: Server) -> None:
    (folder / "ferry.html").write_text(FERRY, "utf-8")
    [found] = lines_of(cli("ask", "When did the bridge open?", "ferry.html", web.url("/bridge"), "--json"))
    [best, *_] = found["citations"]
    assert best["url"] == web.url("/bridge") and "1932" in best["quote"] and best["found"]
    cleaned = cli("clean", web.url("/ferry"), "--format", "text")
    assert "The ferry leaves at noon" in cleaned.stdout
    kept = cli("prune", web.url("/bridge"), "ferry.html", "-q", "When does the ferry leave?", "--budget", "40")
    assert "noon" in kept.stdout


def test_pages_are_kept_for_a_second_look(cli: Cli, folder: Path, web: Server) -> None:
    (folder / "ferry.html").write_text(FERRY, "utf-8")
    cli("ask", "When did the bridge open?", "ferry.html", web.url("/bridge"))
    asked = len(web.requests)
    assert cli("fetch", web.url("/bridge")).stdout == BRIDGE
    assert len(web.requests) == asked, "a fresh page comes from the cache"
    assert cli("fetch", web.url("/bridge"), "--fresh").stdout == BRIDGE
    assert len(web.requests) > asked
    [info] = lines_of(cli("cache", "info", "--json"))
    assert info["pages"]["entries"] >= 1 and info["snapshots"]["entries"] == 2
    [gone] = lines_of(cli("cache", "clear", "--what", "all", "--json"))
    assert gone["removed"]["snapshots"] == 2
    [info] = lines_of(cli("cache", "info", "--json"))
    assert info["pages"]["entries"] == info["snapshots"]["entries"] == 0


def test_the_library_reads_addresses(web: Server) -> None:
    answer = prunus.ask("When does the ferry leave?", [web.url("/bridge"), web.url("/ferry"), web.url("/gone")])
    assert answer.citations[0].url == web.url("/ferry")
    assert list(answer.failures) == [web.url("/gone")]
    assert prunus.clean(web.url("/ferry"), "text").startswith("Ferry")
    assert "1932" in prunus.prune(web.url("/bridge"), "When did it open?", budget=64).output
    with pytest.raises(OutsideFailed, match="404"):
        prunus.prune(web.url("/gone"), "When?")
    with pytest.raises(BadInput, match="robots"):
        prunus.prune(web.url("/private/page"), "When?")


def test_a_wall_is_never_cited(cli: Cli, web: Server) -> None:
    web.routes["/wall"] = respond(WALL, HTML)  # walls come with 200 as well
    result = cli("ask", "What checks my browser?", web.url("/wall"))
    assert result.exit_code == 3 and "no content" in only_line(result)
    [line] = lines_of(cli("fetch", web.url("/wall"), "--json"))
    assert "bot" in json.dumps(line["error"])


def test_promising_links_are_followed(cli: Cli, folder: Path, web: Server) -> None:
    home = "<title>Home</title><h1>Harbour</h1><p>All about the harbour, its boats and its buildings." + "".join(
        f'<p><a href="/{name}">{words}</a>'
        for name, words in (
            ("ferry", "When the ferry leaves"),
            ("bridge", "How the bridge was built"),
            ("gone", "Old news"),
        )
    )
    web.routes["/"] = respond(home, HTML)
    [found] = lines_of(cli("ask", "When does the ferry leave?", web.url("/"), "--follow", "1", "--json"))
    assert found["citations"][0]["url"] == web.url("/ferry")
    assert "/bridge" not in {request.target for request in web.requests}
    cli("fetch", web.url("/"), "--follow", "1", "-q", "When was the bridge built?", "-o", "pages")
    assert BRIDGE in {path.read_text("utf-8") for path in (folder / "pages").iterdir()}
    assert "belong together" in only_line(cli("fetch", web.url("/"), "--follow", "1", "-o", "pages"))


@pytest.mark.full
def test_an_empty_shell_is_rendered(cli: Cli, web: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    need("playwright.async_api")
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("no Chromium is installed")
    fill = f"document.getElementById('root').innerHTML = {json.dumps(FERRY)}"
    web.routes["/app"] = respond(
        "<!doctype html><title>App</title><div id=root></div><noscript>You need to enable JavaScript to run this app."
        f"</noscript><script>{fill}</script>",
        HTML,
    )
    refused = cli("fetch", web.url("/app"))
    assert refused.exit_code == 3 and "an empty frame" in only_line(refused)
    monkeypatch.setenv("PRUNUS_BROWSER", "auto")
    [found] = lines_of(cli("ask", "When does the ferry leave?", web.url("/app"), "--json"))
    assert "noon" in found["citations"][0]["quote"] and found["citations"][0]["url"] == web.url("/app")


def test_fetched_files_are_found_by_their_suffix(cli: Cli, folder: Path, web: Server) -> None:
    web.routes |= {
        "/table": respond("name,level\nPell,1\n", "Content-Type: text/csv"),
        "/v1.2": respond(FERRY, HTML),
        "/index.html": respond(BRIDGE, HTML),
    }
    cli("fetch", *(web.url(path) for path in ("/table", "/v1.2", "/index.html")), "-o", "pages")
    assert sorted(path.name.partition("-")[2] for path in (folder / "pages").iterdir()) == [
        f"{web.port}-{name}" for name in ("index.html", "table.csv", "v1.2.html")
    ]
    assert "3 of 3 pages cleaned" in cli("clean", "pages", "-o", "cleaned").stderr


def test_an_empty_or_binary_reply_is_not_fetched(cli: Cli, folder: Path, web: Server) -> None:
    web.routes |= {
        "/nothing": respond("", HTML),
        "/picture": respond("\x89PNG\r\n\x1a\n\0\0\0\0", "Content-Type: image/png"),
        "/blob": respond("\0\1\2\3" * 99, "Content-Type: application/octet-stream"),
    }
    urls = [web.url(path) for path in ("/nothing", "/picture", "/blob", "/ferry")]
    result = cli("fetch", *urls, "-o", "pages")
    assert result.exit_code == 5 and "1 of 4 pages fetched" in result.stderr and "the page is empty" in result.stderr
    assert [path.suffix for path in (folder / "pages").iterdir()] == [".html"]
