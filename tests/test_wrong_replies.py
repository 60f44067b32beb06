"""Every engine that reads a server's JSON: a reply of any other shape is one line of PrunusError, never another error."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.web.search.server import documented
from tests.web.search.test_providers import NAMES

import prunus
from prunus.core.errors import PrunusError
from prunus.core.registry import make_engine
from prunus.core.types import Message, SearchRequest
from prunus.evidence.score._trie import grow

httpx = need("httpx")

WRONG: list[Any] = [
    None, True, 0, -1, 2.5, 10**30, 10**400, 1e308, float("nan"), float("-inf"), "", "text", "7", "²", "\ud800",
    [], {}, [None], [[]], [[[1.0]]], {"x": 1}, ["text"], [{}], [1, 2, 3], {"error": 1}, {"error": {"message": [1]}},
]  # fmt: skip
"""What stands in the place of a value."""

RAW = [
    b"", b" ", b"null", b"[" * 100_000, b'{"a":' * 50_000, b"1" * 5000, b'{"data": [' + b"1" * 5000 + b"]}",
    b"\xff\xfe", b"NaN", b'"text"', b"<html>", b"{", b"data: {}\n\n", b"data: null\n\n", b"data: [1]\n\ndata: [DONE]\n\n",
]  # fmt: skip
"""What comes in the place of the whole reply."""


def mutated(reply: Any) -> Iterator[Any]:
    """Yield the reply with each wrong value in each place, without each part, and with each part doubled."""
    for path in places(reply):
        for wrong in WRONG:
            yield changed(reply, path, lambda parent, key, wrong=wrong: parent.__setitem__(key, wrong))
        if path:
            yield changed(reply, path, lambda parent, key: parent.__delitem__(key))
            yield changed(reply, path, lambda parent, key: isinstance(parent, list) and parent.append(parent[key]))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every place of a tree; of a long list, to the first and the last items."""
    yield path
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys if len(keys) < 10 else [*keys[:2], keys[-1]]:
        yield from places(value[key], (*path, key))


def changed(reply: Any, path: tuple[Any, ...], change: Callable[[Any, Any], object]) -> Any:
    """Return a copy with one change; the root is changed as the only item of a list."""
    whole = [deepcopy(reply)]
    parent: Any = whole
    for key in (0, *path)[:-1]:
        parent = parent[key]
    change(parent, (0, *path)[-1])
    return whole[0]


class Door:
    """A door to a server that gives prepared replies by path; '' is every other path."""

    def __init__(self, replies: dict[str, bytes], status: int = 200) -> None:
        self.replies, self.status = replies, status

    def _transport(self) -> Any:
        def answer(request: Any) -> Any:
            found = next(
                (body for path, body in self.replies.items() if path and request.url.path.endswith(path)), None
            )
            body = self.replies.get("", b"") if found is None else found
            return httpx.Response(self.status, stream=httpx.ByteStream(body))

        return httpx.MockTransport(answer)

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        return httpx.Client(transport=self._transport())

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> Any:
        return httpx.AsyncClient(transport=self._transport())


@dataclass(frozen=True)
class Asked:
    """An engine and its right replies.

    :param replies: by path.
    :param ask: calls the engine, and checks what it returns.
    :param events: the replies are lists of server-sent events.
    """

    replies: dict[str, Any]
    ask: Callable[[Any], object]
    events: bool = False


def embedded(spec: str) -> Callable[[Any], object]:
    def ask(door: Any) -> None:
        vectors = make_engine("embedder", spec, door=door).embed(["a", "b"])
        assert vectors.shape[0] == 2 and np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)

    return ask


def reranked(spec: str) -> Callable[[Any], object]:
    def ask(door: Any) -> None:
        scores = make_engine("reranker", spec, door=door).rerank("q", ["a", "b"])
        assert scores.shape == (2,) and np.isfinite(scores).all()

    return ask


def scored(spec: str) -> Callable[[Any], object]:
    def ask(door: Any) -> None:
        engine = make_engine("path_scorer", spec, door=door, options={"at_once": 1})
        if spec.startswith("sglang"):
            engine._prompt = lambda messages: [1, 2, 3]  # its tokenizer is read on this machine
        else:
            assert all(type(token) is int for token in engine.encode(["text"])[0])
        found = engine.branches([Message("user", "Which?")], grow([[5], [4]])[0])
        assert all(np.isfinite(logits).all() for logits in found.logits)

    return ask


def searched(name: str) -> Callable[[Any], object]:
    def ask(door: Any) -> None:
        others = {"door": door, "endpoint": "https://s.example", "key": "key"}
        engine = make_engine("search", "google:cx" if name == "google" else name, **others)
        found = asyncio.run(engine.search(SearchRequest("tide gauge", want_text=True)))
        for hit in found.hits:
            fields = (hit.url, hit.title, hit.snippet, hit.text, hit.published)
            assert all(isinstance(field, str) for field in fields) and hit.url.startswith("http")
            "".join(fields).encode()
        assert isinstance(found.usd, float) and 0 <= found.usd < float("inf")

    return ask


