"""Keeps what a page's own data names beside its main content: who wrote a post, the name and the price of a product.

The networks drop these short lines: people who mark pages rarely take them for content, and readers ask for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.text.answer_kinds import MONEY
from ..clean.parse import Element
from ..dates import iso_date
from ..json_ld import is_kind, items_of
from .features import HEADING, TITLE, Units

Bools = NDArray[np.bool_]

_POSTS: Final = ("Question", "Answer", "Comment", "UserComments", "Posting", "Review")
"""Ends of the types (schema.org) of what one person wrote in a thread."""

_POST: Final = 5
"""Words of a kept unit that stand for its post."""

_BYLINE: Final = 8
"""Words of a line beside an author's name that may hold the date."""

_NO_NAME: Final = 2
"""ASCII letters of a line that is no author's name, but a letter in place of a picture or "OP"."""

_PRODUCTS: Final = ("Product", "ProductGroup")
_PRICES: Final = "[itemtype$='/Product'] [itemprop=price], meta[property$='price:amount'][content]"
_AMOUNT: Final = re.compile(r"\d(?:[\d.,'\u2019\u00a0\u202f ]{0,15}\d)?")
_CENTS: Final = re.compile(r"[.,](\d{1,2})$")
_LONGEST: Final = 200  # code points of a product's name that are looked at
_MOST: Final = 50  # offers and prices that are looked at
_LINE: Final = 12  # words of a line with a price
_NEAR: Final = 60  # units between a product's name and its price


def keep_stated(units: Units, kept: Bools, origins: Sequence[Any]) -> None:
    """Keep also the lines of a page that its data name: JSON-LD, microdata, and the tags of the Open Graph.

    :param kept: which units are kept; changed in place.
    :param origins: the DOM node of each node of the tree.
    """
    root = origins[0]
    if not isinstance(root, Element):
        return
    if root.select_one("[itemprop=author]") is not None:
        _authors_of_posts(units, kept, origins)
    name, amounts = _product(root)
    if name or amounts:
        _keep_product(units, kept, name, amounts)


def _product(root: Element) -> tuple[str, set[str]]:
    """Return the name of the one product that a page is about, and the amounts of its price; empty where it is none."""
    items = [item for item in items_of(root) if is_kind(item, _PRODUCTS)]
    names = {name for item in items if isinstance(name := item.get("name"), str)}
    if len(names) > 1:
        return "", set()
    stated = [str(value) for item in items for value in _prices(item)]
    if not stated:
        found = root.select(_PRICES)[:_MOST]
        stated = [element.attr("content") or element.text[:_MOST] for element in found]
    amounts = {amount for one in stated for amount in _amounts(one)}
    return (names.pop() if names else ""), amounts if len(amounts) <= 3 or items else set()


def _prices(item: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the prices of an item of JSON-LD, of its offers, and of its variants."""
    if isinstance(item, list):
        for one in item[:_MOST]:
            yield from _prices(one, depth)
    elif isinstance(item, dict) and depth < 4:
        yield from (item[key] for key in ("price", "lowPrice") if isinstance(item.get(key), str | int | float))
        for key in ("offers", "priceSpecification", "hasVariant"):
            yield from _prices(item.get(key), depth + 1)


def _amounts(text: str) -> Iterator[str]:
    """Yield the numbers of a text without separators of thousands and without zeros at the end: 1,772.50 is 1772.5."""
    for found in _AMOUNT.finditer(text[:200]):
        whole, cents = found[0], ""
        if part := _CENTS.search(whole):
            whole, cents = whole[: part.start()], part[1].rstrip("0")
        yield re.sub(r"\D", "", whole) + (f".{cents}" if cents else "")


def _keep_product(units: Units, kept: Bools, name: str, amounts: set[str]) -> None:
    """Keep the heading with the product's name, and the nearest line with its price, after it where there is one."""
    wanted = " ".join(name[:_LONGEST].casefold().split())
    is_heading = units.inside[:, list(HEADING)].any(axis=1) & ~units.inside[:, TITLE]
    top = -1
    for place in np.flatnonzero(is_heading).tolist():
        text = " ".join(units.texts[place].casefold().split())
        if wanted and (text == wanted or (len(text) > 8 and text in wanted) or wanted in text):
            kept[place], top = True, place
            break
    if not amounts:
        return
    places = [
        place
        for place, text in enumerate(units.texts)
        if units.words[place] <= _LINE and MONEY.search(text) and not amounts.isdisjoint(_amounts(text))
    ]
    if places and not kept[places].any():
        nearest = min(places, key=lambda place: (place < top, abs(place - top)))
        kept[nearest] |= top < 0 or abs(nearest - top) <= _NEAR


def _authors_of_posts(units: Units, kept: Bools, origins: Sequence[Any]) -> None:
    """Keep the name of who wrote each kept post, and the date beside it, where the page's microdata name them."""
    known: dict[Any, tuple[Any, Any]] = {}
    places = [_author_and_post(origins[node], known) for node in units.first.tolist()]
    words = units.words.tolist()
    shown = {post for place, (_, post) in enumerate(places) if post and kept[place] and words[place] >= _POST}
    named: set[Any] = set()
    for place, (author, post) in enumerate(places):
        text = units.texts[place]
        if author is None or post not in shown or author in named or (text.isascii() and len(text) <= _NO_NAME):
            continue
        named.add(author)  # what follows the name are badges and counts
        kept[place] = True
        for beside in range(max(place - 2, 0), min(place + 3, len(places))):
            if places[beside][1] == post and _is_dated(units.texts[beside]):
                kept[beside] = True


def _is_dated(line: str) -> bool:
    """Tell whether a short line is a date, or a date after one word: "answered Jan 4, 2024 at 13:16"."""
    return len(line.split()) <= _BYLINE and any(map(iso_date, (line, line.partition(" ")[2])))


def _author_and_post(origin: Any, known: dict[Any, tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the elements of the author and of the post that a node is in, by the page's microdata; None for none.

    :param known: earlier results.
    """
    element = origin if isinstance(origin, Element) else origin.parent
    path = []
    while isinstance(element, Element) and element not in known:
        path.append(element)
        element = element.parent
    author, post = known.get(element, (None, None))
    for element in reversed(path):
        if (element.attr("itemtype") or "").rstrip().endswith(_POSTS):
            author, post = None, element
        elif post is not None and element.attr("itemprop") == "author":
            author = element
        known[element] = author, post
    return author, post
