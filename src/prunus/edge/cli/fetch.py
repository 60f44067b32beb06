"""``prunus fetch``."""

from __future__ import annotations

import mimetypes
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from ...config import load_settings
from ...errors import BadInput, Failures, OutsideFailed, PrunusError
from ...network import fetch_each
from ...pipeline import snapshot_of
from ...types import Page
from .choices import common
from .output import Interrupted, emit_json, progress, say, settle, write_bytes

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_LONGEST: Final = 100


@click.command("fetch")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "-o", "--output", type=click.Path(readable=False), metavar="PATH", help="A file; for several pages, a folder."
)
@click.option(
    "--browser",
    type=click.Choice(["auto", "always", "never"]),
    help="Render with a browser; by default empty shells only.",
)
@click.option("--fresh", is_flag=True, help="Ask the site, whatever the cache holds.")
@common
def command(urls: tuple[str, ...], **given: Any) -> None:
    """Fetch pages as they are: robots.txt obeyed, internal addresses refused, cached.

    A bot wall, a consent wall, a login, a soft 404 or a parked domain is no content: it is named, nothing is
    written, and the exit code is 3 (5 where other pages came).

    \b
    Examples:
      prunus fetch https://example.org/ > page.html
      prunus fetch https://example.org/a https://example.org/b -o pages
      prunus fetch https://example.org/app --browser always --json -o app.html
    """
    settings = load_settings({"browser": given["browser"], "cache_mb": 0 if given["fresh"] else None})
    several = len(urls) > 1
    out = Path(given["output"]) if given["output"] else None
    if several and out is None and not given["as_json"]:
        raise BadInput("several pages need a place: give -o FOLDER, or --json for what is known of them")
    if several and out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"{out}: this is a file; several pages need a folder", subject=str(out))
    places = _places(urls, out, several)
    failures, done = Failures(), 0
    try:
        with progress(len(urls), "fetching", given["quiet"]) as step, closing(fetch_each(settings, urls)) as pages:
            for url, place, page in zip(urls, places, pages, strict=True):
                step()
                error = page if isinstance(page, PrunusError) else _wall(page)
                if error is not None:
                    failures.note(error, url)
                    if given["as_json"]:
                        emit_json({"url": url, "error": str(error)})
                    continue
                assert isinstance(page, Page)
                done += 1
                _give(page, place, given["as_json"])
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {done} of {len(urls)} pages are done") from None
    if several and not given["quiet"]:
        say(f"{done} of {len(urls)} pages fetched")
    settle(failures, done)


def _wall(page: Page) -> PrunusError | None:
    """Return the error for a page that is no content."""
    return OutsideFailed(f"{page.url}: this is no content ({page.wall})", subject=page.url) if page.wall else None


def _give(page: Page, place: Path | None, as_json: bool) -> None:
    """Write a page, or what is known of it."""
    content = page.content.encode() if isinstance(page.content, str) else page.content
    if place is not None:
        if not place.suffix:
            place = place.with_name(place.name + _suffix(page))
        write_bytes(place, content)
    if as_json:
        known = replace(page, content="", snapshot=page.snapshot or snapshot_of(page.content))
        record = {name: getattr(known, name) for name in _SHOWN}
        emit_json({**record, "bytes": len(content), **({"file": str(place)} if place else {})})
    elif place is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


_SHOWN: Final = ("url", "final_url", "status", "media_type", "charset", "fetched_at", "published", "snapshot")


def _suffix(page: Page) -> str:
    kind = page.media_type.split(";")[0].strip().lower()
    return ".html" if kind in ("", "application/xhtml+xml") else mimetypes.guess_extension(kind) or ".bin"


def _places(urls: Sequence[str], out: Path | None, several: bool) -> list[Path | None]:
    """Say which file each page is written to, no two the same."""
    if out is None:
        return [None] * len(urls)
    if not several and not out.is_dir():
        return [out]
    taken: set[str] = set()
    places: list[Path | None] = []
    for url in urls:
        parts = urlsplit(url)
        stem = _UNSAFE.sub("-", f"{parts.netloc}{parts.path}").strip("-.")[:_LONGEST] or "page"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}.{number}"
        taken.add(name)
        places.append(out / name)
    return places
