"""Main content: what `clean(main=True)` keeps and drops, and what holds of it for every page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import broken_documents, worded_documents

import prunus
from prunus.core.types import OutputFormat
from prunus.pages.clean.walk import walk_page
from prunus.pages.main.features import FEATURES, name_mask, units_of, word_mask
from prunus.pages.main.keep import clean_with_main, main_spans

SITE = Path(__file__).parents[2] / "examples" / "site"
FORMATS = ("html", "markdown", "text")

STORY = (
    "The gauge at the old quay has drawn the height of the river for sixty years, and nobody has read the paper. "
    "In spring two volunteers opened the crates, counted the rolls and found that most of them were dry. "
)
PAGE = f"""<html><head><title>The old gauge | River News</title></head><body>
<div class="cookie-banner"><p>We use cookies to improve your visit. You can accept all of them or choose.</p>
<button>Accept all</button></div>
<nav><ul><li><a href="/">Home</a><li><a href="/news">News</a><li><a href="/shop">Shop</a></ul></nav>
<article><h1>The old gauge</h1><p>{STORY * 3}</p><h2>What was found</h2><p>{STORY * 2}</p>
<table><tr><th>Year<th>Rolls<tr><td>1928<td>31<tr><td>1929<td>28</table>
<pre>read --roll 31</pre><ul><li>Some rolls are wet.<li>Others are torn.</ul>
<figure><img src="/roll.jpg" alt="A roll"><figcaption>A roll of 1928, before it was dried.</figcaption></figure>
<p>{STORY * 2}</p></article>
<div class="share-bar"><a href="/f">Facebook</a> <a href="/m">E-mail</a></div>
<aside class="related"><h3>You may also like</h3><ul><li><a href="/a">A crab on the pier</a>
<li><a href="/b">The bore of March</a></ul></aside>
<footer><p>© 2025 River News. All rights reserved.</p><a href="/imprint">Imprint</a></footer></body></html>"""


def words(html: str) -> Counter[str]:
    return Counter(prunus.clean(html, "text").split())


@pytest.mark.parametrize("format", FORMATS)
def test_the_article_stays_and_the_rest_of_the_page_goes(format: OutputFormat) -> None:
    kept = prunus.clean(PAGE, format, main=True)
    for stays in (
        "The old gauge",
        "What was found",
        "1928",
        "read --roll 31",
        "Some rolls are wet",
        "before it was dried",
    ):
        assert stays in kept
    for goes in ("cookies", "Accept all", "Home", "Facebook", "You may also like", "crab", "Imprint", "All rights"):
        assert goes not in kept


def test_a_page_keeps_everything_unless_main_content_is_asked_for() -> None:
    kept = prunus.clean(PAGE, "text")
    assert all(text in kept for text in ("cookies", "Home", "You may also like", "Imprint"))


@pytest.mark.parametrize("html", ["<p>Hello</p>", "<a href=/x>Home</a>", "<nav><a href=/x>Home</a></nav>", "x"])
def test_a_page_on_which_nothing_looks_like_content_is_kept_whole(html: str) -> None:
    assert prunus.clean(html, main=True) == prunus.clean(html)


def test_a_page_says_how_sure_its_choice_is() -> None:
    menu = f"<nav><ul>{'<li><a href=/x>Home</a>' * 6}</ul></nav>"
    sure, unsure = clean_with_main(PAGE, "", "page"), clean_with_main(menu, "", "page")
    assert sure.main is not None and sure.main_confidence is not None and unsure.main_confidence is not None
    assert unsure.main_confidence < 0.2 < 0.7 < sure.main_confidence <= 1
    assert not sure.warnings and "the whole page is kept" in unsure.warnings[0]


def test_all_of_a_document_that_is_no_html_is_its_content() -> None:
    page = prunus.Page(content="# Notes\n\nHome\n\n- [Shop](/shop)\n", media_type="text/markdown")
    assert prunus.clean(page, "text", main=True) == prunus.clean(page, "text")


@pytest.mark.parametrize("name", [path.name for path in sorted(SITE.glob("*.html"))])
def test_no_menu_banner_or_footer_of_the_example_site_is_kept(name: str) -> None:
    kept = prunus.clean(SITE / name, "text", main=True)
    assert len(kept) > 500
    for goes in (
        "Skip to content",
        "We use a few cookies",
        "Sign in Basket",
        "You may also like",
        "Registered in Kester",
    ):
        assert goes not in kept


FRAME = """<title>Notes of the gauge</title><header><nav><ul><li><a href="/">Home</a><li><a href="/news">News</a>
<li><a href="/shop">Shop</a></ul></nav></header><main><h1>{}</h1>{}</main>
<footer><p>© 2025 River News. <a href="/terms">Terms of use</a></p></footer>"""


def numbered(pattern: str, count: int = 6) -> str:
    things = "roll pen drum clock float chain".split()
    return "".join(pattern.format(number=number, thing=thing) for number, thing in enumerate(things[:count], 1))


RELEASES = numbered(
    "<h2>1.{number}</h2><ul><li>Mend the {thing}<li>Show its state on the {thing}<li>Drop old files</ul>"
)
ANSWERS = {
    "headings": numbered("<h3>Where is the {thing}?</h3><p>Ask the keeper at the quay, or write to us.</p>"),
    "two": numbered("<h3>Where is the {thing}?</h3><p>Ask the keeper at the quay, or write to us.</p>", 2),
    "details": numbered(
        "<details><summary>Where is the {thing}?</summary><p>Ask the keeper at the quay.</p></details>"
    ),
    "dl": f"<dl>{numbered('<dt>Where is the {thing}?<dd>Ask the keeper at the quay, or write to us.')}</dl>",
    "parts": numbered("<div class=q-{number}><b>Where is the {thing}?</b><div>Ask the keeper at the quay.</div></div>"),
}
THREAD = numbered(
    "<div class='comment c{number}'><b>user{number}</b><p>My {thing} stops at noon, what do you see?</p><p>The pen draws a line and jumps back when the tide turns, twice a day.</p>"
    "<p>It began last week.</p></div>"
)
CARDS = numbered(
    "<div class=product-{number}><a href=/{number}>The {thing}</a><p>Made of brass</p><p>£1{number}.50</p></div>"
)
ROWS = f"<table>{numbered('<tr><td>The {thing}<td>{number}.5<td>brass')}</table>"


@pytest.mark.parametrize(
    ("heading", "content"),
    [
        ("Releases", RELEASES), ("The forum of the quay", THREAD), ("Parts for sale", CARDS), ("Sizes", ROWS),
        *(("Questions", answers) for answers in ANSWERS.values()),
    ],
    ids=["releases", "thread", "cards", "rows", *ANSWERS],
)  # fmt: skip
def test_the_parts_of_a_list_stay_together(heading: str, content: str) -> None:
    kept = prunus.clean(FRAME.format(heading, content), "text", main=True)
    wanted = prunus.clean(f"<h1>{heading}</h1>{content}", "text").split()
    assert [word for word in wanted if word not in kept and not word.startswith("user")] == []
    assert kept.count("user") in (0, content.count("<b>user"))  # names above posts: all or none
    assert kept.count("Ask the keeper") == content.count("Ask the keeper")
    assert "Terms of use" not in kept


def test_the_only_h1_stays_though_another_heading_is_more_like_the_title() -> None:
    page = PAGE.replace("<h1>The old gauge</h1>", "<h1>Sixty years on paper</h1><h2>The old gauge</h2>")
    assert "Sixty years on paper" in prunus.clean(page, "text", main=True)


def test_who_wrote_each_post_of_a_thread_stays_with_the_date_and_without_badges() -> None:
    def post(kind: str, name: str, date: str) -> str:
        return f"""<div itemscope itemtype="https://schema.org/{kind}"><div itemprop="text"><p>{name} says: {STORY * 3}</p></div>
