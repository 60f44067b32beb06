"""Faults of other tools that clean and prune HTML: the smallest example of each, and the right output."""

from __future__ import annotations

import numpy as np
import pytest
from tests import oracle

import prunus
from prunus.core.registry import make_engine
from prunus.evidence.blocks import cut
from prunus.evidence.greedy import select
from prunus.evidence.render import Rendering
from prunus.pages.clean.walk import clean_tree
from prunus.pages.write.selection import MARK

FULL = prunus.Style(full=True)


def text(html: str | bytes) -> str:
    return " ".join(prunus.clean(html, "text").split())


def full(html: str) -> str:
    """Return the cleaned body in full HTML, which reads best in an assertion."""
    body = prunus.clean(html, style=FULL).removeprefix("<html>").removesuffix("</html>")
    return body.removeprefix("<body>").removesuffix("</body>")


# --- what cleaning loses elsewhere -------------------------------------------------------------


def test_an_empty_cell_keeps_its_column() -> None:
    html = "<table><tr><td>a<td><td>c<tr><td>d<td>e<td>f</table>"
    assert oracle.grids(prunus.clean(html)) == [[[("a",), (), ("c",)], [("d",), ("e",), ("f",)]]]


def test_an_empty_row_keeps_its_place() -> None:
    html = "<table><tr><td rowspan=2>a<td>b<tr></tr><tr><td>c<td>d</table>"
    assert oracle.grids(prunus.clean(html)) == oracle.grids(html)


def test_colspan_and_rowspan_stay() -> None:
    html = "<table><tr><th colspan=2>ab<th rowspan=2>c<tr><td>d<td>e</table>"
    assert oracle.grids(prunus.clean(html)) == [[[("ab",), ("ab",), ("c",)], [("d",), ("e",), ("c",)]]]


def test_a_rowspan_of_zero_reaches_to_the_end_of_its_group() -> None:
    html = "<table><tbody><tr><td rowspan=0>a<td>b<tr><td>c<tbody><tr><td>d<td>e</table>"
    assert oracle.grids(prunus.clean(html)) == oracle.grids(html)


@pytest.mark.parametrize("wild", ["-2", "0", "x", "1e9", "99999999999", " 2 ", "2.7", ""])
def test_wild_spans_mean_what_the_standard_says(wild: str) -> None:
    for name in ("colspan", "rowspan"):
        html = f"<table><tr><td {name}='{wild}'>a<td>b<tr><td>c<td>d</table>"
        assert oracle.grids(prunus.clean(html)) == oracle.grids(html)


def test_a_line_break_fuses_no_words() -> None:
    assert text("<p>first<br>second<br/>third") == "first second third"
    assert oracle.words(prunus.clean("<p>first<br>second")) == ["first", "second"]


def test_cells_and_items_fuse_no_words() -> None:
    assert text("<table><tr><td>a</td><td>b</td></tr></table><ul><li>c</li><li>d</li></ul>") == "a b c d"


def test_a_heading_that_wraps_another_tag_stays() -> None:
    assert full("<h2><a href=/x><span>Opening</span> hours</a></h2><p>x") == (
        '<h2><a href="/x">Opening hours</a></h2><p>x</p>'
    )


def test_nested_lists_stay_nested() -> None:
    html = "<ul><li>a<ul><li>b<ol><li>c</ol></ul><li>d</ul>"
    assert full(html) == "<ul><li>a<ul><li>b<ol><li>c</li></ol></li></ul></li><li>d</li></ul>"


def test_a_list_that_is_an_item_s_only_content_stays_nested() -> None:
    html = "<ul><li><ul><li>b</ul></ul>"
    assert [word.path for word in oracle.visible(prunus.clean(html))] == [word.path for word in oracle.visible(html)]


def test_blank_lines_and_indentation_in_pre_stay() -> None:
    code = "def f():\n\n    return 1\n\n\n\tx = 2  \n"
    assert oracle.preformatted(prunus.clean(f"<pre>{code}</pre>")) == [code]


def test_a_first_blank_line_in_pre_stays() -> None:
    html = "<pre>\n\n  x</pre>"
    once = prunus.clean(html)
    assert oracle.preformatted(once) == ["\n  x"] == oracle.preformatted(prunus.clean(once))


