"""A site made by code is mapped exactly: lists, links, traps, scope, and nothing inside the network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.fetch.server import Server, redirect_to, respond
from tests.web.site.made import MadeSite

from prunus import BadInput, OutsideFailed, Settings, SiteRules, load_settings, map_site
from prunus.pages.links import canonical, outline_of, page_key
from prunus.web.door.url import parse_url
from prunus.web.site.scope import SiteScope, shape_of


@pytest.fixture
def made() -> Iterator[MadeSite]:
    with MadeSite() as site:
        yield site


def allowing(*servers: Server, **others: object) -> Settings:
    hosts = tuple(f"127.0.0.1:{server.port}" for server in servers)
    return load_settings({"allow_hosts": hosts, "browser": "never", "retries": 0, **others})


def paths(site: Server, urls: list[str]) -> list[str]:
    assert all(url.startswith(site.url("")) for url in urls)
    return [url.removeprefix(site.url("")) for url in urls]


GUIDE = ["/guide/", *(f"/guide/{n}.html" for n in range(1, 21))]


def test_one_page_is_read_and_every_list(made: MadeSite) -> None:
    found = map_site(made.url("/"), settings=allowing(made))
    links = "/about.html /copy.html /old /away /quiet.html /calendar/2024/01/ /walled.html /missing.html /inside"
    lists = ["/news/2.html", "/named.html", *GUIDE, "/news/1.html", "/plain.html"]
    assert paths(made, found.urls) == ["/", *lists, *links.split()]
    sources = {address.url.removeprefix(made.url("")): address.source for address in found.addresses}
    assert (sources["/"], sources["/about.html"], sources["/news/2.html"]) == ("start", "link", "feed")
    assert (sources["/named.html"], sources["/plain.html"]) == ("llms.txt", "sitemap")
    dated = {address.url.removeprefix(made.url("")) for address in found.addresses if address.lastmod}
    assert dated == {*GUIDE}
    assert found.left_out == {"forbidden by robots.txt": 1, "outside the site": 1, "no page by its suffix": 1}
    lists_asked = ["/sitemaps.xml", "/guide.xml.gz", "/news.xml", "/plain.txt", "/feed.xml", "/llms.txt"]
    assert sorted(made.asked) == sorted(["/", "/robots.txt", *lists_asked])


def test_with_a_question_the_most_promising_addresses_come_first(made: MadeSite) -> None:
    asked = map_site(made.url("/"), SiteRules(question="plain news", pages=3), settings=allowing(made))
    assert set(paths(made, asked.urls)) == {"/plain.html", "/news/1.html", "/news/2.html"}
    assert set(asked.urls) < set(map_site(made.url("/"), settings=allowing(made)).urls)


def test_deeper_pages_are_found_by_links_and_a_calendar_ends(made: MadeSite) -> None:
    made.lists = False
    found = map_site(made.url("/"), SiteRules(depth=50, alike=5), settings=allowing(made))
    calendar = [f"/calendar/2024/0{n}/" for n in range(1, 6)]
    expected = {"/", *GUIDE[:6], "/about.html", "/behind.html", "/moved.html", *calendar}
    assert set(paths(made, found.urls)) == expected | {"/guide/"}
    assert made.asked["/copy.html"] == made.asked["/moved.html"] == 1  # a copy of another page, and one by its redirect
    assert "/login.html" not in made.asked and "/private/x.html" not in made.asked
    host = made.url("").removeprefix("http://")
    assert found.endless == (f"{host}/guide/#.html", f"{host}/calendar/#/#/")
    assert found.left_out["more than 5 alike"] == 16  # 15 chapters that no list names, and the next month


def test_what_a_site_is(made: MadeSite) -> None:
    settings = allowing(made)
    assert paths(made, map_site(made.url("/guide/"), settings=settings).urls) == GUIDE
    rules = SiteRules(scope="host", include=("/news/", "plain"), exclude=("2.html$",))
    assert paths(made, map_site(made.url("/guide/"), rules, settings).urls) == [
        "/guide/",
        "/news/1.html",
        "/plain.html",
    ]
    few = map_site(made.url("/guide/"), SiteRules(pages=3), settings)
    assert len(few.addresses) == 3 and few.left_out["over the limit of 3 addresses"] == 18
    assert [address.url for address in map_site(made.url("/"), SiteRules(depth=0), settings).addresses] == [
        made.url("/")
    ]


def test_a_site_is_where_its_start_leads(made: MadeSite) -> None:
    made.redirects |= {"/handbook": "/guide/", "/guide": "/guide/"}
    for start in ("/handbook", "/guide"):
        found = map_site(made.url(start), settings=allowing(made))
        assert found.start == made.url("/guide/")
        assert paths(made, found.urls) == GUIDE


def test_a_start_that_cannot_be_read_is_one_error(made: MadeSite) -> None:
    with pytest.raises(OutsideFailed, match="404"):
        map_site(made.url("/nothing"), settings=allowing(made))
    with pytest.raises(BadInput, match=r"robots\.txt"):
        map_site(made.url("/private/x.html"), settings=allowing(made))
    with pytest.raises(BadInput, match="a site is an address"):
        map_site("handbook")
    with pytest.raises(BadInput, match="did you mean 'domain'"):
        SiteRules(scope="domaim")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "place",
    ["http://127.0.0.1:{port}/", "http://10.0.0.1/s.xml", "http://169.254.169.254/latest", "file:///etc/passwd"],
)
@pytest.mark.parametrize("by", ["robots", "index", "page", "redirect", "feed", "llms"])
def test_nothing_inside_is_asked_for(by: str, place: str) -> None:
    with Server() as inside:
        target = place.format(port=inside.port)
        routes = {
            "/": respond(
                f"<title>A</title><p>The tide office.<link rel=alternate type=application/atom+xml href={target if by == 'feed' else '/feed'}>"
                f"<a href='{target if by == 'page' else '/a'}'>a</a>",
                "Content-Type: text/html",
            ),
            "/robots.txt": respond(f"Sitemap: {target}\nSitemap: /s.xml\n" if by == "robots" else "Sitemap: /s.xml\n"),
            "/s.xml": redirect_to(target)
            if by == "redirect"
            else respond(
                f"<sitemapindex><sitemap><loc>{target if by == 'index' else '/t.xml'}</loc></sitemap></sitemapindex>"
            ),
            "/llms.txt": respond(f"[a]({target if by == 'llms' else '/b'})"),
        }
        with Server(routes) as site:
            found = map_site(site.url("/"), SiteRules(depth=3, scope="domain"), allowing(site))
        assert not any(address.url.startswith(target) for address in found.addresses)
        assert inside.connections == 0


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://docs.example.org/en/a", ""), ("http://www.docs.example.org/en/a/b", ""), ("https://docs.example.org/en", ""),
        ("https://docs.example.org/de/", "outside the site"), ("https://example.org/en/", "outside the site"),
        ("https://docs.example.org:8080/en/", "outside the site"), ("https://docs.example.org/en/a.zip", "no page by its suffix"),
        ("https://docs.example.org/en/a/b/a/b/a/b/a/b", "a path without end"), ("https://docs.example.org/english/", "outside the site"),
    ],
)  # fmt: skip
def test_a_prefix(url: str, why: str) -> None:
    scope = SiteScope(parse_url("https://docs.example.org/en/index.html"), SiteRules())
    assert scope.refusal(parse_url(url)) == why


def test_a_domain_holds_the_hosts_below_it() -> None:
    scope = SiteScope(parse_url("https://www.example.org/x"), SiteRules(scope="domain"))
    inside = ["https://example.org/", "https://a.b.example.org/"]
    outside = ["https://badexample.org/", "https://example.org.evil.example/"]
    assert [scope.refusal(parse_url(url)) for url in inside + outside] == [
        "",
        "",
        "outside the site",
        "outside the site",
    ]


@pytest.mark.parametrize(
    "other",
    ["http://example.org/a", "https://www.example.org/a/", "https://example.org/a?utm_source=x&fbclid=1", "https://EXAMPLE.org:443/%61#b",
     "https://example.org/a;jsessionid=F00", "https://example.org/a?PHPSESSID=1", "https://example.org/a/index.html",
     "https://example.org/a?sid=0123456789abcdef0123456789abcdef"],
)  # fmt: skip
def test_addresses_of_one_page(other: str) -> None:
    assert page_key(other) == page_key("https://example.org/a") != page_key("https://example.org/a?sid=7")
    assert "sess" not in canonical(other).lower() and "0123" not in canonical(other)


def test_alike_addresses() -> None:
    shapes = {
        shape_of(parse_url(f"https://example.org/{path}"))
        for path in ("2024/05/x?y=1", "2025/11/x?z=2&y=3", "2025/11/x")
    }
    assert shapes == {"example.org/#/#/x?", "example.org/#/#/x"}


def test_what_a_page_tells_a_crawler() -> None:
    page = """<base href=/docs/><a href=a>A</a><a href=a>again</a><a href=b rel="nofollow noopener">B</a><a href="#c">C</a>
    <div style="display:none"><a href=hidden>Hidden</a></div><map><area href=d></map><a href="javascript:x()">no</a>"""
    outline = outline_of(page, "https://example.org/x")
    at = "https://example.org/docs/"
    assert outline.links == ((f"{at}a", "A"), (f"{at}hidden", "Hidden"), (f"{at}d", ""))
    assert not outline.noindex
    for content, tag, noindex, links in (
        ("<meta name=ROBOTS content='NOINDEX, follow'>", "", True, 3), ("<meta name=prunus content=none>", "", True, 0),
        ("<meta name=otherbot content=noindex>", "", False, 3), ("", "noindex", True, 3), ("", "otherbot: noindex, nofollow", False, 3),
        ("", "otherbot: noindex, prunus: nofollow", False, 0), ("", "unavailable_after: 25 Jun 2030, nofollow", False, 0),
    ):  # fmt: skip
        said = outline_of(content + page, "https://example.org/x", robots_tag=tag, agent="prunus")
        assert (said.noindex, len(said.links)) == (noindex, links), (content, tag)