def generated(door: Any) -> None:
    engine = make_engine("llm", "openai:m", door=door, endpoint="https://m.example/v1", options={"retries": 0})

    async def run() -> None:
        text = ""
        async for event in engine.stream([Message("user", "hi")], max_tokens=50):
            text += getattr(event, "text", "")
        text.encode()

    asyncio.run(run())


def window(door: Any) -> None:
    engine = make_engine("llm", "openai:m", door=door, endpoint="https://m.example/v1")
    assert 0 <= asyncio.run(engine.ask_window()) < 2**53


CHOICE = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}
CHUNKS = [
    {"choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": USAGE},
]
TOP = {"token_id:5": -0.5, "token_id:4": -1.0}
VLLM = {
    "choices": [{"logprobs": {"top_logprobs": [TOP]}}],
    "usage": {"prompt_tokens_details": {"cached_tokens": 2}},
}
LISTED = [{"id": 5, "logprob": -0.5}, {"id": 4, "logprob": -1.0}]
RANKED = {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}

ENGINES: dict[str, Asked] = {
    "embedder openai": Asked(
        {"": {"data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [0.5, 1.0]}]}},
        embedded("http:https://m.example/v1#m"),
    ),
    "embedder tei": Asked({"": [[1.0, 2.0], [0.5, 1.0]]}, embedded("http:tei+https://m.example")),
    "reranker cohere": Asked({"": RANKED}, reranked("http:https://m.example/v2#m")),
    "reranker jina": Asked({"": RANKED}, reranked("http:jina+https://m.example/v2#m")),
    "reranker tei": Asked(
        {"": [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1}]}, reranked("http:tei+https://m.example")
    ),
    "path_scorer vllm": Asked(
        {"/tokenize": {"tokens": [1, 2], "max_model_len": 4096}, "": VLLM}, scored("vllm:https://m.example/v1#m")
    ),
    "path_scorer sglang": Asked(
        {"": {"meta_info": {"cached_tokens": 2, "output_token_ids_logprobs": [[[-0.5, 5, None], [-1.0, 4, None]]]}}},
        scored("sglang:https://m.example"),
    ),
    "path_scorer llamacpp": Asked(
        {
            "/tokenize": {"tokens": [1, 2]},
            "/apply-template": {"prompt": "<user>Which?"},
            "": {"completion_probabilities": [{"top_logprobs": LISTED}], "timings": {"cache_n": 2}},
        },
        scored("llamacpp:https://m.example"),
    ),
    "llm openai": Asked({"": {"choices": [CHOICE], "usage": USAGE}}, generated),
    "llm openai in pieces": Asked({"": CHUNKS}, generated, events=True),
    "llm openai, its window": Asked({"": {"data": [{"id": "m", "max_model_len": 4096, "meta": {"n_ctx": 1}}]}}, window),
    **{f"search {name}": Asked({"": documented(name)["reply"]}, searched(name)) for name in NAMES},
}


def sent(reply: Any, events: bool) -> bytes:
    if not events:
        return json.dumps(reply).encode()
    parts = reply if isinstance(reply, list) else [reply]
    return b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts) + b"data: [DONE]\n\n"


def test_every_engine_that_reads_json_from_a_server_is_here() -> None:
    """A new one appears where the client for JSON is imported."""
    root = Path(prunus.__file__).parent
    reading = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"json_client import|from \.*_(wire|server) import", path.read_text("utf-8"))
    }
    engines = {f"web/search/{name}.py" for name in NAMES} | {
        "models/embed/http.py", "models/rerank/http.py", "models/llm/openai.py", "evidence/score/paths/vllm.py",
        "evidence/score/paths/sglang.py", "evidence/score/paths/llamacpp.py",
    }  # fmt: skip
    shared = {
        "web/search/_wire.py", "evidence/score/paths/_server.py", "web/search/_merge.py",
        "cli/local_models.py",  # tests/cli/test_cli_doctor.py
    }  # fmt: skip
    assert reading - shared - {"web/search/local.py"} == engines


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_a_reply_of_any_wrong_shape_is_one_line(name: str) -> None:
    asked = ENGINES[name]
    right = {path: sent(reply, asked.events) for path, reply in asked.replies.items()}
    asked.ask(Door(right))  # the right replies are read
    read, lines, faults = 0, [], set()
    for path, reply in asked.replies.items():
        for body in [*(sent(wrong, asked.events) for wrong in mutated(reply)), *RAW]:
            try:
                asked.ask(Door({**right, path: body}))
                read += 1
            except PrunusError as error:
                lines.append(str(error))
            except Exception as error:
                faults.add(f"{type(error).__name__}: {error} for {body[:200]!r}")
    assert not faults, "\n".join(sorted(faults)[:10])
    assert read  # much is allowed to vary
    assert all("\n" not in line and len(line) < 1000 for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_an_error_of_any_wrong_shape_is_one_line(name: str) -> None:
    asked = ENGINES[name]
    bodies = [
        sent(wrong, False) for wrong in mutated({"error": {"message": "no", "code": 3}, "detail": [{"msg": "no"}]})
    ]
    for status in (400, 401, 404, 413, 422):
        for body in [*bodies[:: 1 if status == 400 else 7], *RAW]:
            with pytest.raises(PrunusError) as caught:
                asked.ask(Door(dict.fromkeys(asked.replies, body), status))
            assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
