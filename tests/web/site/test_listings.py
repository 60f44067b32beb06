"""Sitemaps, feeds and llms.txt: every kind lists its pages, and no file breaks the reading."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.types import Page
from prunus.web.site import listings
from prunus.web.site.listings import read_listing

AT = "https://example.org/lists/file"


def listed(content: str | bytes, media_type: str = "") -> tuple[dict[str, str], list[str]]:
    found = read_listing(Page(content, url=AT, final_url=AT, media_type=media_type))
    return found.pages, list(found.sitemaps)


def test_a_sitemap_names_pages_with_the_date_of_their_change_and_no_pictures() -> None:
    sitemap = """<?xml version="1.0" encoding="UTF-8"?>
    <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
    <url><loc> https://example.org/a?x=1&amp;y=2 </loc><lastmod>2024-11-05</lastmod>
    <image:image><image:loc>https://example.org/a.png</image:loc></image:image></url>
    <url><loc>/b</loc><lastmod>yesterday</lastmod></url><url><lastmod>2024-01-01</lastmod></url></urlset>"""
    expected = {"https://example.org/a?x=1&y=2": "2024-11-05", "https://example.org/b": ""}
    assert listed(sitemap) == (expected, [])
    assert listed(gzip.compress(sitemap.encode())) == (expected, [])
    assert listed(sitemap[:-48]) == (expected, [])  # what came of a damaged file counts


def test_an_index_names_sitemaps_and_the_date_of_news_is_not_that_of_a_change() -> None:
    index = "<sitemapindex><sitemap><loc>a.xml</loc></sitemap><sitemap><loc>b.xml.gz</loc></sitemap></sitemapindex>"
    assert listed(index) == ({}, ["https://example.org/lists/a.xml", "https://example.org/lists/b.xml.gz"])
    news = "<urlset xmlns:n='x'><url><loc>/n</loc><n:news><n:publication_date>2024-11-05T08:30:00Z</n:publication_date></n:news></url></urlset>"
    assert listed(news)[0] == {"https://example.org/n": ""}


def test_feeds_name_their_items() -> None:
    rss = """<rss><channel><link>https://example.org/</link><image><url>x</url><link>y</link></image>
    <item><title>A</title><link>https://example.org/a</link><pubDate>Tue, 05 Nov 2024 10:00:00 GMT</pubDate></item></channel></rss>"""
    assert listed(rss)[0] == {"https://example.org/a": ""}
    atom = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><entry><link rel="edit" href="/edit"/><link href="/a"/>
    <updated>2024-11-05T10:00:00Z</updated><content type="xhtml"><div><link href="/no"/></div></content></entry></feed>"""
    assert listed(atom)[0] == {"https://example.org/a": "2024-11-05T10:00:00Z"}


def test_text_names_addresses_and_llms_txt_links() -> None:
    assert listed("https://example.org/a\n  https://example.org/b \nnot an address\n")[0] == {
        "https://example.org/a": "",
        "https://example.org/b": "",
    }
    assert list(listed("# Site\n- [A](/a.md): about\n- [B](<https://example.org/b>)")[0]) == [
        "https://example.org/a.md",
        "https://example.org/b",
    ]


def test_a_page_in_place_of_a_list_names_nothing() -> None:
    assert listed(
        "<!doctype html><title>Not found</title><p>See <a href=/a>a</a><url><loc>/x</loc></url>", "text/html"
    ) == ({}, [])


def test_a_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "MOST_ENTRIES", 3)
    monkeypatch.setattr(listings, "MOST_BYTES", 10_000)
    many = "<urlset>" + "".join(f"<url><loc>/{n}</loc></url>" for n in range(100)) + "</urlset>"
    assert len(listed(many)[0]) == 3
    assert listed(gzip.compress(b" " * 1_000_000 + many.encode())) == ({}, [])
    entity = "<!DOCTYPE urlset [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>/&x;</loc></url></urlset>"
    assert listed(entity) == ({}, [])


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"<urlset><url><loc>", b"\x1f\x8b", b"<feed><entry><link href='", b"]("]),
)
def test_any_bytes_are_read(content: bytes, start: bytes) -> None:
    pages, sitemaps = listed(start + content)
    assert all(isinstance(url, str) for url in [*pages, *sitemaps])