def test_highlighted_code_keeps_its_white_space() -> None:
    html = "<pre><code><span class=k>if</span> <span>x</span>:\n    <b>y</b>\n</code></pre>"
    assert oracle.preformatted(prunus.clean(html)) == ["if x:\n    y\n"]


def test_alt_texts_stay() -> None:
    assert text("<p>see <img src=a.png alt='map of the port'> here") == "see map of the port here"


def test_links_stay() -> None:
    assert full('<p>see <a class=x href="/map?a=1&amp;b=2">the map</a>') == (
        '<p>see <a href="/map?a=1&amp;b=2">the map</a></p>'
    )


def test_a_table_of_one_column_stays_a_table() -> None:
    html = "<table><tr><td>a<tr><td>b</table>"
    assert oracle.grids(prunus.clean(html)) == [[[("a",)], [("b",)]]]


def test_a_table_of_one_cell_stays_a_table() -> None:
    assert oracle.grids(prunus.clean("<table><tr><td>a</table>")) == [[[("a",)]]]


@pytest.mark.parametrize("shown", ["a<b and c>d", "1 < 2 && 3 > 2", "<p> is a tag", "&amp; is an entity", "x<!--y-->z"])
def test_text_that_looks_like_markup_stays_text(shown: str) -> None:
    escaped = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    once = prunus.clean(f"<p>{escaped}</p>")
    assert " ".join(oracle.words(once)) == shown
    assert prunus.clean(once) == once


def test_a_bare_less_than_sign_stays() -> None:
    assert text("<p>a < b and c > d") == "a < b and c > d"


# --- what cleaning keeps elsewhere ---------------------------------------------------------------

UNSEEN = {
    "script": "<script>secret</script>",
    "script that writes tags": "<script>document.write('<p>secret</p>')</script>",
    "style": "<style>secret{}</style>",
    "style in the body": "<div><style>.secret{}</style></div>",
    "comment": "<!-- secret -->",
    "conditional comment": "<!--[if IE]><p>secret</p><![endif]-->",
    "template": "<template><p>secret</p></template>",
    "svg text": "<svg><desc>secret</desc><text>secret</text></svg>",
    "canvas": "<canvas>secret</canvas>",
    "iframe": "<iframe src=x>secret</iframe>",
    "option list": "<select><option>seen</option><option>secret</option></select>",
    "datalist": "<datalist><option value=a>secret</datalist>",
    "hidden": "<div hidden>secret</div>",
    "hidden with a value": "<div hidden=hidden><p>secret</div>",
    "display none": "<div style='display:none'><p>secret</p></div>",
    "display none, spaced and important": "<p style='color:red ; DISPLAY : none !important'>secret</p>",
    "visibility hidden": "<p style='visibility:hidden'>secret</p>",
    "zero size": "<div style='height:0;overflow:hidden'>secret</div>",
    "zero font": "<span style='font-size:0'>secret</span>",
    "off screen": "<p style='position:absolute; left:-9999px'>secret</p>",
    "text indent": "<p style='text-indent:-9999px'>secret</p>",
    "clipped": "<p style='position:absolute;clip:rect(0,0,0,0)'>secret</p>",
    "transparent": "<p style='opacity:0'>secret</p>",
    "hidden input": "<input type=hidden value=secret>",
    "password": "<input type=password value=secret>",
    "attribute": "<p title=secret data-x=secret class=secret>seen</p>",
    "aria label": "<p aria-label=secret>seen</p>",
    "noscript double": "<p>seen twice</p><noscript>seen twice</noscript>",
    "video fallback": "<video src=v.mp4><p>secret</p></video>",
    "closed dialog": "<dialog><p>secret</dialog>",
    "popover": "<div popover>secret</div>",
    "icon": "<i class='icon-home' aria-hidden=true>secret</i>",
    "annotation": "<math><semantics><mi>x</mi><annotation>secret</annotation></semantics></math>",
    "processing instruction": "<?php secret ?>",
    "tag characters": "seen\U000e0073\U000e0065\U000e0063",
}


