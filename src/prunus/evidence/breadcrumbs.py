"""The breadcrumbs of a block: its headings, the caption and header of its table, the lead of its list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.deadline import checked
from ..pages.clean import rules
from ..pages.table_headers import header_rows
from ..pages.tree import Tree, subtree_text

LEAD_LENGTH = 300
"""Code points of a caption, header or lead that are kept as context."""


@dataclass(frozen=True, slots=True)
class Breadcrumbs:
    """The headings and the lead above a block, which tell what the block is about.

    :param headings: nodes of the headings above the block, outermost first.
    :param section: node of the innermost heading; -1 where there is none.
    :param table: node of the table around the block; -1 outside tables.
    :param lead: caption and header of the table, or the sentence that introduces the list.
    """

    headings: tuple[int, ...] = ()
    section: int = -1
    table: int = -1
    lead: str = ""


def breadcrumbs_of(tree: Tree, blocks: Iterable[tuple[int, int, int]]) -> list[Breadcrumbs]:
    """Return the breadcrumbs of each block of one document.

    :param blocks: (node, lo, hi) of each block, in document order.
    """
    headings = _headings(tree)
    leads: dict[int, str] = {}
    result: list[Breadcrumbs] = []
    open_headings: list[tuple[int, int, int]] = []  # node, level, end of scope
    position = 0
    for node, lo, hi in checked(blocks):
        while position < len(headings) and headings[position][0] < lo:
            heading = headings[position]
            while open_headings and (open_headings[-1][1] >= heading[1] or open_headings[-1][2] <= heading[0]):
                open_headings.pop()
            open_headings.append(heading)
            position += 1
        level = 7
        first = headings[position][0] if position < len(headings) else hi
        if first < hi and tree.words[first] == tree.words[lo]:
            level = headings[position][1]  # the block begins with a heading, so it opens a section at that level
        path = tuple(heading for heading, depth, end in open_headings if end > lo and depth < level)
        table, item_list = _surroundings(tree, node, lo)
        lead = ""
        holder = table if table >= 0 else item_list
        if holder >= 0:
            if holder not in leads:
                leads[holder] = _table_lead(tree, holder) if table >= 0 else _list_lead(tree, holder)
            lead = leads[holder]
        context = Breadcrumbs(path, path[-1] if path else -1, table, lead)
        result.append(result[-1] if result and result[-1] == context else context)  # share equal objects: saves memory
    return result


def _headings(tree: Tree) -> list[tuple[int, int, int]]:
    """List the headings as (node, level, end of scope); a heading covers the nodes after it in its container."""
    result = []
    for node, tag in enumerate(tree.tag):
        if tag in rules.HEADINGS and tree.word_count(node):
            above = tree.parent[node]
            # a wrapper that holds nothing but the heading is not the section that it heads
            while above > 0 and tree.word_count(above) == tree.word_count(node):
                above = tree.parent[above]
            if tree.tag[above] in ("header", "hgroup"):
                above = tree.parent[above]
            result.append((node, int(tag[1]), tree.end[above]))
    return result


def _surroundings(tree: Tree, node: int, lo: int) -> tuple[int, int]:
    """Return the innermost table and list around a block; a table that the block holds whole does not count."""
    table = item_list = -1
    above = tree.parent[lo] if lo == node else node
    for _ in range(12):  # a bound on the depth keeps the time linear on pages of deep nesting
        if above <= 0:
            break
        tag = tree.tag[above]
        if tag == "table" and table < 0:
            table = above
            break
        if tag in ("ul", "ol", "dl") and item_list < 0:
            item_list = above
        above = tree.parent[above]
    return table, item_list


def _table_lead(tree: Tree, table: int) -> str:
    """Return the caption and the header cells of a table as one line."""
    parts = [subtree_text(tree, child) for child in tree.children(table)[:2] if tree.tag[child] == "caption"]
    parts += [subtree_text(tree, row) for row in sorted(header_rows(tree, table))]
    return " ".join(parts)[:LEAD_LENGTH]


def _list_lead(tree: Tree, item_list: int) -> str:
    """Return the paragraph or the words right before a list."""
    above, before = tree.parent[item_list], item_list - 1
    while before > above and tree.parent[before] != above:
        before = tree.parent[before]
    if before <= above or tree.tag[before] not in ("", "p", "div", "dt", "b", "strong", "em"):
        return ""
    return subtree_text(tree, before)[-LEAD_LENGTH:]
