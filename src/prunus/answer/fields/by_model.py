"""Fill fields by a model: its reply is checked against the schema, and every value is looked up in the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ...core.errors import UnreadableReply
from ...core.options import Options
from ...core.sync import in_a_thread
from ...core.text.bm25 import query_terms
from ...core.types import FilledField, Span
from ...evidence.context import Context
from ...evidence.documents import Documents
from ...evidence.prune import prune
from ...evidence.segments import segments
from ...models.json_reply import read_json, repair, text_of
from ...models.prompts.render import Quoted, render
from ...pages.metadata import title_of
from ...pages.tree import Tree
from ..cite import cite
from ..run import OVERHEAD, AnswerEngines
from .schema import SchemaField, fault_of
from .values import dates_in, numbers_in

_REPLY: Final = 2_000
"""Tokens of the reply at most."""
_LONGEST: Final = 100_000
"""Code points of the reply at most."""


@dataclass(frozen=True, slots=True)
class Form:
    """What is to be filled in.

    :param schema: from :func:`~prunus.answer.fields.schema.plain_schema`.
    :param question: what the fields are about; '' for what the pages are about.
    """

    schema: dict[str, Any]
    fields: Sequence[SchemaField]
    question: str


async def fill_by_model(
    form: Form, documents: Documents, budget: int, engines: AnswerEngines, options: Options
) -> tuple[dict[str, Any], list[FilledField]]:
    """Return the object and its fields; a reply that does not fit is sent back once.

    :raises UnreadableReply: the second reply does not fit either.
    :raises OutsideFailed: the model failed.
    """
    assert engines.llm is not None
    window = engines.llm.context_window
    if window:
        budget = max(1, min(budget, int((window - OVERHEAD - _REPLY) * 0.85)))
    asked = " ".join([form.question, *(f"{field.name}: {field.about}" for field in form.fields)])[:8_000]
    chosen = replace(options, breadcrumbs=True)
    context = await in_a_thread(lambda: prune(documents, asked, budget, "markdown", chosen, engines))
    nullable = _nullable(form.schema)
    messages = render(
        "fields",
        schema=json.dumps(form.schema, ensure_ascii=False),
        sources=[
            Quoted(text, f"[{number + 1}] {title_of(tree)[:80]}")
            for number, tree in enumerate(documents.trees)
            if (text := context.of(number, "markdown"))
        ],
        question=Quoted(form.question[:8_000], "what is asked") if form.question else "Fill in the form.",
    )
    fault = ""
    for _ in range(2):
        stream = engines.llm.stream(messages, max_tokens=_REPLY, temperature=0.0, schema=nullable)
        reply, _usage = await text_of(stream, _LONGEST)
        value, fault = read_json(reply, dict[str, Any])
        fault = fault or fault_of(value, nullable)
        if value is not None and not fault:
            return value, await in_a_thread(partial(_looked_up, form.fields, value, documents, context))
        messages = repair(messages, reply, fault)
    raise UnreadableReply(f"the model's reply does not fit the schema, on a second try either: {fault}", subject="llm")


def _nullable(part: Any) -> Any:
    """Return a schema that allows null for every value in its object: pages need not say what it asks for."""
    if not isinstance(part, Mapping):
        return part
    result = dict(part)
    if isinstance(result.get("properties"), Mapping):
        result["properties"] = {name: _or_null(_nullable(value)) for name, value in result["properties"].items()}
    if isinstance(result.get("items"), Mapping):
        result["items"] = _nullable(result["items"])
    return result


def _or_null(part: Any) -> Any:
    return {"anyOf": [part, {"type": "null"}]}


def _looked_up(
    fields: Sequence[SchemaField], data: Mapping[str, Any], documents: Documents, context: Context
) -> list[FilledField]:
    """Return the fields with the words of the pages that say them, as code finds these."""
    trees = {tree.document: tree for tree in documents.trees}
    tagged = segments(context.kept, trees)
    result: list[FilledField] = []
    for field in fields:
        path, value = ".".join(field.path), _at(data, field.path)
        if value is None or value == []:
            result.append(FilledField(path, value, None, "the model found nothing", "model"))
            continue
        wanted = set(query_terms(f"{field.name} {field.about}"))
        best: tuple[int, Tree, tuple[int, int], tuple[int, int]] | None = None
        for segment in tagged:
            tree = trees[segment.span.document]
            place = _place(field, value, segment.text, tree.lang)
            shared = len(wanted & set(query_terms(f"{segment.text} {segment.above} {segment.label}"))) if place else -1
            if place and (best is None or shared > best[0]):
                start = segment.span.start
                best = shared, tree, (start, segment.span.end), (start + place[0], start + place[1])
        if best is None:
            result.append(FilledField(path, value, None, "the model says so; no page does in these words", "model"))
            continue
        _, tree, quote, words = best
        number = len(result) + 1
        citation = cite(
            number, tree.canonical[slice(*quote)], tree, Span(tree.document, *quote), [Span(tree.document, *words)]
        )
        result.append(FilledField(path, value, replace(citation, how="model"), "", "model"))
    return result


def _at(data: Any, path: Sequence[str]) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def _place(field: SchemaField, value: Any, text: str, language: str) -> tuple[int, int] | None:
    """Return where a text says a value; of a list its first, of an object None."""
    if isinstance(value, list):
        return _place(field, value[0], text, language) if value else None
    if isinstance(value, bool | dict):
        return None
    if isinstance(value, int | float):
        return next(((start, end) for one, start, end in numbers_in(text, language) if one == value), None)
    if field.type == "date" or (isinstance(value, str) and any(dates_in(value))):
        day = str(value)[:10]
        found = next(((start, end) for one, start, end in dates_in(text, language) if one == day), None)
        if found or field.type == "date":
            return found
    words = " ".join(str(value).split()).casefold()
    at = text.casefold().find(words) if words else -1
    return (at, at + len(words)) if at >= 0 and len(text.casefold()) == len(text) else None
