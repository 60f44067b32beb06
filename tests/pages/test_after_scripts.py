"""What a page's scripts would show at once is shown: parts that React streams, pages that fade in, open frames."""

from __future__ import annotations

import pytest

import prunus
from prunus.pages.clean.walk import clean_tree

MOVE = '<script>$RC=function(a,b){};$RC("B:0","S:0")</script>'
PLACE = '<!--$?--><template id="B:0"></template><p>Loading</p><!--/$-->'
LONG = "".join(f"<p>Tide {number} was measured at the harbour wall.</p>" for number in range(100))


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (f"<h1>Tides</h1>{PLACE}<p>End</p><div hidden id=S:0><p>High water</p></div>{MOVE}", "Tides\nHigh water\nEnd"),
        (f"<h1>Tides</h1>{PLACE}<p>End</p><div hidden id=S:0><p>High water</p></div>", "Tides\nLoading\nEnd"),
        (
            f"{PLACE}<div hidden id=S:0><template id=P:1></template><p>at nine</p></div>{MOVE}"
            '<div hidden id=S:1><p>Low water</p></div><script>$RS("S:1","P:1")</script>',
            "Low water\nat nine",
        ),
        (
            f"{PLACE}<div hidden id=S:0>{PLACE.replace('B:0', 'B:1')}<p>two</p></div>{MOVE}"
            "<div hidden id=S:1><p>one</p></div><script>$RR('B:1','S:1',[])</script>",
            "one\ntwo",
        ),
        (
            f"<table><tbody>{PLACE.replace('<p>Loading</p>', '')}</table><table hidden><tr id=S:0><td>9 m</table>{MOVE}",
            "9 m",
        ),
        (f"<div hidden id=S:0><template id=B:0></template>in itself</div><p>kept</p>{MOVE}", "kept"),
        ("<!--$?--><template id=B:0></template><p>kept</p><div hidden id=S:0>High</div>" + MOVE, "High\nkept"),
    ],
)
def test_a_streamed_part_is_shown_in_its_place(page: str, shown: str) -> None:
    page = f"<body>{page}"
    for markup in (page, page.encode()):
        assert clean_tree(markup).canonical == shown


@pytest.mark.parametrize("style", ["opacity:0", "visibility: hidden; min-height: 100vh", "opacity:0;visibility:hidden"])
def test_a_page_that_fades_in_is_shown(style: str) -> None:
    whole = f"<title>Tides</title><div style='{style}'><h1>Tides</h1>{LONG}<p hidden>not this</p></div>"
    by_part = f"<title>Tides</title><h1>Tides</h1>{LONG}".replace("<p>", f"<p style='{style}'>") + "<p hidden>not this"
    for page in (whole, by_part):
        words = clean_tree(page).canonical
        assert "Tide 0 was" in words and "Tide 99 was" in words
        assert "not this" not in words


@pytest.mark.parametrize(
    "page",
    [
        f"<p>Tides</p>{LONG}<div style='opacity:0'>{LONG.replace('Tide', 'Wave')}</div>",  # no more than what is seen
        "<p>Tides</p><p style='opacity:0'>Wave</p>",  # few words, though most of the page
        f"<p>Tides</p><div style='opacity:0;display:none'>{LONG.replace('Tide', 'Wave')}</div>",
        f"<p>Tides</p><div style='display:none'><div style='opacity:0'>{LONG.replace('Tide', 'Wave')}</div></div>",
        f"<p>Tides</p><div style='visibility:hidden' hidden>{LONG.replace('Tide', 'Wave')}</div>",
    ],
)
def test_other_hidden_text_stays_out(page: str) -> None:
    assert "Wave" not in clean_tree(page).canonical


@pytest.mark.parametrize("frame", ["<iframe src=x />", "<IFRAME src='x'>", "<p>no scripts</p><iframe\nsrc=x>"])
def test_a_frame_without_end_in_a_noscript_takes_no_page(frame: str) -> None:
    page = f"<body><noscript>{frame}</noscript><h1>Tides</h1><p>High water at nine.</p>"
    for markup in (page, page.encode(), page.encode("utf-16")):
        assert "Tides\nHigh water at nine." in clean_tree(markup).canonical
    marked = prunus.prune(page, "When is high water?", 50).mark()
    assert marked.startswith("<body") and f"<noscript>{frame}</noscript><h1" in marked and "data-prunus" in marked