<div class="menu"><a href="#">Share</a> <a href="#">Follow</a></div><div class="user-info"><div>answered {date}</div>
<div class="user-details" itemprop="author" itemscope itemtype="https://schema.org/Person"><span>{name[0]}</span>
<div><a href="/u">{name}</a></div><div class="flair"><span>25,122 silver badges</span></div></div></div></div>"""

    posts = post("Question", "Ada Rill", "Jan 3, 2024 at 11:30") + post("Answer", "Bo Tarn", "Jan 4, 2024 at 13:16")
    html = PAGE[: PAGE.index("<article>")] + f"<main><h1>The old gauge</h1>{posts}</main></body></html>"
    kept = [line for line in prunus.clean(html, "text", main=True).splitlines() if line and "river" not in line]
    assert kept == [
        "The old gauge",
        "answered Jan 3, 2024 at 11:30",
        "Ada Rill",
        "answered Jan 4, 2024 at 13:16",
        "Bo Tarn",
    ]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ('<script type="application/ld+json">{"@type": "Product", "name": "Quay lamp", "offers": {"price": 1250.0}}</script>',
         "$1,250"),
        ('<script type="application/ld+json">[{"@type": "ProductGroup", "name": "Quay lamp", "hasVariant": [{"offers":'
         '{"priceSpecification": [{"price": "1250.50"}]}}]}]</script>', "1.250,50 €"),
        ('<meta property="product:price:amount" content="19.90">', "£19.90"),
        ('<div itemscope itemtype="https://schema.org/Product"><meta itemprop=price content="19.90"></div>', "19,90 €"),
    ],
)  # fmt: skip
def test_the_price_that_a_product_states_stays(data: str, shown: str) -> None:
    html = PAGE.replace("</head>", data + "</head>").replace(
        "<article><h1>The old gauge</h1>",
        f"<div class=buybox><h2>Quay lamp</h2><div class=price><span>{shown}</span></div><button>Add to cart</button>"
        "<div class=promo>Free delivery over $75</div></div><article>",
    )
    kept = prunus.clean(html, "text", main=True)
    assert shown in kept and "Add to cart" not in kept and "$75" not in kept
    other = html.replace(data, data.replace("1250", "1999").replace("19.90", "19.95"))
    assert shown not in prunus.clean(other, "text", main=True)


def test_the_title_stays_where_a_heading_says_less() -> None:
    html = PAGE.replace("The old gauge |", "Gauge |").replace("<h1>The old gauge</h1>", "<h2>Buy gauge</h2>")
    assert prunus.clean(html, "text", main=True).splitlines()[0] == "Gauge | River News"


def test_edit_links_of_headings_go() -> None:
    edit = '<span class="mw-editsection">[<a href="/edit">edit</a>]</span>'
    kept = prunus.clean(PAGE.replace("What was found", f"What was found{edit}"), "text", main=True)
    assert "What was found\n" in kept
    assert "edit" not in kept


def test_a_chinese_page_keeps_its_text_and_loses_its_menu() -> None:
    kept = prunus.clean(SITE / "install-guide-zh.html", "text", main=True)
    assert "潮汐表" in kept
    assert "Gallery" not in kept


def test_spans_of_main_content_are_its_text_in_order() -> None:
    tree = clean_with_main(PAGE, "", "page")
    spans = main_spans(tree) or []
    assert spans == sorted(spans)
    text = "".join(tree.canonical[start:end] for start, end in spans)
    assert "The old gauge" in text
    assert "cookies" not in text


@settings(deadline=None, max_examples=60)
@given(st.one_of(broken_documents(), worded_documents.map(lambda made: made.html)))
def test_main_content_is_a_part_of_the_cleaned_page_and_not_empty(html: str) -> None:
    try:
        whole = words(html)
    except prunus.BadPage:
        return
    main = Counter(prunus.clean(html, "text", main=True).split())
    assert main
    assert sum((main - whole).values()) <= 2  # words beside a dropped part may stand apart, or together


def test_main_content_of_main_content_is_nearly_the_same() -> None:
    lost = []
    for path in SITE.glob("*.html"):
        once = prunus.clean(path, main=True)
        before, after = words(once), words(prunus.clean(once, main=True))
        lost.append(sum((before - after).values()) / sum(before.values()))
    assert sum(lost) / len(lost) < 0.03
    assert max(lost) < 0.2  # heads of posts, whose names the output does not have


def test_every_unit_has_a_number_for_each_feature() -> None:
    units = units_of(*walk_page(PAGE, "", "page", with_origins=True))
    assert units is not None
    assert units.features.shape == (len(units.texts), len(FEATURES))


def test_names_speak_of_their_parts_alone() -> None:
    assert name_mask("cookie-banner") and name_mask("comment-list") and name_mask("ad-slot")
    assert name_mask("thread-7") == 0  # not an advertisement
    assert word_mask("share this page") and not word_mask("the gauge at the quay")
