"""Pages without words of their own: the data for their scripts is read, and a warning says so."""

from __future__ import annotations

import json

import pytest

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.engines import formats
from prunus.pages.frame import data_of_frame
from prunus.pages.read import clean_page
from prunus.pages.tree import Tree

KETTLE = {"product": {"name": "Kettle K2", "price": "39.90 EUR", "sku": 7}}
STATE = json.dumps(KETTLE)
NUXT = json.dumps([["Reactive", 1], {"product": 2}, {"name": 3, "price": 4, "self": 1}, "Kettle K2", "39.90 EUR"])
ARTICLE = {"@type": "NewsArticle", "headline": "Bridge", "articleBody": "It opened in 1932.\nNobody was <b>hurt</b>."}


def read(page: str) -> Tree:
    return clean_page(Page(page, url="page.html"), formats().to_html)


def frame(script: str, body: str = "<div id=app></div>") -> str:
    return f"<title>K2</title><body>{body}{script}</body>"


@pytest.mark.parametrize(
    "script",
    [
        f'<script id="__NEXT_DATA__" type="application/json">{{"props":{{"pageProps":{STATE}}},"buildId":"x y"}}</script>',
        f'<script id="__NUXT_DATA__" type="application/json">{NUXT}</script>',
        f"<script>window.__NUXT__={STATE};</script>",
        f"<script>var a=1; window['__STATE__'] = {STATE}</script>",
        f"<script>window.__INITIAL_STATE__ = JSON.parse({json.dumps(STATE)})</script>",
        f"<script>window.__INITIAL_STATE__ = JSON.parse('{STATE}')</script>",
        f"<script type=application/ld+json>{STATE}</script>",
        f"<script type='application/json' data-island>{STATE}</script>",
    ],
)
def test_the_data_of_a_frame_is_read(script: str) -> None:
    for body in (
        "<div id=app></div>",
        "<div id=root><!--app--></div><noscript>Enable scripts, please.</noscript>",
        "Loading…",
    ):
        tree = read(frame(script, body))
        assert "name\nKettle K2\nprice\n39.90 EUR" in tree.canonical
        assert "x y" not in tree.canonical
        assert tree.title == "K2" and "empty frame" in tree.warnings[0]


def test_an_article_in_json_ld_is_read_as_an_article() -> None:
    script = f"<script type=application/ld+json>{json.dumps([{'@type': 'WebSite', 'name': 'Site'}, ARTICLE])}</script>"
    tree = read(frame(script, "<nav>Home News About us</nav><div id=root></div>"))
    assert tree.canonical == "K2\nHome News About us\nBridge\nIt opened in 1932.\nNobody was hurt."
    assert tree.tag.count("p") == 2 and len(tree.warnings) == 1


@pytest.mark.parametrize(
    "value",
    [
        "iPhone",
        "39.90",
        "2024-05-04",
        "港口的水位每天早上六点观测一次，记录保存在资料馆里。满潮的时间如下表所示，请注意安全。",
        7,
    ],
)
def test_names_numbers_and_texts_without_spaces_are_words(value: str | int) -> None:
    data = json.dumps({"paid": value, "apiKey": "secret words", "image_url": "no words"}, ensure_ascii=False)
    assert read(frame(f"<script>window.__DATA__ = {data}</script>")).canonical == f"K2\npaid\n{value}"


def test_questions_in_json_ld_are_read_once() -> None:
    answer = {"@type": "Answer", "text": "<p>At noon &amp; at six.</p>"}
    faq = {"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "When?", "acceptedAnswer": answer}]}
    tree = read(frame(f"<script type=application/ld+json>{json.dumps({'@graph': [faq]})}</script>"))
    assert tree.canonical.count("When?") == tree.canonical.count("At noon & at six.") == 1


@pytest.mark.parametrize(
    "script",
    [
        "<script src=app.js></script>",
        "<script>window.__NUXT__=(function(a){return {name:a}})('Kettle K2')</script>",
        '<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{}},"buildId":"Kettle build"}</script>',
        '<script type="application/json">{"apiKey": "Kettle K2 key", "url": "https://x.org/Kettle", "ok": true}</script>',
        f"<script>window.a = {'[' * 100_000}</script>",
    ],
)
def test_a_frame_without_words_says_that_it_is_one(script: str) -> None:
    tree = read(frame(script))
    assert tree.canonical == "K2" and "empty frame" in tree.warnings[0]
    with pytest.raises(BadPage, match="empty frame"):
        read(f"<body><div id=app></div>{script}</body>")


@pytest.mark.parametrize(
    "body",
    [
        "<p>Open from nine to five, on Sundays from ten to four.</p>",
        f"<p>{'The kettle boils. ' * 20}</p><div id=app></div>",
    ],
)
def test_a_page_with_words_of_its_own_is_no_frame(body: str) -> None:
    tree = read(frame(f"<script>window.__STATE__={STATE}</script>", body))
    assert "39.90" not in tree.canonical and not tree.warnings
    assert not read("<title>K2</title><p>Hi").warnings


def test_words_for_readers_without_scripts_are_the_page_itself_where_they_are_many() -> None:
    posts = " ".join(f"Gauge {number} was read at noon." for number in range(9))
    article = json.dumps({"@type": "DiscussionForumPosting", "headline": "Gauges", "articleBody": posts})
    body = f"<div id=app></div><noscript><p>{posts}</noscript>"
    tree = read(frame(f"<script type=application/ld+json>{article}</script>", body))
    assert tree.canonical.count("Gauge 3") == 1 and not tree.warnings


def test_shared_values_do_not_multiply() -> None:
    bomb = json.dumps([[1, 1]] + [[place + 1] * 10 for place in range(1, 30)] + ["tide"])
    tree = read("<title>K2</title><p>Hi<script></script>")
    assert len(data_of_frame(tree, Page(frame(f'<script id="__NUXT_DATA__">{bomb}</script>')))) < 1_000_000
