"""A slow, plain reader of HTML, with which the tests compare Prunus.

It follows the HTML standard and browsers, not Prunus's rules: one recursive walk over a DOM, letter by letter.
``visible`` returns the words that a reader sees and the elements around them, ``grids`` the cells of every table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import turbohtml

NEVER_SHOWN = frozenset(
    """script style template iframe frameset noframes noembed canvas svg datalist meta link base area param track
    source colgroup col""".split()
)

IN_LINE = frozenset(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strike
    strong sub sup time tt u var wbr rb ruby rt rtc rp math mi mo mn mrow mtext noscript picture""".split()
)
"""Elements that a browser lays out inside a line; all others start a new line."""

MEANINGFUL = frozenset(
    """a ul ol li dl dt dd table caption tr td th h1 h2 h3 h4 h5 h6 pre blockquote details summary title
    b strong i em code kbd samp sub sup del ins abbr mark s u q small cite var dfn""".split()
)
"""Elements whose loss, repetition or move would change the meaning of their words."""

STRUCTURE = MEANINGFUL - frozenset("a b strong i em u small cite var dfn".split())
"""The meaningful elements that are written even without emphasis and links."""


_SCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-" * 2)


def without_marks(text: str) -> str:
    """Return text without the marks of struck, quoted, raised and lowered words, which plain text and Markdown write."""
    return re.sub("[~“”‘’^_()]", "", text).translate(_SCRIPTS)


@dataclass(frozen=True)
class Word:
    """A visible word, with the meaningful elements around its first letter as (tag, number of the element)."""

    text: str
    path: tuple[tuple[str, int], ...]


def parse(html: str) -> Any:
    """Parse HTML by the HTML5 algorithm."""
    return turbohtml.parse(html)


def is_hidden(element: Any) -> bool:
    """Tell whether an element's attributes clearly hide it."""
    attrs = element.attrs
    if "hidden" in attrs and attrs.get("hidden") != "until-found":
        return True
    style = re.sub(r"\s+", "", str(attrs.get("style") or "").lower())
    if "display:none" in style or "visibility:hidden" in style:
        return True
    off_screen = "position:absolute" in style and re.search(r"(left|top):-\d{4,}px", style) is not None
    return off_screen or ("width:0;height:0" in style and "overflow:hidden" in style)


def is_permalink(link: Any) -> bool:
    """Tell whether a link is the sign beside a heading that gives the heading's address."""
    address = str(link.attrs.get("href") or "").strip()
    if link.tag != "a" or "#" not in address or address == "#":
        return False
    heading = link.closest("h1,h2,h3,h4,h5,h6,dt,caption,figcaption,legend,summary,.caption")
    sign = link.text.strip()
    if heading is None or re.fullmatch(r"[¶#§🔗⚓∞\ufe0f\uf0c1]{1,9}", sign) is None:
        return False
    words = heading.text.strip()
    named = re.search("anchor|header-?link|perma-?link|hash-?link", str(link.attrs.get("class") or ""), re.IGNORECASE)
    return bool(words.endswith(sign) or (named and words.startswith(sign)))


def elements(node: Any) -> Iterator[Any]:
    """Yield the child elements of a node."""
    return (child for child in node.children if isinstance(child, turbohtml.Element))


HOLE = "\ufdd0"
"""Stands for an element that may be hidden: a code point that no page holds."""


class _Reader:
    """The walk over a DOM; collects letters with their paths, and None between words."""

    def __init__(self, kept: frozenset[str], hides: Callable[[Any], bool]) -> None:
        self.kept, self.hides = kept, hides
        self.divides: Callable[[Any], bool] = lambda element: False
        self.hole = False  # whether a hidden element leaves a HOLE
        self.names = False  # whether the names of icons are read, of elements that have other words too
        self.letters: list[tuple[str, tuple[Any, ...]] | None] = []

    def add_letters(self, text: str, path: tuple[Any, ...]) -> None:
        for letter in text:
            self.letters.append(None if letter.isspace() else (letter, path))

    def add_gap(self) -> None:
        self.letters.append(None)

    def read(self, node: Any, path: tuple[Any, ...]) -> None:
        if type(node) is turbohtml.Text:
            self.add_letters(node.data, path)
        if not isinstance(node, turbohtml.Element):
            return
        tag = node.tag
        if self.names:
            drawn = [title.text for title in node.find_all("title")] if tag == "svg" else []
            for name in (node.attrs.get("aria-label"), node.attrs.get("title"), *drawn):
                if name:
                    self.add_letters(f" {name} ", path)
        if self.hole and tag not in NEVER_SHOWN and self.hides(node):
            self.add_letters(HOLE, path)
        if (
            tag in NEVER_SHOWN
            or self.hides(node)
            or is_permalink(node)
            or (tag == "title" and node.parent.tag != "head")
        ):
            return
        if tag in self.kept:
            path = (*path, node)
        in_line = tag in IN_LINE and not self.divides(node)
        if not in_line:
            self.add_gap()
        attribute = {"img": "alt", "video": "title", "audio": "title", "optgroup": "label"}.get(tag)
        if attribute:
            self.add_letters(str(node.attrs.get(attribute) or ""), path)
        if tag == "input":
            self.add_letters(_shown_value(node), path)
        for child in _shown_children(node):
            self.read(child, path)
        if not in_line:
            self.add_gap()


def _shown_value(node: Any) -> str:
    kind = str(node.attrs.get("type") or "text").lower()
    if kind in ("hidden", "password", "checkbox", "radio", "range", "file", "color"):
        return ""
    return str(node.attrs.get("value") or node.attrs.get("placeholder") or "")


