"""``prunus map``: as text, as a tree, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.cli.command import Cli, only_line
from tests.web.site.made import MadeSite


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[MadeSite]:
    with MadeSite(count=3) as site:
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
        monkeypatch.setenv("PRUNUS_BROWSER", "never")
        monkeypatch.setenv("PRUNUS_RETRIES", "1")
        yield site


def test_a_map_as_text(cli: Cli, made: MadeSite) -> None:
    result = cli("map", made.url("/guide/"))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [made.url(f"/guide/{name}") for name in ("", "1.html", "2.html", "3.html")]
    # the home page lies outside, and so do what the news, the text and llms.txt name
    assert result.stderr.splitlines() == [
        f"4 addresses of {made.url('/guide/')}: 3 by sitemap; 7 requests",
        "left out: 3 outside the site",
    ]


def test_a_map_as_a_tree(cli: Cli, made: MadeSite) -> None:
    result = cli("map", made.url("/"), "--tree", "--quiet", "--include", "/guide/", "--include", "/news/")
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        f"{made.url('')}/  7 pages", "  news/  2 pages", "    2.html", "    1.html",
        "  guide/  4 pages", "    1.html", "    2.html", "    3.html",
    ]  # fmt: skip


def test_a_map_as_json(cli: Cli, made: MadeSite) -> None:
    result = cli("map", made.url("/"), "--depth", "40", "--alike", "2", "--json")
    found = json.loads(result.stdout)
    [guide] = [address for address in found["addresses"] if address["url"] == made.url("/guide/")]
    assert found["start"] == made.url("/")
    assert guide == {
        "url": made.url("/guide/"),
        "lastmod": guide["lastmod"],
        "source": "sitemap",
        "depth": 1,
    }
    assert guide["lastmod"].startswith("20")
    assert found["endless"] == [f"127.0.0.1:{made.port}/calendar/#/#/"]
    assert "more than 2 alike" in result.stderr and "--alike raises the limit" in result.stderr


def test_what_is_no_site_is_one_line(cli: Cli, made: MadeSite) -> None:
    assert "a site is an address" in only_line(cli("map", "handbook"))
    assert "404" in only_line(cli("map", made.url("/nothing")))
    assert "private" in only_line(cli("map", "http://10.0.0.1/"))
