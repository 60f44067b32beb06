"""Rendering: HTML, Markdown and text of whole documents and of any blocks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from tests import oracle
from tests.extras import need
from tests.strategies import Made, worded_documents

import prunus
from prunus.core.types import OutputFormat
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.render import Rendering, render_blocks
from prunus.pages.clean.walk import clean_tree
from prunus.pages.write.style import CLEAN, LEAN, Style
from prunus.pages.write.whole import render_tree


def compact(html: str, style: Style = CLEAN) -> str:
    return render_tree(clean_tree(html), "html", style)


def markdown(html: str, style: Style = CLEAN) -> str:
    return render_tree(clean_tree(html), "markdown", style)


def text(html: str) -> str:
    return render_tree(clean_tree(html), "text")


def keep(html: str, *wanted: str, max_words: int = 3, format: OutputFormat = "html", style: Style = LEAN) -> str:
    """Render the blocks that hold one of the wanted words."""
    blocks = cut([clean_tree(html)], max_words, whole_words=0)
    kept = [index for index, said in enumerate(blocks.texts) if any(word in said.split() for word in wanted)]
    return render_blocks(blocks, kept, Rendering(format, style))


# --- HTML ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("<p>a</p><p>b</p>", "<p>a<p>b"),
        ("<ul><li>a</li><li>b</li></ul>", "<ul><li>a<li>b</ul>"),
        ("<dl><dt>a</dt><dd>b</dd></dl>", "<dl><dt>a<dd>b</dl>"),
        ("<table><tbody><tr><td>a</td></tr></tbody></table>", "<table><tr><td>a</table>"),
        ("<div><div><div>a</div></div></div>", "a"),
        ("<div>a</div><div>b</div>", "a<div>b</div>"),
        ("<p>a <b>b</b> c</p>", "<p>a <b>b</b> c"),
        ("<p>a</p>b", "<p>a</p>b"),
        ("<p>a</p><h2>b</h2>", "<p>a<h2>b</h2>"),
        ("<td>a</td>", "a"),
        ("<ul><li><p>a</p></li></ul>", "<ul><li>a</ul>"),
        ("<a href=/x>a</a>", "<a href=/x>a</a>"),
        ("<a href='/x y'>a</a>", '<a href="/x y">a</a>'),
        ("<img src=a.png alt='b c'>", '<img src=a.png alt="b c">'),
        ("<p>a<!-- x -->b", "<p>ab"),
    ],
)
def test_compact_html_writes_nothing_idle(page: str, written: str) -> None:
    assert compact(page) == written


def test_full_html_writes_every_tag_and_quote() -> None:
    assert compact("<ul><li><a href=/x>a", Style(full=True)) == (
        '<html><body><ul><li><a href="/x">a</a></li></ul></body></html>'
    )


def test_pretty_html_is_indented() -> None:
    shown = compact("<div><p>a<p>b</div>", Style(full=True, pretty=True))
    lines = shown.split("\n")
    assert any(line.strip() == "<p>a</p>" for line in lines)
    assert any(line.startswith("  ") for line in lines)


def test_lean_html_leaves_out_emphasis_links_and_addresses() -> None:
    page = "<section><p>a <b>b</b> <a href=/x>c</a> <img src=i.png alt=d></section>"
    assert compact(page, LEAN) == "<p>a b c <img alt=d>"


def test_long_values_are_shortened_for_the_model_and_whole_in_the_tree() -> None:
    address = "/path?" + "q=1&" * 100
    tree = clean_tree(f"<a href='{address}'>a</a><img alt='{'long ' * 100}' src=x>")
    assert any((attrs or {}).get("href") == address for attrs in tree.attrs)
    assert any((attrs or {}).get("alt") == ("long " * 100).strip() for attrs in tree.attrs)
    assert len(render_tree(tree, "html", replace(LEAN, links=True))) < 300
    cleaned = render_tree(tree, "html", CLEAN)
    assert "href=/path>" in cleaned
    assert cleaned.count("long") == 100, "cleaning loses no word, alt text is words"
    for all_query in ("?", "#"):  # something must stay, or the link would be none
        assert f"href={all_query}q" in prunus.clean(f"<a href='{all_query}{'q' * 999}'>a</a>")


@pytest.mark.parametrize(
    "said",
    ["a<b", "a&lt;b", "a & b", "&copy", "&#65;", "<p>", "</p>", "x<!--", "]]>", "a&b;c", "&;", "'\"", "&amp;amp;"],
)
def test_escaping_survives_a_round_trip(said: str) -> None:
    escaped = said.replace("&", "&amp;").replace("<", "&lt;")
    shown = compact(f"<p>x {escaped} y")
    assert " ".join(oracle.words(shown)) == f"x {said} y"
    value = said.replace("&", "&amp;").replace('"', "&quot;")
    (image,) = oracle.parse(compact(f'<img src=i alt="{value}">')).find_all("img")
    assert image.attrs["alt"] == said


# --- subsets as HTML -----------------------------------------------------------------------------


def test_a_kept_item_keeps_its_number_in_the_page() -> None:
    page = "<ol>" + "".join(f"<li>item{number} with words" for number in range(1, 9)) + "</ol>"
    assert keep(page, "item1", "item4", "item5") == (
        "<ol><li>item1 with words<li>…<li value=4>item4 with words<li>item5 with words</ol>"
    )


def test_a_kept_item_counts_from_the_start_of_its_list() -> None:
    page = "<ol start=5>" + "".join(f"<li>item{number} with words" for number in range(5, 9)) + "</ol>"
    assert keep(page, "item7") == "<ol start=5><li value=7>item7 with words</ol>"


def test_dropping_rows_shortens_the_cells_that_span_them() -> None:
    page = (
        "<table><tr><th>Day<th>Trip<tr><td rowspan=3>Monday<td>first trip out<tr><td>second trip out"
        "<tr><td>third trip out<tr><td>Tuesday<td>fourth trip out</table>"
    )
    blocks = cut([clean_tree(page)], 4)
    rows = {said.split("\t")[-1]: index for index, said in enumerate(blocks.texts)}
    kept = [0, rows["first trip out"], rows["third trip out"]]
    (grid,) = oracle.grids(render_blocks(blocks, kept, Rendering()))
    assert [row[1] for row in grid] == [("Trip",), ("first", "trip", "out"), ("third", "trip", "out"), None]
    assert [row[0] for row in grid] == [("Day",), ("Monday",), ("Monday",), ("…",)]
    (grid,) = oracle.grids(render_blocks(blocks, [0, rows["third trip out"]], Rendering()))
    assert grid == [[("Day",), ("Trip",)], [("Monday",), ("third", "trip", "out")], [("…",), None]]


def test_a_dropped_cell_is_marked_in_its_place_and_an_empty_one_is_not() -> None:
    page = "<table><tr><td>alpha one two three<td><td>beta one two three<td>gamma one two three</table>"
    (grid,) = oracle.grids(keep(page, "gamma", max_words=4))
    assert grid[0] == [("…",), (), ("…",), ("gamma", "one", "two", "three")]


def test_a_part_of_a_list_stays_a_list() -> None:
    page = "<ul><li>one two three<ul><li>four five six<li>seven eight nine</ul><li>ten eleven twelve</ul>"
    assert keep(page, "seven") == "<ul><li><ul><li>seven eight nine</ul></ul>"


def test_blocks_may_be_given_in_any_order() -> None:
    blocks = cut([clean_tree("<p>one two<p>three four<p>five six")], 2)
    assert render_blocks(blocks, [2, 0], Rendering()) == render_blocks(blocks, [0, 2], Rendering())


def test_nothing_kept_is_nothing_written() -> None:
    blocks = cut([clean_tree("<p>one two")], 2)
    assert [render_blocks(blocks, [], Rendering(format)) for format in ("html", "markdown", "text")] == ["", "", ""]


# --- Markdown ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("<h2>Title</h2><p>Words", "## Title\n\nWords"),
        ("<p>a<p>b", "a\n\nb"),
        ("<p>a <b>b</b> <em>c</em> <code>d</code>", "a **b** *c* `d`"),
        ("<p><b> a </b>b", "**a** b"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<p>see <a href=/x>this</a>", "see [this](/x)"),
        ("<img src=/i.png alt=map>", "![map](/i.png)"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b"),
        ("<pre>x\n  y</pre>", "```\nx\n  y\n```"),
        ("<p>a<hr><p>b", "a\n\n---\n\nb"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "|a|b|\n|-|-|\n|1|2|"),
        ("<table><tr><td>1<td><tr><td>3<td>4</table>", "|||\n|-|-|\n|1||\n|3|4|"),
        ("<dl><dt>term<dd>meaning</dl>", "term\n\n: meaning"),
        ("<p>H<sub>2</sub>O", "H<sub>2</sub>O"),
    ],
)
def test_markdown_says_it_the_usual_way(page: str, written: str) -> None:
    assert markdown(page) == written


def test_tables_with_spans_stay_html() -> None:
    page = "<table><caption>Cap</caption><tr><td colspan=2>a<tr><td>b<td>c</table>"
    shown = markdown(page)
    assert "<table>" in shown
    assert oracle.grids(shown[shown.index("<table>") :]) == oracle.grids(page)
    assert shown.count("Cap") == 1


def test_a_pipe_in_a_cell_does_not_end_it() -> None:
    assert "|a\\|b|c|" in markdown("<table><tr><th>x<th>y<tr><td>a|b<td>c</table>")


def test_code_with_fences_gets_a_longer_fence() -> None:
    assert markdown("<pre>```\nx\n```</pre>") == "````\n```\nx\n```\n````"


def test_line_breaks_stay_in_markdown() -> None:
    assert markdown("<p>a<br>b").split() == ["a", "b"]
    assert "\n" in markdown("<p>a<br>b")


def test_kept_rows_are_a_github_table_with_their_header() -> None:
    page = "<table><tr><th>Zone<th>Coins" + "".join(f"<tr><td>z{n} zone<td>{n} coins" for n in range(9)) + "</table>"
    assert keep(page, "Zone", "z4", format="markdown", max_words=4) == "|Zone|Coins|\n|-|-|\n|z4 zone|4 coins|\n|…||"


def test_a_kept_item_keeps_its_number_in_markdown() -> None:
    page = "<ol>" + "".join(f"<li>item{number} with words" for number in range(1, 9)) + "</ol>"
    assert keep(page, "item2", "item5", format="markdown") == "2. item2 with words\n4. …\n5. item5 with words"


def said_by(markdown: str) -> list[str]:
    """Return the words that a Markdown reader shows."""
    reader = need("markdown_it").MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return oracle.words(reader.render(markdown))


@pytest.mark.parametrize(
    "said",
    ["*a*", "_a_", "`a`", "# a", "- a", "+ a", "1. a", "1) a", "> a", "[a](b)", "![a](b)", "<b>a", "&amp;", "&copy;",
     "a\\b", "***", "---", "===", "~~a~~", "~~~", "```", "|a|b|", "a_b_c", "2*3*4", "[a]: b", "<http://a.b>", "http://a.b",
     "\\", "$a$", "    a", "a  ", ":-:", "[ ] a", "[a]", "a!", "!", "![", "a |", "-", "+", "#", "1."],
)  # fmt: skip
def test_markdown_escapes_what_it_would_read_as_its_own(said: str) -> None:
    escaped = said.replace("&", "&amp;").replace("<", "&lt;")
    for page in (f"<p>{escaped}", f"<p>x<p>{escaped}<p>y", f"<ul><li>{escaped}</ul>", f"<p>x<br>{escaped}"):
        assert said_by(markdown(page)) == oracle.words(page)


@given(worded_documents)
def test_markdown_holds_every_word_in_order(made: Made) -> None:
    shown = prunus.clean(made.html, "markdown")
    numbers = re.findall(r"w\d+", re.sub(r"\]\(/\w+\)|\(/i\.png\)", "", shown))
    assert numbers == re.findall(r"w\d+", " ".join(made.words))


@given(worded_documents)
def test_markdown_reads_back_as_the_same_words(made: Made) -> None:
    """Letters are compared, less marks: CommonMark shows the colon before a definition, and knows no ``a**(b)**``."""
    shown = said_by(re.sub(r"(?m)^([ >]*): ", r"\1", prunus.clean(made.html, "markdown")))
    assert _without_marks(shown) == _without_marks(made.words)


def _without_marks(words: list[str]) -> str:
    return re.sub(r"[*~`_“”‘’]", "", "".join(words))


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("<h2>Title</h2><p>Words <b>and</b> more", "Title\nWords and more"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a\tb\nc\td"),
        ("<p>a<br>b", "a\nb"),
        ("<p>see <img src=i alt=map> here", "see map here"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("<p>a &lt;b&gt; &amp; c", "a <b> & c"),
    ],
)
def test_text_is_a_line_a_block(page: str, written: str) -> None:
    assert text(page) == written


@given(worded_documents)
def test_text_holds_every_word_in_order_and_apart(made: Made) -> None:
    text = prunus.clean(made.html, "text")
    assert oracle.without_marks(text).split() == oracle.without_marks(" ".join(made.words)).split()


@given(worded_documents)
def test_text_of_all_blocks_is_the_text_of_the_document(made: Made) -> None:
    for size in (1, 6):
        blocks: Blocks = cut([clean_tree(made.html)], size, whole_words=0)
        text = render_blocks(blocks, range(len(blocks)), Rendering("text"))
        assert oracle.without_marks(text).split() == oracle.without_marks(" ".join(made.words)).split()


def test_formats_agree_on_the_words_of_example_pages(site: dict[str, str]) -> None:
    for html in site.values():
        html = re.sub(r"<sup[^>]*>\s*<a[^>]*#[^<]*</a>\s*</sup>", "", html)  # marks of notes are left out of text
        words: Any = " ".join(oracle.words(prunus.clean(html)))
        assert oracle.without_marks(prunus.clean(html, "text")).split() == oracle.without_marks(words).split()


# --- code of which lines are dropped ---------------------------------------------------------------

CODE = "<pre>def ferry(day):\n    if day in fast:\n        return the_short_way(day)\n\tgo on\n\n    for pier in all_piers:\n        stop()\n</pre>"


@pytest.mark.parametrize("format", ["html", "markdown", "text"])
def test_a_kept_line_of_code_keeps_its_indentation(format: OutputFormat) -> None:
    blocks = cut([clean_tree(CODE)], 4)
    lines = oracle.preformatted(CODE)[0].split("\n")
    for index in range(1, len(blocks)):
        shown = render_blocks(blocks, [0, index], Rendering(format)).split("\n")
        for line in blocks.texts[index].split("\n"):
            if line.strip():
                assert line in lines
                assert line in [one.removeprefix("<pre>").removesuffix("</pre>") for one in shown]


def test_all_lines_of_cut_code_are_the_code() -> None:
    blocks = cut([clean_tree(CODE)], 4)
    assert len(blocks) > 3
    assert "".join(blocks.texts) == oracle.preformatted(CODE)[0]
