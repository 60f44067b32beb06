"""Writes one whole document, or the part of it that a mask leaves, in any of the formats."""

from __future__ import annotations

from ...core.types import Format
from ..tree import Tree
from .markup import HtmlWriter, Pieces
from .plain import plain_text
from .style import CLEAN, Style


def render_tree(tree: Tree, format: Format = "html", style: Style = CLEAN) -> str:
    """Render one whole document."""
    return write_tree(tree, format, style, None, None)


def write_tree(tree: Tree, format: Format, style: Style, mask: bytearray | None, pieces: Pieces | None) -> str:
    """Write the nodes that a mask leaves (all where it is None), of some of them only the pieces that are given."""
    if format == "html":
        return HtmlWriter(tree, style, mask, pieces).html()
    if format == "markdown":
        from .markdown import MarkdownWriter  # here: HTML, the default, does without it

        return MarkdownWriter(tree, style, mask, pieces).markdown()
    return plain_text(tree, mask, pieces)
