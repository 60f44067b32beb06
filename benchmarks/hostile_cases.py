"""Pages made to hurt a parser or a cleaner, each at any size; the size is what the case counts.

Every page begins with one word and ends with another, and both have to come through: a cleaner
that gives up in the middle is fast as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIRST, LAST = "firstword", "lastword"
PROSE = "The plum harvest of the valley was late again, and nobody minded. "


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of page: its smallest measured size, the unit of that size, and the page."""

    make: Callable[[int], str | bytes]
    size: int
    unit: str
    words: tuple[str, ...] = (FIRST, LAST)
    named: bool = False
    """Whether the project's speed targets name it; the others look for what is not linear."""


def _page(body: str) -> str:
    return f"<!doctype html><title>t</title><body><p>{FIRST}</p>{body}<p>{LAST}</p>"


def _open(body: str) -> str:
    """A page whose body leaves tags open: the last word stands inside them."""
    return f"<!doctype html><title>t</title><body><p>{FIRST}</p>{body} {LAST}"


def _times(unit: str, number: int) -> str:
    """`unit` written `number` times, `{i}` replaced by the running number."""
    if "{i}" not in unit:
        return unit * number
    return "".join(unit.replace("{i}", str(i)) for i in range(number))


def flat(size: int) -> str:
    """Ordinary blocks side by side, `size` MB of them."""
    text = f'<h2>Part</h2><p>{PROSE}<a href="/x">more</a></p><ul><li>a<li>b</ul>'
    block = f'<div class="c">{text}</div>\n'
    return _page(block * (size * 1_000_000 // len(block)))


def table(size: int) -> str:
    """A table of `size` rows under a header row."""
    row = "<tr><td>{i}<td>plum<td>12.5<td></tr>"
    head = "<tr><th>No<th>Fruit<th>Price<th>Note</tr>"
    return _page(f"<table><thead>{head}</thead><tbody>{_times(row, size)}</table>")


def spans(size: int) -> str:
    """Rows of cells that claim a thousand columns and all the rows below."""
    row = "<tr><td colspan=1000 rowspan=65534>{i}</td><td>x</td></tr>"
    return _page(f"<table>{_times(row, size)}</table>")


def attributes(size: int) -> str:
    """One element with `size` attributes."""
    return _page(f"<div {_times('a{i}=v ', size)}>text</div>")


def nested(opening: str, closing: str) -> Callable[[int], str]:
    """`size` elements inside each other."""
    return lambda size: _page(f"{opening * size}deep{closing * size}")


def repeated(unit: str) -> Callable[[int], str]:
    """`size` times the same piece, well formed."""
    return lambda size: _page(_times(unit, size))


def unclosed(unit: str) -> Callable[[int], str]:
    """`size` times a piece that leaves something open."""
    return lambda size: _open(_times(unit, size))


def inside(opening: str, unit: str, closing: str) -> Callable[[int], str]:
    """`size` times a piece as children of one element."""
    return lambda size: _page(opening + _times(unit, size) + closing)


def megabytes(opening: str, unit: str, closing: str) -> Callable[[int], str]:
    """`size` MB of one text or one attribute value."""
    return lambda size: _page(opening + unit * (size * 1_000_000 // len(unit.encode("utf-8"))) + closing)


def binary(size: int) -> bytes:
    """`size` MB of every byte there is, inside a page."""
    noise = bytes(range(256)) * (size * 1_000_000 // 256)
    # a tag so opened by the noise is closed before the last word
    return _page("").encode() + noise.replace(b"<", b"(") + b"</p><p>" + LAST.encode()


HIDDEN = '<div style="display:none">hidden {i}</div><p hidden>hidden</p><!-- {i} -->'
TWINS = '<a href="/{i}"><i aria-hidden=true>word{i}</i><b>word{i}</b></a>'

CASES: dict[str, Case] = {
    "flat page": Case(flat, 11, "MB", named=True),
    "nested div": Case(nested("<div>", "</div>"), 10_000, "levels", named=True),
    "unclosed div": Case(unclosed("<div>w "), 100_000, "tags", named=True),
    "unclosed p": Case(unclosed("<p>w "), 100_000, "tags", named=True),
    "unclosed b": Case(unclosed("<b>w "), 100_000, "tags", named=True),
    "attributes": Case(attributes, 20_000, "attributes", named=True),
    "one text node": Case(megabytes("<p>", PROSE, "</p>"), 5, "MB", named=True),
    "table rows": Case(table, 30_000, "rows", named=True),
    "nested span": Case(nested("<span>x", "</span>"), 10_000, "levels"),
    "nested table": Case(nested("<table><tr><td>", "</table>"), 2_500, "levels"),
    "nested list": Case(nested("<ul><li>x", "</ul>"), 5_000, "levels"),
    "nested quote, empty": Case(nested("<blockquote><p></p>", "</blockquote>"), 5_000, "levels"),
    "spanning cells": Case(spans, 500, "rows"),
    "misnested": Case(unclosed("<b><p>w</b></p>"), 10_000, "pairs"),
    "formatting stack": Case(unclosed("<p><font color={i}>w"), 500, "tags"),
    "text in table": Case(inside("<table>", "<tr>w{i} <b>x</b><td>c", "</table>"), 20_000, "rows"),
    "one word": Case(megabytes("<p>", "a", "</p>"), 5, "MB"),
    "no spaces, Chinese": Case(megabytes("<p>", "李子树开花", "</p>"), 5, "MB"),
    "attribute value": Case(megabytes('<p title="', "long ", '">x</p>'), 5, "MB"),
    "data image": Case(megabytes('<img alt=x src="data:image/png;base64,', "QUJD", '">'), 5, "MB"),
    "preformatted": Case(megabytes("<pre>", "if x:\n    y\n\n", "</pre>"), 3, "MB"),
    "script": Case(megabytes("<script>", "if (a < b) c();", "</script>"), 5, "MB"),
    "open script": Case(unclosed("<script>x"), 100_000, "tags", words=(FIRST,)),
    "open comment": Case(unclosed("<!-- x "), 100_000, "tags", words=(FIRST,)),
    "open brackets": Case(unclosed("< "), 500_000, "characters"),
    "entities": Case(inside("<p>", "&amp;&nbsp;&#x4e2d;&bogus; ", "</p>"), 100_000, "times four"),
    "inline elements": Case(inside("<p>", "<i>a</i><b>b</b> ", "</p>"), 50_000, "pairs"),
    "line breaks": Case(inside("<p>", "w<br>", "</p>"), 100_000, "breaks"),
    "empty elements": Case(repeated("<div><p><span></span></p></div>"), 50_000, "elements"),
    "hidden elements": Case(repeated(HIDDEN), 30_000, "elements"),
    "aria-hidden twins": Case(inside("<p>", TWINS, "</p>"), 20_000, "twins"),
    "noscript twins": Case(repeated("<p>w{i}</p><noscript>w{i}</noscript>"), 20_000, "twins"),
    "options": Case(inside("<select>", "<option>o{i}", "</select>"), 50_000, "options"),
    "headings": Case(repeated("<h2>H{i}</h2><p>w</p>"), 30_000, "headings"),
    "links": Case(repeated('<li><a href="/p?i={i}">w{i}</a>'), 30_000, "links"),
    "every byte": Case(binary, 2, "MB"),
}
