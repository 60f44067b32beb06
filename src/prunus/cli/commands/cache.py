"""``prunus cache``: show or clear the caches on disk: fetched pages and snapshots."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from ...core.settings import Settings, load_settings
from ...web.reader import open_cache, open_snapshots
from ..choices import Choice, common
from ..output import emit, emit_json

STORES: Final = {
    "pages": "fetched pages",
    "snapshots": "pages that answers were made from",
}


@click.group("cache")
def command() -> None:
    """Show or clear the caches on disk.

    \b
    Examples:
      prunus cache info
      prunus cache clear --what pages
    """


@command.command("info")
@common
def info(**flags: Any) -> None:
    """Show the entries, the size and the folder of each cache.

    \b
    Examples:
      prunus cache info
      prunus cache info --json
    """
    settings = load_settings()
    result = {name: {"holds": holds, **_info(name, settings)} for name, holds in STORES.items()}
    if flags["as_json"]:
        emit_json(result)
        return
    for name, cache in result.items():
        size = f"{cache['bytes'] / 2**20:,.1f} of {cache['max_bytes'] / 2**20:,.0f} MiB"
        emit(f"{name:10} {cache['entries']:>8,} {cache['holds']:36} {size:>22}  {cache['path']}")


@command.command("clear")
@click.option("--what", type=Choice([*STORES, "all"]), default="pages", show_default=True, help="Cache to clear.")
@common
def clear(what: str, **flags: Any) -> None:
    """Clear a cache: the fetched pages, unless --what names another.

    Citations of earlier answers can be checked only as long as the snapshots of their pages exist.

    \b
    Examples:
      prunus cache clear
      prunus cache clear --what snapshots
    """
    settings = load_settings()
    gone = {}
    for name in STORES if what == "all" else [what]:
        gone[name] = _cleared(name, settings)
    if flags["as_json"]:
        emit_json({"removed": gone})
    elif not flags["quiet"]:
        emit("\n".join(f"{number:,} {STORES[name]} removed" for name, number in gone.items()))


def _info(name: str, settings: Settings) -> dict[str, Any]:
    store = open_cache(settings) if name == "pages" else open_snapshots(settings)
    return asdict(store.info())


def _cleared(name: str, settings: Settings) -> int:
    """Clear a cache and return the number of removed entries."""
    return (open_cache(settings) if name == "pages" else open_snapshots(settings)).clear()
