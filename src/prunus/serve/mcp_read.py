"""What the tool `read` gives of pages: word for word by parts, as an outline, or the evidence for a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..api.pages import Pruner
from ..core.errors import BadInput, PrunusError, one_line
from ..core.options import Options
from ..core.ports import TokenCounter
from ..core.settings import Settings
from ..engines import one_engine
from ..evidence.documents import Documents
from ..models.prompts.render import Quoted, fenced, harmless
from ..pages.metadata import title_of
from ..pages.tree import Tree
from ..pages.write.parts import above, outline, part_of, sections_of
from ..pages.write.selection import main_part
from ..pages.write.style import CLEAN
from ..pages.write.whole import write_tree
from ..web.page_errors import error_type
from .mcp_wire import ReadCall

_HEADINGS: Final = 30
"""Headings of what was left out that are named at most."""
_LINE: Final = 300
_MOSTLY: Final = 0.9
"""Share of a page's tokens from which on its own content is the page."""
_CLEAR: Final = 0.6
"""Confidence in the choice of main content from which on only that is read. On 316 pages of seven kinds it halves the
tokens, and .93 of the words that people marked as content come, .96 with whole pages (``docs/lab/log.md``)."""


@dataclass(slots=True)
class PageReading:
    """What is read of one page.

    :param tree: None where the page could not be read.
    :param record: the fields of :class:`~prunus.serve.mcp_wire.ReadPage`.
    """

    tree: Tree | None
    record: dict[str, Any] = field(default_factory=dict)


def failed(name: str, error: PrunusError) -> PageReading:
    """Return a page that could not be read."""
    told = {"type": error_type(error), "message": one_line(str(error), longest=500)}
    return PageReading(None, {**_fields(name), "error": told})


