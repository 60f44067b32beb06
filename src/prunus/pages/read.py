"""Pages are read: a format engine makes HTML of them, cleaning makes a tree."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ..core.errors import BadPage, OutsideFailed
from ..core.types import Page
from .clean.walk import clean_tree
from .tree import Tree

ToHtml = Callable[[Page], "str | bytes"]
"""Turns a page of any format into HTML."""


def read_page(page: Page, to_html: ToHtml) -> Tree:
    """Clean one page and give it its snapshot id.

    :raises BadPage: it cannot be read, or shows no words.
    """
    tree = clean_page(page, to_html)
    tree.snapshot = tree.document = page.snapshot or snapshot_of(page.content)
    return tree


def clean_page(page: Page, to_html: ToHtml) -> Tree:
    """Clean one page.

    :raises BadPage: it cannot be read, or shows no words.
    :raises OutsideFailed: it is a wall and no content.
    """
    name = page.url or "page"
    if page.wall:
        raise OutsideFailed(f"{name}: this is no content ({page.wall})", subject=name)
    tree = clean_tree(to_html(page), charset=page.charset, name=name)
    if not tree.has_words:
        raise BadPage(f"{name}: the page shows no text", subject=name)
    tree.url = page.final_url or page.url
    tree.published = page.published
    return tree


def snapshot_of(content: bytes | str) -> str:
    """Return the sha256 of a page's content, hex."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()
