"""Panels that a visible control opens are kept, closed; other hidden text stays out."""

from __future__ import annotations

import pytest

from prunus.pages.clean.walk import clean_tree

PANEL = "Call 555 0100."


def text_of(page: str) -> str:
    return clean_tree(f"<h1>Notes</h1>{page}<p>End</p>").canonical


@pytest.mark.parametrize(
    "page",
    [
        f"<button aria-controls=a>Berths</button><div id=a hidden>{PANEL}</div>",
        f"<h3><button aria-controls='z a'>Berths</button></h3><div id=a style='display:none'><p>{PANEL}</div>",
        f"<style>.off{{display:none}}</style><a href=#a role=tab>Berths</a><section id=a class=off>{PANEL}</section>",
        f"<div hidden role=tabpanel aria-labelledby=b>{PANEL}</div><span id=b role=tab>Berths</span>",
        f"<button data-bs-toggle=collapse data-bs-target=#a>Berths</button><p id=a hidden>{PANEL}</p>",
        f"<button aria-controls=a aria-haspopup=false><i hidden>x</i>Berths</button><ul id=a hidden><li>{PANEL}</ul>",
        f"<style>.c{{display:none}}</style><button onclick=\"show(event, 'a')\">Berths</button><div id=a class=c>{PANEL}</div>",
        f"<nav><a role=tab aria-controls=a>Berths</a></nav><div id=a hidden>{PANEL}</div>",
        f"<article><header><button aria-controls=a>Berths</button></header><div id=a hidden>{PANEL}</div></article>",
        f"<ul><li><a href=#a>Berths</a></ul><div id=a style='display:none'>{PANEL}</div>",
        f"<nav><a href=#a data-toggle=tab>Berths</a></nav><div id=a hidden>{PANEL}</div>",
        f"<button data-target=#a>Berths</button><div id=a hidden>{PANEL}</div>",
        f"<ul><li data-tab=a>Berths<li data-tab=b>Fares</ul><div id=a hidden>{PANEL}</div>",
        f"<button class=accordion>Berths</button> <!-- --> <div class=panel style='display:none'>{PANEL}</div>",
        f"<style>.a{{display:none}}</style><div class=faq__question>Berths</div><div class=a><p>{PANEL}</div>",
        f"<h3 class='box collapsible'>Berths</h3><div hidden><p>{PANEL}</div>",
        f"<button aria-controls=o>All</button><div id=o hidden><b aria-controls=a>Berths</b><div id=a hidden>{PANEL}</div></div>",
    ],
)
def test_a_panel_that_a_visible_control_names_is_a_closed_details(page: str) -> None:
    tree = clean_tree(page)
    assert "details" in tree.tag and PANEL in tree.canonical and "open" not in str(tree.attrs)


@pytest.mark.parametrize("row", ["<table><tr id=a hidden><td>{}</table>", "<dl><dd id=a hidden>{}</dl>"])
def test_a_panel_that_cannot_stand_in_details_is_shown(row: str) -> None:
    assert PANEL in text_of("<button aria-controls=a>More</button>" + row.format(PANEL))


@pytest.mark.parametrize(
    "page",
    [
        "<div id=a hidden>{}</div>",
        "<button aria-controls=b>Berths</button><div id=a hidden>{}</div>",
        "<button aria-controls=a></button><div id=a hidden>{}</div>",
        "<button aria-controls=a>▾</button><div id=a hidden>{}</div>",
        "<button aria-controls=a><span hidden>Berths</span></button><div id=a hidden>{}</div>",
        "<button aria-controls=a aria-label=Berths><svg><title>Berths</title></svg></button><div id=a hidden>{}</div>",
        "<button hidden aria-controls=a>Berths</button><div id=a hidden>{}</div>",
        "<div style='display:none'><button aria-controls=a>Berths</button></div><div id=a hidden>{}</div>",
        "<div style='font-size:0'><button aria-controls=a>Berths</button></div><div id=a hidden>{}</div>",
        "<button aria-controls=a>Berths</button><div hidden><div id=a hidden>{}</div></div>",
        "<button aria-controls=a>Berths</button><div id=a hidden>Call us <p hidden>{}</p></div>",
        "<div id=a hidden><button aria-controls=a>Berths</button>{}</div>",
        "<div id=a hidden><b aria-controls=b>B</b>{}</div><div id=b hidden><b aria-controls=a>A</b></div>",
        "<button aria-haspopup=menu aria-controls=a>Site</button><div id=a hidden>{}</div>",
        "<button aria-controls=a>Sign up</button><div id=a role=dialog hidden>{}</div>",
        "<button aria-controls=a>Sign up</button><div id=a class='box modal' hidden>{}</div>",
        "<button onclick='show(a)'>Berths</button><div id=a hidden>{}</div>",
        "<nav><button aria-controls=a>Site</button></nav><div id=a hidden>{}</div>",
        "<input aria-controls=a value=Berths><div id=a hidden>{}</div>",
        "<a href=#a hidden>Berths</a><div id=a hidden>{}</div>",
        "<a href=#>Berths</a><div hidden>{}</div>",
        "<a href='#a b'>Berths</a><div id=b hidden>{}</div>",
        "<nav><a href=#a>Berths</a></nav><div id=a hidden>{}</div>",
        "<a href=#login>Berths</a><div id=login hidden>{}</div>",
        "<a href=#a class=open-popup>Berths</a><div id=a hidden>{}</div>",
        "<a href=#a rel=modal:open>Berths</a><div id=a hidden>{}</div>",
        "<a href=#a>Berths</a><div id=a class='cookie-consent' hidden>{}</div>",
        "<a href=#a>Berths</a><form id=a hidden>{}<input value=x></form>",
        "<a href=#a>Berths</a><div id=a hidden>{}<form>x</form></div>",
        "<a href=#a data-toggle=dropdown>Berths</a><ul id=a hidden>{}</ul>",
        "<button data-bs-target=#a data-bs-toggle=modal>Berths</button><div id=a hidden>{}</div>",
        "<button>Berths</button><div hidden>{}</div>",
        "<button class=accordion hidden>Berths</button><div hidden>{}</div>",
        "<button class=accordion>Berths</button><p>x</p><div hidden>{}</div>",
        "<div class=accordion>Berths</div><div hidden>{}</div>",
        "<button class='accordion menu'>Berths</button><ul hidden><li>{}</ul>",
        "<header><button class=accordion>Berths</button><div hidden>{}</div></header>",
        f"<button aria-controls=a>{'Berths ' * 40}</button><div id=a hidden>{{}}</div>",
    ],
)
def test_hidden_text_that_no_visible_control_names_stays_out(page: str) -> None:
    assert PANEL not in text_of(page.format(PANEL))


def test_a_panel_has_the_words_of_its_control_where_they_do_not_stand_before_it() -> None:
    tabs = "<b role=tab aria-controls=a>npm</b> <b role=tab aria-controls=b>pip</b>"
    panels = "<div id=a>npm install</div><div id=b hidden>pip install</div>"
    assert text_of(tabs + panels) == "Notes\nnpm pip\nnpm install\npip\npip install\nEnd"
    assert text_of("<b aria-controls=a>npm</b><div id=a hidden>install</div>") == "Notes\nnpm\ninstall\nEnd"
    assert text_of("<b aria-controls=a>npm</b><i>-</i><div id=a hidden> </div>") == "Notes\nnpm-\nEnd"
