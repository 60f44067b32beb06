"""``prunus fetch``: fetch pages unchanged, to stdout or to files."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from ...api.pages import metadata_each
from ...core.errors import BadInput, BadPage, Failures, OutsideFailed, PrunusError
from ...core.files import write_bytes
from ...core.settings import load_settings
from ...core.text.secrets import hide_logins
from ...core.types import Page
from ...engines import formats, one_engine
from ...pages.read import clean_page, snapshot_of
from ...pages.tree import Tree
from ...web.reader import fetch_each, follow
from ..choices import Choice, common, question
from ..output import Interrupted, counted, emit_json, progress, say, settle

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_LONGEST: Final = 100
_WEB_PAGES: Final = (".html", ".htm", ".xhtml", ".xht")


@click.command("fetch")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "-o",
    "--output",
    type=click.Path(readable=False),
    metavar="PATH",
    help="A file; for several pages, a folder.",
)
@click.option(
    "--browser",
    type=Choice(["auto", "always", "never"]),
    help="Render pages in a browser; auto (the default): only pages that are empty without scripts.",
)
@click.option(
    "--follow",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Also fetch the N most promising links.",
)
@question("Question that says which links are promising.")
@click.option("--fresh", is_flag=True, help="Fetch anew, without the cache.")
@common
def command(urls: tuple[str, ...], **flags: Any) -> None:
    """Fetch pages unchanged, through the cache; obey robots.txt and refuse internal addresses.

    A bot wall, a consent wall, a login, a soft 404, a parked domain, an empty reply or binary data that no format
    reads counts as a failure: it is reported, not written, and the exit code is 2 or 3 (5 where other pages were
    fetched). Files in a folder get the suffix of their type.

    \b
    Examples:
      prunus fetch https://example.org/ > page.html
      prunus fetch https://example.org/a https://example.org/b -o pages
      prunus fetch https://example.org/ --follow 3 -q "When did it open?" -o pages
      prunus fetch https://example.org/app --browser always --json -o app.html
    """
    settings = load_settings({"browser": flags["browser"], "cache_mb": 0 if flags["fresh"] else None})
    if bool(flags["follow"]) != bool(flags["question"].strip()):
        raise BadInput("--follow and --question belong together: the question says which links are promising")
    several = len(urls) > 1 or flags["follow"] > 0
    out = Path(flags["output"]) if flags["output"] else None
    if several and out is None and not flags["as_json"]:
        raise BadInput("several pages need a folder: give -o FOLDER, or --json for one JSON line per page")
    if several and out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"{out}: this is a file; several pages need a folder", subject=str(out))
    job = _Job(out, several, flags["as_json"])
    try:
        with progress(len(urls) + flags["follow"], "fetching", flags["quiet"]) as step:
            for url, page in zip(urls, fetch_each(settings, urls), strict=True):
                job.take(url, page)
                step()
            if flags["follow"] and job.trees:
                embedder = one_engine("embedder", settings)
                for page in follow(settings, job.trees, flags["question"], flags["follow"], embedder):
                    job.take(page.subject if isinstance(page, PrunusError) else page.url, page)
                    step()
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {job.done} pages are done") from None
    if several and not flags["quiet"]:
        say(f"{job.done} of {counted(job.done + len(job.failures), 'page')} fetched")
    settle(job.failures, job.done)


class _Job:
    """The output of one call, and the counts of fetched and failed pages."""

    def __init__(self, out: Path | None, several: bool, as_json: bool) -> None:
        self.out, self.several, self.as_json = out, several, as_json
        self.failures, self.done = Failures(), 0
        self.trees: list[Tree] = []  # pages whose links may be followed
        self._taken: set[str] = set()

    def take(self, url: str, page: Page | PrunusError) -> None:
        """Write one page, or note why it could not be fetched."""
        try:
            if isinstance(page, PrunusError):
                raise page
            if page.wall:
                raise OutsideFailed(f"{page.url}: no content, but a {page.wall}", subject=page.url)
            suffix = formats().file_suffix(page)
        except PrunusError as error:
            self.failures.note(error, url)
            if self.as_json:
                emit_json({"url": hide_logins(url), "error": str(error)})
            return
        self.done += 1
        _write(page, self._place(url, suffix), self.as_json)
        if self.several and suffix in _WEB_PAGES:
            with suppress(BadPage):
                self.trees.append(clean_page(page, lambda page: page.content))

    def _place(self, url: str, suffix: str) -> Path | None:
        """Return the file for a page, a different one for each page; None is stdout.

        :param suffix: the suffix of the page's type; a file that the user named keeps its own.
        """
        if self.out is None:
            return None
        if not self.several and not self.out.is_dir() and not str(self.out).endswith("/"):
            return self.out if self.out.suffix else self.out.with_name(self.out.name + suffix)
        parts = urlsplit(url)
        stem = _UNSAFE.sub("-", f"{parts.netloc}{parts.path}").strip("-.").removesuffix(suffix)[:_LONGEST] or "page"
        name, number = f"{stem}{suffix}", 1
        while name in self._taken:
            number += 1
            name = f"{stem}.{number}{suffix}"
        self._taken.add(name)
        return self.out / name


def _write(page: Page, place: Path | None, as_json: bool) -> None:
    """Write a page's content to a file or stdout, or its description as a JSON line."""
    content = page.content.encode() if isinstance(page.content, str) else page.content
    if place is not None:
        write_bytes(place, content)
    if as_json:
        described = replace(page, content="", snapshot=page.snapshot or snapshot_of(page.content))
        record = {name: getattr(described, name) for name in _SHOWN}
        record["metadata"] = _metadata(page)
        emit_json({**record, "bytes": len(content), **({"file": str(place)} if place else {})})
    elif place is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _metadata(page: Page) -> dict[str, Any] | None:
    """Return what a page says about itself; None where it cannot be read."""
    [known] = metadata_each([page])
    return None if isinstance(known, PrunusError) else asdict(known)


_SHOWN: Final = ("url", "final_url", "status", "media_type", "charset", "fetched_at", "published", "snapshot")
