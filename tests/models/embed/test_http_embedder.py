"""The ``http`` embedder over real sockets: both APIs, retries, limits, and faults of a service."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest
from tests.models.embed.server import PlainDoor, Server, as_json, embeddings, letters, serve

import prunus.web.json_client
from prunus.core.errors import BadInput, OutsideFailed
from prunus.models.embed.http import Engine
from prunus.web.door.egress import FetchFailed
from prunus.web.json_client import Service, endpoint

pytestmark = pytest.mark.full

# from docs: https://platform.openai.com/docs/api-reference/embeddings/create (vector shortened to three numbers)
OPENAI = {
    "object": "list",
    "data": [{"object": "embedding", "embedding": [0.0023064255, -0.009327292, -0.0028842222], "index": 0}],
    "model": "text-embedding-ada-002",
    "usage": {"prompt_tokens": 8, "total_tokens": 8},
}
# from docs: https://huggingface.github.io/text-embeddings-inference (POST /embed; vectors shortened)
TEI = [[0.038483415, -0.00076982786, -0.020039458], [0.04496114, -0.039057795, -0.022400795]]
# from docs: the same, error 413
TEI_TOO_LARGE = {"error": "Batch size error", "error_type": "validation"}
# from docs: https://platform.openai.com/docs/guides/error-codes (shape of an error)
OPENAI_ERROR = {
    "error": {
        "message": "Incorrect API key provided: sk-secret.",
        "type": "invalid_request_error",
        "code": "invalid_api_key",
    }
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(embeddings) as running:
        yield running


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits; what would have been waited stands here."""
    found: list[float] = []
    made = prunus.web.json_client.Service

    def service(*given: Any) -> Service:
        return made(*given, sleep=found.append, now=lambda: 1_000_000.0)

    monkeypatch.setattr("prunus.models.embed.http.Service", service)
    return found


def engine(server: Server, path: str = "/v1#m", **more: Any) -> Engine:
    return Engine(server.url + path, door=PlainDoor(), **more)


def unit(*texts: str) -> np.ndarray:
    found = np.asarray([letters(text) for text in texts])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


# --- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("/v1#m", "/v1/embeddings"),
        ("/v1/embeddings#m", "/v1/embeddings"),
        ("#m", "/embeddings"),
        ("/embed", "/embed"),
        ("/models/e5/embed", "/models/e5/embed"),
    ],
)
def test_the_address_says_what_is_asked(server: Server, spec: str, path: str) -> None:
    assert np.allclose(engine(server, spec).embed(["ferry", "tide tables"]), unit("ferry", "tide tables"), atol=1e-6)
    assert server.asked[0][0] == path


def test_openai_is_asked_in_its_shape(server: Server) -> None:
    engine(server, "/v1#text-embedding-3-small", key="sk-secret").embed(["ferry"])
    _, headers, body = server.asked[0]
    assert body == {"input": ["ferry"], "encoding_format": "float", "model": "text-embedding-3-small"}
    assert headers["authorization"] == "Bearer sk-secret"


def test_tei_is_asked_in_its_shape(server: Server) -> None:
    Engine(f"tei+{server.url}", door=PlainDoor()).embed(["ferry"])
    path, headers, body = server.asked[0]
    assert (path, body) == ("/embed", {"inputs": ["ferry"], "normalize": True, "truncate": True})
    assert "authorization" not in headers


def test_documented_answers_are_read(server: Server) -> None:
    server.first = [as_json(OPENAI), as_json(TEI)]
    (found,) = engine(server).embed(["x"])
    wanted = np.asarray(OPENAI["data"][0]["embedding"])
    assert np.allclose(found, wanted / np.linalg.norm(wanted), atol=1e-6)
    assert engine(server, "/embed").embed(["x", "y"]).shape == (2, 3)


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("multilingual-e5-small", "query: x", "passage: x"),
        ("intfloat/multilingual-e5-large-instruct-q8_0", None, "x"),  # an instruction before queries only
        ("nomic-embed-text-v1.5.Q8_0.gguf", "search_query: x", "search_document: x"),
        ("bge-m3:latest", "x", "x"),
        ("embedder?preset=e5-base-v2", "query: x", "passage: x"),  # a server's own name for it
        ("multilingual-e5-small-korean", "x", "x"),  # another model
    ],
)
def test_queries_and_documents_get_what_the_model_wants(
    server: Server, model: str, query: str | None, document: str
) -> None:
    made = engine(server, f"/v1#{model}")
    made.embed(["x"], "query")
    made.embed(["x"])
    (asked,), (said,) = (body["input"] for body in server.bodies)
    assert asked == query if query is not None else asked.startswith("Instruct: ")
    assert said == document
    assert server.bodies[0]["model"] == model.partition("?")[0]
    assert all("input_type" not in body for body in server.bodies)


