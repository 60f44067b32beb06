"""Fill a field without a model: from what the page says for programs, from what it labels, from the best passage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from ...core.confidence import chosen_segments
from ...core.errors import BadBudget
from ...core.options import Options
from ...core.sync import in_a_thread
from ...core.text.bm25 import query_terms
from ...core.types import Citation, FilledField, Metadata, Span
from ...evidence.documents import Documents
from ...evidence.prune import prune
from ...evidence.segments import segments
from ...pages.metadata import known_metadata
from ...pages.tree import Tree
from ..cite import cite
from ..run import AnswerEngines
from .labelled import labelled_in, said_in_data
from .schema import SchemaField
from .values import as_number, dates_in, numbers_in

_BUDGET: Final = 1_500
"""Tokens of evidence for one field."""
_LONGEST: Final = 800
"""Code points of a text at most."""
_LINE: Final = 300
"""Code points of a line that is quoted whole at most."""
_OWN: Final = 0.6
"""Share of a label's words that a field must have."""
_COVER: Final = 0.5
"""Share of a field's words that the label, and what stands above it, must have."""
_OF_METADATA: Final = {
    "title": "title", "headline": "title",
    "author": "authors", "authors": "authors", "writer": "authors", "byline": "authors",
    "published": "published", "publish date": "published", "published at": "published", "publication date": "published",
    "date published": "published", "published date": "published",
    "modified": "modified", "updated": "modified", "date modified": "modified", "last updated": "modified",
    "language": "language", "site": "site", "publisher": "site", "site name": "site", "description": "description",
}  # fmt: skip
"""Names of fields that are properties of every page."""
_MONEY: Final = frozenset(query_terms("price prices cost costs fee fees charge rate amount salary rent fare toll"))


@dataclass(frozen=True, slots=True)
class _Found:
    """A value with the place of its words.

    :param quote: (start, end) of what is quoted; None where the value is not in the text.
    """

    value: Any
    tree: Tree
    quote: tuple[int, int] | None
    words: tuple[int, int] | None
    how: str
    confidence: float | None = None


async def by_relevance(documents: Documents, question: str, engines: AnswerEngines, options: Options) -> Documents:
    """Return documents, those first that bear most on a question: of several that label a field the first counts."""
    if len(documents) < 2 or not question.strip():
        return documents
    try:
        context = await in_a_thread(lambda: prune(documents, question, _BUDGET, "html", options, engines))
    except BadBudget:
        return documents
    best: dict[int, float] = {}
    for block in context.kept:
        if block.role != "header":
            best[block.document] = max(block.score, best.get(block.document, block.score))
    order = sorted(range(len(documents)), key=lambda number: -best.get(number, -inf))
    return Documents([documents.trees[number] for number in order], documents.failures)


async def find_field(
    field: SchemaField, documents: Documents, question: str, engines: AnswerEngines, options: Options, number: int
) -> FilledField:
    """Return a field with its value and citation, or null with a reason.

    :param question: what the caller asks, '' for nothing; it tells which thing the fields are about.
    :param number: of the citation.
    """
    path = ".".join(field.path)
    if not field.type or field.type == "boolean":
        return FilledField(path, None, None, "without a model, only texts, numbers, dates and lists of them are found")
    found = await in_a_thread(lambda: _in_data(field, documents) or _labelled(field, documents))
    if found is None:
        found = await _in_passages(field, documents, question, engines, options)
    if found is None:
        found = await in_a_thread(lambda: _in_data(field, documents, by_name=True))
    if found is None:
        return FilledField(path, None, None, "nothing on the pages is labelled so, and no passage is likely to say it")
    cited = found
    return FilledField(path, found.value, await in_a_thread(lambda: _cited(cited, number)), "", found.how)


def _cited(found: _Found, number: int) -> Citation:
    tree = found.tree
    if found.quote is None:
        said = ", ".join(map(str, found.value)) if isinstance(found.value, list) else str(found.value)
        return replace(cite(number, said, tree), place="data of the page for programs")
    marks = [Span(tree.document, *found.words)] if found.words and found.words != found.quote else []
    span = Span(tree.document, *found.quote)
    citation = cite(number, tree.canonical[slice(*found.quote)], tree, span, marks)
    return replace(citation, confidence=found.confidence, how=found.how)


# what a page says for programs --------------------------------------------------------------------------------------


def _in_data(field: SchemaField, documents: Documents, by_name: bool = False) -> _Found | None:
    """Return what the metadata of a page say under the name of a field.

    :param by_name: also where the description asks for something more special than the name.
    """
    name = field.name.casefold()
    wanted = _OF_METADATA.get(name)
    special = set(query_terms(field.about)) - set(query_terms(field.name)) if field.about else set()
    for tree in documents.trees:
        if wanted:
            known: Metadata = known_metadata(tree)
            value = getattr(known, wanted) or (tree.published if wanted == "published" else "")
            texts = [value] if isinstance(value, str) else list(value)
        elif special and not by_name:
            return None
        else:
            key = re.sub(r"\W", "", name)
            texts = [value for said, value in said_in_data(tree) if said.casefold() == key][:20]
        texts = [text for text in texts if text and text.strip()]
        if not texts:
            continue
        values = [value for text in texts if (value := _value_of(field, text, "")) is not None]
        if values:
            every = [one for value, _ in values for one in (value if field.many else [value])]
            shown = _visible(field, every[0], texts[0], tree)
            line = _line(tree.canonical, *shown) if shown else None
            result = list(dict.fromkeys(every)) if field.many else every[0]
            return _Found(result, tree, line, shown, "data of the page")
    return None


