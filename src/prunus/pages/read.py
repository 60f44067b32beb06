"""Read a page into a tree: a format engine turns it into HTML, and cleaning builds the tree."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from html import unescape
from typing import Final

from ..core.errors import BadPage, OutsideFailed, errors_of_page
from ..core.types import Page
from .clean.walk import clean_tree
from .frame import filled, has_few_words, is_frame
from .tree import Tree

ToHtml = Callable[[Page], "str | bytes"]
"""A function that turns a page of any format into HTML."""

_FRAME: Final = "an empty frame that scripts fill"
_SIGNAL: Final = "the site asks that its pages are no input of AI systems (Content-Signal: ai-input=no)"
_WARNING: Final = re.compile(r'<meta name="prunus:warning" content="([^"]*)">')
"""What a format engine says of the document that it read, see :attr:`.Tree.warnings`."""


def read_page(page: Page, to_html: ToHtml, main: bool = False) -> Tree:
    """Clean one page and give it its snapshot id.

    :param to_html: turns the page into HTML.
    :param main: choose the page's main content, see :attr:`.Tree.main`.
    :raises BadPage: the page cannot be read, or shows no text.
    :raises OutsideFailed: the response is a wall and not content, see :class:`~prunus.core.types.Page`.
    """
    tree = clean_page(page, to_html, main)
    tree.snapshot = tree.document = page.snapshot or snapshot_of(page.content)
    return tree


def clean_page(page: Page, to_html: ToHtml, main: bool = False) -> Tree:
    """Clean one page; the tree has no snapshot id.

    :param to_html: turns the page into HTML.
    :param main: choose the page's main content. All of a document that is no HTML is its content.
    :raises BadPage: the page cannot be read, or shows no text.
    :raises OutsideFailed: the response is a wall and not content, see :class:`~prunus.core.types.Page`.
    """
    name = page.url or "page"
    if page.wall:
        raise OutsideFailed(f"{name}: the page sent no content ({page.wall})", subject=name)
    with errors_of_page(name):
        html = to_html(page)
        if main and html is page.content:
            from .main.keep import clean_with_main  # here: it loads numpy, which plain cleaning does not need

            tree = clean_with_main(html, page.charset, name)
        else:
            tree = clean_tree(html, charset=page.charset, name=name)
    if html is page.content:
        tree = _with_data(tree, page, to_html)
    elif isinstance(html, str):
        tree.warnings = [unescape(said) for said in _WARNING.findall(html, 0, html.find("</head>") + 1)]
    if "ai-input=no" in page.headers.get("content-signal", "").replace(" ", "").lower():
        tree.warnings = [*tree.warnings, _SIGNAL]
    if not tree.has_words:
        raise BadPage("; ".join([f"{name}: the page shows no text", *tree.warnings]), subject=name)
    tree.url = page.final_url or page.url
    tree.published, tree.read_at = page.published, page.fetched_at
    return tree


def _with_data(tree: Tree, page: Page, to_html: ToHtml) -> Tree:
    """Return a page that is an empty frame with the words of the data in it, and with a warning."""
    if not has_few_words(tree):
        return tree
    html = filled(tree, page, to_html)
    if html:
        whole = clean_tree(html, name=page.url or "page")
        if whole.words[-1] > tree.words[-1]:
            told = f"the page is {_FRAME}: its words are those of the data in it for these scripts"
            whole.warnings = [told, *whole.warnings]
            return whole
    if is_frame(tree, page):
        tree.warnings = [f"the page is {_FRAME}: what they would show is not read", *tree.warnings]
    return tree


def snapshot_of(content: bytes | str) -> str:
    """Return the sha256 of a page's content, hex."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()
