"""``prunus search``: search the web or a folder with one provider or several."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import click

from ...api.answers import search
from ...core.errors import NothingFound
from ...core.types import Results, SearchRequest
from ..choices import as_unicode, common, filters, web_from
from ..output import counted, emit, emit_json, one_line, say


@click.command("search")
@click.argument("query", metavar="QUERY", callback=as_unicode)
@click.option("--search", "provider", default="", metavar="SPECS", help="Search providers, separated by commas.")
@click.option("--count", type=click.IntRange(1, 100), metavar="N", help="Hits; 10 by default.")
@filters
@click.option("--topic", default="", metavar="NAME", help="A topic that the provider knows, as news.")
@click.option("--no-safe-search", is_flag=True, help="Switch the providers' safe search off.")
@click.option("--page", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N", help="Page of results.")
@common
def command(query: str, provider: str, **flags: Any) -> None:
    """Search the web or a folder, and list the hits.

    Several providers are called at the same time and their hits fused, each page once. A filter that a provider
    does not support causes a warning. Keys come only from the settings. Where nothing is found, the exit code is 4.

    \b
    Examples:
      prunus search "stilling well" --search local:examples/site
      prunus search "tide gauge benchmark" --search local:examples/site --count 3 --json
    """
    started = time.perf_counter()
    web = web_from(flags)
    request = SearchRequest(
        query=query,
        count=flags["count"] or 10,
        page=flags["page"],
        language=web.language,
        country=web.country,
        time_range=web.time_range,
        include_domains=web.include_domains,
        exclude_domains=web.exclude_domains,
        safe_search=web.safe_search,
        topic=web.topic,
    )
    match = search(request, provider)
    if flags["as_json"]:
        emit_json({"query": query, **asdict(match)})
    elif match.hits:
        emit(listed(match))
    for warning in match.warnings:
        say(f"prunus: {one_line(warning)}")
    if not flags["quiet"]:
        cost = f", {match.usd:.4f} USD" if match.usd else ""
        say(f"{counted(len(match.hits), 'hit')}{cost}; {time.perf_counter() - started:.2f} s")
    if not match.hits:
        raise NothingFound("the search found nothing; try other keywords or another --search", subject=query[:200])


def listed(found: Results) -> str:
    """Return hits as text: rank, title, date, provider, address and snippet."""
    lines: list[str] = []
    for index, hit in enumerate(found.hits, 1):
        about = " · ".join(text for text in (hit.published, hit.engine) if text)
        lines.append(f"{index:2}. {one_line(hit.title) or hit.url}")
        lines.append(f"    {one_line(hit.url)}{'  (' + one_line(about) + ')' if about else ''}")
        if hit.snippet:
            lines.append(f"    {one_line(hit.snippet)}")
    return "\n".join(lines)
