"""What a page's own ``<style>`` elements hide on a screen goes; what they show, and what a script shows, stays."""

from __future__ import annotations

import pytest
from tests.clock import at_most, seconds_of

import prunus

SEEN = "<p>Seen words stand here for the reader of the page, and they stay.</p>"


def words(css: str, body: str) -> str:
    page = f"<html><head><style>{css}</style></head><body>{SEEN}{body}</body></html>"
    return (
        prunus.clean(page, format="text")
        .replace("Seen words stand here for the reader of the page, and they stay.", "")
        .strip()
    )


HIDDEN = {
    "by class": (".x{display:none}", "<p class=x>GONE</p>"),
    "by id": ("#x { display : none }", "<p id=x>GONE</p>"),
    "by attribute": ('[data-x="}"]{display:none}', "<p data-x='}'>GONE</p>"),
    "by a child combinator": ("div > p.x{visibility:hidden}", "<div><p class=x>GONE</p></div>"),
    "by a sibling": ("h2 ~ p{display:none}", "<h2></h2><p>GONE</p>"),
    "by a tag in upper case": ("ASIDE{DISPLAY:NONE}", "<aside>GONE</aside>"),
    "by zero opacity": (".x{opacity:0}", "<p class=x>GONE</p>"),
    "by a place off screen": (".x{position:absolute;left:-9999px}", "<p class=x>GONE</p>"),
    "by two rules": (".x{left:-9999px} p{position:absolute}", "<p class=x>GONE</p>"),
    "by size": (".x{height:0;overflow:hidden}", "<p class=x>GONE</p>"),
    "by clip": (".x{position:absolute;clip:rect(0,0,0,0)}", "<p class=x>GONE</p>"),
    "by font size": (".x{font-size:0}", "<p class=x>GONE</p>"),
    "in @media screen": ("@media screen and (min-width:600px){.x{display:none}}", "<p class=x>GONE</p>"),
    "in nested at-rules": ("@media all{@supports (display:grid){@layer a{.x{display:none}}}}", "<p class=x>GONE</p>"),
    "in a nested rule": (".a{color:red;.x{display:none}}", "<div class=a><p class=x>GONE</p></div>"),
    "by & in a nested rule": (".a{&.x{display:none}}", "<p class='a x'>GONE</p>"),
    "behind a comment": ("/* { */.y{color:red}/**/.x{display:/**/none}", "<p class=x>GONE</p>"),
    "behind a comment in a string": (".y::before{content:'/*'}.x{display:none}", "<p class=x>GONE</p>"),
    "behind a brace in a string": (".y::before{content:'}{'}.x{display:none}", "<p class=x>GONE</p>"),
    "by an escaped property": (r".x{d\69splay:none}", "<p class=x>GONE</p>"),
    "by an escaped class": (r".\78 {display:none}", "<p class=x>GONE</p>"),
    "importantly": (".x{display:none!important}p.x{display:block}", "<p class=x style='display:block'>GONE</p>"),
    "without a closing brace": (".x{display:none", "<p class=x>GONE</p>"),
    "in one of several selectors": (".a,.x,.b::before{display:none}", "<p class=x>GONE</p>"),
}

SHOWN = {
    "a more specific rule shows it": (".x{display:none}.x.y{display:block}", "<p class='x y'>STAYS</p>"),
    "a later rule shows it": (".x{display:none}.x{display:block}", "<p class=x>STAYS</p>"),
    "its inline style shows it": (".x{display:none}", "<p class=x style='display:block'>STAYS</p>"),
    "an important rule shows it": (".x{display:block!important}p.x{display:none}", "<p class=x>STAYS</p>"),
    "a rule outside layers shows it": ("p{display:block}@layer a{p.x{display:none}}", "<p class=x>STAYS</p>"),
    "its parent has no font size": (".x{font-size:0}.x b{font-size:16px}", "<p class=x><b>STAYS</b></p>"),
    "only print hides it": ("@media print{.x{display:none}}", "<p class=x>STAYS</p>"),
    "only a small screen hides it": ("@media (max-width:600px){.x{display:none}}", "<p class=x>STAYS</p>"),
    "only an unknown condition hides it": ("@container (width>1px){.x{display:none}}", "<p class=x>STAYS</p>"),
    "an animation begins so": ("@keyframes k{from{opacity:0}}.x{opacity:0;animation:k 1s}", "<p class=x>STAYS</p>"),
    "only hovering hides it": (".x:hover{display:none}", "<p class=x>STAYS</p>"),
    "only its marker is hidden": (".x::before{display:none}", "<p class=x>STAYS</p>"),
    "a comment hides it": ("/*.x{display:none}*/", "<p class=x>STAYS</p>"),
    "a string hides it": (".y{quotes:';display:none'}", "<p class=y>STAYS</p>"),
    "a loading state hides it": (".no-js .x,.lazy,[v-cloak]{display:none}", "<p class=lazy>STAYS</p>"),
    "it is inside what is hidden": (
        ".x{visibility:hidden}.y{visibility:visible}",
        "<div class=x>a<p class=y>STAYS</p></div>",
    ),
    "it is the main content": ("main,article,body{display:none}", "<main><article>STAYS</article></main>"),
}


