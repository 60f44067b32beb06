"""The flow: pages → documents → blocks → scores → evidence → passages → answer → citations.

Sees ports only: the engines arrive from :mod:`prunus.assemble`.
"""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from .errors import BadBudget, BadInput, BadPage, Failures, OutsideFailed, PrunusError
from .events import Event
from .granularity import max_words_for
from .html.blocks import Blocks, split
from .html.clean import clean_tree
from .html.documents import Documents
from .html.records import Records
from .html.render import Rendering, render_blocks, render_tree
from .html.segments import segments_of
from .html.style import LEAN, Style
from .html.tree import Tree
from .ports import LLM, Embedder, Extractor, Generator, Scorer, Tagged, TokenCounter
from .prune.greedy import Selection, select
from .types import (
    BlockRecord,
    Context,
    DocumentInfo,
    Format,
    Options,
    Page,
    Span,
)

if TYPE_CHECKING:
    from .cost import Meter

Reader = Callable[[Page], "str | bytes"]
"""Turns a page of any format into HTML."""


@dataclass(frozen=True, slots=True)
class Spare:
    """What needs no model, and takes over where the model's engines fail or would go over a limit."""

    extractor: Extractor
    generator: Generator


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of one call, and their names.

    :param llm: the language model, where one is configured; every call is counted.
    :param spare: what takes over where the model's engines fail.
    :param meter: what the whole call has cost so far, and may cost.
    """

    counter: TokenCounter
    scorer: Scorer
    extractor: Extractor
    generator: Generator
    names: Mapping[str, str] = field(default_factory=dict)
    llm: LLM | None = None
    embedder: Embedder | None = None
    spare: Spare | None = None
    meter: Meter | None = None


def read_page(page: Page, to_html: Reader) -> Tree:
    """Clean one page and give it its snapshot id.

    :raises BadPage: it cannot be read, or shows no words.
    """
    tree = clean_page(page, to_html)
    tree.snapshot = tree.document = page.snapshot or snapshot_of(page.content)
    return tree


def clean_page(page: Page, to_html: Reader) -> Tree:
    """Clean one page.

    :raises BadPage: it cannot be read, or shows no words.
    :raises OutsideFailed: it is a wall and no content.
    """
    name = page.url or "page"
    if page.wall:
        raise OutsideFailed(f"{name}: this is no content ({page.wall})", subject=name)
    tree = clean_tree(to_html(page), charset=page.charset, name=name)
    if not tree.has_words:
        raise BadPage(f"{name}: the page shows no text", subject=name)
    tree.url = page.final_url or page.url
    tree.published = page.published
    return tree


def snapshot_of(content: bytes | str) -> str:
    """Return the sha256 of a page's content, hex."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def read_pages(
    pages: Iterable[Page], to_html: Reader, *, strict: bool = True, failures: Failures | None = None
) -> Documents:
    """Clean pages once, for any number of questions.

    :param strict: raise at the first page that cannot be read; else note it in ``failures`` and go on.
    :param failures: where whoever yields the pages notes those that it could not read.
    :raises BadPage: a page cannot be read; without ``strict``, only if none can.
    """
    trees: list[Tree] = []
    twins: Counter[str] = Counter()
    failures = Failures() if failures is None else failures
    for number, page in enumerate(pages, 1):
        try:
            tree = read_page(page, to_html)
            twins[tree.snapshot] += 1
            if twins[tree.snapshot] > 1:  # the same page once more, perhaps from another address
                tree.document = f"{tree.snapshot}#{twins[tree.snapshot]}"
            trees.append(tree)
        except (BadInput, OutsideFailed) as error:
            if strict:
                raise
            failures.note(error, page.url or f"page {number}")
    if not trees:
        raise failures.first or BadPage("no page was given", subject="pages")
    return Documents(trees, failures)


def prune(documents: Documents, query: str, budget: int, format: Format, options: Options, engines: Engines) -> Context:
    """Keep the evidence for a question that fits a budget.

    :param budget: tokens of the output in ``format``, everything included.
    :raises BadInput: an empty question.
    :raises BadBudget: the budget is below 1, or below what any piece of evidence needs.
    """
    if not query.strip():
        raise BadInput("the question is empty", subject="query")
    if budget < 1:
        raise BadBudget(f"a budget of {budget} tokens holds nothing; give at least 1", subject=str(budget))
    if options.units not in ("blocks", "leaves"):
        raise BadInput(f"no units are called {options.units!r}; there are: blocks, leaves", subject="units")
    clock = _Clock()
    max_words = options.max_words or max_words_for(documents.words, budget, query)
    if max_words < 1:
        raise BadInput(f"max_words must be at least 1, not {max_words}", subject="max_words")
    blocks = documents.blocks(max_words, options.units)
    clock.lap("blocks")
    scores = np.asarray(engines.scorer.score(query, blocks), np.float64)
    clock.lap("score")
    rendering = Rendering(format, style_of(options), len(documents) > 1)
    blocks, scores, parts = cut_the_best(blocks, scores, query, budget, engines, rendering)
    requires = with_breadcrumbs(blocks) if options.breadcrumbs else None
    chosen = select(blocks, scores, budget, engines.counter, rendering, requires)
    if not chosen.kept:
        raise BadBudget(
            f"a budget of {budget} tokens is below the smallest piece of evidence; give more", subject=str(budget)
        )
    clock.lap("prune")
    return _context(blocks, scores, chosen, parts, rendering, _Call(query, budget, engines, clock.laps))


