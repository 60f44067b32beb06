"""One question over the same pages has one answer, whichever way it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import let_in, world
from tests.cli.command import Cli
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need
from tests.serve.running import BRIDGE, model, running
from tests.serve.tools_client import as_process, over_http

import prunus

pytestmark = pytest.mark.full

FERRY = "<title>The ferry</title><h1>Ferry</h1><p>The ferry ran from the quay before the bridge.</p><p>It was slow.</p>"
QUESTION = "When did the bridge open, and from where did the ferry run before?"
CITED = ("number", "url", "title", "quote", "found")

Same = tuple[str, list[dict[str, Any]]]


def test_every_way_to_ask_gives_the_same_answer(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    need("mcp")
    spec = model(tmp_path, "The bridge opened in 1932 [1]. The ferry ran from the quay [2]. It was painted green.")
    monkeypatch.setenv("PRUNUS_LLM", spec)
    monkeypatch.setenv("PRUNUS_EXTRACTOR", "sentences")
    with world() as web:
        let_in(monkeypatch, web)
        web.pages |= {"/bridge": BRIDGE, "/ferry": FERRY}
        urls = [f"{web.url}/bridge", f"{web.url}/ferry"]
        answer = prunus.ask(QUESTION, urls)
        expected = (
            answer.text,
            [
                {name: value for name, value in asdict(citation).items() if name in CITED}
                for citation in answer.citations
            ],
        )
        assert {row["url"] for row in expected[1]} == set(urls) and all(row["found"] for row in expected[1])
        assert "quay [2]" in expected[0] and list(answer.unsupported) == ["It was painted green."]

        by_command = json.loads(cli("ask", QUESTION, *urls, "--json").stdout.splitlines()[-1])
        assert _same(by_command["text"], by_command["citations"]) == expected
        with running(tmp_path) as server:
            pages = [{"url": url} for url in urls]
            by_http = server.post("/v1/ask", {"question": QUESTION, "pages": pages}).json()
            assert _same(by_http["text"], by_http["citations"]) == expected
            client = need("openai").OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
            message = client.chat.completions.create(
                model="prunus", messages=[{"role": "user", "content": QUESTION}], extra_body={"pages": pages}
            ).choices[0].message  # fmt: skip
            assert message.content == expected[0]
            noted = {(note.url_citation.url, note.url_citation.quote) for note in message.annotations}
            assert noted == {(row["url"], row["quote"]) for row in expected[1]}
            assert asyncio.run(_by_tool(lambda: over_http(server.url), urls)) == expected
        environment = {"llm": spec, "reranker": "none", "allow_hosts": "127.0.0.1", "ports": web.url.rpartition(":")[2]}
        assert asyncio.run(_by_tool(lambda: as_process(tmp_path, **environment), urls)) == expected


async def _by_tool(connect: Callable[[], Any], urls: Sequence[str]) -> Same:
    async with connect() as client:
        found = (await client.call_tool("ask", {"question": QUESTION, "pages": urls})).structured_content
        return _same(found["answer"], found["sources"])


def _same(text: str, citations: Sequence[dict[str, Any]]) -> Same:
    return text, [{name: row[name] for name in CITED} for row in citations]
