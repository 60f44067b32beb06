"""Links: their targets, and their ranking for a question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import within

from prunus.models.embed.static import Engine as Static
from prunus.pages.clean.walk import clean_tree
from prunus.pages.links import base_of, canonical, links_of
from prunus.pages.tree import Tree
from prunus.web.fetch.links import promising_links

URL = "https://www.velmar.org/news/today.html?x=1"


def tree_of(html: str, url: str = URL) -> Tree:
    tree = clean_tree(html)
    tree.url = url
    return tree


def targets(html: str, url: str = URL) -> list[str]:
    return [link.target for link in links_of(tree_of(f"<p>Text {html}", url))]


# --- where links lead ----------------------------------------------------------------------------

ADDRESSES = {
    "relative": ("b.html", "https://www.velmar.org/news/b.html"),
    "from the root": ("/c", "https://www.velmar.org/c"),
    "up": ("../d/", "https://www.velmar.org/d/"),
    "a query": ("?page=2", "https://www.velmar.org/news/today.html?page=2"),
    "another host": ("//other.org/e", "https://other.org/e"),
    "absolute": ("http://other.org/f?g=h#i", "http://other.org/f?g=h"),
}


@pytest.mark.parametrize(("href", "expected"), ADDRESSES.values(), ids=ADDRESSES)
def test_addresses_are_made_absolute(href: str, expected: str) -> None:
    assert targets(f'<a href="{href}">x</a>') == [expected]


NOWHERE = [
    "#part",
    "today.html?x=1#part",
    "mailto:a@b.c",
    "tel:1",
    "javascript:x()",
    "data:text/html,x",
    "ftp://a.b/c",
    "file:///etc/passwd",
    "http://[",
    "",
    " ",
]


@pytest.mark.parametrize("href", NOWHERE)
def test_what_leads_to_no_other_page_is_left_out(href: str) -> None:
    assert targets(f'<a href="{href}">x</a>') == []


def test_the_base_of_the_page_counts() -> None:
    head = '<!doctype html><head><!-- <base href="/comment/"> --><script>"<base href=\'/s/\'>"</script><BASE HREF="/base/"><base href="/late/"></head>'
    tree = tree_of(f'{head}<p>Text <a href="a.html">x</a> <a href="#y">y</a>')
    assert base_of(tree) == "https://www.velmar.org/base/"
    assert [link.target for link in links_of(tree)] == ["https://www.velmar.org/base/a.html"]
    tree._markup = (tree._markup[0].encode(), "")  # type: ignore[union-attr]
    assert base_of(tree) == "https://www.velmar.org/base/"
    for hostile in ("javascript:alert(1)//", "data:text/html,", "http://["):
        assert base_of(tree_of(f'<base href="{hostile}"><p>Text')) == URL


def test_files_link_to_files_beside_them() -> None:
    assert targets('<a href="b.html">x</a> <a href="https://velmar.org">y</a>', "site/a.html") == [
        "site/b.html",
        "https://velmar.org",
    ]


def test_a_link_knows_its_line_its_heading_and_whether_it_is_chrome() -> None:
    html = """<nav><ul><li><a href=/menu>Menu</a></ul></nav><article><header><h2>Prices</h2><a href=/author>By Ito</a></header>
    <p>Other words.<p>See the <a href=/table>table of <b>prices</b></a> for 2027.</article><footer><a href=/terms>Terms</a></footer>"""
    found = {link.target.rpartition("/")[2]: link for link in links_of(tree_of(html))}
    assert (found["table"].text, found["table"].around, found["table"].heading) == (
        "table of prices",
        "See the for 2027.",
        "Prices",
    )
    assert {name: link.chrome for name, link in found.items()} == {
        "menu": True,
        "author": False,
        "table": False,
        "terms": True,
    }


def test_two_addresses_of_one_page_are_equal() -> None:
    same = ["https://A.org", "https://a.org/", "HTTPS://a.org:443/#x", "https://a.org/?utm_source=b&gclid=c"]
    assert {canonical(url) for url in same} == {"https://a.org/"}
    assert canonical("https://a.org/?a=1&utm_source=b") == "https://a.org/?a=1"
    assert canonical("http://a.org/") != canonical("https://a.org/") != canonical("https://a.org/A")
    assert canonical("http://[") == "http://["


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_address_is_read_without_an_error(href: str, base: str) -> None:
    tree = tree_of('<p>Text <a href="x">x</a>', base)
    node = tree.tag.index("a")
    tree.attrs[node] = {"href": href}
    for link in links_of(tree):
        assert (
            not link.target.lower().startswith(("javascript:", "data:", "file:")) and canonical(link.target) is not None
        )
    promising_links(tree, "text", 3)


# --- which are worth following -------------------------------------------------------------------

PAGE = """<nav><a href="/prices">Prices of all gauges</a> <a href="/about">About</a></nav><h1>Gauges</h1>
<p>The Pell-2 is our latest gauge. <a href="/shop/pell-2-prices.html">What it costs</a> has a page of its own.</p>
<p>How deep the harbour is stands in the <a href="/depths">chart</a>.</p><p><a href="/x1">Tide tables for 2027</a></p>
<p><a href="/shop/pell-2-prices.html#buy">Prices of the Pell-2</a> <a href="/log-out">Log out: gauge prices</a> <a href="/prices.pdf">Prices (PDF)</a>
<a href="/prices.zip">Prices, all gauges</a> <a href="mailto:prices@velmar.org">prices</a> <a href="#prices">prices</a></p>"""


def names(query: str, count: int = 9, html: str = PAGE, **more: Any) -> list[str]:
    return [link.url.rpartition("/")[2] for link in promising_links(tree_of(html), query, count, **more)]


def test_links_are_ranked_by_what_they_say_what_stands_around_them_and_their_address() -> None:
    assert names("What are the prices of the Pell-2?") == ["pell-2-prices.html", "prices.pdf", "prices"]
    assert names("How deep is the harbour?") == ["depths"]
    assert names("tide tables", 1) == ["x1"]


def test_two_links_to_one_page_are_one_and_keep_both_texts() -> None:
    (first, *_) = promising_links(tree_of(PAGE), "Pell-2", 9)
    assert first.text == "What it costs / Prices of the Pell-2" and first.url.endswith("/shop/pell-2-prices.html")


def test_what_does_something_or_is_no_page_is_never_returned() -> None:
    acting = [
        "/logout",
        "/user/sign_out?x",
        "/cart/add?id=1",
        "/wp-login.php?action=login",
        "/delete/3",
        "/a?action=edit",
        "/feed/",
        "/p.png",
        "/a.exe",
    ]
    html = "<p>Text" + "".join(
        f'<p><a href="{path}">tides</a>' for path in [*acting, "/tides/catalogue", "/printing-history", "/editorial"]
    )
    assert sorted(names("tides", html=html)) == ["catalogue", "editorial", "printing-history"]


def test_links_in_menus_count_half() -> None:
    html = "<nav><a href=/menu>Harbour depths</a></nav><p>See <a href=/text>Harbour depths</a> and more.<footer><a href=/foot>Harbour depths</a></footer>"
    (first, *rest) = promising_links(tree_of(html), "harbour depths", 9)
    assert first.url.endswith("/text") and all(link.score <= first.score / 2 + 0.2 for link in rest)


def test_an_embedder_finds_what_shares_no_word() -> None:
    html = "<p>A <a href=/one>Cost of the instrument</a><p>B <a href=/two>Cat pictures</a>"
    assert names("how expensive is the device?", html=html) == []
    assert names("how expensive is the device?", 1, html=html, embedder=Static()) == ["one"]


def test_nothing_to_follow_is_an_empty_list() -> None:
    assert names("tides", html="<p>No link.") == [] and names("tides", 0) == [] and names("", 5) == []


@pytest.mark.slow
def test_a_page_of_links_is_ranked_quickly() -> None:
    html = "<p>Text" + "".join(f'<a href="/{number}">link {number}</a> ' for number in range(20_000))
    assert within(4, lambda: names("link 1500", 1, html=html), tries=2)
    assert names("link 1500", 1, html=html) == ["1500"]
    assert len(links_of(tree_of(html))) == 20_000