def style_of(options: Options) -> Style:
    """Return the style that pruned output is written in."""
    if options.full or options.pretty:
        return Style(full=True, pretty=options.pretty)
    return replace(LEAN, links=options.links, images=options.images, emphasis=options.emphasis)


def cut_the_best(
    blocks: Blocks, scores: np.ndarray, query: str, budget: int, engines: Engines, rendering: Rendering
) -> tuple[Blocks, np.ndarray, frozenset[int]]:
    """Cut the best block at its sentences where it alone, with what it needs, is over the budget.

    :returns: blocks and scores with the parts in its place, and the indices of the parts.
    """
    none: frozenset[int] = frozenset()
    if not len(blocks):
        return blocks, scores, none
    best = int(np.argmax(scores))
    block = blocks.blocks[best]
    alone = render_blocks(blocks, sorted({best, *block.requires}), rendering)
    if len(alone) <= budget or int(engines.counter.count([alone])[0]) <= budget:
        return blocks, scores, none
    inside = split(blocks, best, max(1, min(blocks.max_words, budget) // 8))
    if len(inside) < 2:
        return blocks, scores, none
    grown = len(inside) - 1
    shifted = [
        replace(other, requires=tuple(i + grown if i > best else i for i in other.requires if i != best))
        if other.requires
        else other
        for other in blocks.blocks
    ]
    parted = Blocks(blocks.trees, [*shifted[:best], *inside, *shifted[best + 1 :]], blocks.max_words)
    own = np.asarray(engines.scorer.score(query, parted), np.float64)[best : best + len(inside)]
    falling = scores[best] - np.argsort(np.argsort(-own, kind="stable"), kind="stable") * 1e-9
    graded = np.concatenate([scores[:best], falling, scores[best + 1 :]])
    return parted, graded, frozenset(range(best, best + len(inside)))


def with_breadcrumbs(blocks: Blocks) -> list[tuple[int, ...]]:
    """Return for each block those that it needs when its headings are kept above it."""
    holder: dict[tuple[int, int], int] = {}
    for index, block in enumerate(blocks.blocks):
        for node in range(block.lo, block.hi):
            if blocks.trees[block.document].tag[node] in ("h1", "h2", "h3", "h4", "h5", "h6"):
                holder[block.document, node] = index
    needed = []
    for index, (block, context) in enumerate(zip(blocks.blocks, blocks.contexts, strict=True)):
        above = [holder[block.document, node] for node in context.headings if (block.document, node) in holder]
        needed.append(tuple(dict.fromkeys(i for i in (*above, *block.requires) if i != index)))
    return needed


class _Clock:
    """Wall time by stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage] = self.laps.get(stage, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class _Call:
    """What a context reports of the call that made it."""

    query: str
    budget: int
    engines: Engines
    seconds: Mapping[str, float]


def _context(
    blocks: Blocks, scores: np.ndarray, chosen: Selection, parts: frozenset[int], rendering: Rendering, call: _Call
) -> Context:
    """Gather what survived, and what did not."""
    own = Counter(block.document for block in blocks.blocks)
    own_kept = Counter(blocks.blocks[index].document for index in chosen.kept)
    documents = [
        DocumentInfo(tree.document, tree.url, tree.title, own_kept[number], own[number])
        for number, tree in enumerate(blocks.trees)
    ]
    counter = call.engines.counter
    return Context(
        output=chosen.output,
        format=rendering.format,
        tokens=chosen.tokens,
        budget=call.budget,
        query=call.query,
        blocks=Records(blocks, scores, chosen.kept, chosen.required, parts),
        documents=documents,
        engines=call.engines.names,
        seconds=call.seconds,
        max_words=blocks.max_words,
        _kept=chosen.kept,
        _render=lambda other: render_blocks(blocks, chosen.kept, replace(rendering, format=other)),
        _count=lambda text: int(counter.count([text])[0]),
        _mark=lambda document, details: _marked(blocks, chosen.kept, document, scores.tolist() if details else None),
        _before=lambda: sum(
            int(counter.count([render_tree(tree, rendering.format, rendering.style)])[0]) for tree in blocks.trees
        ),
    )


def _marked(blocks: Blocks, kept: Sequence[int], document: int, scores: Sequence[float] | None) -> str:
    from .html.mark import mark  # here: hardly any call marks

    return mark(blocks, kept, document, scores)


# --- answering -----------------------------------------------------------------------------------


def answer(documents: Documents, query: str, budget: int, options: Options, engines: Engines) -> AsyncIterator[Event]:
    """Answer a question from documents, as a stream of events that ends in ``done``.

    :raises NothingFound: nothing in the documents bears on the question.
    """
    from .answering import answer_from  # here: it builds on this file
    from .running import Asked

    return answer_from(documents, Asked(query, budget, options), engines)


def segments(kept: Sequence[BlockRecord], trees: Mapping[str, Tree]) -> list[Tagged]:
    """Cut kept blocks into what can be quoted, each with its place, its block's score and what stands above it."""
    tagged: list[Tagged] = []
    for document, run in groupby(kept, key=lambda record: record.span.document):
        records, tree = list(run), trees[document]
        begins = [record.span.start for record in records]
        for one in segments_of(tree, [(record.span.start, record.span.end) for record in records]):
            score = records[max(0, bisect_right(begins, one.start) - 1)].score
            text, span = tree.canonical[one.start : one.end], Span(document, one.start, one.end)
            tagged.append(Tagged(len(tagged) + 1, text, span, score, one.above, one.label, one.kind))
    return tagged


__all__ = ["Engines", "PrunusError", "answer", "prune", "read_page", "read_pages"]