def _shown_children(node: Any) -> list[Any]:
    """Return the visible children: of a head its title, of a closed select one option, of a player none."""
    tag = node.tag
    if tag == "head":
        return [child for child in elements(node) if child.tag == "title"][:1]
    if tag in ("video", "audio"):
        return []
    if tag == "select" and "multiple" not in node.attrs and int(node.attrs.get("size") or 1) < 2:
        options = node.find_all("option")
        chosen = [option for option in options if "selected" in option.attrs] or options
        return list(chosen[:1])
    if tag == "dialog" and "open" not in node.attrs:
        return []
    return list(node.children)


def visible(html: str, kept: frozenset[str] = MEANINGFUL, hides: Callable[[Any], bool] = is_hidden) -> list[Word]:
    """Return the words that a reader of the page sees, in order."""
    reader = _Reader(kept, hides)
    root = parse(html).root if not html.isspace() else None
    if root is not None:
        reader.read(root, ())
    found: list[Word] = []
    numbers: dict[Any, int] = {}
    text, place = "", ()
    for letter in [*reader.letters, None]:
        if letter is not None:
            if not text:
                place = letter[1]
            text += letter[0]
        elif text:
            steps = tuple((element.tag, numbers.setdefault(element, len(numbers))) for element in place)
            found.append(Word(text, steps))
            text = ""
    return found


def words(html: str, hides: Callable[[Any], bool] = is_hidden) -> list[str]:
    """Return the visible words in order."""
    return [word.text for word in visible(html, frozenset(), hides)]


def pieces(html: str, divides: Callable[[Any], bool]) -> list[str]:
    """Return all words in order, cut at the edges of elements that may be hidden; without tags that are never shown.

    The names that an icon may have are among them.
    """
    reader = _Reader(frozenset(), lambda element: False)
    reader.names = True
    reader.divides = divides
    return _read(reader, html)


def words_with_holes(html: str, hides: Callable[[Any], bool]) -> list[str]:
    """Return the visible words, with a HOLE at each element that may be hidden."""
    reader = _Reader(frozenset(), hides)
    reader.hole = True
    return [word for word in _read(reader, html) if word.strip(HOLE)]


def _read(reader: _Reader, html: str) -> list[str]:
    reader.read(parse(html).root, ())
    return "".join(" " if letter is None else letter[0] for letter in reader.letters).split()


def words_in(element: Any) -> tuple[str, ...]:
    """Return the visible words inside one element."""
    reader = _Reader(frozenset(), is_hidden)
    for child in element.children:
        reader.read(child, ())
    return tuple("".join(" " if letter is None else letter[0] for letter in reader.letters).split())


def is_in_hidden(node: Any) -> bool:
    """Tell whether an element is hidden, or inside a hidden element."""
    while isinstance(node, turbohtml.Element):
        if node.tag in NEVER_SHOWN or is_hidden(node):
            return True
        node = node.parent
    return False


Grid = list[list[tuple[str, ...] | None]]
"""Rows of columns: the words of the cell that covers each place, None for no cell."""


def grids(html: str) -> list[Grid]:
    """Lay out every visible table with words by the table model of the HTML standard."""
    found = []
    for table in parse(html).find_all("table"):
        if not is_in_hidden(table) and words_in(table):
            found.append(grid_of(table))
    return found


def grid_of(table: Any) -> Grid:
    """Lay out one table: every cell at each place that it covers."""
    groups: list[list[Any]] = []
    loose: list[Any] = []
    for part in elements(table):
        if is_hidden(part):
            continue
        if part.tag == "tr":
            loose.append(part)
        elif part.tag in ("thead", "tbody", "tfoot"):
            if loose:
                groups.append(loose)
                loose = []
            groups.append([row for row in elements(part) if row.tag == "tr" and not is_hidden(row)])
    if loose:
        groups.append(loose)
    grid: Grid = []
    for rows in groups:
        grid.extend(_group_grid(rows))
    width = max((len(row) for row in grid), default=0)
    return [row + [None] * (width - len(row)) for row in grid]


def _group_grid(rows: list[Any]) -> Grid:
    places: dict[tuple[int, int], tuple[str, ...]] = {}
    for y, row in enumerate(rows):
        x = 0
        for cell in elements(row):
            if cell.tag not in ("td", "th") or is_hidden(cell):
                continue
            while (y, x) in places:
                x += 1
            down = _number(cell, "rowspan", 1, 65534)
            reach = len(rows) - y if down == 0 else min(down, len(rows) - y)
            across = _number(cell, "colspan", 1, 1000) or 1
            cell_words = words_in(cell)
            for dy in range(reach):
                for dx in range(across):
                    places.setdefault((y + dy, x + dx), cell_words)
            x += across
    width = max((x for _, x in places), default=-1) + 1
    return [[places.get((y, x)) for x in range(width)] for y in range(len(rows))]


def _number(cell: Any, name: str, default: int, most: int) -> int:
    """Parse a number as HTML does: leading digits count, anything else is the default."""
    digits = re.match(r"\s*\+?(\d+)", str(cell.attrs.get(name) or ""))
    return min(int(digits[1]), most) if digits else default


def preformatted(html: str) -> list[str]:
    """Return the exact text of every visible <pre>, outermost ones only."""
    found = []
    for element in parse(html).find_all("pre"):
        if not is_in_hidden(element) and element.text.strip() and element.parent.closest("pre") is None:
            found.append(element.text)
    return found


def outline(html: str) -> list[tuple[str, str]]:
    """Return the headings in order: (tag, words)."""
    return [
        (heading.tag, " ".join(words_in(heading)))
        for heading in parse(html).find_all(["h1", "h2", "h3", "h4", "h5", "h6"])
        if not is_in_hidden(heading) and words_in(heading)
    ]
