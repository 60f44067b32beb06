"""Words and signs that a page's own style sheet shows before and after elements are part of its text."""

from __future__ import annotations

import pytest

import prunus
from prunus.pages.clean import generated
from prunus.pages.clean.walk import clean_tree

UNIT = "<p>It is <b class=u data-unit=km>12</b> away."
LOSS = "<p>net <span class=loss>4.2</span> million"
CELLS = "<table><tr><td>Tea<td class=c data-label=Price>5</table>"

SAID = {
    (".loss::before{content:'−'}", LOSS): "net −4.2 million",
    (".loss:before{content:'\\2212'}", LOSS): "net −4.2 million",
    (".loss::BEFORE{CONTENT:'-' !important}", LOSS): "net -4.2 million",
    (".loss::before{content:'−'}", "<p>net <i class=loss></i>4.2"): "net −4.2",
    (".loss::before{content:'−'}", "<p>net <i class=loss>$4.2</i>"): "net −$4.2",
    (".u::after{content:' \\20AC'}", UNIT): "It is 12 € away.",
    (".u::after{content:'€'}", UNIT): "It is 12€ away.",
    (".u::after{content:'k' 'm' / 'kilometres'}", UNIT): "It is 12km away.",
    (".u::after{content:'m'}", UNIT): "It is 12m away.",
    (".u::after{content:' ' attr(data-unit)}", UNIT): "It is 12 km away.",
    (".u::after{content:'\\\n km'}", UNIT): "It is 12 km away.",
    (".u::after{content:'a;}b,c/*d*/'}", UNIT): "It is 12a;}b,c/*d*/ away.",
    (".u::after{content:'\\d800x\\0 '}", UNIT): "It is 12\ufffdx\ufffd away.",
    (".u::after{content:'\\e001  km'}", UNIT): "It is 12 km away.",
    ("body{b::after{content:'km'}}", UNIT): "It is 12km away.",
    ("p>::after{content:'km'}", UNIT): "It is 12km away.",
    ("@media screen{.u::after{content:'km'}}", UNIT): "It is 12km away.",
    (".u.u::after{content:'km'}.u::after{content:'mi'}", UNIT): "It is 12km away.",
    (".u::after{display:none}.u::after{content:'km';display:inline}", UNIT): "It is 12km away.",
    (".u::after{content:'new';position:absolute}", UNIT): "It is 12 new away.",
    (".u::before{content:'~'}.u::after{content:'*'}", UNIT): "It is ~12* away.",
    ("td.c::before{content:'('}td.c::after{content:')'}", CELLS): "Tea\t(5)",
    ("td.c::before{content:attr(data-label) ': '}", CELLS): "Tea\tPrice: 5",
    (".y::before{content:'✓'}.n::before{content:'✗'}", "<table><tr><td>a<td class=y><td class=n></table>"): "a\t✓\t✗",
    ("dt::after{content:':'}", "<dl><dt>Port<dd>Oslo</dl>"): "Port:\nOslo",
    ("p::before{content:'Note: '}", "<p>Wait"): "Note: Wait",
    ("a+a::before{content:'|'}", "<p><a href=/x>x</a><a href=/y>y</a>"): "x y",
    (".m::before{content:'/'}", "<p><i>4</i><i class=m>5</i>"): "4/5",
}


@pytest.mark.parametrize(("css", "html"), SAID)
def test_what_a_sheet_shows_beside_words_is_said(css: str, html: str) -> None:
    page = f"<style>{css}</style>{html}"
    assert clean_tree(page).canonical == SAID[css, html]
    written = prunus.clean(page, "html")
    assert prunus.clean(written, "html") == written
    assert clean_tree(written).canonical == SAID[css, html]


@pytest.mark.parametrize(
    "css",
    [
        ".u::after{content:''}",
        ".u::after{content:' '}",
        ".u::after{content:'km'}b::after{content:none!important}",
        ".u::after{content:'km'}p .u::after{content:''}",
        ".u::after{content:'km'}.u:after{display:none}",
        ".u::after{content:'km';visibility:hidden}",
        ".u::after{content:attr(data-unit);opacity:0;transition:opacity 1s}.u:hover::after{opacity:1}",
        ".u:hover::after{content:'km'}",
        ".u::after{content:'km';position:absolute;left:-9999px}",
        ".u::after{content:'expand';font-family:'Material Icons'}",
        ".u::after{content:'\\f101'}",
        ".u::after{content:'\\2022'}",
        ".u::after{content:'→'}",
        ".u::after{content:'”'}",
        ".u::after{content:'x';float:right}",
        ".u::after{content:'+';float:right}",
        ".u::before{content:'– '}",
        ".u::after{content:counter(n) ' km'}",
        ".u::after{content:url(km.png)}",
        ".u::after{content:'km' open-quote}",
        ".u::after{content:attr(data-none)}",
        ".u::after{content:attr(data-line)}",
        ".u::after{content:attr(data-same)}",
        ".u::marker{content:'km'}",
        ".u{content:'km'}",
        "@media print{.u::after{content:'km'}}",
        "@media (max-width:600px){.u::after{content:attr(data-unit)}}",
        ".u::after{content:attr(data-unit)}@media (min-width:600px){.u::after{display:none}}",
        "body::after{content:'desktop'}",
        ".u::after{content:'" + "km " * 80 + "'}",
    ],
)
def test_decoration_and_what_is_not_seen_stay_out(css: str) -> None:
    page = f"<style>{css}</style><p>It is <b class=u data-unit=km data-line=7 data-same=12>12</b> away."
    assert clean_tree(page).canonical == "It is 12 away."


def test_no_words_are_put_where_an_element_has_no_such_box() -> None:
    css = "*::before{content:'Note '}"
    html = (
        "<table><tr><td>5</table><pre><i>x</i></pre><p hidden>y</p><input value=v><select><option>o</select><svg></svg>"
    )
    assert clean_tree(f"<style>{css}</style>{html}").canonical == "Note 5\nx\nv o"


def test_a_page_with_too_many_places_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "<style>b::after{content:'km'}</style><p>" + "<b>1</b> " * 5
    assert clean_tree(page).canonical.count("km") == 5
    monkeypatch.setattr(generated, "MAX_PLACES", 4)
    assert "km" not in clean_tree(page).canonical
