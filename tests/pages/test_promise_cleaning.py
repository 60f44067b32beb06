"""Promise 1: cleaning loses no visible word, joins no two words, and keeps tables, lists, headings and code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from tests import oracle
from tests.strategies import Made, broken_documents, worded_documents

import prunus
from prunus.pages.clean.walk import clean_tree
from prunus.pages.write.style import CLEAN, LEAN, Style
from prunus.pages.write.whole import render_tree

FULL = Style(full=True)
PRETTY = Style(full=True, pretty=True)


@given(worded_documents)
def test_every_visible_word_stays_once_in_order_and_apart(made: Made) -> None:
    assert oracle.words(prunus.clean(made.html)) == made.words


@given(worded_documents)
def test_the_tree_itself_holds_every_word_in_order(made: Made) -> None:
    said = oracle.without_marks(clean_tree(made.html).canonical).split()
    assert said == oracle.without_marks(" ".join(made.words)).split()


@given(worded_documents)
def test_the_tree_counts_its_words(made: Made) -> None:
    tree = clean_tree(made.html)
    assert tree.words[-1] == sum(tree.word_count(child) for child in tree.children(0))


@given(worded_documents)
def test_full_and_pretty_html_say_the_same(made: Made) -> None:
    for style in (FULL, PRETTY):
        assert oracle.words(prunus.clean(made.html, style=style)) == made.words


@given(worded_documents)
def test_no_hidden_word_comes_out_in_any_format(made: Made) -> None:
    for format in ("html", "markdown", "text"):
        found = set(re.findall(r"h\d+", prunus.clean(made.html, format).replace("<h", " ").replace("</h", " ")))
        assert not found & set(made.hidden)


@given(worded_documents)
def test_tables_keep_their_geometry(made: Made) -> None:
    assert oracle.grids(prunus.clean(made.html)) == oracle.grids(made.html)


@given(worded_documents)
def test_preformatted_text_keeps_every_space(made: Made) -> None:
    assert oracle.preformatted(prunus.clean(made.html)) == made.pre


@given(worded_documents)
def test_words_keep_the_elements_that_they_stand_in(made: Made) -> None:
    """Lists stay nested, headings stay headings, links stay links."""
    kept = oracle.MEANINGFUL - {"a", "label"}
    assert oracle.visible(prunus.clean(made.html), kept) == oracle.visible(made.html, kept)


@given(worded_documents)
def test_cleaning_twice_changes_nothing(made: Made) -> None:
    once = prunus.clean(made.html)
    assert prunus.clean(once) == once


@given(worded_documents)
def test_cleaning_full_html_again_changes_nothing(made: Made) -> None:
    for style in (FULL, PRETTY):
        once = prunus.clean(made.html, style=style)
        assert prunus.clean(once, style=style) == once


@given(worded_documents)
def test_full_and_pretty_html_clean_to_the_compact_html(made: Made) -> None:
    compact = prunus.clean(made.html)
    for style in (FULL, PRETTY):
        assert prunus.clean(prunus.clean(made.html, style=style)) == compact


@given(broken_documents())
def test_broken_markup_says_what_the_parser_sees(html: str) -> None:
    expected = _numbered(oracle.words(html))
    try:
        cleaned = prunus.clean(html)
    except prunus.BadPage:
        assert not expected
        return
    assert _numbered(oracle.words(cleaned)) == expected


@given(broken_documents())
def test_cleaning_broken_markup_twice_changes_nothing(html: str) -> None:
    try:
        once = prunus.clean(html)
    except prunus.BadPage:
        return
    assert prunus.clean(once) == once


TWICE = {
    "a button in a button": "<button><table/><button>words",
    "a form in a form's cell": "<form action=x><table><tr><th></form><form action=y>words",
    "a player whose source is hidden": "<audio><source src=x style=visibility:hidden></audio>words",
    "row groups without rows": "<table><caption>words<tbody><tbody>",
    "formatting that only white space was in": "<a href=x><img src=y><s>\n<footer>words<a href=z>",
    "cells in a formula": "<math><tr><th rowspan=11>words</th><td>",
    "a row beside a cell in a formula": "<math><td>words</td><tr>more",
    "a heading with a picture in a heading": "<h3>words<a href=x><h3><a href=y><img src=z></a></h3></a></h3>",
    "ruby text in ruby text": "<ruby><rt><x-y><rt><rt>words",
    "a heading in a noscript in a heading": "<h2><noscript><h2>words",
    "an item in an item out of reach": "<u><li><dd/><li>words",
    "an item in an item behind a noscript": "<li>a<noscript><x-y>b<li>words",
    "a paragraph alone in a noscript in an item": "<li><noscript><p>words",
    "a choice in a choice": "<select><option selected><table><select><option>words",
    "a wrapper in code": "<pre>a<div>\n<figure>words</figure><picture>",
    "a line break in a lazy picture's address": "<img src='data:,' data-src='a\nb' alt=words>",
    "a rule in an option": "<select><option>a<x-y><hr>words",
    "a paragraph in an option in code": "<code><option><p>words",
    "an option in a noscript in an option": "<select><option>words<noscript>more<option>other</noscript>end</select>",
    "a group in a noscript in an option": "<select><option>words<noscript><optgroup label=x><option>other</noscript>end</select>",
    "an ampersand before a noscript": "<p>words &<noscript>\xf6l</noscript>",
    "an ampersand before the space in a noscript": "<p>words &<noscript> <b>so</b> &</noscript> on",
    "an ampersand before a name in a noscript": "<p>words &<noscript>copy</noscript>",
    "ampersands before a noscript": "<p>words &amp;amp;&<noscript>&<p>words &</noscript>",
}


@pytest.mark.parametrize("name", TWICE)
def test_a_dom_that_no_markup_can_express_is_cleaned_to_a_stable_form(name: str) -> None:
    once = prunus.clean(TWICE[name])
    assert "words" in once
    assert prunus.clean(once) == once


@pytest.mark.parametrize("between", ["a", "span", "div", "div><div", "span><font", "b"])
def test_a_heading_in_a_heading_stays_there(between: str) -> None:
    """Written directly in the outer heading it would end that heading; the element between them stays."""
    once = prunus.clean(f"<h2>a <{between}>b<h3>c</h3> d")
    assert prunus.clean(once) == once
    assert oracle.words(once) == ["a", "b", "c", "d"]


def test_a_link_in_a_link_is_cleaned_to_a_stable_form() -> None:
    """Deep lists keep the parser from closing the first link; in a cell a link may be inside a link."""
    once = prunus.clean("<a href=d>" + "<ol>" * 7 + "<li><a href=t>w1</a> w2")
    assert prunus.clean(once) == once
    assert oracle.words(once) == ["w1", "w2"]
    cell = prunus.clean("<a href=d>w1<table><td><a href=t>w2</table></a>")
    assert "<a href=t>w2" in cell
    assert prunus.clean(cell) == cell


@pytest.mark.parametrize(
    ("html", "cleaned"),
    [
        ("<ul><li><p>w1</p><table><li>w2</table></ul>", "<ul><li><p>w1</p>w2</ul>"),  # moved out of a table
        ("<ul><li style=color:red><p style=color:red>w1</p>w2<li>w3</ul>", "<ul><li><p>w1</p>w2<li>w3</ul>"),
        ("<p>w1<table><p>w2", "w1<p>w2"),
        ("<p>w1<table><x-y>w2<p>w3", "w1w2<p>w3"),
        ("<p>w1<table><td><p>w2</table>w3", "<p>w1<table><tr><td>w2</table>w3"),
        ("<form><o></form><form><p>w1</form>w2", "<form><p>w1</p>w2</form>"),
        ("<math>w1<tbody/><tbody></math>", "<code>w1</code>"),
    ],
)
def test_nesting_that_no_markup_can_express_is_flattened(html: str, cleaned: str) -> None:
    assert prunus.clean(html) == cleaned
    assert prunus.clean(cleaned) == cleaned


def _numbered(words: list[str]) -> list[str]:
    """Return the numbered words, without words of the debris."""
    return [word for word in words if re.search(r"w\d", word)]


@given(worded_documents)
def test_lean_html_says_the_same_words(made: Made) -> None:
    tree = clean_tree(made.html)
    for style in (LEAN, CLEAN):
        assert oracle.words(render_tree(tree, "html", style)) == made.words


# --- real pages ------------------------------------------------------------------------------


def perhaps_hidden(element: oracle.Any) -> bool:
    """Tell whether any attribute or tag hints that an element is hidden."""
    attrs = element.attrs
    return (
        oracle.is_hidden(element)
        or "hidden" in attrs
        or "popover" in attrs
        or attrs.get("aria-hidden") == "true"
        or element.tag in ("noscript", "object", "math", "slot", "dialog")
        or bool(re.search(r"-\d{3,}|opacity|:\s*0|clip", str(attrs.get("style") or "")))
    )


def is_subsequence(short: list[str], long: list[str]) -> str:
    """Return '' if ``short`` is a subsequence of ``long``, else its first word that is missing, with the words before it."""
    rest = iter(long)
    for number, word in enumerate(short):
        if not any(_is_word(word, candidate) for candidate in rest):
            return f"{word!r} after {' '.join(short[max(0, number - 6) : number])!r}"
    return ""


def _is_word(word: str, candidate: str) -> bool:
    """Tell whether two words are equal; a HOLE matches any letters."""
    if oracle.HOLE not in word:
        return word == candidate
    parts = [part for part in word.split(oracle.HOLE) if part]
    return bool(re.search(".*".join(map(re.escape, parts)), candidate))


def first_gained(words: list[str], pieces: list[str]) -> str:
    """Return '' if every word is made of one or more pieces of a page, in order; else the first word that is not.

    A hidden element may be in the middle of a word or at its end.
    """
    place = 0
    for word in words:
        word_end = next((end for at in range(place, len(pieces)) if (end := _spelled(word, pieces, at))), 0)
        if not word_end:
            return word
        place = word_end
    return ""


def _spelled(word: str, pieces: list[str], place: int) -> int:
    """Return the index after the pieces that spell a word from ``place`` on, skipping others; 0 if none do."""
    rest = word
    for at in range(place, min(place + 40, len(pieces))):
        if rest.startswith(pieces[at]):
            rest = rest[len(pieces[at]) :]
            if not rest:
                return at + 1
        elif rest == word:
            return 0
    return 0


@pytest.mark.data
def test_real_pages_keep_what_surely_shows_and_gain_nothing(pages: list[str]) -> None:
    for page in pages:
        html = re.sub("(?is)<style.*?</style>", "", page)  # the oracle reads no sheets
        cleaned = oracle.words(prunus.clean(html))
        assert is_subsequence(oracle.words_with_holes(html, perhaps_hidden), cleaned) == ""
        assert first_gained(cleaned, oracle.pieces(html, perhaps_hidden)) == ""


@pytest.mark.data
def test_cleaning_real_pages_twice_changes_nothing(pages: list[str]) -> None:
    for html in pages:
        once = prunus.clean(html)
        assert prunus.clean(once) == once


@pytest.mark.data
def test_tables_and_code_of_real_pages_stay_as_they_are(pages: list[str]) -> None:
    for html in pages:
        cleaned = prunus.clean(html)
        assert oracle.preformatted(cleaned) == oracle.preformatted(html)
        assert oracle.outline(cleaned) == oracle.outline(html)


def test_example_pages_keep_their_tables_headings_and_code(site: dict[str, str]) -> None:
    for html in site.values():
        cleaned = prunus.clean(html)
        assert oracle.grids(cleaned) == oracle.grids(html)
        assert oracle.preformatted(cleaned) == oracle.preformatted(html)
        assert oracle.outline(cleaned) == oracle.outline(html)
        assert prunus.clean(cleaned) == cleaned
