"""``prunus cache``: what is kept on disk between runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from ...core.settings import Settings, load_settings
from ...engines import open_vectors, vectors_folder
from ...web.reader import open_cache, open_snapshots
from ..choices import common
from ..output import emit, emit_json

STORES: Final = {
    "pages": "fetched pages",
    "snapshots": "pages that answers were made from",
    "vectors": "embedded texts",
}


@click.group("cache")
def command() -> None:
    """Show or clear what is kept on disk between runs.

    \b
    Examples:
      prunus cache info
      prunus cache clear --what pages
    """


@command.command("info")
@common
def info(**given: Any) -> None:
    """Show how much is kept, and where."""
    settings = load_settings()
    found = {name: {"holds": holds, **_info(name, settings)} for name, holds in STORES.items()}
    if given["as_json"]:
        emit_json(found)
        return
    for name, one in found.items():
        size = f"{one['bytes'] / 1048576:,.1f} of {one['max_bytes'] / 1048576:,.0f} MiB"
        emit(f"{name:10} {one['entries']:>8,} {one['holds']:36} {size:>22}  {one['path']}")


@command.command("clear")
@click.option("--what", type=click.Choice([*STORES, "all"]), default="pages", show_default=True, help="What goes.")
@common
def clear(what: str, **given: Any) -> None:
    """Remove what is kept: fetched pages, unless something else is named.

    Citations of earlier answers can be checked only while their snapshots are kept.
    """
    settings = load_settings()
    gone = {}
    for name in STORES if what == "all" else [what]:
        gone[name] = _cleared(name, settings)
    if given["as_json"]:
        emit_json({"removed": gone})
    elif not given["quiet"]:
        emit("\n".join(f"{number:,} {STORES[name]} removed" for name, number in gone.items()))


def _info(name: str, settings: Settings) -> dict[str, Any]:
    if name == "vectors":
        entries, size = open_vectors(settings).size()
        bound = settings.embed_cache_mb << 20
        return {"path": str(vectors_folder(settings)), "entries": entries, "bytes": size, "max_bytes": bound}
    store = open_cache(settings) if name == "pages" else open_snapshots(settings)
    return asdict(store.info())


def _cleared(name: str, settings: Settings) -> int:
    """Clear a store; return how many entries went."""
    if name == "vectors":
        vectors = open_vectors(settings)
        entries, _ = vectors.size()
        vectors.clear()
        return entries
    return (open_cache(settings) if name == "pages" else open_snapshots(settings)).clear()
