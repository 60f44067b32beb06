"""Locate quotes in the pages that were read, by code; mark what is not found."""

from __future__ import annotations

import re
from typing import Final

from .html.tree import Tree
from .text import normalise
from .types import Citation, Span

_LONGEST: Final = 4000
_KIN: Final = {
    **dict.fromkeys("'\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "['\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`]"),
    **dict.fromkeys('"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb', '["\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb]'),
    **dict.fromkeys("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "[-\u2010\u2011\u2012\u2013\u2014\u2015\u2212]"),
}


def locate(quote: str, tree: Tree) -> Span | None:
    """Find a quote in a document: literally, then up to white space, quotes and dashes.

    :returns: where the page's own words stand, or None.
    """
    words = quote.strip()
    if not words:
        return None
    place = tree.canonical.find(words)
    if place >= 0:
        return Span(tree.document, place, place + len(words))
    if len(words) > _LONGEST:
        return None
    pattern = r"\s+".join("".join(_KIN.get(letter, re.escape(letter)) for letter in word) for word in words.split())
    found = re.search(pattern, tree.canonical)
    return Span(tree.document, found.start(), found.end()) if found else None


def is_found(quote: str, tree: Tree, span: Span) -> bool:
    """Tell whether a quote equals its slice of the page (both normalised)."""
    wanted = normalise(quote)
    return bool(wanted) and wanted == normalise(tree.canonical[span.start : span.end])


def cite(number: int, quote: str, tree: Tree, span: Span | None = None) -> Citation:
    """Build a checked citation: the quote as the page has it, with its place and XPath.

    :param span: where the quote is said to stand; without it, or where it is wrong, the page is searched.
    """
    if span is None or not is_found(quote, tree, span):
        span = locate(quote, tree)
    found = span is not None and is_found(quote, tree, span)
    place = span or Span(tree.document, 0, 0)
    return Citation(
        number=number,
        url=tree.url,
        title=tree.title,
        published=tree.published,
        document=tree.document,
        snapshot=tree.snapshot,
        quote=tree.canonical[place.start : place.end] if found else quote,
        span=place,
        xpath=tree.xpath(tree.node_at(place.start)) if found else "",
        found=found,
        support=1.0 if found else 0.0,
    )
