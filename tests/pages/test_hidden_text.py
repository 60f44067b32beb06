"""Text that a style hides, in the many ways in which CSS can say it; what is seen stays.

A browser is the judge: :func:`test_a_browser_agrees` looks at the pixels of each form.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.extras import need

import prunus

HIDES = {
    "a comment": "display:/**/none",
    "an escape in the name": r"d\69splay:none",
    "an escape in the value": r"display:n\6f ne",
    "capitals": "DISPLAY : NONE",
    "important": "display:none!important;display:block",
    "a value that no browser knows after it": "display:none;display:nonsense",
    "a variable": "--x:none;display:var(--x)",
    "a variable with a fallback": "display:var(--nowhere, none)",
    "visibility": "visibility:hidden",
    "collapse": "visibility:collapse",
    "font shorthand": "font:0/0 a",
    "font shorthand with a weight": "font:italic 700 0 serif",
    "font size": "font-size:0",
    "font size in a sum": "font-size:calc(1px - 1px)",
    "a tiny font": "font-size:.1px",
    "a share of a font": "font-size:1%",
    "transparent": "color:transparent",
    "rgba": "color:rgba(0, 0, 0, 0)",
    "rgb with a slash": "color:rgb(0 0 0 / 0%)",
    "hsla": "color:hsla(120, 50%, 50%, 0)",
    "eight digits": "color:#00000000",
    "four digits": "color:#0000",
    "fill colour": "-webkit-text-fill-color:transparent",
    "its background's colour": "color:white;background:#fff",
    "its background's colour, almost": "color:#fefefe;background-color:rgb(255,255,255)",
    "opacity": "opacity:0",
    "a little opacity": "opacity:.001",
    "opacity in percent": "opacity:0%",
    "a filter": "filter:opacity(0)",
    "a filter among others": "filter:blur(1px) opacity(0%)",
    "scale": "transform:scale(0)",
    "scale in one direction": "transform:scaleY(0)",
    "the property scale": "scale:0",
    "a matrix": "transform:matrix(0,0,0,0,0,0)",
    "seen from the side": "transform:rotateX(90deg)",
    "moved off": "transform:translateX(-9999px)",
    "moved off by a sum": "transform:translate(calc(-100 * 100px), 0)",
    "the property translate": "translate:-9999px",
    "off to the left": "position:absolute;left:-9999px",
    "inset": "position:fixed;inset:0 0 0 -9999px",
    "a margin": "margin:0 0 0 -9999px",
    "an indent": "text-indent:-9999px",
    "a mask": "-webkit-mask-image:linear-gradient(transparent,transparent);mask-image:linear-gradient(transparent,transparent)",
    "a mask of no colour": "mask:linear-gradient(to right, rgba(0,0,0,0) 0%, #0000 100%)",
    "a circle": "clip-path:circle(0)",
    "an ellipse": "clip-path:ellipse(0 0 at center)",
    "a polygon": "clip-path:polygon(0 0, 0 0, 0 0)",
    "inset of half": "clip-path:inset(50%)",
    "clip": "position:absolute;clip:rect(0,0,0,0)",
    "clip of a pixel": "position:absolute;clip:rect(1px 1px 1px 1px)",
    "no height": "height:0;overflow:hidden",
    "no greatest height": "max-height:calc(0px);overflow:hidden",
    "no size of the block": "block-size:0;overflow:clip",
    "content": "content-visibility:hidden",
}

HIDES |= {
    "after many that are harmless": "margin:0 auto;width:100px;color:#333;DISPLAY:none",
    "a margin whose digits run on": "margin:0 0 0 -99999px",
    "a colour with no opacity": "color:#0000",
    "a colour and its background after others": "width:9px;background-color:#fff;top:0;color:#fff",
}
"""Just past what a quick look takes for harmless."""

SHOWS = {
    "nothing said": "",
    "display block": "display:none;display:block",
    "not important": "display:block!important;display:none",
    "a string": "font-family:'display:none'",
    "a comment": "/*display:none*/color:black",
    "a colour": "color:rgba(0,0,0,.8)",
    "half opacity": "opacity:.5",
    "a fill over a transparent colour": "color:transparent;-webkit-text-fill-color:#333",
    "text painted by its background": "color:transparent;background:linear-gradient(red,blue);-webkit-background-clip:text",
    "text drawn by its shadow": "color:transparent;text-shadow:0 0 0 #000",
    "white on black": "color:#fff;background:#000",
    "a small font": "font-size:9px",
    "a font with a size": "font:italic 700 12px/0 serif",
    "a scale": "transform:scale(1.2)",
    "a small move": "transform:translateX(-3px)",
    "a circle": "clip-path:circle(400px)",
    "a mask": "mask-image:linear-gradient(black,black);-webkit-mask-image:linear-gradient(black,black)",
    "no height, and nothing cut": "height:0",
    "a filter": "filter:opacity(.9)",
}

RED = "position:relative;color:#000"


def text_of(page: str) -> str:
    return prunus.clean(page, "text")


@pytest.mark.parametrize("name", HIDES)
def test_inline_styles_that_hide(name: str) -> None:
    assert text_of(f'<p>before<div style="{HIDES[name]}">SECRET</div><p>after') == "before\nafter"


@pytest.mark.parametrize("name", SHOWS)
def test_inline_styles_that_do_not(name: str) -> None:
    assert "SHOWN" in text_of(f'<p>before<div style="{SHOWS[name]}">SHOWN</div><p>after')


NOT_BY_SHEETS = {name for name in HIDES if "background" in name}
"""Which background a sheet gives an element in the end is not followed."""


@pytest.mark.parametrize("name", [name for name in HIDES if name not in NOT_BY_SHEETS])
def test_sheets_that_hide(name: str) -> None:
    page = f"<style>.x{{{HIDES[name]}}}</style><p>before words<div class=x>SECRET</div><p>after words"
    assert "SECRET" not in text_of(page) and "after" in text_of(page)


@pytest.mark.parametrize("name", SHOWS)
def test_sheets_that_do_not(name: str) -> None:
    page = f"<style>.x{{{SHOWS[name]}}}</style><p>before words<div class=x>SHOWN</div><p>after words"
    assert "SHOWN" in text_of(page)


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("<div style='font-size:0'>GONE<p style='font-size:14px'>seen</div>", "seen"),
        ("<div style='font-size:0'>GONE<p style='font-size:1em'>GONE</div><p>seen", "seen"),
        ("<div style='color:transparent'>GONE <b>GONE</b> <b style='color:#333'>seen</b></div>", "seen"),
        ("<div style='color:#fff;background:#fff'>GONE <a>GONE</a> <a href=x>seen</a></div>", "seen"),
        ("<div style='color:transparent'><a href=x style='color:#0000'>GONE</a></div><p>seen", "seen"),
        ("<div style='visibility:hidden'>GONE<img alt=GONE><p style='visibility:visible'>seen</div>", "seen"),
        ("<div style='visibility:hidden;font-size:0'>GONE<p style='visibility:visible'>GONE</div><p>seen", "seen"),
        (
            "<div style='visibility:hidden'><p style='display:none'><b style='visibility:visible'>GONE</div><p>seen",
            "seen",
        ),
        ("<style>:root{--gone:none}</style><p style='display:var(--gone)'>GONE</p><p>seen", "seen"),
        ("<div style='--gone:none'><p style='display:var(--gone)'>GONE</p></div><p>seen", "seen"),
    ],
)
def test_words_are_seen_again_where_an_element_inside_undoes_what_it_inherits(page: str, seen: str) -> None:
    assert text_of(page).split() == [seen]


def test_the_cells_of_a_mail_without_a_font_size_keep_their_table() -> None:
    page = (
        "<table><tr><td style='font-size:0px;padding:9px'><div style='font-size:13px'>Order</div>"
        "<td style='font-size:0'><span style='font-size:13px'>4711</span></table>"
    )
    assert prunus.clean(page, "text") == "Order\t4711"


@pytest.mark.full
def test_a_browser_agrees(tmp_path: Path) -> None:
    image = need("PIL.Image")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium")
    forms = {
        **{f"hides: {name}": style for name, style in HIDES.items()},
        **{f"shows: {name}": style for name, style in SHOWS.items()},
    }
    row = "position:absolute;left:0;width:600px;height:40px;overflow:hidden;contain:strict;font:20px sans-serif;top:"
    rows = "".join(
        f'<div style="{row}{number * 40}px"><div style="{style}">MMMMMM</div></div>'
        for number, style in enumerate(forms.values())
    )
    (tmp_path / "page.html").write_text(f"<!doctype html><body style='margin:0'>{rows}", "utf-8")
    command = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path}/user",
    ]
    command += [
        f"--screenshot={tmp_path}/page.png",
        f"--window-size=600,{40 * len(forms)}",
        f"file://{tmp_path}/page.html",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    picture = image.open(tmp_path / "page.png").convert("L")

    def is_seen(number: int) -> bool:
        darkest, lightest = picture.crop((0, number * 40, 600, number * 40 + 40)).getextrema()
        return bool(lightest - darkest > 16)

    wrong = [name for number, name in enumerate(forms) if is_seen(number) != name.startswith("shows")]
    assert not wrong