@pytest.mark.parametrize("markup", UNSEEN.values(), ids=UNSEEN)
def test_what_a_reader_cannot_see_goes_in_every_format(markup: str) -> None:
    html = f"<title>T</title><p>before</p>{markup}<p>after</p>"
    for format in ("html", "markdown", "text"):
        found = prunus.clean(html, format)
        assert "secret" not in found
        assert "\U000e0073" not in found
        assert found.count("seen twice") <= 1
        assert "before" in found
        assert "after" in found


SEEN = {
    "hidden until found": "<div hidden=until-found>shown</div>",
    "noscript of its own": "<noscript>shown</noscript>",
    "closed details": "<details><summary>s</summary>shown</details>",
    "visible in hidden": "<div style='visibility:hidden'>x<p style='visibility:visible'>shown</p></div>",
    "aria-hidden words": "<p aria-hidden=true>shown words that nothing doubles</p>",
    "display block": "<p style='display:block;content:none'>shown</p>",
    "fade-in": "<p style='opacity:0;transition:opacity 1s'>shown</p>",
    "selected option": "<select><option>x<option selected>shown</select>",
    "multiple options": "<select multiple><option>x<option>shown</select>",
    "button value": "<input type=submit value=shown>",
    "placeholder": "<input placeholder=shown>",
    "textarea": "<textarea>shown</textarea>",
    "open dialog": "<dialog open>shown</dialog>",
    "object fallback": "<object data=x.swf><p>shown</object>",
    "half opaque": "<p style='opacity:0.5'>shown</p>",
    "a little to the left": "<p style='margin-left:-10px'>shown</p>",
    "height with visible overflow": "<div style='height:0'>shown</div>",
    "legend": "<fieldset><legend>shown</legend></fieldset>",
    "ruby": "<ruby>shown<rt>x</rt></ruby>",
    "math": "<math><mi>shown</mi></math>",
    "unknown tag": "<x-card>shown</x-card>",
    "flag emoji": "shown \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
}


@pytest.mark.parametrize("markup", SEEN.values(), ids=SEEN)
def test_what_a_reader_can_see_stays(markup: str) -> None:
    assert "shown" in prunus.clean(f"<p>before</p>{markup}<p>after</p>", "text")


def test_flag_emoji_stay_whole() -> None:
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert flag in prunus.clean(f"<p>flag {flag} here", "text")


def test_cdata_shows_only_where_xml_is_understood() -> None:
    assert "secret" not in prunus.clean("<p>before</p><![CDATA[secret]]><p>after", "text")
    assert "shown" in prunus.clean("<p>x <math><mtext><![CDATA[shown]]></mtext></math>", "text")


# --- encodings -----------------------------------------------------------------------------------

WORDS = "Größe, naïveté, señor"


@pytest.mark.parametrize(
    ("page", "charset"),
    [
        (f"<p>{WORDS}".encode(), ""),
        (f"<meta charset=latin-1><p>{WORDS}".encode("latin-1"), ""),
        (f"<p>{WORDS}".encode("latin-1"), "iso-8859-1"),
        (f"\ufeff<p>{WORDS}".encode("utf-16-le"), ""),
        (f"\ufeff<p>{WORDS}".encode(), "latin-1"),
        (f"<p>{WORDS}, and a few more English words after it, so that it can be told.".encode("cp1252"), ""),
        (f"<meta charset=no-such-charset><p>{WORDS}".encode(), ""),
        (f"<p>{WORDS}".encode(), "no-such-charset"),
    ],
)
def test_any_way_of_naming_the_charset_gives_the_words(page: bytes, charset: str) -> None:
    found = prunus.clean(prunus.Page(page, charset=charset), "text")
    assert WORDS in found
    assert "\ufffd" not in found


def test_a_charset_that_the_transport_names_wrongly_loses_no_bytes_silently() -> None:
    """Latin-1 bytes that are called UTF-8: the words come out right, not as U+FFFD."""
    page = f"<html><body><p>{WORDS} and some more words of plain English</p></body></html>".encode("latin-1")
    assert WORDS in prunus.clean(page, "text")
    assert WORDS in prunus.clean(prunus.Page(page, charset="utf-8"), "text")
    assert WORDS in prunus.clean(b"<meta charset=utf-8>" + page, "text")


