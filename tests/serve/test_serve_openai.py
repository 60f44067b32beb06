"""Prunus as a model: the official client of OpenAI's API, unchanged, plain, async and streaming."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.answer.world import World, let_in, world
from tests.clock import at_most
from tests.extras import need
from tests.serve.running import BRIDGE, QUESTION, Running, running

import prunus

pytestmark = pytest.mark.full

PAGE = {"html": BRIDGE, "url": "https://example.org/bridge"}
ASKED: Any = {"model": "prunus", "messages": [{"role": "user", "content": QUESTION}], "extra_body": {"pages": [PAGE]}}
TEXT = {"type": "text", "text": QUESTION}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("openai")
    prunus.Index.open(folder / "made").add({"bridge": BRIDGE})
    with running(folder, indexes={"town": str(folder / "made")}) as found:
        yield found


@pytest.fixture
def client(server: Running) -> Any:
    return need("openai").OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_the_models_are_listed(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["prunus", "prunus-index:town"]
    assert client.models.retrieve("prunus-index:town").owned_by == "prunus"
    with pytest.raises(need("openai").NotFoundError, match="town"):
        client.models.retrieve("prunus-index:twon")


def test_a_reply_cites_by_annotations_at_its_marks(client: Any) -> None:
    reply = client.chat.completions.create(**ASKED)
    message = reply.choices[0].message
    assert message.content == prunus.ask(QUESTION, BRIDGE).text and reply.choices[0].finish_reason == "stop"
    [note] = message.annotations
    place = note.url_citation
    assert message.content[place.start_index : place.end_index] == "[1]" and place.url == PAGE["url"]
    assert place.quote == "The bridge opened in 1932." and place.found is True
    assert reply.usage.total_tokens == reply.usage.prompt_tokens > 0  # the evidence: no model wrote


def test_a_stream_gives_the_same_reply_and_its_annotations(client: Any) -> None:
    whole = client.chat.completions.create(**ASKED).choices[0].message
    pieces = list(client.chat.completions.create(**ASKED, stream=True, stream_options={"include_usage": True}))
    deltas = [choice.delta for piece in pieces for choice in piece.choices]
    assert deltas[0].role == "assistant" and "".join(delta.content or "" for delta in deltas) == whole.content
    [notes] = [delta.annotations for delta in deltas if getattr(delta, "annotations", None)]
    assert notes[0]["url_citation"]["quote"] == "The bridge opened in 1932."
    assert pieces[-1].usage is not None and pieces[-1].choices == []
    assert [choice.finish_reason for piece in pieces for choice in piece.choices][-1] == "stop"


def test_the_async_client_works_too(server: Running) -> None:
    async def both() -> tuple[str, str]:
        async with need("openai").AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            whole = await client.chat.completions.create(**ASKED)
            pieces = [piece async for piece in await client.chat.completions.create(**ASKED, stream=True)]
        streamed = "".join(choice.delta.content or "" for piece in pieces for choice in piece.choices)
        return whole.choices[0].message.content, streamed

    whole, streamed = asyncio.run(both())
    assert whole == streamed and "1932" in whole


def test_an_index_is_asked_by_the_name_of_its_model(client: Any) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Tell me about the bridge."},
        {"role": "assistant", "content": "Gladly."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    reply = client.chat.completions.create(
        model="prunus-index:town", messages=messages, temperature=0.2, seed=1, user="x"
    )
    assert "1932" in reply.choices[0].message.content


def test_files_and_addresses_of_a_message_are_its_pages(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = "data:text/html;base64," + base64.b64encode(BRIDGE.encode()).decode()
    content = [
        {"type": "text", "text": QUESTION},
        {"type": "file", "file": {"filename": "C:\\docs\\a.html", "file_data": data}},
    ]
    reply = client.chat.completions.create(model="prunus", messages=[{"role": "user", "content": content}])
    assert "1932" in reply.choices[0].message.content
    assert reply.choices[0].message.annotations[0].url_citation.url == "a.html"
    with world() as web:
        web.pages["/bridge"] = BRIDGE
        let_in(monkeypatch, web)
        found = _at(tmp_path, web)
    assert found.choices[0].message.annotations[0].url_citation.url == f"{web.url}/bridge"


def _at(folder: Path, web: World) -> Any:
    """Ask about a page by its address, on a server that may fetch it."""
    from prunus.core.settings import load_settings

    settings = load_settings()
    given = {"allow_hosts": settings.allow_hosts, "ports": settings.ports, "browser": "never"}
    with running(folder, given) as server:
        client = need("openai").OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        question = f"{QUESTION} See {web.url}/bridge."
        return client.chat.completions.create(model="prunus", messages=[{"role": "user", "content": question}])


def test_a_later_turn_reads_the_addresses_of_an_earlier_one() -> None:
    need("fastapi")
    from prunus.serve.openai import ChatMessage, _addresses

    turns = [
        ChatMessage(role="user", content="See https://a.org/wiki/Mercury_(planet), (https://b.org/x)."),
        ChatMessage(role="assistant", content="https://c.org/"),
        ChatMessage(role="user", content="And when did it close?"),
    ]
    assert _addresses(turns, False) == ["https://a.org/wiki/Mercury_(planet)", "https://b.org/x"]
    assert _addresses(turns, True) == [] == _addresses(turns[1:], False)
    assert _addresses([*turns, ChatMessage(role="user", content="https://d.org/?")], False) == ["https://d.org/"]


def test_addresses_full_of_brackets_are_read_in_linear_time() -> None:
    need("fastapi")
    from prunus.serve.openai import _trimmed

    with at_most(1):
        assert _trimmed("https://a.org/(x)" + ")." * 200_000) == "https://a.org/(x)"


def test_where_nothing_answers_the_reply_says_so_in_words(client: Any) -> None:
    asked = {**ASKED, "messages": [{"role": "user", "content": "Which enzymes split starch?"}]}
    whole = client.chat.completions.create(**asked).choices[0]
    pieces = client.chat.completions.create(**asked, stream=True)
    streamed = "".join(choice.delta.content or "" for piece in pieces for choice in piece.choices)
    assert whole.message.content == streamed and whole.message.annotations == [] and "1932" not in streamed


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"n": 2}, "n:"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [{"role": "system", "content": "x"}]}, "question"),
        ({"extra_body": {}}, "addresses or files"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}]}, "question"),
        ({"messages": [{"role": "user", "content": [TEXT, PICTURE]}]}, "pictures are not read here"),
        ({"messages": [{"role": "user", "content": [TEXT, SOUND]}]}, "type input_audio are not read here"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_by_name(client: Any, change: dict[str, Any], word: str) -> None:
    with pytest.raises(need("openai").BadRequestError, match=word):
        client.chat.completions.create(**{**ASKED, **change})
    with pytest.raises(need("openai").NotFoundError, match="prunus-index:town"):
        client.chat.completions.create(**{**ASKED, "model": "gpt-4o"})


def test_the_responses_api_gives_the_same_answer(client: Any) -> None:
    asked: Any = {"model": "prunus", "input": QUESTION, "extra_body": {"pages": [PAGE]}}
    whole = client.responses.create(**asked)
    assert whole.status == "completed" and whole.output_text == prunus.ask(QUESTION, BRIDGE).text
    [note] = whole.output[0].content[0].annotations
    assert note.type == "url_citation" and note.url == PAGE["url"] and note.quote == "The bridge opened in 1932."
    events = list(client.responses.create(**asked, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text and events[-1].type == "response.completed"
    assert events[-1].response.output[0].content[0].annotations[0].title == "The bridge"
    assert "response.output_text.annotation.added" in {event.type for event in events}


def test_the_responses_api_reads_turns_and_files_and_refuses_what_it_does_not_keep(client: Any) -> None:
    data = "data:text/html;base64," + base64.b64encode(BRIDGE.encode()).decode()
    turns = [
        {"role": "user", "content": "Tell me about the bridge."},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Gladly."}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": QUESTION},
                {"type": "input_file", "file_data": data, "filename": "b.html"},
            ],
        },
    ]
    reply = client.responses.create(model="prunus", input=turns)
    assert "1932" in reply.output_text and reply.output[0].content[0].annotations[0].url == "b.html"
    nothing = client.responses.create(model="prunus-index:town", input="Which enzymes split starch?")
    assert "1932" not in nothing.output_text and nothing.output_text
    for change in ({"previous_response_id": "resp_1"}, {"background": True}, {"tools": [{"type": "web_search"}]}):
        with pytest.raises(need("openai").BadRequestError, match=next(iter(change))):
            client.responses.create(model="prunus-index:town", input=QUESTION, **change)


def test_pictures_of_earlier_messages_are_skipped(client: Any) -> None:
    earlier = [{"role": "user", "content": [TEXT, PICTURE]}, {"role": "assistant", "content": "A bridge."}]
    reply = client.chat.completions.create(**{**ASKED, "messages": [*earlier, {"role": "user", "content": [TEXT]}]})
    assert "1932" in reply.choices[0].message.content


def test_the_responses_api_skips_items_that_say_nothing_and_refuses_others_by_name(client: Any) -> None:
    asked: Any = {"model": "prunus", "extra_body": {"pages": [PAGE]}}
    question = {"role": "user", "content": QUESTION}
    silent = [{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "item_reference", "id": "msg_1"}]
    assert "1932" in client.responses.create(**asked, input=[*silent, question]).output_text
    picture = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}
    called = {"type": "function_call_output", "call_id": "1", "output": "2"}
    for items, word in (
        ([called, question], "function_call_output"),
        ([picture], "pictures are not read here"),
        (silent, "no question"),
    ):
        with pytest.raises(need("openai").BadRequestError, match=word) as caught:
            client.responses.create(**asked, input=items)
        assert caught.value.param == "input"


def test_instructions_have_no_effect_and_are_sent_back(client: Any) -> None:
    asked: Any = {"model": "prunus", "input": QUESTION, "extra_body": {"pages": [PAGE]}}
    plain, told = client.responses.create(**asked), client.responses.create(**asked, instructions="Be brief.")
    assert told.output_text == plain.output_text and (plain.instructions, told.instructions) == (None, "Be brief.")