@pytest.mark.parametrize(
    "path", ["/v1#multilingual-e5-small?input_type=query,passage", "/embed#?input_type=query,passage"]
)
def test_a_service_that_writes_prefixes_itself_is_told_what_a_text_is(server: Server, path: str) -> None:
    made = engine(server, path)
    made.embed(["x"], "query")
    made.embed(["x"])
    assert [body["input_type"] for body in server.bodies] == ["query", "passage"]
    assert [body.get("input", body.get("inputs")) for body in server.bodies] == [["x"], ["x"]]
    assert made.identity != engine(server, path.partition("?")[0]).identity


def test_a_known_host_is_told_what_a_text_is() -> None:
    voyage = Engine("https://api.voyageai.com/v1#voyage-3", door=PlainDoor())
    assert [voyage._body(["x"], kind)["input_type"] for kind in ("query", "document")] == ["query", "document"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("m?input_type=query", "give the value for queries and the one for documents"),
        ("m?input_type=query,", "give the value for queries and the one for documents"),
        ("m?pooling=cls", "there are preset= and input_type="),
        ("m?", "there are preset= and input_type="),
        ("m?preset=e6", "no preset is called 'e6'"),
    ],
)
def test_options_that_there_are_none_of_are_refused(model: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Engine(f"https://host/v1#{model}")


def test_a_preset_of_the_models_name_writes_its_prefix(server: Server) -> None:
    asker = engine(server, "/v1#intfloat/e5-mistral-7b-instruct")
    asker.embed(["when?"], "query")
    asker.embed(["noon"], "document")
    assert server.bodies[0]["input"][0].startswith("Instruct: Given a web search query")
    assert server.bodies[0]["input"][0].endswith("\nQuery: when?")
    assert server.bodies[1]["input"] == ["noon"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("https://host/v1#m", ("", "https://host/v1", "m")),
        ("//host:8080/v1#org/m", ("", "http://host:8080/v1", "org/m")),
        ("tei+http://host", ("tei", "http://host", "")),
        ("https://host/a+b#m", ("", "https://host/a+b", "m")),
    ],
)
def test_a_spec_holds_shape_address_and_model(given: str, found: tuple[str, str, str]) -> None:
    assert endpoint(given, ("openai", "tei"), "http") == found


@pytest.mark.parametrize(
    "given", ["", "#m", "host/v1", "ftp://host", "https://", "http://[", "https://u:secret@host/v1"]
)
def test_what_is_no_address_is_one_line(given: str) -> None:
    with pytest.raises(BadInput) as caught:
        Engine(given)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


# --- batches -------------------------------------------------------------------------------------


def test_batches_are_bounded_by_number_and_by_length(server: Server) -> None:
    texts = [f"text {number}" for number in range(70)] + ["long " * 5000] * 3
    found = engine(server).embed(texts)
    sizes = [len(body["input"]) for body in server.bodies]
    assert sum(sizes) == 73
    assert max(sizes) <= 32
    assert all(sum(map(len, body["input"])) <= 50_000 for body in server.bodies)
    assert np.allclose(found[[0, 69]], unit(texts[0], texts[69]), atol=1e-6)


def test_a_batch_that_is_too_large_is_halved(server: Server) -> None:
    server.usual = lambda path, body: as_json(TEI_TOO_LARGE, 413) if len(body["inputs"]) > 3 else embeddings(path, body)
    texts = [f"text {number}" for number in range(10)]
    assert np.allclose(engine(server, "/embed").embed(texts), unit(*texts), atol=1e-6)


def test_a_text_that_is_too_long_is_cut_until_it_fits(server: Server) -> None:
    server.usual = lambda path, body: (
        as_json({"error": {"message": "maximum context length"}}, 400)
        if any(len(text) > 3000 for text in body["input"])
        else embeddings(path, body)
    )
    found = engine(server).embed(["short", "tide " * 2000])
    assert np.allclose(found, unit("short", "tide " * 500), atol=1e-2)


def test_texts_of_white_space_are_sent_as_a_full_stop(server: Server) -> None:
    found = engine(server).embed(["", "  \n", "x"])
    assert server.bodies[0]["input"] == [".", ".", "x"]
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


def test_nothing_is_asked_for_nothing(server: Server) -> None:
    assert engine(server, dimension=8).embed([]).shape == (0, 8)
    assert server.asked == []


# --- a service that fails ------------------------------------------------------------------------


def test_a_busy_service_is_asked_again_when_it_says(server: Server, pauses: list[float]) -> None:
    date = formatdate(1_000_030.0, usegmt=True)
    server.first = [as_json({}, 429, retry_after="7"), as_json({}, 503, retry_after=date), as_json({}, 500)]
    assert np.allclose(engine(server).embed(["ferry"]), unit("ferry"), atol=1e-6)
    assert pauses == [7.0, 30.0, 2.0]


def test_a_service_that_stays_broken_is_given_up(server: Server, pauses: list[float]) -> None:
    server.first = [as_json({"error": "overloaded"}, 503)] * 9
    with pytest.raises(OutsideFailed, match=r"503: overloaded") as caught:
        engine(server).embed(["ferry"])
    assert pauses == [0.5, 1.0, 2.0]
    assert caught.value.exit_code == 3


