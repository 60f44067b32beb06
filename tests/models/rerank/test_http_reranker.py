"""The ``http`` reranker over real sockets: three APIs, and faults of a service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.models.embed.server import Answer, PlainDoor, Server, as_json, serve

from prunus.core.errors import BadInput, OutsideFailed
from prunus.models.rerank.http import Engine

pytestmark = pytest.mark.full

# from docs: https://docs.cohere.com/reference/rerank (v2)
COHERE = {
    "results": [
        {"index": 3, "relevance_score": 0.999071},
        {"index": 4, "relevance_score": 0.7867867},
        {"index": 0, "relevance_score": 0.32713068},
        {"index": 2, "relevance_score": 0.2},
        {"index": 1, "relevance_score": 0.1},
    ],
    "id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf",
    "meta": {"api_version": {"version": "2", "is_experimental": False}, "billed_units": {"search_units": 1}},
}
# from docs: https://api.jina.ai/redoc (POST /v1/rerank)
JINA = {
    "model": "jina-reranker-v2-base-multilingual",
    "object": "list",
    "usage": {"total_tokens": 815},
    "results": [
        {"index": 0, "relevance_score": 0.8783142566680908},
        {"index": 1, "relevance_score": 0.7624675869941711},
    ],
}
# from docs: https://huggingface.github.io/text-embeddings-inference (POST /rerank)
TEI = [{"index": 1, "score": 0.9976404}, {"index": 0, "score": 0.12527268}]


def overlap(path: str, body: Any) -> Answer:
    """Answer in the shape that the request has, best first, as services do: shared words."""
    texts = body.get("texts") or body["documents"]
    asked = set(body["query"].split())
    scores = [len(asked & set(text.split())) for text in texts]
    order = sorted(range(len(texts)), key=lambda place: -scores[place])
    if "texts" in body:
        return as_json([{"index": place, "score": scores[place] - 5.0} for place in order])
    return as_json({"results": [{"index": place, "relevance_score": scores[place] / 10} for place in order]})


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(overlap) as running:
        yield running


def engine(server: Server, path: str = "/v2/rerank#m", **more: Any) -> Engine:
    return Engine(server.url + path, door=PlainDoor(), **more)


def test_cohere_is_asked_in_its_shape(server: Server) -> None:
    found = engine(server, "/v2/rerank#rerank-v3.5", key="secret").rerank("the ferry", ["tax", "the ferry leaves"])
    assert found.tolist() == [0, 0.2]
    path, headers, body = server.asked[0]
    assert (path, headers["authorization"]) == ("/v2/rerank", "Bearer secret")
    assert body == {"model": "rerank-v3.5", "query": "the ferry", "documents": ["tax", "the ferry leaves"], "top_n": 2}


def test_jina_is_asked_in_its_shape(server: Server) -> None:
    asker = Engine(f"jina+{server.url}/v1/rerank#jina-reranker-v2", door=PlainDoor())
    assert asker.rerank("the ferry", ["tax", "the ferry leaves"]).tolist() == [0, 0.2]
    assert server.bodies[0]["return_documents"] is False


def test_tei_is_asked_in_its_shape(server: Server) -> None:
    assert engine(server, "/rerank").rerank("the ferry", ["tax", "the ferry leaves"]).tolist() == [-5, -3]
    assert server.bodies[0] == {
        "query": "the ferry", "texts": ["tax", "the ferry leaves"], "raw_scores": True, "truncate": True
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("https://api.cohere.com/v2/rerank#m", "cohere"),
        ("https://api.jina.ai/v1/rerank#m", "jina"),
        ("https://api.jina.ai/v1#m", "jina"),
        ("https://notjina.ai/v1#m", "cohere"),
        ("http://localhost:8080", "tei"),
        ("http://localhost:8080/rerank", "tei"),
        ("cohere+http://localhost:8080/rerank#m", "cohere"),
    ],
)
def test_the_address_says_the_shape(url: str, shape: str) -> None:
    assert Engine(url)._shape == shape


@pytest.mark.parametrize(
    ("spec", "answer", "wanted"),
    [
        ("/v2/rerank#m", COHERE, [0.32713068, 0.1, 0.2, 0.999071, 0.7867867]),
        ("/v1/rerank#m", JINA, [0.8783142566680908, 0.7624675869941711]),
        ("/rerank", TEI, [0.12527268, 0.9976404]),
    ],
)
def test_documented_answers_are_read(server: Server, spec: str, answer: Any, wanted: list[float]) -> None:
    server.first = [as_json(answer)]
    assert engine(server, spec).rerank("x", ["y"] * len(wanted)).tolist() == wanted


def test_texts_are_sent_in_batches_and_none_is_empty(server: Server) -> None:
    texts = ["the ferry", "", "long " * 9000, "\ud800", *(["tax"] * 70)]
    found = engine(server).rerank("the ferry", texts)
    assert found.argmax() == 0
    assert [len(body["documents"]) for body in server.bodies] == [32, 32, 10]
    assert server.bodies[0]["documents"][1] == "."
    assert max(len(text) for text in server.bodies[0]["documents"]) <= 8000


def test_nothing_is_asked_for_nothing(server: Server) -> None:
    assert engine(server).rerank("x", []).shape == (0,)
    assert server.asked == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"results": []}, "0 scores came back for 2 texts"),
        ({"results": [{"index": 0, "relevance_score": 1}] * 2}, "2 scores came back for 2 texts"),
        (
            {"results": [{"index": 0, "relevance_score": 1}, {"index": 7, "relevance_score": 1}]},
            "came back for 2 texts",
        ),
        (
            {"results": [{"index": 0, "relevance_score": 1}, {"index": 1, "relevance_score": float("nan")}]},
            "not finite",
        ),
        ({"results": [{"index": "one", "relevance_score": 1}]}, "not in the shape of cohere"),
        ([], "not in the shape of cohere"),
        (None, "not in the shape of cohere"),
    ],
)
def test_an_odd_answer_is_one_line(server: Server, answer: Any, said: str) -> None:
    server.first = [as_json(answer)]
    with pytest.raises(OutsideFailed, match=said) as caught:
        engine(server).rerank("x", ["y", "z"])
    assert "\n" not in str(caught.value)


def test_a_wrong_key_is_said_and_never_shown(server: Server) -> None:
    server.first = [as_json({"message": "invalid api token: secret"}, 401)]
    with pytest.raises(BadInput, match="refuses the key") as caught:
        engine(server, key="secret").rerank("x", ["y"])
    assert "secret" not in str(caught.value)


def test_without_a_door_nothing_is_sent() -> None:
    with pytest.raises(BadInput, match="egress door"):
        Engine("https://host/v2/rerank#m").rerank("x", ["y"])


def test_scores_come_in_the_order_of_the_texts(server: Server) -> None:
    texts = ["noon", "the ferry leaves", "ferry"]
    assert np.argsort(-engine(server).rerank("the ferry leaves", texts)).tolist() == [1, 2, 0]