def whole_pages(trees: Sequence[Tree], call: ReadCall, most: int, settings: Settings) -> list[PageReading]:
    """Return pages word for word as far as they fit, or their outlines. Short pages leave their tokens to longer ones.

    :param trees: where their main content was chosen, and it is clear what it is, only that is read.
    :param most: tokens of all pages together.
    :raises BadInput: there is nothing at the start that was asked for.
    """
    counter: TokenCounter = one_engine("tokenizer", settings)
    pages = [harmless(write_tree(tree, "markdown", CLEAN, None)) for tree in trees]  # places are those of what is sent
    totals = [int(total) for total in counter.count(pages)]
    beside = [0] * len(trees)
    for number, tree in enumerate(trees):
        if (tree.main_confidence or 0.0) >= _CLEAR:
            own = harmless(write_tree(tree, "markdown", CLEAN, main_part(tree)))
            tokens = int(counter.count([own])[0])
            if tokens < _MOSTLY * totals[number]:
                pages[number], totals[number], beside[number] = own, tokens, totals[number] - tokens
    result = [PageReading(tree) for tree in trees]
    for done, number in enumerate(sorted(range(len(trees)), key=totals.__getitem__)):
        share = max(1, most // (len(trees) - done))
        page = _outlined if call.outline else _part
        record = result[number].record = _of_tree(trees[number]) | {"total_tokens": totals[number]}
        record |= page(pages[number], call.start, share, totals[number], counter)
        if beside[number]:
            says = f" {beside[number]:,} tokens of menus, banners and the like are left out; main=false has them."
            record["notice"] += says
        most -= record["tokens"]
    return result


def _part(markdown: str, start: int, most: int, total: int, counter: TokenCounter) -> dict[str, Any]:
    """Return the fields of a page from a place on.

    :raises BadInput: the page ends before that.
    """
    if start >= len(markdown):
        raise BadInput(f"start: the page ends at {len(markdown) - 1}; {start} is behind it", subject="start")
    part = part_of(markdown, start, most, counter)
    if not start and part.end == len(markdown):
        return {"text": part.text, "tokens": part.tokens, "notice": f"Whole, {total:,} tokens."}
    after = int(counter.count([markdown[part.end :]])[0])
    before = max(0, total - part.tokens - after) if start else 0
    says = [f"{part.tokens:,} of the page's {total:,} tokens, word for word."]
    says += [f"Left out: {before:,} tokens before it, {after:,} after it."]
    says += [f"For what follows call read with start={part.end}."] if after else ["This is the end of the page."]
    return {
        "text": part.text,
        "tokens": part.tokens,
        "start": start,
        "next_start": part.end if after else None,
        "under": above(markdown, start) if start else "",
        "notice": " ".join(says),
    }


def _outlined(markdown: str, start: int, most: int, total: int, counter: TokenCounter) -> dict[str, Any]:
    """Return the fields of the outline of a page."""
    sections = sections_of(markdown, counter)
    text, missing, tokens = outline(sections, most, counter)
    says = (
        f"The outline of a page of {total:,} tokens; its text is left out. Call read with a start to read from there."
    )
    if missing:
        says += f" Headings left out: {missing}."
    return {"text": text, "tokens": tokens, "notice": says}


def evidence(
    trees: Sequence[Tree], question: str, most: int, settings: Settings
) -> tuple[list[PageReading], Sequence[str], float]:
    """Return what of pages bears on a question, warnings, and the chance that it answers it.

    :param most: tokens of all pages together.
    """
    documents = Documents(trees)
    context = Pruner(Options(breadcrumbs=True, links=True), settings).prune(documents, question, most, "markdown")
    counter: TokenCounter = one_engine("tokenizer", settings)
    texts = [context.of(number, "markdown") for number in range(len(trees))]
    totals = counter.count([write_tree(tree, "markdown", CLEAN, None) for tree in trees])
    result = []
    for number, (tree, text, tokens, total) in enumerate(zip(trees, texts, counter.count(texts), totals, strict=True)):
        left_out = _most(context.left_out(number))
        says = f"{tokens:,} of the page's {total:,} tokens, chosen for the question; … marks gaps."
        if left_out:
            says += " Headings without any of it are listed below it."
        fields = {"text": text, "tokens": int(tokens), "total_tokens": int(total), "left_out": left_out, "notice": says}
        result.append(PageReading(tree, _of_tree(tree) | fields))
    return result, context.warnings, context.confidence()


def _most(headings: Sequence[str]) -> list[str]:
    """Return some headings, shortened, and how many more there are."""
    more = len(headings) - _HEADINGS
    shown = [one_line(heading, longest=100) for heading in headings[:_HEADINGS]]
    return [*shown, f"… and {more} more"] if more > 0 else shown


def _of_tree(tree: Tree) -> dict[str, Any]:
    title, warnings = one_line(title_of(tree), longest=_LINE), list(tree.warnings)
    return _fields(tree.url) | {"title": title, "published": tree.published, "warnings": warnings}


def _fields(url: str) -> dict[str, Any]:
    """Return the fields of a page, each empty but its address."""
    return {
        "url": url, "title": "", "published": "", "text": "", "tokens": 0, "total_tokens": 0, "start": 0,
        "next_start": None, "under": "", "left_out": [], "notice": "", "resource": "", "warnings": [], "error": None,
    }  # fmt: skip


def told(record: Mapping[str, Any]) -> str:
    """Return the pages for a model to read: first what was left out of each, then what they say."""
    pages = record["pages"]
    numbers = [f"{number}. " for number in range(1, len(pages) + 1)] if len(pages) > 1 else [""]
    notices = [number + (_failure(page) or page["notice"]) for number, page in zip(numbers, pages, strict=True)]
    quotes = [
        Quoted(text, number + named(page))
        for number, page in zip(numbers, pages, strict=True)
        if (text := _inside(page))
    ]
    return "\n\n".join(["\n".join([*record["warnings"], *notices]), *([fenced(*quotes)] if quotes else [])])


def named(source: Mapping[str, Any]) -> str:
    """Return title, address and date of a page in a line."""
    date = f" ({source['published']})" if source["published"] else ""
    return f"{source['title']} {source['url']}".strip() + date


def _failure(page: Mapping[str, Any]) -> str:
    return f"Not read ({page['error']['type']}): {page['error']['message']}" if page["error"] else ""


def _inside(page: Mapping[str, Any]) -> str:
    """Return what a page says; '' where it was not read."""
    parts = [f"(under: {page['under']})" if page["under"] else "", page["text"]]
    if page["left_out"]:
        parts.append("Nothing chosen under: " + "; ".join(page["left_out"]))
    return "\n\n".join(filter(None, [*parts, *(f"Warning: {said}" for said in page["warnings"])]))
