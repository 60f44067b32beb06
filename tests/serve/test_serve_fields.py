"""`response_format: json_schema` in both APIs of OpenAI, with the official client, and `prunus ask --schema`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Cli, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.extras import need
from tests.serve.running import BRIDGE, Running, model, running

pytestmark = pytest.mark.full

SCHEMA = {"type": "object", "properties": {
    "opened": {"type": "integer", "description": "Year in which the bridge opened"},
    "lorry_toll": {"type": "number", "description": "Toll of a lorry"},
    "architect": {"type": ["string", "null"]},
}}  # fmt: skip
PAGE = {"html": BRIDGE, "url": "https://example.org/bridge"}
CHAT: Any = {
    "model": "prunus",
    "messages": [{"role": "user", "content": "The bridge"}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "bridge", "strict": True, "schema": SCHEMA}},
    "extra_body": {"pages": [PAGE]},
}
FOUND = {"opened": 1932, "lorry_toll": 9, "architect": None}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    need("jsonschema")
    with running(tmp_path_factory.mktemp("fields")) as found:
        yield found


@pytest.fixture
def client(server: Running) -> Any:
    return need("openai").OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_a_chat_is_json_with_a_citation_for_each_field(client: Any) -> None:
    reply = client.chat.completions.create(**CHAT)
    message = reply.choices[0].message
    assert json.loads(message.content) == FOUND
    cited = {note.url_citation.field: note.url_citation for note in message.annotations}
    assert set(cited) == {"opened", "lorry_toll"} and cited["opened"].found
    assert cited["opened"].quote == "The bridge opened in 1932." and cited["opened"].url == PAGE["url"]
    assert [field["path"] for field in reply.prunus["fields"] if field["reason"]] == ["architect"]


def test_a_stream_gives_the_same_json(client: Any) -> None:
    pieces = [chunk for chunk in client.chat.completions.create(**CHAT, stream=True) if chunk.choices]
    assert json.loads("".join(chunk.choices[0].delta.content or "" for chunk in pieces)) == FOUND


def test_the_responses_api_does_the_same(client: Any) -> None:
    format = {"type": "json_schema", "name": "bridge", "schema": SCHEMA}
    asked = {"model": "prunus", "input": "The bridge", "text": {"format": format}, "extra_body": {"pages": [PAGE]}}
    assert json.loads(client.responses.create(**asked).output_text) == FOUND


@pytest.mark.parametrize(
    ("format", "word"),
    [
        ({"type": "json_object"}, "text or json_schema"),
        ({"type": "json_schema"}, "needs a schema"),
        ({"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}, "no properties"),
        ({"type": "json_schema", "json_schema": {"schema": {"$ref": "http://127.0.0.1/x"}}}, "nothing is fetched"),
    ],
)
def test_a_format_that_cannot_be_written_is_refused(client: Any, format: Any, word: str) -> None:
    with pytest.raises(need("openai").BadRequestError, match=word):
        client.chat.completions.create(**{**CHAT, "response_format": format})


def test_a_model_that_never_fits_the_schema_is_an_error(tmp_path: Path) -> None:
    with running(tmp_path, {"llm": model(tmp_path, '{"opened": "long ago"}')}) as found:
        client = need("openai").OpenAI(base_url=f"{found.url}/v1", api_key="none", max_retries=0)
        with pytest.raises(need("openai").InternalServerError, match="does not fit the schema"):
            client.chat.completions.create(**CHAT)


def test_the_command_writes_json_and_the_words_of_each_field(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    need("jsonschema")
    page, file = tmp_path / "bridge.html", tmp_path / "schema.json"
    page.write_text(BRIDGE, "utf-8")
    file.write_text(json.dumps(SCHEMA), "utf-8")
    result = cli("ask", "--schema", str(file), str(page))
    assert result.exit_code == 0 and json.loads(result.stdout) == FOUND
    assert "opened: " in result.stderr and "“The bridge opened in 1932.”" in result.stderr
    assert "architect: nothing" in result.stderr
    whole = json.loads(cli("ask", "The bridge", str(page), "--schema", str(file), "--json").stdout)
    assert whole["data"] == FOUND and whole["fields"][0]["citation"]["found"]


def test_the_command_tells_what_it_cannot_do(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    need("jsonschema")
    page, file = tmp_path / "bridge.html", tmp_path / "schema.json"
    page.write_text(BRIDGE, "utf-8")
    for text, flags, word in (
        ("{", [], "no JSON schema"),
        ('{"properties": {}}', [], "no properties"),
        (json.dumps(SCHEMA), ["--chat"], "leave out --chat"),
    ):
        file.write_text(text, "utf-8")
        result = cli("ask", "--schema", str(file), str(page), *flags)
        assert result.exit_code == 2 and word in only_line(result)
    file.write_text('{"properties": {"voltage": {"type": "number"}}}', "utf-8")
    result = cli("ask", "--schema", str(file), str(page), "--quiet")
    assert result.exit_code == 4 and json.loads(result.stdout) == {"voltage": None} and "nothing on" in result.stderr
