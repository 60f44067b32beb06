"""What a page says about itself is read from where pages say it; nothing is guessed, and no value is hostile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.clock import at_most

import prunus
from prunus.pages.dates import iso_date

ARTICLE = {
    "@context": "https://schema.org",
    "@graph": [
        {"@type": "WebSite", "name": "Tide News"},
        {"@type": "Person", "@id": "#ada", "name": "Ada Moor"},
        {
            "@type": ["NewsArticle"],
            "headline": "The bridge &amp; the tide",
            "author": [{"@id": "#ada"}, {"@type": "Person", "name": "Ben Ash"}],
            "datePublished": "2024-11-05T08:30:00Z",
            "dateModified": "2024-11-06",
            "inLanguage": "en",
        },
    ],
}


def page(head: str = "", body: str = "", attributes: str = "") -> str:
    return f"<html {attributes}><head>{head}</head><body><p>Words of the page.</p>{body}</body></html>"


def json_ld(value: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def test_an_article_in_json_ld_gives_all_that_it_says() -> None:
    known = prunus.metadata(page(json_ld(ARTICLE) + "<title>Other | Tide News</title>"))
    assert known == prunus.Metadata(
        title="The bridge & the tide",
        authors=("Ada Moor", "Ben Ash"),
        published="2024-11-05T08:30:00+00:00",
        modified="2024-11-06",
        language="en",
        site="Tide News",
    )


@pytest.mark.parametrize(
    ("head", "field", "value"),
    [
        ('<meta property="og:title" content="Tides">', "title", "Tides"),
        ("<title>Tides | Velmar</title><meta property=og:site_name content=Velmar>", "title", "Tides"),
        ("<title>Velmar</title><meta property=og:site_name content=Velmar>", "title", "Velmar"),
        ('<meta name="author" content="By Ada Moor">', "authors", ("Ada Moor",)),
        ('<meta name=citation_author content="A"><meta name=citation_author content="B">', "authors", ("A", "B")),
        ('<meta name="author" content="https://example.org/ada">', "authors", ()),
        ('<meta property="article:published_time" content="2024-11-05">', "published", "2024-11-05"),
        ('<meta name="date" content="05/11/2024">', "published", ""),
        ('<meta name="description" content="What  the tide\ndoes.">', "description", "What the tide does."),
        ('<link rel="canonical" href="/tides">', "address", "https://example.org/tides"),
        ('<link rel="canonical" href="javascript:alert(1)">', "address", ""),
        ('<link rel="canonical" href="https://user:secret@example.org/">', "address", ""),
        ('<meta property="og:url" content="//example.org/t">', "address", "https://example.org/t"),
        ('<meta property="og:locale" content="pt_BR">', "language", "pt-BR"),
        ('<meta name="author" content="Ada\x07\u202eMoor">', "authors", ("AdaMoor",)),
    ],
)
def test_each_place_of_a_page_is_read(head: str, field: str, value: object) -> None:
    known = prunus.metadata(prunus.Page(page(head), url="https://example.org/a/b"))
    assert getattr(known, field) == value


def test_microdata_of_an_article_are_read_and_those_of_other_items_are_not() -> None:
    other = '<div itemscope itemtype="https://schema.org/Person"><b itemprop=author>Eve</b></div>'
    article = (
        '<article itemscope itemtype="https://schema.org/BlogPosting"><h1 itemprop=headline>Tides</h1>'
        "<span itemprop=author itemscope><b itemprop=name>Ada Moor</b></span>"
        '<time itemprop=datePublished datetime="2024-11-05">last week</time></article>'
    )
    known = prunus.metadata(page(body=other + article))
    assert (known.title, known.authors, known.published) == ("Tides", ("Ada Moor",), "2024-11-05")


@pytest.mark.parametrize(
    ("body", "authors"),
    [
        ("<p class=byline>By Ada Moor</p>", ("Ada Moor",)),
        ("<p class='post byline'>Written by <a rel=author href=/a>Ada Moor</a> on 5 November 2024</p>", ("Ada Moor",)),
        ("<span class=author>Toby Quill</span><a rel=author href=/q>toby quill</a>", ("Toby Quill",)),
        ("<b class=author>Ada Moor | 5 min</b>", ("Ada Moor",)),
        ("<b class=author>王小明</b>", ("王小明",)),
        ("<b class=author>Ada Moor</b><b class=author>Ben Orrel</b>", ()),  # a listing, or comments
        ("<b class=byline>Updated January 5</b>", ()),
        ("<b class=author>Follow us for more news about tides and boats</b>", ()),
        ("<b class=authority>Ada Moor</b>", ()),
    ],
)
def test_the_byline_of_a_page_names_its_author(body: str, authors: tuple[str, ...]) -> None:
    assert prunus.metadata(page(body=f"<h1>Tides</h1>{body}<p>The tide turns.</p>")).authors == authors
    told = '<meta name=author content="Eve Hand">'
    assert prunus.metadata(page(told, f"<h1>Tides</h1>{body}")).authors == ("Eve Hand",)


def test_what_is_said_of_a_comment_is_not_said_of_the_page() -> None:
    comment = '<div itemprop=comment itemscope itemtype="https://schema.org/Comment"><b itemprop=author>Eve</b>'
    comment += '<time itemprop=datePublished datetime="2025-01-02">later</time></div>'
    author = "<span itemprop=author itemscope><b itemprop=name>Ada Moor</b></span>"
    asked = '<time itemprop=dateCreated datetime="2024-11-05">then</time>'
    question = f'<main itemscope itemtype="https://schema.org/Question">{comment}{author}{asked}{comment}</main>'
    known = prunus.metadata(page(body=f"<h1>Tides</h1>{question}"))
    assert (known.authors, known.published) == (("Ada Moor",), "2024-11-05")


def test_the_date_of_time_elements_counts_only_where_all_agree() -> None:
    one, two = '<time datetime="2024-11-05">a</time>', '<time datetime="2024-11-06">b</time>'
    assert prunus.metadata(page(body=one + one)).published == "2024-11-05"
    assert prunus.metadata(page(body=one + two)).published == ""


def test_a_page_that_says_nothing_gets_nothing() -> None:
    assert prunus.metadata("<p>Published 5 November 2024 by Ada Moor") == prunus.Metadata()


@pytest.mark.parametrize(
    ("stated", "date"),
    [
        ("2024", "2024"),
        ("2024-11", "2024-11"),
        ("2024/11/5", "2024-11-05"),
        ("20241105", "2024-11-05"),
        ("2024-11-05T08:30:00.123Z", "2024-11-05T08:30:00+00:00"),
        ("2024-11-05 08:30", "2024-11-05T08:30:00"),
        ("2024-11-05T08:30:00+0100", "2024-11-05T08:30:00+01:00"),
        ("November 5, 2024", "2024-11-05"),
        ("5 Nov 2024", "2024-11-05"),
        ("Tue, 05 Nov 2024 08:30:00 +0100", "2024-11-05T08:30:00+01:00"),
        ("Friday, Nov. 5th, 2024", "2024-11-05"),
        ("11/05/2024", ""),
        ("11/25/2024", "2024-11-25"),
        ("25.11.2024", "2024-11-25"),
        ("05.11.2024", ""),
        ("Volume 5, November 2024", ""),
        ("5 November 1403", ""),
        ("5 listopada 2024", ""),
        ("2024-13-05", ""),
        ("0000-00-00", ""),
        ("9" * 5_000, ""),
        ("yesterday", ""),
        ("²⁰24-11-05", ""),
    ],
)
def test_a_date_is_iso_8601_as_exact_as_it_was_stated(stated: str, date: str) -> None:
    assert iso_date(stated) == date


@pytest.mark.parametrize(
    ("language", "stated", "date"),
    [
        ("de", "Dienstag, 5. November 2024, 08:30 Uhr", "2024-11-05"),
        ("de-AT", "5. Jänner 2024", "2024-01-05"),
        ("de", "05.11.2024", "2024-11-05"),
        ("de", "05.11.24", ""),
        ("fr", "mar. 5 nov. 2024 à 8h30", "2024-11-05"),
        ("fr", "1er août 2024", "2024-08-01"),
        ("fr-FR", "05/11/2024", "2024-11-05"),
        ("fr-CA", "05/11/2024", ""),
        ("es", "5 de noviembre de 2024", "2024-11-05"),
        ("pt-BR", "terça-feira, 5 de novembro de 2024", "2024-11-05"),
        ("en-GB", "05/11/2024", "2024-11-05"),
        ("en-US", "05/11/2024", ""),
        ("ru", "вторник, 5 ноября 2024 г.", "2024-11-05"),
        ("pl", "5 listopada 2024", "2024-11-05"),
        ("hr", "5. listopada 2024.", "2024-10-05"),
        ("hu", "2024. november 5.", "2024-11-05"),
        ("tr", "5 Kasım 2024", "2024-11-05"),
        ("ar", "الثلاثاء، 5 نوفمبر 2024", "2024-11-05"),
        ("ja", "2024年11月5日(火) 08:30", "2024-11-05"),
        ("ja", "令和6年11月5日", ""),
        ("zh", "２０２４年１１月", "2024-11"),
        ("ko", "2024년 11월 5일", "2024-11-05"),
        ("ko", "2024. 11. 5.", "2024-11-05"),
        ("fi", "5 marrask. 2024", ""),
        ("fi", "5. marraskuuta 2024", "2024-11-05"),
        ("fa", "1403/08/15", ""),
        ("fa", "۱۴۰۳/۰۸/۱۵", ""),
        ("th", "5 พฤศจิกายน 2567", ""),
        ("ne", "2081-07-20", ""),
    ],
)
def test_a_date_is_read_in_the_language_of_the_page_or_not_at_all(language: str, stated: str, date: str) -> None:
    known = prunus.metadata(page(f'<meta name=date content="{stated}">', attributes=f"lang={language}"))
    assert known.published == date


ITEM = '{"@type": "NewsArticle", "author": "Ada \\"A\\" Moor", "datePublished": "2024-11-05", "url": "http://a.org//b"}'


@pytest.mark.parametrize(
    "text",
    [
        f"\n//<![CDATA[\n{ITEM}\n//]]>\n",
        f"//<![CDATA[ {ITEM} //]]>",
        f"/* <![CDATA[ */ {ITEM} /* ]]> */",
        f"<!-- {ITEM} -->",
        f"// made by a tool, 2019\n{ITEM} // done",
        ITEM.replace("}", ", /* more */\n}") + ";",
        '{"@type": "WebSite", "potentialAction": [{"a": 1,},],}' + ITEM,
        f"{ITEM},\n{ITEM}",
        f"{ITEM} {{",
        ITEM.replace("News", "\\'News\\'"),
        ITEM.replace("\\", "").replace('"A"', "'A'").replace('"', "&quot;"),
    ],
)
@pytest.mark.parametrize("kind", ["application/ld+json", "application/LD+JSON; charset=utf-8"])
def test_json_ld_is_read_as_pages_write_it(text: str, kind: str) -> None:
    known = prunus.metadata(page(f'<script type="{kind}">{text}</script>'))
    assert known.published == "2024-11-05"
    assert known.authors[0].endswith("Moor")


@pytest.mark.parametrize(
    "head",
    [
        *(f'<script type="application/ld+json">{part * 200_000}</script>' for part in ("/*", '"', ",", "{,", "//<!--")),
        f'<script type="application/ld+json">{"[" * 10_000}{"]" * 10_000}</script>',
        f'<script type="application/ld+json">{{"@type":"Article","author":{chr(123) + chr(34)}',
        '<script type="application/ld+json">' + '{"a":' * 10_000 + "1" + "}" * 10_000 + "</script>",
        '<script type="application/ld+json">[' + '{"@type":"Article"},' * 500_000 + "1]</script>",
        json_ld([{"@type": "Article", "author": {"name": [[["x"]]]}, "headline": 5, "datePublished": {"a": 1}}]),
        json_ld({"@type": "Article", "author": ["A" * 1_000_000], "headline": "x" * 900_000}),
        '<meta name=author content="x">' * 100_000,
        f"<title>{'x ' * 1_000_000}</title>",
    ],
    ids=lambda head: head[:40],
)
def test_hostile_metadata_are_bounded_and_never_raise(head: str) -> None:
    with at_most(5):
        known = prunus.metadata(page(head))
    assert len(known.title) <= 500
    assert all(len(name) <= 100 for name in known.authors)


def test_other_formats_say_the_same_through_the_same_elements(tmp_path: Path) -> None:
    mail = tmp_path / "letter.eml"
    mail.write_text("From: ada@example.org\nSubject: Tides\nDate: Tue, 05 Nov 2024 08:30:00 +0000\n\nWords.\n")
    known = prunus.metadata(mail)
    assert (known.title, known.published) == ("Tides", "2024-11-05T08:30:00+00:00")
    note = tmp_path / "note.md"
    note.write_text("---\ntitle: Tides\ndate: 2024-11-05\nlang: en\n---\nWords.\n")
    known = prunus.metadata(note)
    assert (known.title, known.published, known.language) == ("Tides", "2024-11-05", "en")


def test_a_citation_names_author_site_and_date_of_its_page() -> None:
    answer = prunus.ask("When did the bridge open?", page(json_ld(ARTICLE), "<p>The bridge opened in 1932."))
    citation = answer.citations[0]
    assert (citation.authors, citation.site) == (("Ada Moor", "Ben Ash"), "Tide News")
    assert citation.published == "2024-11-05T08:30:00+00:00"


@pytest.mark.parametrize(
    ("line", "authors"),
    [
        ("<p class=byline>By Ada Moor and Bo Li</p>", ("Ada Moor", "Bo Li")),
        ("<p class=byline>By <a>Ada Moor</a>, <a>Bo Li</a> and <a>Cy Orr</a></p>", ("Ada Moor", "Bo Li", "Cy Orr")),
        ("<p class=byline>By <a rel=author>Ada Moor</a>, Staff writer</p>", ("Ada Moor",)),
        ("<div class=author>Ada Moor<span>Senior editor</span></div>", ("Ada Moor",)),
        ("<p class=byline>Par Ada Moor le 4 mars 2024</p>", ("Ada Moor",)),
        ("<p class=byline>文/张三</p>", ("张三",)),
        ("<p class=byline>Photo by Bo Li</p>", ()),
        ("<h1>Tides</h1><p>Written by Prof. Jan van der Berg | 12 May 2023</p>", ("Prof. Jan van der Berg",)),
        ("<h1>Tides</h1><p>By ADA MOOR, Staff Writer</p>", ("ADA MOOR",)),
        ("<h1>Tides</h1><p>Von Ann Müller und Bernd Schulz</p>", ("Ann Müller", "Bernd Schulz")),
        ("<p>By Ada Moor</p><h1>Tides</h1><p>Words</p>", ()),  # a menu or a link to another page, as a rule
        ("<h1>Tides</h1><p>By Monday the harbour was closed.</p>", ()),
        ("<h1>Tides</h1><p>By Press Office</p>", ()),
        ('<span itemprop=author itemscope><span itemprop=name>Ada Moor</span></span>', ("Ada Moor",)),
        ('<meta name="twitter:label1" content="Written by"><meta name="twitter:data1" content="Ada Moor">', ("Ada Moor",)),
        ('<meta name="twitter:label1" content="Price"><meta name="twitter:data1" content="Ada Moor">', ()),
        ('<meta name=author content="Moor, Ada; Li, Bo">', ("Moor, Ada", "Li, Bo")),
        ('<meta name=author content="Department of Health and Human Services">',
         ("Department of Health and Human Services",)),
        ('<meta name=author content="Moor Bros and Sons">', ("Moor Bros and Sons",)),
    ],
)  # fmt: skip
def test_each_person_of_a_byline_is_an_author(line: str, authors: tuple[str, ...]) -> None:
    assert prunus.metadata(page(body=line)).authors == authors