@pytest.mark.parametrize(("css", "body"), HIDDEN.values(), ids=HIDDEN)
def test_what_a_style_element_hides_goes(css: str, body: str) -> None:
    assert words(css, body) == ""


@pytest.mark.parametrize(("css", "body"), SHOWN.values(), ids=SHOWN)
def test_what_is_shown_stays_though_a_rule_hides_it(css: str, body: str) -> None:
    assert words(css, body) == "STAYS"


def test_a_style_element_in_the_body_and_in_svg_counts() -> None:
    page = f"{SEEN}<p class=x>GONE</p><p class=y>GONE</p><svg><style>.x{{display:none}}</style></svg><style>.y{{display:none}}</style>"
    assert "GONE" not in prunus.clean(page, format="text")


@pytest.mark.parametrize("holder", ["noscript", "template"])
def test_a_style_element_that_no_browser_applies_hides_nothing(holder: str) -> None:
    page = f"<{holder}><style>.x{{display:none}}</style></{holder}>{SEEN}<p class=x>STAYS</p>"
    assert "STAYS" in prunus.clean(page, format="text")


@pytest.mark.parametrize("attribute", ["media=print", "type=text/less"])
def test_a_style_element_for_another_medium_or_language_hides_nothing(attribute: str) -> None:
    page = f"<style {attribute}>.x{{display:none}}</style>{SEEN}<p class=x>STAYS</p>"
    assert "STAYS" in prunus.clean(page, format="text")


def test_sheets_that_hide_most_of_a_long_page_hide_nothing() -> None:
    page = f"<style>.x{{display:none}}</style>{SEEN}<div class=x>{'STAYS ' * 1_000}</div>"
    assert "STAYS" in prunus.clean(page, format="text")


def test_sheets_over_the_limit_are_not_read() -> None:
    page = f"<style>.x{{display:none}}{'.y{color:red}' * 10_000}</style>{SEEN}<p class=x>STAYS</p>"
    assert "STAYS" in prunus.clean(page, format="text")


def test_a_cleaned_page_is_stable() -> None:
    page = f"<style>.x{{display:none}}.y{{visibility:hidden}}.z{{visibility:visible}}</style>{SEEN}<p class=x>a<div class=y>b<i class=z>c</i></div>"
    once = prunus.clean(page)
    assert prunus.clean(once) == once


@pytest.mark.slow
@pytest.mark.parametrize(
    "css",
    [
        "{}" * 8_000 + ".x{display:none}",
        "{" * 30_000,
        "}" * 30_000,
        "@media{" * 4_000 + ".x{display:none}",
        ".a{" * 8_000 + "display:none",
        ".a,.b{&,&{" * 3_000 + "display:none",
        ".x{display:none}" * 2_000,
        "p~p~p~p{display:none}" * 1_000,
        ":has(p~p):not(:has(b)){display:none}" * 700,
        "\\" * 30_000 + "{display:none",
        '"' * 30_001 + "{display:none",
        "/*" * 15_000 + "{display:none",
        ".x{" + "display:none;" * 2_500,
        "," * 20_000 + "p{display:none}",
        "(" * 15_000 + "p{display:none}",
        "[" * 15_000 + "p{display:none}",
        "\ud800{display:none}.x{display:none}",
        ".x{display:none;opacity:0}" + "p.x{opacity:1}" * 2_000,
    ],
    ids=lambda css: css[:12],
)
def test_no_sheet_is_slow_or_raises(css: str) -> None:
    body = "<div class=x>" * 50 + "<p class=x>w" * 10_000
    plain = f"{SEEN}{body}"
    without = seconds_of(lambda: prunus.clean(plain))
    with at_most(5 * without + 3):
        assert "Seen words" in prunus.clean(f"<style>{css}</style>{plain}", format="text")
