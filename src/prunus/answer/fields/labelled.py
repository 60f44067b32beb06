"""What a page labels: cells beside the label of their row, terms with definitions, lines after a colon, sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ...core.text.bm25 import query_terms
from ...evidence.segments import span_of
from ...pages.clean import rules
from ...pages.clean.parse import parse
from ...pages.grid import placed_cells, table_rows
from ...pages.json_ld import items_of
from ...pages.table_headers import group_titles, header_rows, header_rows_of
from ...pages.tree import Tree, subtree_text

_COLON: Final = re.compile(r"(?m)^([^:\n\t]{2,60}?):[ \t](?=\S)([^\n]{1,500})$")
_LONGEST: Final = 80
"""Code points of a label at most."""
_SECTION: Final = 800
"""Code points of a section that is a value at most."""
_MOST: Final = 5_000
"""Labelled values of a page at most."""
_META: Final = 'meta[property^="product:"][content], meta[property^="og:price"][content], [itemprop]'


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value with its label.

    :param own: the terms of its label.
    :param terms: those, and the terms of what else labels it: the header of its column, the caption.
    :param value: (start, end) in the canonical text.
    :param quote: (start, end) of label and value.
    """

    label: str
    own: frozenset[str]
    terms: frozenset[str]
    value: tuple[int, int]
    quote: tuple[int, int]


def _made(label: str, beside: str, value: tuple[int, int], quote: tuple[int, int]) -> Labelled:
    own = frozenset(query_terms(label[:_LONGEST]))
    return Labelled(label, own, own | set(query_terms(beside[:500])) if beside.strip() else own, value, quote)


def labelled_in(tree: Tree) -> list[Labelled]:
    """Return the labelled values of a page, kept on the tree."""
    known: list[Labelled] | None = tree.cache.get(("labelled", 0))
    if known is None:
        known = []
        for one in _all(tree):
            if one.own and len(one.label) <= _LONGEST and tree.canonical[slice(*one.value)].strip():
                known.append(one)
            if len(known) >= _MOST:
                break
        tree.cache[("labelled", 0)] = known
    return known


def _all(tree: Tree) -> Iterator[Labelled]:
    term = -1
    for node, tag in enumerate(tree.tag):
        if tag == "table":
            yield from _of_table(tree, node)
        elif tag == "dt":
            term = node
        elif tag == "dd" and term >= 0 and tree.parent[term] == tree.parent[node]:
            value = span_of(tree, node, tree.end[node])
            yield _made(subtree_text(tree, term), "", value, (span_of(tree, term, tree.end[term])[0], value[1]))
    text = tree.canonical
    for match in _COLON.finditer(text):
        yield _made(match[1].strip(), "", match.span(2), match.span())
    headings = [node for node, tag in enumerate(tree.tag) if tag in rules.HEADINGS and tree.word_count(node)]
    ends = [tree.starts[node] for node in headings[1:]] + [len(text)]
    for node, end in zip(headings, ends, strict=False):
        start, _ = span_of(tree, node, tree.end[node])
        begin = tree.stop(tree.end[node] - 1)
        cut = text.rfind("\n", begin, begin + _SECTION) if end - begin > _SECTION else end
        begin, cut = _trimmed(text, begin, max(cut, begin))
        yield _made(subtree_text(tree, node), "", (begin, cut), (start, max(start, cut)))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, max(start, end - (len(inside) - len(inside.rstrip())))


def _of_table(tree: Tree, table: int) -> Iterator[Labelled]:
    headers, rows, titles = header_rows(tree, table), table_rows(tree, table), group_titles(tree, table)
    others = header_rows_of(tree, table)
    caption = next((subtree_text(tree, node) for node in tree.children(table) if tree.tag[node] == "caption"), "")
    above: dict[int, str] = {}
    for row, cells in placed_cells(tree, rows):
        filled = [(column, cell, width) for column, cell, width in cells if tree.word_count(cell)]
        if row in others and others[row][0] == row:
            above.clear()  # a header in the middle labels the rows below it alone
        if row in headers or row in others.get(row, ()):
            for column, cell, width in filled:
                for at in range(column, min(column + width, column + 50)):
                    above[at] = f"{above.get(at, '')} {subtree_text(tree, cell)}".strip()
            continue
        if len(filled) < 2:
            continue
        label, whole = subtree_text(tree, filled[0][1]), span_of(tree, row, tree.end[row])
        group = " ".join(subtree_text(tree, title) for title in titles.get(row, ()))
        for column, cell, _ in filled[1:]:
            around = f"{above.get(column, '')} {group} {caption}"
            yield _made(label, around, span_of(tree, cell, tree.end[cell]), whole)


def said_in_data(tree: Tree) -> list[tuple[str, str]]:
    """Return names and values of what a page says for programs (JSON-LD, microdata, product data), kept on the tree."""
    known: list[tuple[str, str]] | None = tree.cache.get(("said in data", 0))
    if known is None:
        markup, charset = tree._markup
        known = []
        if markup:
            document = parse(markup, charset)
            for item in items_of(document):
                known += _flat(item, "", 0)
            for element in document.select(_META)[:_MOST]:
                name = (
                    element.attr("itemprop")
                    or (element.attr("property") or "").replace(":amount", "").rpartition(":")[2]
                )
                known.append((name or "", element.attr("content") or element.text[:500]))
        tree.cache[("said in data", 0)] = known
    return known


def _flat(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers of JSON-LD with the name of each; a thing's own name has that of its property."""
    if isinstance(value, dict) and depth < 6:
        for key, inner in value.items():
            if not key.startswith("@"):
                yield from _flat(inner, name if key == "name" and name else key, depth + 1)
    elif isinstance(value, list) and depth < 6:
        for inner in value[:50]:
            yield from _flat(inner, name, depth + 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and name:
        yield name, str(value)[:1_000]
