"""Pages that are hard for a parser or a cleaner, each at any size; each case has its own unit of size.

Every page begins with one known word and ends with another, and both must be in the output: a cleaner that gives up in
the middle would be fast, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIRST, LAST = "firstword", "lastword"
PROSE = "The plum harvest of the valley was late again, and nobody minded. "


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of page: the function that makes it, its smallest measured size, and the unit of the size."""

    make: Callable[[int], str | bytes]
    size: int
    unit: str
    words: tuple[str, ...] = (FIRST, LAST)
    named: bool = False
    """Whether the project has a speed target for it; the other cases only test that time is linear."""


def _page(body: str) -> str:
    return f"<!doctype html><title>t</title><body><p>{FIRST}</p>{body}<p>{LAST}</p>"


def _open(body: str) -> str:
    """Return a page whose body leaves tags open; the last word is inside them."""
    return f"<!doctype html><title>t</title><body><p>{FIRST}</p>{body} {LAST}"


def _times(unit: str, number: int) -> str:
    """Return `unit` `number` times, with `{i}` replaced by the running number."""
    if "{i}" not in unit:
        return unit * number
    return "".join(unit.replace("{i}", str(i)) for i in range(number))


def flat(size: int) -> str:
    """Return `size` MB of ordinary blocks."""
    text = f'<h2>Part</h2><p>{PROSE}<a href="/x">more</a></p><ul><li>a<li>b</ul>'
    block = f'<div class="c">{text}</div>\n'
    return _page(block * (size * 1_000_000 // len(block)))


def table(size: int) -> str:
    """Return a table of `size` rows under a header row."""
    row = "<tr><td>{i}<td>plum<td>12.5<td></tr>"
    head = "<tr><th>No<th>Fruit<th>Price<th>Note</tr>"
    return _page(f"<table><thead>{head}</thead><tbody>{_times(row, size)}</table>")


def spans(size: int) -> str:
    """Return rows of cells that span a thousand columns and all rows below."""
    row = "<tr><td colspan=1000 rowspan=65534>{i}</td><td>x</td></tr>"
    return _page(f"<table>{_times(row, size)}</table>")


def attributes(size: int) -> str:
    """Return one element with `size` attributes."""
    return _page(f"<div {_times('a{i}=v ', size)}>text</div>")


def nested(opening: str, closing: str) -> Callable[[int], str]:
    """Return a maker of `size` nested elements."""
    return lambda size: _page(f"{opening * size}deep{closing * size}")


def repeated(unit: str) -> Callable[[int], str]:
    """Return a maker of `size` times the same well-formed piece."""
    return lambda size: _page(_times(unit, size))


def unclosed(unit: str) -> Callable[[int], str]:
    """Return a maker of `size` times a piece that leaves a tag open."""
    return lambda size: _open(_times(unit, size))


def inside(opening: str, unit: str, closing: str) -> Callable[[int], str]:
    """Return a maker of one element with `size` times a piece as children."""
    return lambda size: _page(opening + _times(unit, size) + closing)


def megabytes(opening: str, unit: str, closing: str) -> Callable[[int], str]:
    """Return a maker of `size` MB of one text or one attribute value."""
    return lambda size: _page(opening + unit * (size * 1_000_000 // len(unit.encode("utf-8"))) + closing)


def binary(size: int) -> bytes:
    """Return a page with `size` MB of all byte values."""
    noise = bytes(range(256)) * (size * 1_000_000 // 256)
    # without `<` the noise opens no tag that could hide the last word
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
