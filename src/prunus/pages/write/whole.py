"""Render a document, or the nodes that a mask keeps, in any output format."""

from __future__ import annotations

from ...core.types import OutputFormat
from ..tree import Tree
from .markup import HtmlWriter
from .plain import plain_text
from .selection import Kept
from .style import CLEAN, Style


def render_tree(tree: Tree, format: OutputFormat = "html", style: Style = CLEAN) -> str:
    """Render a whole document."""
    return write_tree(tree, format, style, None)


def write_tree(tree: Tree, format: OutputFormat, style: Style, kept: Kept | None) -> str:
    """Render a document, or the kept part of it.

    :param kept: the part; None for the whole document.
    """
    if format == "html":
        return HtmlWriter(tree, style, kept).html()
    if format == "markdown":
        from .markdown import MarkdownWriter  # imported here: HTML, the default, does not need it

        return MarkdownWriter(tree, style, kept).markdown()
    return plain_text(tree, kept)
