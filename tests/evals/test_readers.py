"""Readers: how large a model is said to be, and when its stored replies are used again."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import prunus
from prunus.core.registry import make_engine
from prunus_evals import readers, systems
from prunus_evals.errors import ReaderFailed
from prunus_evals.records import Question, one_page
from prunus_evals.store import Store
from prunus_evals.tokens import TokenizerCounter

QUESTION = Question("q", "nq", "page", one_page("<p>Ann."), "Who?")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openai:Qwen2.5-7B-Instruct", ""),
        ("openai:qwen2.5-7b-1m", ""),
        ("openai:qwen-1m", "size unknown"),
        ("openai:Mixtral-8x7B", ""),
        ("openai:SmolLM2-135M-Instruct", "tiny"),
        ("openai:smollm2:135m", "tiny"),
        ("openai:qwen2.5-0.5b", "tiny"),
        ("openai:model-7b-q4_k_m", ""),
        ("openai:gpt-4o-mini", "size unknown"),
        ("openai:tiny-4bit", "size unknown"),
        ("scripted:a 7b model", "scripted"),
        ("", ""),
    ],
)
def test_the_size_of_a_model_is_read_from_its_name_or_said_to_be_unknown(spec: str, said: str) -> None:
    assert readers.caveat(spec) == said
    assert not said or said in readers.CAVEATS


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A folder with the weights of a model of 12 parameters."""
    folder = tmp_path / "llama-70b"
    folder.mkdir()
    save_file({"a": np.zeros((2, 3), np.float32), "b": np.zeros(6, np.float32)}, folder / "model.safetensors")
    return folder


def test_weights_on_this_machine_are_counted_whatever_their_name_says(weights: Path) -> None:
    assert readers.size(f"transformers:{weights}") == 12
    assert readers.caveat(f"transformers:{weights}") == "tiny"
    (weights / "model.safetensors").write_bytes(b"broken")
    readers._weights.cache_clear()
    assert readers.size(f"transformers:{weights}") == 70_000_000_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, object]]]:
    """A server with a list of models, as llama.cpp's; what it says of its model can be changed."""
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
    meta: dict[str, object] = {"n_params": 134_515_008}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            models = [{"id": "/models/a.gguf", "created": 1, "meta": meta}]
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"data": models}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/v1", meta
        served.shutdown()
        thread.join()


def test_a_server_says_how_large_its_model_is(server: tuple[str, dict[str, object]]) -> None:
    address, meta = server
    assert readers.caveat(f"{address}#qwen-7b") == "tiny"
    for wrong in ("many", None, -1, True):
        meta["n_params"] = wrong
        readers._listed.cache_clear()
        assert readers.caveat(f"{address}#qwen-7b") == ""
    assert readers.caveat("http://127.0.0.1:9/v1#x") == "size unknown"


def test_a_reply_is_used_again_only_for_the_same_model(
    server: tuple[str, dict[str, object]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address, meta = server
    store = Store(tmp_path)

    def ask(spec: str = f"{address}#x") -> int:
        """Return how often the model was asked."""
        readers._listed.cache_clear()
        llm = make_engine("llm", "scripted:Ann")
        readers.read(readers.ModelReader(spec, llm), QUESTION, "Ann.", store)
        return len(llm.calls)

    assert [ask(), ask()] == [1, 0]
    meta["n_params"] = 7_000_000_000
    assert [ask(), ask()] == [1, 0]
    monkeypatch.setitem(readers.MAX_TOKENS, "short", 65)
    assert [ask(), ask()] == [1, 0]
    monkeypatch.setattr(readers, "served", lambda spec: None)  # as if the server were gone
    assert ask() == 0
    assert [ask("http://localhost:1/v1#x"), ask("http://localhost:1/v1#x")] == [1, 0]


def test_changed_weights_are_another_model(weights: Path) -> None:
    store, spec = Store(None), f"transformers:{weights}"
    before = readers.identity(spec, store)
    assert readers.identity(spec, store) == before
    save_file({"a": np.zeros(99, np.float32)}, weights / "model.safetensors")
    assert readers.identity(spec, store) != before


@pytest.mark.parametrize(
    "name",
    [
        "prunus:tags@llm=scripted:None",
        "prunus:ask@llm=scripted:None",
        "tree:ward@llm=scripted:A summary.",
        "tags:scripted:None",
        "readerlm:scripted:A page",
    ],
)
def test_a_scripted_model_inside_a_system_is_told(name: str, counter: TokenizerCounter) -> None:
    assert getattr(systems.make(name, counter), "caveat", "") == "scripted"


def test_a_tiny_model_inside_a_system_is_told(
    weights: Path, counter: TokenizerCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "missing", lambda name: "")
    for name in (
        f"prunus:bm25>generative:{weights}:html",
        f"prunus:generative:transformers:{weights}:html",
        f"longllmlingua:{weights}",
    ):
        assert getattr(systems.make(name, counter), "caveat", "") == "tiny", name
    for name in ("prunus:hybrid:html", "prunus:ask", "prunus:sentences", "tree:ward"):
        assert getattr(systems.make(name, counter), "caveat", "") == "", name


@pytest.mark.parametrize(("options", "tries"), [({}, 2), ({"retries": 0}, 1)])
def test_a_silent_server_is_asked_twice_and_the_error_tells_seconds_tries_and_the_way_out(
    options: dict[str, float], tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
    settings = replace(prunus.load_settings(), llm_options={"first": 0.2, "backoff": 0.01, **options})
    monkeypatch.setattr(readers, "load_settings", lambda: settings)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        spec = f"http://127.0.0.1:{silent.getsockname()[1]}/v1#m"
        reader = readers.make(spec)
        assert reader is not None
        with pytest.raises(ReaderFailed) as raised:
            reader.read(QUESTION, "Ann.")
        silent.setblocking(False)
        asked = 0
        with suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                asked += 1
    said = str(raised.value)
    assert asked == tries
    assert re.search(f"waited for [0-9]+ s, {tries} {'try' if tries == 1 else 'tries'} at most; see whether", said)
    assert "--budgets" in said and "llm_options in prunus.toml" in said
