"""OpenAI's responses API: the same models, sources and citations as :mod:`.openai`, in the newer shapes."""

from __future__ import annotations

import json
import secrets
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from ..core.errors import BadInput, one_line
from ..core.types import Answer
from .background import LargeRoute
from .errors import error_body
from .inputs import Caller
from .mask import Mask
from .openai import (
    PAGES,
    ChatMessage,
    ChatRequest,
    Parts,
    Wanted,
    asked,
    details,
    model_names,
    respond,
    schema_asked,
    url_citations,
)
from .routes import REFUSALS, stream_of
from .server import Server
from .wire import Bounded, Pages

_PARTS = {"input_text": "text", "output_text": "text", "input_file": "file"}
"""Kinds of parts of an input, and what they are in a chat."""
_SKIPPED = ("reasoning", "item_reference")
"""Kinds of items that clients send back from earlier responses, and that say nothing to answer."""
_REFUSED = {
    "previous_response_id": "nothing is kept here; send the earlier turns",
    "background": "answers are given at once; leave it out",
}


class InputMessage(Bounded):
    """One message of the input. Of other items, those that say nothing (`reasoning`) are skipped."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(max_length=100)] | None = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | Parts | None = ""


class ResponseRequest(Bounded):
    """A request of OpenAI's responses API. Fields of Prunus itself can be added as ``extra_body``."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"model": PAGES, "input": "What is https://example.org?"}]}
    )

    model: Annotated[str, Field(max_length=200)]
    input: str | Annotated[list[InputMessage], Field(min_length=1, max_length=200, fail_fast=True)]
    instructions: str | None = Field(None, description="Has no effect, as a system message; it is sent back.")
    stream: bool | None = False
    pages: Pages = Field([], description="Pages to answer from (Prunus only).")
    budget: Annotated[int, Field(ge=1)] | None = Field(None, description="Tokens of evidence at most (Prunus only).")


def add_responses(app: FastAPI, server: Server) -> None:
    """Add the route to an application."""
    routes = APIRouter(prefix="/v1", tags=["openai"], responses=REFUSALS, route_class=LargeRoute)
    piece = 'event: response.output_text.delta\ndata: {"delta": "In"}'

    @routes.post("/responses", response_model=None, responses=stream_of("event", "data", example=piece))
    async def create(body: ResponseRequest, request: Request, caller: Caller) -> Response | dict[str, Any]:
        """Answer the last message of the user, with citations as annotations of the output."""
        chat = _as_chat(body)
        question = asked(chat, await model_names(server, caller), "input")
        reply = _Reply(body, server.mask)
        return await respond(Wanted(reply, question, bool(body.stream), schema_asked(chat)), server, request)

    app.include_router(routes)


def _as_chat(body: ResponseRequest) -> ChatRequest:
    """Return the request as a chat.

    :raises BadInput: the request refers to what this server does not keep.
    """
    extra = body.model_extra or {}
    if extra.get("previous_response_id"):
        raise BadInput(
            "previous_response_id: nothing is kept here; send the earlier turns", subject="previous_response_id"
        )
    if extra.get("background"):
        raise BadInput("background: answers are given at once; leave it out", subject="background")
    format = extra["text"].get("format") if isinstance(extra.get("text"), dict) else None
    items = [InputMessage(content=body.input)] if isinstance(body.input, str) else body.input
    messages = [item for item in items if item.type not in _SKIPPED]
    for message in messages:
        if message.type not in (None, "message"):
            kind = one_line(message.type, longest=50)
            raise BadInput(f"input: items of the type {kind} are not read here; send messages", subject="input")
    if not messages:
        raise BadInput("input: there is no question of the user", subject="input")
    return ChatRequest(
        model=body.model,
        messages=[ChatMessage(role=message.role, content=_parts(message.content)) for message in messages],
        pages=body.pages,
        budget=body.budget,
        response_format=format,
        **{name: extra[name] for name in ("tools", "tool_choice") if name in extra},
    )


def _parts(content: str | list[dict[str, Any]] | None) -> str | list[dict[str, Any]] | None:
    """Return the content of a message in the shape of a chat."""
    if not isinstance(content, list):
        return content
    result: list[dict[str, Any]] = []
    for part in content:
        kind = _PARTS.get(str(part.get("type")), "")
        if kind == "text":
            result.append({"type": "text", "text": part.get("text")})
        elif kind == "file":
            result.append({"type": "file", "file": {name: part.get(name) for name in ("file_data", "filename")}})
        else:
            result.append({"type": part.get("type")})
    return result


class _Reply:
    """Writes one response, whole or as a stream of numbered events."""

    def __init__(self, body: ResponseRequest, mask: Mask) -> None:
        self._mask = mask
        self._id, self._item = f"resp_{secrets.token_hex(12)}", f"msg_{secrets.token_hex(12)}"
        self._head = {"id": self._id, "object": "response", "created_at": int(time.time()), "model": body.model}
        self._instructions = body.instructions
        self._number = 0

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the finished response."""
        usage = answer.usage
        counts = {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }
        item = self._message("completed", [self.part(answer.text, self._annotations(answer))])
        return {**self._state("completed", [item]), "usage": counts, "prunus": self._mask.record(details(answer))}

    def part(self, text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the text of the answer as a part of the message."""
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}

    def begin(self) -> str:
        """Return the events that open a stream."""
        started = self._state("in_progress", [])
        return (
            self._event("response.created", response=started)
            + self._event("response.in_progress", response=started)
            + self._event("response.output_item.added", output_index=0, item=self._message("in_progress", []))
            + self._in_part("response.content_part.added", part=self.part("", []))
        )

    def piece(self, text: str) -> str:
        """Return a piece of the text as an event."""
        return self._in_part("response.output_text.delta", delta=text, logprobs=[])

    def end(self, answer: Answer) -> str:
        """Return the events that close a stream, the citations first."""
        result = self._annotations(answer)
        notes = "".join(
            self._in_part("response.output_text.annotation.added", annotation_index=number, annotation=note)
            for number, note in enumerate(result)
        )
        part = self.part(answer.text, result)
        return (
            notes
            + self._in_part("response.output_text.done", text=answer.text, logprobs=[])
            + self._in_part("response.content_part.done", part=part)
            + self._event("response.output_item.done", output_index=0, item=self._message("completed", [part]))
            + self._event("response.completed", response=self.whole(answer))
        )

    def failed(self, error: Exception) -> str:
        """Return the event that ends a stream with an error."""
        said = error_body(error, self._mask)["error"]
        state = self._state("failed", []) | {"error": {"code": said["code"], "message": said["message"]}}
        return self._event("response.failed", response=state)

    def _annotations(self, answer: Answer) -> list[dict[str, Any]]:
        notes = self._mask.record(url_citations(answer))
        return [{"type": "url_citation", **note["url_citation"]} for note in notes]

    def _state(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            **self._head, "status": status, "output": output, "error": None, "incomplete_details": None,
            "instructions": self._instructions, "metadata": {}, "parallel_tool_calls": False, "temperature": None,
            "tool_choice": "none", "tools": [], "top_p": None, "usage": None,
        }  # fmt: skip

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self._item, "type": "message", "role": "assistant", "status": status, "content": content}

    def _in_part(self, kind: str, **fields: Any) -> str:
        return self._event(kind, item_id=self._item, output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> str:
        record = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(record, ensure_ascii=False)}\n\n"