def test_a_service_that_wants_an_hour_is_not_waited_for(server: Server, pauses: list[float]) -> None:
    server.first = [as_json({}, 429, retry_after="3600")]
    with pytest.raises(OutsideFailed, match="asks to wait 3600 s"):
        engine(server).embed(["ferry"])
    assert pauses == []


@pytest.mark.parametrize("failure", ["drop", "hang"])
def test_no_answer_is_tried_again_and_then_one_line(server: Server, pauses: list[float], failure: str) -> None:
    server.first = [failure]
    assert np.allclose(engine(server, seconds=0.3).embed(["ferry"]), unit("ferry"), atol=1e-6)
    server.first = [failure] * 9
    with pytest.raises(OutsideFailed) as caught:
        engine(server, seconds=0.3).embed(["ferry"])
    assert "\n" not in str(caught.value)
    assert len(server.asked) == 6


def test_an_answer_that_drips_ends_at_the_time_out(server: Server, pauses: list[float]) -> None:
    server.first = ["drip"]
    with pytest.raises(OutsideFailed, match=r"within 0\.3 s"):
        engine(server, seconds=0.3).embed(["ferry"])


def test_a_service_that_is_not_there_is_one_line(pauses: list[float]) -> None:
    with serve(embeddings) as gone:
        url = gone.url
    with pytest.raises(OutsideFailed) as caught:
        Engine(f"{url}/v1#m", door=PlainDoor()).embed(["x"])
    assert str(caught.value).startswith(url)
    assert len(pauses) == 3


@pytest.mark.parametrize(("kind", "tries"), [("connect", 4), ("timeout", 4), ("too-large", 1), ("tls", 1)])
def test_what_the_door_could_not_reach_is_tried_again_where_that_may_help(
    pauses: list[float], kind: str, tries: int
) -> None:
    asked: list[str] = []

    class Unreached(PlainDoor):
        def client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
            asked.append(endpoint)
            raise FetchFailed(endpoint, kind, "it did not work")

    with pytest.raises(OutsideFailed, match="it did not work"):
        Engine("http://host/v1#m", door=Unreached()).embed(["x"])
    assert len(asked) == tries


@pytest.mark.parametrize(("status", "said"), [(401, "refuses the key"), (403, "refuses the key")])
def test_a_wrong_key_is_said_and_never_shown(
    server: Server, status: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.first = [as_json(OPENAI_ERROR, status)]
    asker = engine(server, key="sk-secret")
    with pytest.raises(BadInput, match=said) as caught:
        asker.embed(["x"])
    shown = f"{caught.value} {caplog.text} {asker.identity} {asker._service()!r}"
    assert "sk-secret" not in shown
    assert "[key]" in str(caught.value)


def test_a_missing_key_is_said(server: Server) -> None:
    server.first = [as_json({"detail": "Unauthorized"}, 401)]
    with pytest.raises(BadInput, match=r"key \(HTTP 401\): Unauthorized"):
        engine(server).embed(["x"])


def test_an_unknown_model_is_asked_for_once(server: Server) -> None:
    server.first = [as_json({"error": {"message": "The model m does not exist"}}, 404)]
    with pytest.raises(OutsideFailed, match="HTTP 404: The model m does not exist"):
        engine(server).embed(["x"] * 8)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<html>busy</html>", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"data": 3}', "not in the shape of openai"),
        (b'{"data": [{"index": 0, "embedding": "x"}]}', "not in the shape"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "not in the shape"),
        (b'{"data": []}', "came back for 1 texts"),
        (b'{"data": [{"index": 0, "embedding": []}]}', "came back for 1 texts"),
        (b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "not finite"),
        (b'{"data": [{"index": 0, "embedding": [null, 1]}]}', "not finite"),
        (b'{"data": [{"index": 0, "embedding": [1e999, 1]}]}', "not finite"),
        (b"null", "not in the shape"),
    ],
)
def test_an_odd_answer_is_one_line(server: Server, content: bytes, said: str) -> None:
    server.first = [(200, {}, content)]
    with pytest.raises(OutsideFailed, match=said) as caught:
        engine(server).embed(["x"])
    assert "\n" not in str(caught.value)


def test_an_answer_without_end_is_cut_off(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prunus.web.json_client, "MAX_BYTES", 1 << 20)
    server.first = [(200, {}, b" " * (2 << 20))]
    with pytest.raises(OutsideFailed, match="over 1 MiB"):
        engine(server).embed(["x"])


def test_vectors_of_another_length_are_refused(server: Server) -> None:
    with pytest.raises(OutsideFailed, match="8 numbers, not 384"):
        engine(server, dimension=384).embed(["x"])
    asker = engine(server)
    asker.embed(["x"])
    server.first = [as_json({"data": [{"index": 0, "embedding": [1.0, 2.0]}]})]
    with pytest.raises(OutsideFailed, match="2 numbers, not 8; is it another model"):
        asker.embed(["x"])


def test_without_a_door_nothing_is_sent() -> None:
    with pytest.raises(BadInput, match="egress door"):
        Engine("https://host/v1#m").embed(["x"])
