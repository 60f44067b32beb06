"""Signals from the surroundings of a block, shared by the scorers: breadcrumbs, groups, neighbours, links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.text.bm25 import BM25, query_terms
from ...pages.clean.rules import HEADINGS
from ...pages.grid import has_rowspans, placed_cells, table_rows
from ...pages.table_headers import header_rows_of
from ...pages.tree import Tree, subtree_text
from ..blocks import Blocks

_HEADING_LENGTH = 200
"""Code points of each heading that are used."""

_LABEL_LENGTH = 100
"""Code points of a label from above that are used: a longer cell is no label."""


def above_texts(blocks: Blocks) -> list[str]:
    """Return the text above each block: headings, caption and header of its table, lead of its list."""
    known = blocks.cache.get("above")
    if isinstance(known, list):
        return known
    headings: dict[tuple[int, int], str] = {}
    texts = []
    for block, context in zip(blocks.blocks, blocks.contexts, strict=True):
        parts = []
        for node in context.headings:
            key = (block.document, node)
            if key not in headings:
                headings[key] = subtree_text(blocks.trees[block.document], node)[:_HEADING_LENGTH]
            parts.append(headings[key])
        texts.append("\n".join([*parts, context.lead]) if context.lead else "\n".join(parts))
    blocks.cache["above"] = texts
    return texts


def labelled_texts(blocks: Blocks) -> list[str]:
    """Return the text of each block, behind what labels its row from rows above, as if the row repeated it.

    These are the cells that span the row, and a header in the middle of the table. The title of a group of rows is
    none of them: it would raise all rows of the group alike.
    """
    known = blocks.cache.get("labelled")
    if isinstance(known, list):
        return known
    texts = list(blocks.texts)
    tables: dict[tuple[int, int], dict[int, str]] = {}
    for index, (block, context) in enumerate(zip(blocks.blocks, blocks.contexts, strict=True)):
        tree, table, row = blocks.trees[block.document], context.table, block.lo
        if table < 0:
            continue
        while row > table and tree.tag[row] != "tr":
            row = tree.parent[row]
        labels = tables.get((block.document, table))
        if labels is None:
            labels = tables[block.document, table] = _labels_from_above(tree, table)
        if labels.get(row):
            texts[index] = f"{labels[row]}\t{texts[index]}"
    blocks.cache["labelled"] = texts
    return texts


def _labels_from_above(tree: Tree, table: int) -> dict[int, str]:
    """Map rows of a table to the text of a header in its middle, and of the cells that span them from above."""
    texts: dict[int, str] = {}
    above: dict[int, tuple[int, ...]] = {}
    for row, headers in header_rows_of(tree, table).items():
        above[row] = tuple(header for header in headers if header != row)
    if has_rowspans(tree, table):
        for row, line in placed_cells(tree, table_rows(tree, table)):
            above[row] = (*above.get(row, ()), *(cell for _, cell, _ in line if tree.parent[cell] != row))
    for node in {node for nodes in above.values() for node in nodes}:
        texts[node] = subtree_text(tree, node)[:_LABEL_LENGTH]
    return {row: "\t".join(filter(None, (texts[node] for node in nodes))) for row, nodes in above.items()}


def groups(blocks: Blocks, kind: str) -> NDArray[np.int64]:
    """Return the number of each block's section or table, int [n]; -1 outside any.

    :param kind: ``section`` or ``table``.
    """
    key = f"groups:{kind}"
    known = blocks.cache.get(key)
    if isinstance(known, np.ndarray):
        return known
    numbers: dict[tuple[int, int], int] = {}
    group = np.full(len(blocks), -1, np.int64)
    for index, (block, context) in enumerate(zip(blocks.blocks, blocks.contexts, strict=True)):
        node = context.section if kind == "section" else context.table
        if node >= 0:
            group[index] = numbers.setdefault((block.document, node), len(numbers))
    blocks.cache[key] = group
    return group


def group_means(values: NDArray[np.float64], group: NDArray[np.int64], top: int = 3) -> NDArray[np.float64]:
    """Return for each block the mean of the best ``top`` values of its group; 0 outside any group."""
    result = np.zeros(len(values))
    inside = np.flatnonzero(group >= 0)
    if not len(inside):
        return result
    order = inside[np.lexsort((-values[inside], group[inside]))]
    labels = group[order]
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    best = rank < top
    count = int(group.max()) + 1
    sums = np.bincount(labels[best], values[order][best], count)
    sizes = np.maximum(np.bincount(labels[best], minlength=count), 1)
    result[inside] = (sums / sizes)[group[inside]]
    return result


def neighbours(values: NDArray[np.float64], documents: Sequence[int]) -> NDArray[np.float64]:
    """Return for each block the larger value of its two neighbours in the same document."""
    if len(values) < 2:
        return np.zeros(len(values))
    document = np.asarray(documents)
    same = document[1:] == document[:-1]
    before = np.r_[0.0, np.where(same, values[:-1], 0.0)]
    after = np.r_[np.where(same, values[1:], 0.0), 0.0]
    return np.asarray(np.maximum(before, after), np.float64)


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide values by the largest value; all zero where that is not positive."""
    top = float(values.max()) if len(values) else 0.0
    return values / top if top > 0 else np.zeros(len(values))


def coverage(index: BM25, query: str, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each item the share of the query's terms (by idf) that its group holds; 0 outside any group."""
    result = np.zeros(len(group))
    inside = group >= 0
    terms = list(dict.fromkeys(query_terms(query, index.language)))
    total = sum(index.idf(term) for term in terms)
    if not inside.any() or total <= 0:
        return result
    held = np.zeros(int(group.max()) + 1)
    for term in terms:
        items = index.items(term)
        held[np.unique(group[items][inside[items]])] += index.idf(term) / total
    result[inside] = held[group[inside]]
    return result


def link_density(blocks: Blocks) -> NDArray[np.float64]:
    """Return the share of each block's words that are links, in [0, 1]."""
    known = blocks.cache.get("links")
    if isinstance(known, np.ndarray):
        return known
    density = np.zeros(len(blocks))
    for index, block in enumerate(blocks.blocks):
        tree = blocks.trees[block.document]
        linked, node = 0, block.lo
        while node < block.hi:
            if tree.tag[node] == "a":
                linked += tree.word_count(node)
                node = tree.end[node]
            else:
                node += 1
        density[index] = min(1.0, linked / max(1, block.words))
    blocks.cache["links"] = density
    return density


def headings(blocks: Blocks) -> NDArray[np.bool_]:
    """Mark the blocks that are only a heading."""
    known = blocks.cache.get("headings")
    if isinstance(known, np.ndarray):
        return known
    marks = np.fromiter(
        (block.is_subtree and blocks.trees[block.document].tag[block.lo] in HEADINGS for block in blocks.blocks),
        bool,
        len(blocks),
    )
    blocks.cache["headings"] = marks
    return marks


def rank_headers_below_rows(scores: NDArray[np.float64], blocks: Blocks) -> NDArray[np.float64]:
    """Lower each required block (a header row) below the best block that requires it: alone it is no evidence."""
    best: dict[int, float] = {}
    for index, block in enumerate(blocks.blocks):
        for needed in block.requires:
            best[needed] = max(best.get(needed, -np.inf), float(scores[index]))
    for index, score in best.items():
        scores[index] = min(scores[index], score - 1e-6)
    return scores
