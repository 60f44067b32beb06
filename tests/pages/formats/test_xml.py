"""XML: feeds become articles, other XML tables and lists; entities and addresses are never followed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.xml import Engine

RSS = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel><title>Harbour news</title><description>Daily</description>
<item><title>Ferry &amp; tram</title><link>https://a.org/1</link><pubDate>Wed, 01 May 2024</pubDate>
<description>short</description><content:encoded><![CDATA[<p>The ferry leaves at <b>noon</b>.<!-- never closed]]></content:encoded></item>
<item><title>Fog</title><dc:creator>Ann</dc:creator><description>&lt;p&gt;Dense&lt;/p&gt;</description></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>Tides</title>
<entry><title type="html">High &lt;i&gt;water&lt;/i&gt;</title><link rel="self" href="https://a.org/self"/>
<link href="https://a.org/2"/><updated>2024-05-01</updated><author><name>Ben</name></author>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>At <em>noon</em></p></div></content></entry></feed>"""


def test_feeds_are_articles() -> None:
    assert cleaned(Engine(), RSS.encode()) == (
        "<title>Harbour news</title><h1>Harbour news</h1><p>Daily"
        "<article><h2><a href=https://a.org/1>Ferry & tram</a></h2><p>Wed, 01 May 2024<p>The ferry leaves at <b>noon</b>.</article>"
        "<article><h2>Fog</h2><p>Ann<p>Dense</article>"
    )
    assert cleaned(Engine(), ATOM.encode()) == (
        "<html lang=en><title>Tides</title><h1>Tides</h1>"
        "<article><h2><a href=https://a.org/2>High water</a></h2><p>2024-05-01 · Ben<p>At <em>noon</em></article></html>"
    )


SHAPES = {
    "rows": (
        "<ports><port id='1'><name>Inner</name><depth>2.5</depth></port><port id='2'><name>Outer</name></port></ports>",
        "<table><caption>port</caption><thead><tr><th>id<th>name<th>depth<tbody><tr><td>1<td>Inner<td>2.5<tr><td>2<td>Outer<td></table>",
    ),
    "one of each": ("<a><b>x</b><c><d>y</d><e>z</e></c></a>", "<dl><dt>b<dd>x<dt>c<dd><dl><dt>d<dd>y<dt>e<dd>z</dl></dl>"),
    "a list": ("<a><b>x</b><b>y</b></a>", "<dl><dt>b<dd><ul><li>x<li>y</ul></dl>"),
    "order is kept": ("<a><b>1</b><c>2</c><b>3</b></a>", "<dl><dt>b<dd>1<dt>c<dd>2<dt>b<dd>3</dl>"),
    "words among elements": ("<a><p>The <q>old</q> bridge</p><p>Two</p></a>", "<p>The old bridge<p>Two"),
    "sections": ("<book><title>T</title><chapter><title>C</title><para>x</para></chapter></book>", "<title>T</title><h1>T</h1><section><h2>C</h2><p>x</section>"),
    "attributes": ("<a x='1' y='https://a.org/'/>", "<dl><dt>x<dd>1<dt>y<dd><a href=https://a.org/>https://a.org/</a></dl>"),
    "a link among words": ("<a>See <ulink url='https://a.org/'>this</ulink>.</a>", "<p>See <a href=https://a.org/>this</a>."),
    "markup is text": ("<a><![CDATA[<b>x</b> & y]]></a>", "<p>&lt;b>x&lt;/b> & y"),
    "entities of HTML": ("<!DOCTYPE a SYSTEM 'a.dtd'><a>caf&eacute; &nosuch;</a>", "<p>café &amp;nosuch;"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES)
def test_each_shape_of_xml_has_its_html(text: str, expected: str) -> None:
    assert cleaned(Engine(), text.encode()) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_the_declared_encoding_is_used(encoding: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><a>Mürwik</a>"
    assert tree_of(Engine(), text.encode(encoding)).canonical == "Mürwik"


BAD = {
    "empty": (b"", "the page is empty"), "binary": (b"\x00\x01\x02" * 90, "binary data, not XML"),
    "cut off": (RSS[:500].encode(), "is no valid XML"), "words": (b"words", "is no valid XML"),
    "two roots": (b"<a/><b/>", "is no valid XML"), "drawing": (b"<svg><text>x</text></svg>", "an SVG picture"),
    "laughs": (b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>', "declares a document type or entities"),
    "outside": (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "declares a document type or entities"),
    "parameter": (b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://a/b"> %b;]><a/>', "declares a document type or entities"),
    "deep": (b"<a>" * 5000, "nested too deep"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_is_not_read_is_one_clear_line(content: bytes, reason: str) -> None:
    with pytest.raises(BadPage, match=reason) as caught:
        Engine().to_html(Page(content, url="x.xml"))
    assert "\n" not in str(caught.value)


def test_limits_are_errors() -> None:
    with pytest.raises(BadPage, match="more than 5 elements"):
        Engine(max_nodes=5).to_html(Page("<a>" + "<b/>" * 9 + "</a>"))
    with pytest.raises(BadPage, match="over the limit of 3"):
        Engine(max_chars=3).to_html(Page("<a></a>"))


HOSTILE = {
    "wide": "<a>" + "<b x='1'/>" * 100_000 + "</a>",
    "wide and high": "<a><r "
    + " ".join(f"k{n}='1'" for n in range(400))
    + "/>"
    + "<r k0='1' k1='2'/>" * 50_000
    + "</a>",
    "alternating": "<a>" + "<b>1</b><c>2</c>" * 50_000 + "</a>",
    "nested": "<a><b/>" * 90 + "<c/></a>" * 90,
    "attributes": "<a " + " ".join(f"k{n}='1'" for n in range(50_000)) + "/>",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_xml_takes_seconds_at_most(text: str) -> None:
    with at_most(10):
        assert len(Engine().to_html(Page(text))) < 20 * len(text) + 10_000


NESTED = st.recursive(
    st.from_regex(r"[a-z]{3,6}", fullmatch=True),
    lambda inner: st.lists(st.tuples(st.sampled_from("abp"), inner), min_size=1, max_size=4).map(
        lambda some: "".join(f"<{name}>{below}</{name}>" for name, below in some)
    ),
    max_leaves=15,
)


@given(NESTED)
def test_no_word_is_lost_or_moved(inside: str) -> None:
    expected = re.sub(r"<[^>]*>", " ", inside).split()
    found = tree_of(Engine(), f"<root>{inside}</root>").canonical.split()
    kept = iter(found)
    assert all(any(word == candidate for candidate in kept) for word in expected)


def test_damage_gives_html_or_one_clear_line() -> None:
    survives_damage(Engine(), RSS.encode())
