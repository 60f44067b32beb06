"""Documents that clients send to an index: as JSON, or as files of a form. None of them is ever a path."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile

from ..core.errors import BadInput
from ..core.text.secrets import hide_logins
from ..core.types import Page
from ..engines import formats
from ..pages.read import snapshot_of
from .errors import RequestRefused
from .inputs import source_of
from .options import ServeOptions
from .queue import InputDocument
from .wire import PageGiven, RequestBody, Short

MOST: Final = 1_000
"""Documents of one request at most."""
_LONGEST: Final = 1_000
"""Code points of a document's name that are kept."""
_LONGEST_ADDRESS: Final = 4_096
_UNWANTED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class DocumentGiven(PageGiven):
    """A document of an index: its content, or its address, which the server then fetches."""

    model_config = ConfigDict(extra="forbid")

    id: Short = Field(
        "", description="Names the document; by default its address, else the SHA-256 of its content. A document of "
        "the same name is replaced."
    )  # fmt: skip


class DocumentsGiven(RequestBody):
    """Documents to add to an index."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"documents": [{"id": "bridge", "html": "<p>The bridge opened in 1932."}]}]},
    )

    documents: Annotated[list[DocumentGiven], Field(min_length=1, max_length=MOST, fail_fast=True)]


JSON: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "documents": {
            "type": "array",
            "items": DocumentGiven.model_json_schema(),
            "minItems": 1,
            "maxItems": MOST,
        }
    },
    "required": ["documents"],
    "additionalProperties": False,
    "examples": DocumentsGiven.model_json_schema()["examples"],
}
"""The body in JSON, for OpenAPI; without references, which its generator would not resolve here."""
FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "files": {"type": "array", "items": {"type": "string", "format": "binary"}, "description": "Documents."},
        "url": {"type": "array", "items": {"type": "string"}, "description": "Addresses that the server fetches."},
    },
}
"""The fields of a form, for OpenAPI."""


async def documents_of(request: Request, options: ServeOptions) -> list[InputDocument]:
    """Return the documents of a request; nothing is fetched yet.

    :raises RequestRefused: 415, the body is of another type; or an address, where the operator allows none.
    :raises BadInput: a document cannot be used.
    :raises RequestValidationError: the body has other fields.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    given: Sequence[DocumentGiven | InputDocument]
    if kind == "multipart/form-data":
        given = await _form(request)
    elif kind == "application/json":
        given = await asyncio.to_thread(_json, await request.body())
    else:
        raise RequestRefused(415, "send the documents as application/json or as multipart/form-data")
    return await asyncio.to_thread(_documents, given, options)


def name_of(text: str) -> str:
    """Return the name of a document: valid Unicode in one line."""
    return _UNWANTED.sub("_", text.encode("utf-8", "replace").decode())[:_LONGEST].strip()


def _json(body: bytes) -> Sequence[DocumentGiven]:
    try:
        read = json.loads(body)
        given: DocumentsGiven = DocumentsGiven.model_validate(read)
    except ValidationError as error:
        wrong = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(wrong, body=read) from None
    except (ValueError, RecursionError):
        raise BadInput("the body is not valid JSON", subject="documents") from None
    return given.documents


async def _form(request: Request) -> Sequence[DocumentGiven | InputDocument]:
    """Return the files and addresses of a form, in its order."""
    result: list[DocumentGiven | InputDocument] = []
    async with request.form(max_files=MOST, max_fields=MOST) as form:
        for field, value in form.multi_items():
            if isinstance(value, UploadFile):
                name = name_of(re.split(r"[/\\]", value.filename or "")[-1])
                result.append(InputDocument(name, "", _type(name), await value.read()))
            elif field != "url":
                raise BadInput(f"{field[:100]!r} is no file and no url", subject="files")
            elif not 0 < len(value) <= _LONGEST_ADDRESS:
                raise BadInput("url: an address is empty or too long", subject="url")
            else:
                result.append(DocumentGiven(url=value))
    if not 0 < len(result) <= MOST:
        raise BadInput(f"a form holds 1 to {MOST} files and addresses", subject="files")
    return result


def _type(name: str) -> str:
    """Return the media type of a file by the suffix of its name; '' where that says nothing."""
    suffix = "".join(name.rpartition(".")[1:]).lower()
    return formats().media_type(suffix) if suffix in formats().suffixes else ""


def _documents(given: Sequence[DocumentGiven | InputDocument], options: ServeOptions) -> list[InputDocument]:
    result: dict[str, InputDocument] = {}
    for number, each in enumerate(given):
        place = f"documents.{number}"
        document = each if isinstance(each, InputDocument) else _document(each, options, place)
        if not document.id:
            id = name_of(hide_logins(document.url)) or snapshot_of(document.content or b"")
            document = replace(document, id=id)
        if document.id in result:
            raise BadInput(f"{place}: two documents are called {document.id}", subject=f"{place}.id")
        result[document.id] = document
    return list(result.values())


def _document(given: DocumentGiven, options: ServeOptions, place: str) -> InputDocument:
    source = source_of(given, options, place, place)
    name = name_of(given.id)
    if isinstance(source, Page):
        return InputDocument(name, name_of(source.final_url), source.media_type, source.content)
    if _UNWANTED.search(given.url.strip()):
        raise BadInput(f"{place}.url: an address is one line", subject=f"{place}.url")
    return InputDocument(name, given.url.strip())


def ids_of(ids: Iterable[str]) -> list[InputDocument]:
    """Return the documents that are to be removed.

    :raises BadInput: there is none, or there are too many.
    """
    names = list(dict.fromkeys(filter(None, map(name_of, ids))))
    if not names or len(names) > MOST:
        raise BadInput(f"id: name 1 to {MOST} documents, as ?id=…&id=…", subject="id")
    return [InputDocument(name) for name in names]
