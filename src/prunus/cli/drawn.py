"""``prunus index tree``: the tree as text, or as a page with zoom and search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..api.index import Index
from ..core.errors import BadInput
from ..index.terms import Retrieval
from .choices import as_unicode, common
from .explain import shorten
from .indexes import retrieval_from, retrieval_options
from .output import emit, emit_json, say, write_whole
from .tree_page import Taken, TreeDrawing, write_tree

_MOST: int = 20_000
"""Nodes that are drawn at most; of a larger tree the leaves are left out."""

_COLUMNS = 78


@click.command("tree")
@click.argument("index", metavar="INDEX")
@click.option(
    "--html", "page", type=click.Path(readable=False), metavar="FILE", help="Write a page with zoom and search."
)
@click.option("-Q", "--question", default="", metavar="TEXT", callback=as_unicode, help="Show what it retrieves.")
@click.option("--budget", type=click.IntRange(min=1), default=2000, show_default=True, help="Tokens of its nodes.")
@retrieval_options
@common
def tree(index: str, question: str, **given: Any) -> None:
    """Draw the tree of an index: as text, or as a page with zoom and search that loads nothing.

    With a question, the nodes that tree retrieval takes are marked [T], the leaves that flat dense retrieval takes
    [F], and both texts are shown. Tree retrieval is the paper's collapsed one unless --retrieval says otherwise.

    \b
    Examples:
      prunus index tree handbook
      prunus index tree handbook --html tree.html -Q "What does Harbour cost?" --budget 400
      prunus index tree handbook -Q "What does Harbour cost?" --retrieval traversal --start-layer 1
    """
    opened = Index.open(index, create=False)
    drawing = drawing_of(opened, given["page"] is not None)
    taken: list[Taken] = []
    if question:
        how = retrieval_from({**given, "retrieval": given["retrieval"] or "collapsed"})
        for name, retrieval in (("tree", how), ("flat", Retrieval("flat", how.documents))):
            got = opened.retrieved(question, given["budget"], retrieval)
            taken.append(Taken(name, [node.id for node in got.nodes], got.text, got.tokens))
    if given["page"]:
        write_whole(Path(given["page"]), write_tree(drawing, question, taken))
        if not given["quiet"]:
            say(f"{len(drawing.nodes):,} nodes drawn in {given['page']}")
        return
    if given["as_json"]:
        found = {one.name: {"nodes": one.ids, "text": one.text, "tokens": one.tokens} for one in taken}
        emit_json({"nodes": drawing.nodes, "question": question, **found})
        return
    emit("\n".join(_lines(drawing, taken)))
    for one in taken:
        emit(f"\n{one.title} ({one.tokens:,} tokens)\n\n{one.text}")


def drawing_of(opened: Index, bounded: bool) -> TreeDrawing:
    """Read a whole tree.

    :raises BadInput: there is nothing in the index.
    """
    view, edges = opened.store.view(), opened.store.edges()
    ids = view.ids.tolist()
    if not ids:
        raise BadInput(f"{opened.place}: there is nothing in the index", subject=opened.place)
    left_out = bounded and len(ids) > _MOST
    if left_out:
        ids = view.ids[view.layer > 0].tolist()[-_MOST:]
    shown = set(ids)
    below = {child for children in edges.values() for child in children}
    nodes = [
        {"id": node.id, "layer": node.layer, "document": node.document, "tokens": node.tokens, "text": node.text,
         "children": [child for child in edges.get(node.id, ()) if child in shown], "root": node.id not in below}
        for node in opened.store.get(ids)
    ]  # fmt: skip
    return TreeDrawing(opened.place, nodes, left_out)


def _lines(drawing: TreeDrawing, taken: Sequence[Taken]) -> list[str]:
    """Return the tree as lines, roots first; a node with several parents stands under each."""
    by_id = {node["id"]: node for node in drawing.nodes}
    marks = [(one.name[0].upper(), set(one.ids)) for one in taken]
    lines: list[str] = []
    todo = [(node["id"], 0) for node in reversed(drawing.nodes) if node["root"]]
    while todo:
        id, depth = todo.pop()
        node = by_id[id]
        mark = "".join(f"[{letter}]" for letter, ids in marks if id in ids)
        text = shorten(node["text"] or "(no summary yet)", max(20, _COLUMNS - 2 * depth))
        lines.append(f"{'  ' * depth}{'•' if node['layer'] else '-'} {id}{mark} {text}")
        todo += [(child, depth + 1) for child in reversed(node["children"])]
    return lines