def test_chinese_pages_in_their_own_encodings() -> None:
    words = "潮汐站安装指南第一步连接电源"
    for encoding in ("gb18030", "gbk", "big5"):
        shown = words if encoding != "big5" else "潮汐站安裝指南第一步連接電源"
        page = f"<meta charset={encoding}><p>{shown}".encode(encoding)
        assert shown in prunus.clean(page, "text")


# --- wrong results -------------------------------------------------------------------------------


def test_no_tag_is_invented_or_renamed() -> None:
    html = "<div><p>one two three</p><p>four five six</p></div>" * 3
    context = prunus.prune(html, "five?", 12, options=prunus.Options(max_words=3))
    assert {element.tag for element in oracle.parse(context.html).find_all()} <= {"html", "head", "body", "div", "p"}
    assert "<p1" not in context.html


@pytest.mark.parametrize("tag", ["p0", "p1", "div2"])
def test_a_tag_that_ends_in_a_number_stays_what_it_is(tag: str) -> None:
    html = f"<div><{tag}>alpha beta</{tag}><p>gamma delta</p><p>epsilon zeta</p></div>"
    blocks = cut([clean_tree(html)], 2)
    assert [" ".join(block.split()) for block in blocks.texts] == ["alpha beta", "gamma delta", "epsilon zeta"]
    assert len({blocks.path(index) for index in range(3)}) == 3
    context = prunus.prune(html, "alpha", 40)
    assert oracle.words(context.html) == oracle.words(html)


@pytest.mark.parametrize(
    "page", ["", " \n\t ", b"", b"  ", "<html></html>", "<p></p>", "<script>x</script>", "<!-- x -->"]
)
def test_an_empty_page_is_one_clear_error(page: str | bytes) -> None:
    for use in (prunus.clean, lambda page: prunus.prune(page, "what?"), lambda page: prunus.ask("what?", page)):
        with pytest.raises(prunus.BadPage, match=r"empty|no text|could be read") as caught:
            use(page)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("page", ["just some plain words", "two\n\nparagraphs of words", b"plain bytes of words"])
def test_plain_text_is_a_page(page: str | bytes) -> None:
    assert "words" in prunus.clean(page, "text")
    assert "words" in prunus.prune(page, "words?").text


def test_two_small_top_level_tags_are_a_page() -> None:
    context = prunus.prune("<p>alpha</p><p>beta</p>", "beta?", 4096)
    assert context.text.split() == ["alpha", "beta"]


def test_text_directly_under_a_node_is_scored_and_can_be_dropped() -> None:
    html = (
        "<body>the ferry leaves at nine<p>" + "other words about nothing at all. " * 8 + "</p>tail words follow</body>"
    )
    context = prunus.prune(html, "when does the ferry leave?", 7, options=prunus.Options(max_words=10))
    assert "ferry leaves at nine" in context.text
    assert "tail words" not in context.text
    assert any("tail words" in block.text and not block.kept for block in context.blocks)


def test_the_best_blocks_are_kept_and_not_the_worst() -> None:
    page = "".join(f"<p>paragraph number{number} holds five words</p>" for number in range(40))
    blocks = cut([clean_tree(page)], 6)
    scores = np.random.default_rng(7).permutation(len(blocks)).astype(float)
    chosen = select(blocks, scores, 120, make_engine("tokenizer", "smollm2"), Rendering())
    assert 5 < len(chosen.kept) < 20
    assert sorted(chosen.kept) == sorted(np.argsort(-scores)[: len(chosen.kept)].tolist())


def test_an_output_never_ends_in_a_blind_cut() -> None:
    """Even a budget smaller than a sentence leaves whole words and whole tags, and marks what was left out."""
    page = "".join(
        f"<div><p>The <b>{number}th</b> answer is a <i>rather</i> long one.</p></div>" for number in range(50)
    )
    known = {*oracle.words(page), MARK}
    for budget in range(6, 60, 6):
        for format in ("html", "markdown", "text"):
            context = prunus.prune(page, "the 40th answer?", budget, format)
            assert set(oracle.words(context.html)) <= known
            assert set(context.text.split()) <= known
            assert set(context.markdown.split()) <= known
