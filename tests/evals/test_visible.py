"""The visible text of an output, in every format."""

from __future__ import annotations

import pytest

from prunus_evals.metrics.matching import words
from prunus_evals.visible import html_text, markdown_text, read_text, visible_text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<b>b</b>c</p>", "abc"),
        ("a<!-- x -->b", "ab"),
        ("a<script>x</script>b", "ab"),
        ("a<br>b", "a\nb"),
        ("<tr><td>a<td>b</table>", "ab"),  # without its table a row is no row
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc"),
        ("<td0>a</td0><td1>b</td1>", "a b"),
        ("<b0>a</b0><h1>b</h1>", "a\nb"),
        ("<p>a<span style='display: none'>x</span>b", "ab"),
        ("<p>a<span hidden>x</span> b", "a b"),
        ("<p>a <span hidden=until-found>x</span> b", "a x b"),
        ("<style>x</style><title>x</title><p>a &amp; b", "a & b"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("<div>a</div>b", "a\nb"),
        ("", ""),
    ],
)
def test_html(html: str, expected: str) -> None:
    assert html_text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<b>b</b>c", "abc"),
        ("a<!-- x -->b<br>c", "ab\nc"),
        ("<head><title>x</title><style>y</style><body><p>a &amp; b", "a & b"),
        ("<script>if (a < b) x</script>a<svg><g>x</g></svg>b", "ab"),
        ("<table><tr>\n<a>a</a>\n<td>b<tr><td>c<td>d</table>", "a b\nc d"),
        ("<td0>a</td0><td1>b</td1>", "a b"),
        ("a <td", "a"),
        ("a &lt;b&gt; c", "a <b> c"),
    ],
)
def test_output_is_read_in_order(html: str, expected: str) -> None:
    assert read_text(html) == expected


def test_hidden_words_on_request() -> None:
    assert html_text("<p>a <i hidden>b</i> c", keep_hidden=True) == "a b c"


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# Title\n\nsome *words* and **more**", "title some words and more"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b 1 2"),
        (r"snake\_case \| 3 \* 4", "snake_case 3 4"),
        ("snake_case and _this_", "snake_case and this"),
        ("[text](http://x/a_(b)) ![alt](http://y)", "text"),
        ('[text](/a "a title")', "text"),
        ("- a\n* b\n> c", "a b c"),
        ("a <table><tr><td>b</table> &lt;c&gt;", "a b c"),
        (r"a \<b> c", "a b c"),
        ("```\n<b> | x\n```", "b x"),
        ("`code` ~~gone~~", "code gone"),
    ],
)
def test_markdown(markdown: str, expected: str) -> None:
    assert " ".join(words(markdown_text(markdown))) == expected


def test_an_escaped_tag_is_text() -> None:
    assert "<b>" in markdown_text(r"\<b\> x")


def test_text_is_itself() -> None:
    assert visible_text("a <b> *c*", "text") == "a <b> *c*"
