"""``prunus map``: list the addresses of a site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import click

from ...api.sites import map_site
from ...core.settings import load_settings
from ..choices import common, site_options, site_rules
from ..output import counted, emit, emit_json, one_line, say, say_left_out, working


@click.command("map")
@click.argument("url", metavar="URL")
@site_options
@click.option("-q", "--question", metavar="TEXT", help="List the addresses that promise most for it first.")
@click.option("--tree", is_flag=True, help="Draw the folders of the site, with the number of pages below each.")
@common
def command(url: str, **flags: Any) -> None:
    """List the addresses of a site: from robots.txt, sitemaps, feeds, llms.txt and links.

    The site is what lies in the folder of URL, or what --scope says. Each page is listed once, whatever its fragment,
    tracking and session parameters, and slash. With --depth 1, the default, only URL itself is read for links; --depth
    2 reads the pages that it leads to, and so on. Calendars and filters end at --alike.

    \b
    Examples:
      prunus map https://docs.example.org/
      prunus map https://docs.example.org/en/ --depth 3 --exclude /en/old/ --tree
      prunus map https://docs.example.org/ -q "how backups are restored" --pages 20
      prunus map https://example.org/ --scope domain --json
    """
    settings = load_settings()
    rules = site_rules(flags, settings)
    with working("mapping", flags["quiet"]):
        found = map_site(url, rules, settings)
    if flags["as_json"]:
        emit_json(asdict(found))
    else:
        lines = _drawn(found.urls) if flags["tree"] else (one_line(address) for address in found.urls)
        for line in lines:
            emit(line)
    if flags["quiet"]:
        return
    sources: dict[str, int] = defaultdict(int)
    for address in found.addresses:
        sources[address.source] += 1
    named = ", ".join(f"{number:,} by {source}" for source, number in sources.items() if source != "start")
    named = f": {named}" if named else ""
    say(f"{len(found.addresses):,} addresses of {found.start}{named}; {counted(found.asked, 'request')}")
    say_left_out(found.left_out, found.endless, found.notes)


def _drawn(urls: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a tree of folders: each with the number of pages in and below it, pages as their last part."""
    tree: dict[str, Any] = {}
    for url in urls:
        parts = urlsplit(url)
        path = parts.path.strip("/").split("/") if parts.path.strip("/") else []
        if parts.query:
            path = [*path, f"?{parts.query}"]
        below = tree.setdefault(f"{parts.scheme}://{parts.netloc}", {})
        for part in path:
            below = below.setdefault(part, {})
        below[""] = {}
    yield from _branch(tree, "")


def _branch(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, below in tree.items():
        if not name:
            continue
        pages = _pages(below)
        yield f"{indent}{one_line(name)}" + (f"/  {counted(pages, 'page')}" if set(below) != {""} else "")
        yield from _branch(below, indent + "  ")


def _pages(tree: Mapping[str, Any]) -> int:
    return sum(1 if not name else _pages(below) for name, below in tree.items())
