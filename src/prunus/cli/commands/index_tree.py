"""``prunus index tree``: draw the tree of an index as text, or write it as a page to walk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import click

from ...api.index import Index
from ...core.errors import BadInput
from ...core.options import Options
from ...index.terms import Retrieval
from ..choices import common, question, retrieval_from, retrieval_options
from ..output import emit, emit_json, say, shorten, write_whole
from ..tree_page import TreeDrawing, TreeMatches, write_tree

_MOST: int = 100_000
"""Nodes of a page at most (about 60 MB); of a larger tree the leaves are left out."""

_COLUMNS = 78


@click.command("tree")
@click.argument("index", metavar="INDEX")
@click.option(
    "--html", "page", type=click.Path(readable=False), metavar="FILE", help="Write a page to walk and search."
)
@question("Show what it retrieves.")
@click.option("--budget", type=click.IntRange(min=1), default=2000, show_default=True, help="Tokens to retrieve.")
@retrieval_options
@common
def tree(index: str, question: str, **flags: Any) -> None:
    """Draw the tree of an index: as text, or as a page to walk and search that loads nothing from elsewhere.

    With a question, nodes that tree retrieval finds are marked [T], leaves that flat dense retrieval finds are marked
    [F], and both texts are shown. Tree retrieval is the paper's collapsed retrieval unless --retrieval names another.

    \b
    Examples:
      prunus index tree handbook
      prunus index tree handbook --html tree.html -q "What does Harbour cost?" --budget 400
      prunus index tree handbook -q "What does Harbour cost?" --retrieval traversal --start-layer 1
    """
    opened = Index.open(index, create=False, options=Options(embedder=flags["embedder"] or ""))
    drawing = drawing_of(opened, flags["page"] is not None)
    ways: list[TreeMatches] = []
    if question:
        how = retrieval_from({**flags, "retrieval": flags["retrieval"] or "collapsed"})
        for name, retrieval in (("tree", how), ("flat", Retrieval("flat", how.documents))):
            result = opened.retrieved(question, flags["budget"], retrieval)
            ways.append(TreeMatches(name, [node.id for node in result.nodes], result.text, result.tokens))
    if flags["page"]:
        write_whole(Path(flags["page"]), write_tree(drawing, question, ways))
        if not flags["quiet"]:
            say(f"{len(drawing.nodes):,} nodes written to {flags['page']}")
        return
    if flags["as_json"]:
        by_name = {way.name: {"nodes": way.ids, "text": way.text, "tokens": way.tokens} for way in ways}
        emit_json({"nodes": drawing.nodes, "question": question, **by_name})
        return
    emit("\n".join(_lines(drawing, ways)))
    for way in ways:
        emit(f"\n{way.title} ({way.tokens:,} tokens)\n\n{way.text}")


def drawing_of(opened: Index, bounded: bool) -> TreeDrawing:
    """Read the whole tree of an index.

    :param bounded: leave the leaves out where there are more than 100,000 nodes.
    :raises BadInput: the index is empty.
    """
    view, edges = opened.store.view(), opened.store.edges()
    ids = view.ids.tolist()
    if not ids:
        raise BadInput(
            f"{opened.location}: the index is empty; add documents with prunus index add", subject=opened.location
        )
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
    return TreeDrawing(opened.location, nodes, left_out)


def _lines(drawing: TreeDrawing, ways: Sequence[TreeMatches]) -> list[str]:
    """Return the tree as lines, roots first; a node with several parents is listed under each of them.

    The first node of a document alone, from the top, names the document.
    """
    by_id = {node["id"]: node for node in drawing.nodes}
    marks = [(way.name[0].upper(), set(way.ids)) for way in ways]
    lines: list[str] = []
    todo = [(node["id"], 0, "") for node in reversed(drawing.nodes) if node["root"]]
    while todo:
        id, depth, above = todo.pop()
        node = by_id[id]
        mark = "".join(f"[{letter}]" for letter, ids in marks if id in ids)
        name = f"{PurePath(node['document']).name}: " if node["document"] != above and node["document"] else ""
        text = shorten(f"{name}{node['text'] or '(no summary yet)'}", max(20, _COLUMNS - 2 * depth))
        lines.append(f"{'  ' * depth}{'•' if node['layer'] else '-'} {id}{mark} {text}")
        todo += [(child, depth + 1, node["document"]) for child in reversed(node["children"])]
    return lines
