"""Render any subset of blocks, of one or several documents, in document order.

The output is valid and compressed, and it holds no tag that the documents lack. A comment with
number, title and address separates several documents: a comment is no content, and a later cleaning
drops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.types import OutputFormat
from ..pages.tree import Tree
from ..pages.write.style import LEAN, Style
from ..pages.write.whole import write_tree
from .blocks import Blocks, kept_part

_TITLE_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Rendering:
    """The format and the style of the output, and whether each document gets a header line."""

    format: OutputFormat = "html"
    style: Style = LEAN
    headers: bool = False


def render_blocks(blocks: Blocks, kept: Sequence[int], rendering: Rendering) -> str:
    """Render the kept blocks.

    :param kept: indices of the blocks, in any order.
    """
    by_document: dict[int, list[int]] = {}
    for index in kept:
        by_document.setdefault(blocks.blocks[index].document, []).append(index)
    parts = [render_document(blocks, sorted(by_document[one]), one, rendering) for one in sorted(by_document)]
    return join_documents(parts, rendering)


def render_document(blocks: Blocks, kept: Sequence[int], document: int, rendering: Rendering) -> str:
    """Render the kept blocks of one document, after its header line where the rendering has such lines.

    :param kept: indices of blocks of the document, ascending.
    """
    tree = blocks.trees[document]
    body = write_tree(tree, rendering.format, rendering.style, kept_part(blocks, kept, document))
    return (document_header(tree, document, rendering.format) if rendering.headers else "") + body


def join_documents(parts: Sequence[str], rendering: Rendering) -> str:
    """Join the renderings of several documents."""
    return ("\n" if rendering.format == "html" else "\n\n").join(parts)


def document_header(tree: Tree, number: int, format: OutputFormat) -> str:
    """Return the header line of a document: number, title and address."""
    label = " | ".join(part for part in (tree.title[:_TITLE_LENGTH], tree.url) if part)
    label = " ".join(f"{number + 1} {label}".split())
    if format == "text":
        return f"[{label}]\n"
    # angle brackets and double hyphens from a page's title could end the comment
    safe = label.replace("--", "- -").replace(">", "\u203a").replace("<", "\u2039").rstrip("-")
    return f"<!-- {safe} -->\n"
