"""A page's own CSS parts words and keeps line breaks; line numbers are no code."""

from __future__ import annotations

import pytest
from tests.clock import at_most, seconds_of

import prunus

BLOCK = "display:block"
PARTED = {
    "blocks": (f"<div>Depth<span style='{BLOCK}'>7.9 m</span>Draught</div>", "Depth\n7.9 m\nDraught"),
    "a block that keeps its tag": (f"<p>Depth<b style='{BLOCK}'>7.9 m</b>Draught</p>", "Depth\n7.9 m\nDraught"),
    "in capitals": ("<div>Depth<span style='DISPLAY: Block'>7.9 m</span></div>", "Depth\n7.9 m"),
    "list items": ("<style>i{display:list-item}</style><div><i>Tug</i><i>Barge</i></div>", "Tug\nBarge"),
    "rows and cells": (
        "<style>.t{display:table-row}.t span{display:table-cell}</style>"
        "<div><em class=t><span>Tug</span><span>4</span></em><em class=t><span>Barge</span><span>7</span></em></div>",
        "Tug 4\nBarge 7",
    ),
    "items of a flex box": ("<style>p{display:flex}</style><p>Tug<span>4</span><a href=x>Map</a></p>", "Tug 4 Map"),
    "items of a grid in a line": ("<a style='display:inline-grid'><b>Tug</b><b>Boat</b></a>", "Tug Boat"),
    "single letters with room between": ("<p style='display:flex;gap:1em'><i>3</i><i>1</i></p>", "3 1"),
    "floats": ("<p>Harbour<span style='float:right'>12:30</span></p>", "Harbour 12:30"),
    "positioned": ("<p>Basket<i style='position:absolute'>3</i></p>", "Basket 3"),
    "a heading stays one line": (f"<h2>Step<span style='{BLOCK}'>Two</span>of three</h2>", "Step Two of three"),
    "lines of code": (f"<pre><b style='{BLOCK}'>if x:</b><b style='{BLOCK}'>  go</b></pre>", "if x:\n  go"),
}
NOT_PARTED = {
    "inline": ("<p>Har<b style='display:inline'>bour</b></p>", "Harbour"),
    "inline block": ("<p>Har<b style='display:inline-block'>bour</b></p>", "Harbour"),
    "a rule that another undoes": (
        "<style>b{display:block}p b{display:inline}</style><p>Har<b>bour</b></p>",
        "Harbour",
    ),
    "a rule for print": ("<style>@media print{b{display:block}}</style><p>Har<b>bour</b></p>", "Harbour"),
    "a large first letter": ("<p><span style='float:left'>H</span>arbour</p>", "Harbour"),
    "the sign of a price": ("<p style='display:flex'><span>$</span><span>99</span></p>", "$99"),
    "single letters": ("<p style='display:flex'><i>T</i><i>u</i><i>g</i></p>", "Tug"),
    "no room between": ("<p style='display:flex;gap:0'><i>3</i><i>1</i></p>", "31"),
    "an exponent": ("<p style='display:flex'>10<sup>9</sup></p>", "10⁹"),
}


@pytest.mark.parametrize("case", [*PARTED, *NOT_PARTED])
def test_words_are_parted_as_css_parts_them(case: str) -> None:
    page, expected = {**PARTED, **NOT_PARTED}[case]
    assert prunus.clean(page, format="text") == expected
    cleaned = prunus.clean(page)
    assert prunus.clean(cleaned) == cleaned


LINES = {
    "pre-line": ("<div style='white-space:pre-line'>Roses  are\n   red\nViolets</div>", "Roses are\nred\nViolets"),
    "around links": (
        "<style>.a{white-space:pre-wrap}</style><div class=a>One <a href=x>two\nthree</a>\nfour</div>",
        "One two\nthree\nfour",
    ),
    "undone inside": (
        "<div style='white-space:pre-wrap'>a\nb <i style='white-space:normal'>c\nd</i></div>",
        "a\nb c d",
    ),
    "indents": (
        "<div style='white-space:break-spaces'>def f():\n    return 1\nf()</div>",
        "def f():\n    return 1\nf()",
    ),
    "columns": ("<p style='white-space:pre'>Tug     4\nBarge   7</p>", "Tug     4\nBarge   7"),
    "Tailwind's class": ("<p class='mt-2 whitespace-pre-line'>One\ntwo</p>", "One\ntwo"),
    "nowrap": ("<p style='white-space:nowrap'>One\n  two</p>", "One two"),
    "one line": ("<p style='white-space:pre-wrap'>\n  One two\n</p>", "One two"),
}


@pytest.mark.parametrize("case", LINES)
def test_line_breaks_stay_where_css_keeps_them(case: str) -> None:
    page, expected = LINES[case]
    assert prunus.clean(page, format="text") == expected
    cleaned = prunus.clean(page)
    assert prunus.clean(cleaned) == cleaned


@pytest.mark.parametrize(
    "page",
    [
        "<pre><span style='user-select:none'>1</span>a = 4\n<span style='user-select:none'>2</span>b = 5</pre>",
        "<style>.n{-webkit-user-select:none}</style><pre><i class=n>1 </i>a = 4\n<i class=n>2 </i>b = 5</pre>",
        "<pre><span class=lineno>1 </span>a = 4\n<span class=lineno>2 </span>b = 5</pre>",
        "<table><tr><td><pre>1\n2</pre></td><td><pre>a = 4\nb = 5</pre></td></tr></table>",
    ],
)
def test_line_numbers_are_no_code(page: str) -> None:
    assert prunus.clean(page, format="text") == "a = 4\nb = 5"


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr><td><pre>1\n2</pre></td><td>Two numbers</td></tr></table>",
        "<p><span style='user-select:none'>1</span> and 2</p>",
        "<pre>1\n2</pre>",
    ],
)
def test_numbers_beside_no_code_stay(page: str) -> None:
    assert "1" in prunus.clean(page, format="text")


@pytest.mark.parametrize("style", ["display:flex", "white-space:pre", "float:left", "user-select:none"])
def test_styles_of_nested_elements_take_linear_time(style: str) -> None:
    def page(count: int) -> str:
        return (f"<p><span style='{style}'>" + "<span style='" + style + "'>a\n" * 400 + "word\n" * 100) * count

    small = seconds_of(lambda: prunus.clean(page(4)))
    with at_most(8 * small):
        prunus.clean(page(16))
