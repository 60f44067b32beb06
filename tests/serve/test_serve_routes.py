"""The routes of Prunus over real sockets: the same results as the library, and errors that name the field."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import let_in, world
from tests.extras import need
from tests.serve.running import BRIDGE, QUESTION, Running, events_of, running

import prunus
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full

ADDRESS = {"role": "user", "content": f"{QUESTION} http://127.0.0.1:22/"}
PAGE = {"html": BRIDGE, "url": "https://example.org/bridge"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("serve"), budget=5000, pages=3, body_mb=1) as found:
        yield found


def test_a_page_is_cleaned_as_by_the_library(server: Running) -> None:
    for format in ("html", "markdown", "text"):
        found = server.post("/v1/clean", {"page": PAGE, "format": format}).json()
        assert found["output"] == prunus.clean(BRIDGE, format)  # type: ignore[arg-type]
        assert found["metadata"]["title"] == "The bridge"
    assert found["main_confidence"] is None and found["warnings"] == []
    unclear = server.post("/v1/clean", {"page": {"html": "<nav><a href=/x>Home</a></nav>"}, "main": True}).json()
    assert unclear["main_confidence"] < 0.2 and "whole page" in unclear["warnings"][0]
    nothing = server.post("/v1/clean", {"page": {"html": "<script>x</script>"}})
    assert nothing.status_code == 400 and nothing.json()["error"]["type"] == "bad_input"


def test_who_accepts_markdown_gets_it_bare_with_its_tokens(server: Running) -> None:
    reply = server.post("/v1/clean", {"page": PAGE}, accept="text/markdown, */*;q=0.1")
    assert reply.headers["content-type"].startswith("text/markdown")
    assert reply.text == prunus.clean(BRIDGE, "markdown") and int(reply.headers["x-markdown-tokens"]) > 20
    refused = server.post("/v1/clean", {"page": {"html": "<script>x</script>"}}, accept="text/markdown")
    assert refused.status_code == 400 and refused.json()["error"]["type"] == "bad_input"


def test_bytes_of_any_format_are_read(server: Running) -> None:
    packed = base64.b64encode(b"Class,Toll\ncar,4\n").decode()
    found = server.post("/v1/clean", {"page": {"base64": packed, "type": "csv"}, "format": "markdown"}).json()
    assert "|car|4|" in found["output"]
    assert server.post("/v1/clean", {"page": {"base64": "@@"}}).json()["error"]["param"] == "page.base64"


def test_pages_are_pruned_as_by_the_library(server: Running) -> None:
    found = server.post("/v1/prune", {"pages": [PAGE], "question": QUESTION, "budget": 20}).json()
    context = prunus.prune(BRIDGE, QUESTION, 20)
    assert (found["output"], found["tokens"]) == (context.html, context.tokens) and found["tokens"] <= 20
    assert all(block["kept"] for block in found["blocks"])
    every = server.post("/v1/prune", {"pages": [PAGE], "question": QUESTION, "budget": 20, "all_blocks": True}).json()
    assert len(every["blocks"]) == len(context.blocks)


def test_pruning_says_where_nothing_is_likely_to_answer(server: Running) -> None:
    body = {"pages": [PAGE], "question": QUESTION}
    assert server.post("/v1/prune", body).json()["confidence"] is None
    assert server.post("/v1/prune", body | {"min_confidence": 0.3}).json()["confidence"] > 0.3
    refused = server.post("/v1/prune", body | {"question": "Who discovered penicillin?", "min_confidence": 0.3})
    assert refused.status_code == 404 and refused.json()["error"]["type"] == "nothing_found"


def test_a_site_is_mapped_with_the_most_promising_addresses_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world() as web:
        let_in(monkeypatch, web)
        web.pages = {"/": "<h1>Town</h1><a href=/bees>Bees</a> <a href=/bridge>The bridge</a>"}
        with running(tmp_path) as here:
            reply = here.post("/v1/map", {"url": f"{web.url}/", "question": "bridge"}).json()
            assert reply["addresses"][0]["url"] == f"{web.url}/bridge"
            assert len(reply["addresses"]) == 3 and reply["asked"] > 0 and reply["left_out"] == {}
            refused = here.post("/v1/map", {"url": "nonsense"})
            assert refused.status_code == 400 and "url" in refused.json()["error"]["message"]


def test_the_model_of_a_server_judges_claims_where_a_request_wants_it(server: Running, tmp_path: Path) -> None:
    body = {"text": "Trams stop at night.", "pages": [PAGE]}
    with running(tmp_path, {"llm": 'scripted:{"verdict": "partly"}'}) as with_model:
        for judge, by in ((True, "model"), (False, "words")):
            [claim] = with_model.post("/v1/check", body | {"judge": judge}).json()["claims"]
            assert claim["by"] == by and (claim["verdict"] == "partly" or not judge)
    with running(tmp_path / "small", {"llm": "scripted:x"}, tokens=10) as small:
        assert small.post("/v1/check", body | {"judge": True}).status_code == 400  # a claim needs more tokens
    refused = server.post("/v1/check", body | {"judge": True})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "judge"


def test_a_question_is_answered_as_by_the_library(server: Running) -> None:
    found = server.post("/v1/ask", {"question": QUESTION, "pages": [PAGE]}).json()
    answer = prunus.ask(QUESTION, prunus.Page(BRIDGE, url=PAGE["url"], final_url=PAGE["url"]))
    assert found["text"] == answer.text
    [citation] = found["citations"]
    assert citation["found"] and citation["quote"] == "The bridge opened in 1932."
    assert citation["url"] == PAGE["url"] and citation["xpath"] == answer.citations[0].xpath


def test_a_stream_sends_named_events_and_ends_in_the_same_answer(server: Running) -> None:
    body = {"question": QUESTION, "pages": [PAGE], "stream": True}
    reply = server.post("/v1/ask", body)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply.text)
    names = [name for name, _ in events]
    assert names[0] == "page" and names[-1] == "done" and {"kept", "extracted", "token", "citation"} <= {*names}
    whole = server.post("/v1/ask", {**body, "stream": False}).json()
    assert json.loads(events[-1][1])["answer"]["text"] == whole["text"]


def test_where_nothing_answers_the_reply_says_so(server: Running) -> None:
    body = {"question": "Which enzymes split starch?", "pages": [PAGE]}
    reply = server.post("/v1/ask", body)
    assert reply.status_code == 404 and reply.json()["error"]["type"] == "nothing_found"
    assert reply.json()["error"]["param"] is None
    events = events_of(server.post("/v1/ask", {**body, "stream": True}).text)
    assert events[-1][0] == "error" and "token" not in dict(events)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/clean", {"page": PAGE, "fromat": "html"}, "fromat"),
        ("/v1/clean", {"page": PAGE, "format": "pdf"}, "format"),
        ("/v1/clean", {"page": {}}, "page"),
        ("/v1/clean", {"page": {"html": "x", "type": "wordd"}}, "page.type"),
        ("/v1/clean", {"page": {"html": "<p>x", "url": "javascript:alert(1)"}}, "page.url"),
        ("/v1/clean", {"page": {"html": "<p>x", "url": "/etc/passwd"}}, "page.url"),
        ("/v1/prune", {"pages": [], "question": QUESTION}, "pages"),
        ("/v1/prune", {"pages": [PAGE] * 4, "question": QUESTION}, "pages"),
        ("/v1/prune", {"pages": [PAGE], "question": " "}, "question"),
        ("/v1/prune", {"pages": [{"url": "http://127.0.0.1:22/"}] * 2, "question": QUESTION}, "pages.0.url"),
        ("/v1/ask", {"pages": [{"html": "<p>x", "type": "wordd"}], "question": QUESTION}, "pages.0.type"),
        ("/v1/ask", {"pages": [PAGE, {"base64": "@@"}], "question": QUESTION}, "pages.1.base64"),
        ("/v1/ask", {"pages": [{"url": "http://127.0.0.1"}], "question": QUESTION}, "pages.0.url"),
        ("/v1/ask", {"pages": [{"url": "http://127.0.0.1/"}], "question": QUESTION, "stream": True}, "pages.0.url"),
        ("/v1/ask", {"pages": [PAGE], "question": ""}, "question"),
        ("/v1/clean", {"page": {"url": "http://127.0.0.1:22/"}}, "page.url"),
        ("/v1/clean", {"page": {"html": "<script>x</script>"}}, "page"),
        ("/v1/ask", {"question": QUESTION, "pages": []}, "pages"),
        ("/v1/ask", {"question": QUESTION}, "pages"),
        ("/v1/chat/completions", {"model": "prunus", "messages": []}, "messages"),
        (
            "/v1/chat/completions",
            {"model": "prunus", "messages": [{"role": "user", "content": 1}]},
            "messages.0.content",
        ),
        ("/v1/chat/completions", {"model": "prunus", "messages": [ADDRESS]}, "messages"),
        ("/v1/responses", {"model": "prunus", "input": [ADDRESS]}, "input"),
        ("/v1/responses", {"model": "prunus", "input": [{"content": [1]}]}, "input.0.content.0"),
        ("/v1/responses", {"model": "prunus"}, "input"),
        ("/v1/prune", {"pages": [PAGE], "question": QUESTION, "budget": 5001}, "budget"),
        ("/v1/prune", {"pages": [PAGE], "question": QUESTION, "budget": 0}, "budget"),
        ("/v1/prune", {"pages": [PAGE], "question": QUESTION, "scorer": "x.py:Y"}, "scorer"),
        ("/v1/search", {"query": "bridges"}, None),
        ("/v1/ask", {"question": QUESTION, "search": True}, "search"),
        ("/v1/ask", {"question": QUESTION, "pages": [PAGE], "llm": "http://evil.example"}, "llm"),
    ],
)
def test_what_cannot_be_used_is_a_400_that_names_the_field(
    server: Running, path: str, body: dict[str, Any], param: str | None
) -> None:
    reply = server.post(path, body)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["type"] == "bad_input" and "\n" not in error["message"] and "Traceback" not in reply.text
    assert param is None or error["param"] == param, error


def test_a_long_list_of_wrong_items_is_refused_at_its_first_item(server: Running) -> None:
    for path, body in (
        ("/v1/ask", {"question": QUESTION, "pages": [1] * 300_000}),
        ("/v1/prune", {"question": QUESTION, "pages": [{}] * 200_000}),
        ("/v1/chat/completions", {"model": "prunus", "messages": [1] * 300_000}),
        ("/v1/chat/completions", {"model": "prunus", "messages": [{"role": "user", "content": [1] * 300_000}]}),
        ("/v1/responses", {"model": "prunus", "input": [1] * 300_000}),
        ("/v1/ask", {"question": QUESTION, **{str(number): 1 for number in range(60_000)}}),
    ):
        started = time.perf_counter()
        reply = server.post(path, body)
        assert reply.status_code == 400 and len(reply.content) < 2_000  # not an error for each item
        assert time.perf_counter() - started < 10


def test_every_list_of_a_request_has_a_limit(server: Running) -> None:
    described = server.http.get("/openapi.json").json()
    bodies = [
        way["requestBody"] for path in described["paths"].values() for way in path.values() if "requestBody" in way
    ]
    seen: set[str] = set()

    def unlimited(part: Any) -> list[Any]:
        if isinstance(part, list):
            return [found for each in part for found in unlimited(each)]
        if not isinstance(part, dict):
            return []
        name = part.get("$ref", "").rpartition("/")[2]
        if name and name not in seen:
            seen.add(name)
            return unlimited(described["components"]["schemas"][name])
        own = [part] if part.get("type") == "array" and "maxItems" not in part else []
        return own + [found for each in part.values() for found in unlimited(each)]

    json_bodies = [body["content"]["application/json"] for body in bodies if "application/json" in body["content"]]
    assert len(json_bodies) > 5 and unlimited(json_bodies) == []


@pytest.mark.parametrize("body", ["{", "[]", "null", '{"page": 1}', '{"page": {"html": "\\ud800<p>x"}}', "\x00"])
def test_malformed_bodies_are_never_a_bug(server: Running, body: str) -> None:
    reply = server.http.post("/v1/clean", content=body.encode(), headers={"content-type": "application/json"})
    assert reply.status_code in (200, 400) and "Traceback" not in reply.text


def test_a_body_that_is_no_json_is_told_what_to_send(server: Running) -> None:
    json_type = {"content-type": "application/json"}
    broken = server.http.post("/v1/clean", content=b'{"page', headers=json_type).json()["error"]
    assert broken["param"] is None and "not valid JSON" in broken["message"]
    for headers in ({}, {"content-type": "text/plain"}):
        untyped = server.http.post("/v1/clean", content=json.dumps({"page": PAGE}).encode(), headers=headers)
        assert untyped.status_code == 400 and "Content-Type: application/json" in untyped.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/ask", {"question": "x"}), ("/v1/ask", {"question": "x", "pages": []}), ("/v1/search", {"query": "x"})],
)
def test_clients_are_not_told_of_options_of_the_command_line(server: Running, path: str, body: dict[str, Any]) -> None:
    error = server.post(path, body).json()["error"]
    assert "this server has no search provider" in error["message"] and "--" not in error["message"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost/", "http://169.254.169.254/latest/meta-data", "http://[::1]/"]
)
def test_addresses_inside_the_network_are_not_fetched(server: Running, url: str) -> None:
    for path, body in (
        ("/v1/clean", {"page": {"url": url}}),
        ("/v1/prune", {"pages": [{"url": url}], "question": QUESTION}),
        ("/v1/ask", {"pages": [{"url": url}], "question": QUESTION}),
    ):
        reply = server.post(path, body)
        assert reply.status_code in (400, 502), reply.text
        assert "this address is not allowed here" in reply.text and "setting" not in reply.text


def test_a_server_can_be_told_to_fetch_nothing(tmp_path: Path) -> None:
    with running(tmp_path, fetch=False) as server:
        reply = server.post("/v1/clean", {"page": {"url": "https://example.org/"}})
        assert reply.status_code == 403 and reply.json()["error"]["param"] == "page.url"


def test_only_indexes_that_the_operator_named_can_be_asked(tmp_path: Path) -> None:
    prunus.Index.open(tmp_path / "made").add({"bridge": BRIDGE})
    with running(tmp_path, indexes={"town": str(tmp_path / "made")}) as server:
        found = server.post("/v1/ask", {"question": QUESTION, "indexes": ["town"]}).json()
        assert found["citations"][0]["quote"] == "The bridge opened in 1932."
        wrong = server.post("/v1/ask", {"question": QUESTION, "indexes": ["twon"]})
        assert wrong.status_code == 404 and "town" in wrong.json()["error"]["message"]
        for name in (str(tmp_path / "made"), "../made", "", "\x00", "town\n"):
            path = server.post("/v1/ask", {"question": QUESTION, "indexes": [name]})
            assert path.status_code == 404 and path.json()["error"]["param"] == "indexes"


def test_health_metrics_and_the_description_are_served(server: Running) -> None:
    assert server.http.get("/healthz").json() == {"status": "ok"}
    assert server.http.get("/readyz").status_code == 200
    server.post("/v1/clean", {"page": PAGE})
    metrics = server.http.get("/metrics").text
    assert 'prunus_requests_total{route="/v1/clean",status="200"}' in metrics and "example.org" not in metrics
    described = server.http.get("/openapi.json").json()
    assert {"/v1/clean", "/v1/prune", "/v1/search", "/v1/ask", "/v1/chat/completions"} <= {*described["paths"]}
    assert server.http.get("/nothing").json()["error"]["type"] == "not_found"


def test_clients_are_not_told_of_folders_and_services_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "town.html").write_text(BRIDGE, "utf-8")
    prunus.Index.open(tmp_path / "made").add(tmp_path / "town.html")
    settings = {"llm": "http://127.0.0.1:9/secret/v1#m", "extractor": "sentences"}
    with running(tmp_path, settings, indexes={"town": str(tmp_path / "made")}) as server:
        body = {"question": QUESTION, "indexes": ["town"]}
        whole, streamed = server.post("/v1/ask", body), server.post("/v1/ask", {**body, "stream": True})
        chat = {"model": "prunus-index:town", "messages": [{"role": "user", "content": QUESTION}]}
        for reply in (whole, streamed, server.post("/v1/chat/completions", chat)):
            assert "1932" in reply.text and "town.html" in reply.text
            assert str(tmp_path) not in reply.text and "127.0.0.1" not in reply.text and "secret" not in reply.text


def test_where_the_model_cannot_be_reached_the_answer_is_quotes_and_costs_nothing(tmp_path: Path) -> None:
    dead = {"llm": "http://127.0.0.1:9/v1#m", "llm_options": {"retries": 0}, "model_calls": True}
    settings = {**dead, "extractor": "sentences"}
    with running(tmp_path, settings) as server:
        reply = server.post("/v1/ask", {"question": QUESTION, "pages": [PAGE]})
        assert reply.status_code == 200 and "1932" in reply.json()["text"]
        assert reply.json()["failures"] == {"generator": "the language model cannot be reached"}
        assert reply.json()["usage"]["prompt_tokens"] == 0


def test_what_a_service_of_the_operator_says_is_told_without_its_address() -> None:
    need("fastapi")
    from prunus.serve.mask import Mask

    mask = Mask(load_settings({"llm": "http://10.0.0.7:8999/v1#m"}), ["/srv/made"])
    for said, told in (
        ("m at 10.0.0.7:8999: http://10.0.0.7:8999/v1/x: cannot connect to port 8999 (refused)",
         "the language model cannot be reached"),
        ("m at 10.0.0.7:8999: HTTP 500: out of memory",
         "m at [a service or folder of this server]: HTTP 500: out of memory"),
        ("http://10.0.0.7:8999/x: the name does not resolve (unknown)", "a service of this server cannot be reached"),
        ("the limit is reached; raise --max-tokens, or lower the budget",
         "the limit is reached; raise max_tokens, or lower the budget"),
        ("http://a.org/: cannot connect to port 443 (refused)", "http://a.org/: cannot connect to port 443 (refused)"),
    ):  # fmt: skip
        assert mask.text(said) == told


def test_a_bug_is_a_500_with_an_id_and_its_text_is_in_no_log(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    words = "words of a page"

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError(words)

    monkeypatch.setattr("prunus.serve.routes._pruned", broken)
    reply = server.post("/v1/prune", {"pages": [PAGE], "question": QUESTION})
    assert reply.status_code == 500 and reply.json()["error"]["type"] == "bug" and reply.headers["x-request-id"]
    assert "ZeroDivisionError" in caplog.text and reply.headers["x-request-id"] in caplog.text
    assert words not in caplog.text + reply.text