def _visible(field: SchemaField, value: Any, text: str, tree: Tree) -> tuple[int, int] | None:
    """Return where the text of a page shows a value that its data say; None where it does not."""
    language = tree.lang
    if field.type == "date":
        return next(((start, end) for day, start, end in dates_in(tree.canonical, language) if day == value), None)
    if field.type in ("number", "integer"):
        sums = numbers_in(tree.canonical, language, _is_money(field))
        return next(((start, end) for one, start, end in sums if one == value), None)
    citation = cite(1, text, tree)
    return (citation.span.start, citation.span.end) if citation.found else None


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the line that a value stands in, where it is short, else the value alone."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    last = last if last >= 0 else len(text)
    return (first, last) if last - first <= _LINE else (start, end)


def _is_money(field: SchemaField) -> bool:
    return bool(_MONEY & set(query_terms(f"{field.name} {field.about}")))


# what a page labels -------------------------------------------------------------------------------------------------


def _labelled(field: SchemaField, documents: Documents) -> _Found | None:
    """Return the value whose label has most of the words of a field; of equal ones the first."""
    name, wanted = set(query_terms(field.name)), set(query_terms(f"{field.name} {field.about}"))
    if not wanted:
        return None
    best: tuple[float, _Found] | None = None
    for tree in documents.trees:
        for one in labelled_in(tree):
            shared = len(one.own & wanted) / len(one.own)
            if shared < _OWN:
                continue
            cover = max(len(one.terms & wanted) / len(wanted), len(one.terms & name) / max(1, len(name)) - 0.1)
            score = cover + shared / 4
            if cover < _COVER or (best and score <= best[0]):
                continue
            read = _value_of(field, tree.canonical[slice(*one.value)], tree.lang)
            if read is not None:
                value, (start, end) = read
                words = (one.value[0] + start, one.value[0] + end)
                best = score, _Found(value, tree, one.quote, words, f"label “{one.label}”")
    return best[1] if best else None


# what a passage says ------------------------------------------------------------------------------------------------


async def _in_passages(
    field: SchemaField, documents: Documents, question: str, engines: AnswerEngines, options: Options
) -> _Found | None:
    """Return the value in the passage that most likely says it."""
    asked = field.about or f"What is the {field.name}?"
    query = f"{asked} {question}".strip()
    trees = {tree.document: tree for tree in documents.trees}
    try:
        tagged = await in_a_thread(
            lambda: segments(prune(documents, query, _BUDGET, "html", options, engines).kept, trees)
        )
    except BadBudget:
        return None
    chosen = chosen_segments(await engines.extractor.extract(query, tagged), tagged, engines.min_confidence)
    wanted = set(query_terms(f"{field.name} {field.about}"))
    for segment in chosen:
        if not wanted & set(query_terms(f"{segment.text} {segment.above} {segment.label}")):
            continue  # likely of all passages, but it speaks of nothing that the field does
        tree = trees[segment.span.document]
        read = _value_of(field, tree.canonical[segment.span.start : segment.span.end], tree.lang)
        if read is not None:
            value, (start, end) = read
            quote, sure = (segment.span.start, segment.span.end), segment.passage.confidence
            return _Found(value, tree, quote, (quote[0] + start, quote[0] + end), "passage", sure)
    return None


# values of a type ---------------------------------------------------------------------------------------------------


def _value_of(field: SchemaField, text: str, language: str) -> tuple[Any, tuple[int, int]] | None:
    """Return the value of a field's type in a text, with its place; None where the text has none."""
    found = list(_typed(field, text, language))
    if not found:
        return None
    if not field.many:
        return found[0][0], found[0][1:]
    values = list(dict.fromkeys(value for value, _, _ in found))
    return values, (min(start for _, start, _ in found), max(end for _, _, end in found))


def _typed(field: SchemaField, text: str, language: str) -> Iterator[tuple[Any, int, int]]:
    if field.choices:
        said = [(choice, re.search(rf"\b{re.escape(str(choice))}\b", text, re.IGNORECASE)) for choice in field.choices]
        found = [(choice, match) for choice, match in said if match]
        if field.many or len(found) == 1:  # a text that names several does not say which
            yield from ((choice, *match.span()) for choice, match in found)
    elif field.type == "date":
        yield from dates_in(text, language)
    elif field.type in ("number", "integer"):
        for number, start, end in numbers_in(text, language, _is_money(field)):
            value = as_number(number, field.type == "integer")
            if value is not None:
                yield value, start, end
    elif field.many:
        for part in re.finditer(r"[^\n;,]+" if "\n" not in text.strip() else r"[^\n]+", text[:_LONGEST]):
            if part[0].strip():
                yield " ".join(part[0].split()), *part.span()
    elif text.strip():
        named = re.match(rf"\s*{re.escape(field.name)}\b[\s:]+", text, re.IGNORECASE)
        begin = named.end() if named else 0
        own = text[begin:_LONGEST].rstrip()
        if not set(query_terms(own)) <= set(query_terms(field.name)):  # "The author" is no author
            lines = (" ".join(line.split()) for line in own.strip().split("\n"))
            yield "\n".join(lines), begin, begin + len(own)


def filled_data(fields: Sequence[SchemaField], filled: Sequence[FilledField]) -> dict[str, Any]:
    """Return the values of fields as the object of their schema; a list of which nothing was found is empty."""
    result: dict[str, Any] = {}
    for field, one in zip(fields, filled, strict=True):
        inner = result
        for name in field.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[field.path[-1]] = [] if one.value is None and field.many and not field.nullable else one.value
    return result
