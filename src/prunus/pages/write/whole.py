"""Render a document, or the nodes that a mask keeps, in any output format."""

from __future__ import annotations

from ...core.types import Format
from ..tree import Tree
from .markup import HtmlWriter, Pieces
from .plain import plain_text
from .style import CLEAN, Style


def render_tree(tree: Tree, format: Format = "html", style: Style = CLEAN) -> str:
    """Render a whole document."""
    return write_tree(tree, format, style, None, None)


def write_tree(tree: Tree, format: Format, style: Style, mask: bytearray | None, pieces: Pieces | None) -> str:
    """Render the kept nodes of a document.

    :param mask: per node: 0 dropped, 1 kept, 2 an ancestor of a kept node; None keeps all.
    :param pieces: text nodes of which only parts are kept; None for none.
    """
    if format == "html":
        return HtmlWriter(tree, style, mask, pieces).html()
    if format == "markdown":
        from .markdown import MarkdownWriter  # imported here: HTML, the default, does not need it

        return MarkdownWriter(tree, style, mask, pieces).markdown()
    return plain_text(tree, mask, pieces)
