"""``prunus fetch``: fetch pages unchanged, to stdout or to files."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from ...api.pages import metadata_each
from ...api.sites import open_queue, site_walk
from ...core.errors import BadInput, BadPage, Failures, OutsideFailed, PrunusError
from ...core.files import write_bytes
from ...core.settings import Settings, load_settings
from ...core.text.secrets import hide_logins
from ...core.types import Page
from ...engines import formats, one_engine
from ...pages.read import clean_page, snapshot_of
from ...pages.tree import Tree
from ...web.page_file import SUFFIXES, PageFile
from ...web.reader import blocking, fetch_each, follow
from ...web.site.queue import SiteQueue
from ..choices import Choice, common, question, site_options, site_rules
from ..output import Interrupted, counted, emit_json, progress, say, say_left_out, settle, working

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_LONGEST: Final = 100
_QUEUE: Final = ".prunus-site.sqlite3"
_WEB_PAGES: Final = (".html", ".htm", ".xhtml", ".xht")


@click.command("fetch")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "-o",
    "--output",
    type=click.Path(readable=False),
    metavar="PATH",
    help="A file; for several pages a folder, a web archive (.warc.gz, .warc), or JSON lines (.jsonl).",
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
@click.option("--site", is_flag=True, help="Fetch the whole site that begins at URL, as the command map finds it.")
@site_options
@question("Question that says which links are promising; with --site, its most promising pages come first.")
@click.option("--fresh", is_flag=True, help="Fetch anew, without the cache.")
@common
def command(urls: tuple[str, ...], **flags: Any) -> None:
    """Fetch pages unchanged, through the cache; obey robots.txt and refuse internal addresses.

    A bot wall, a consent wall, a login, a soft 404, a parked domain, an empty reply or binary data that no format
    reads counts as a failure: it is reported, not written, and the exit code is 2 or 3 (5 where other pages were
    fetched). Files in a folder get the suffix of their type.

    --site fetches a site breadth first, or with -q the pages first that promise most for a question: each page once,
    and a text that stands on several once. A run with -o that was stopped goes on when the same command is run again,
    and asks for no page twice.

    A web archive holds all pages with their addresses, dates and types in one file, which the command batch and other
    programs read; JSON lines hold the pages that are text.

    \b
    Examples:
      prunus fetch https://example.org/ > page.html
      prunus fetch https://example.org/a https://example.org/b -o pages
      prunus fetch https://example.org/ --follow 3 -q "When did it open?" -o pages
      prunus fetch https://example.org/app --browser always --json -o app.html
      prunus fetch https://docs.example.org/ --site -o pages
      prunus fetch https://docs.example.org/ --site --latest -o docs.warc.gz
      prunus fetch https://docs.example.org/ --site -q "How are backups made?" --pages 30 -o pages
    """
    settings = load_settings({"browser": flags["browser"], "cache_mb": 0 if flags["fresh"] else None})
    site = flags["site"]
    if flags["follow"] and site:
        raise BadInput("--follow reads single links, --site all of them; leave one out")
    if not site and bool(flags["follow"]) != bool(flags["question"].strip()):
        raise BadInput("--follow and --question belong together: the question says which links are promising")
    if site and len(urls) > 1:
        raise BadInput("--site fetches one site; give one address")
    several = len(urls) > 1 or flags["follow"] > 0 or site
    out = Path(flags["output"]) if flags["output"] else None
    if several and out is None and not flags["as_json"]:
        raise BadInput("several pages need a folder: give -o FOLDER, or --json for one JSON line per page")
    in_one_file = several and out is not None and not out.is_dir() and out.name.lower().endswith(SUFFIXES)
    if several and out is not None and out.exists() and not out.is_dir() and not in_one_file:
        raise BadInput(f"{out}: this is a file; several pages need a folder or a web archive", subject=str(out))
    job = _Job(out, several, flags["as_json"])
    if site:
        _fetch_site(urls[0], job, settings, flags, in_one_file)
        return
    try:
        if out is not None and in_one_file:
            job.file = PageFile(out)
        with (
            progress(len(urls) + flags["follow"], "fetching", flags["quiet"]) as step,
            closing(fetch_each(settings, urls)) as fetched,
        ):
            for url, page in zip(urls, fetched, strict=True):
                job.take(url, page)
                step()
            if flags["follow"] and job.trees:
                embedder = one_engine("embedder", settings)
                for page in follow(settings, job.trees, flags["question"], flags["follow"], embedder):
                    job.take(page.subject if isinstance(page, PrunusError) else page.url, page)
                    step()
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {job.done} pages are done") from None
    job.close()
    if several and not flags["quiet"]:
        say(f"{job.done} of {counted(job.done + len(job.failures), 'page')} fetched")
    settle(job.failures, job.done)


def _fetch_site(url: str, job: _Job, settings: Settings, flags: Mapping[str, Any], in_one_file: bool) -> None:
    """Fetch a site into a folder or a file, or as JSON lines. What is left to do lies beside it until all is done."""
    rules = site_rules(flags, settings)
    out = job.out
    place = out and (out.with_name(f".{out.name}{_QUEUE}") if in_one_file else out / _QUEUE)
    queue = open_queue(place, url, rules)
    job.queue = queue
    if out is not None and in_one_file:
        job.file = PageFile(out, queue)
    walk = site_walk(url, rules, queue, settings)
    complete = False
    before = queue.count("stored")
    try:
        with closing(blocking(walk.visits())) as visits, working("fetching", flags["quiet"]):
            for visit in visits:
                entry = visit.entry
                if visit.page is not None:
                    job.take(entry.url, visit.page)
                    walk.kept(entry.url)
                elif visit.error is not None and entry.fate == "failed":
                    job.take(entry.url, visit.error)
        complete = True
    except KeyboardInterrupt:
        again = "; run the same command again to go on" if job.out else ""
        raise Interrupted(f"interrupted; {job.done} pages are done{again}") from None
    finally:
        job.close()
        queue.close(remove=complete)
    if not flags["quiet"]:
        there = f", {before:,} were there" if before else ""
        say(
            f"{counted(job.done, 'page')} fetched{there}; {counted(walk.asked, 'request')}, {walk.bytes / 1000:,.0f} kB"
        )
        say_left_out(walk.left_out, list(walk.endless), walk.notes)
    settle(job.failures, job.done + before)


class _Job:
    """The output of one call, and the counts of fetched and failed pages."""

    def __init__(self, out: Path | None, several: bool, as_json: bool) -> None:
        self.out, self.several, self.as_json = out, several, as_json
        self.failures, self.done = Failures(), 0
        self.trees: list[Tree] = []  # pages whose links may be followed
        self.queue: SiteQueue | None = None  # of a site: it knows the file of each page, also after a kill
        self.file: PageFile | None = None  # of all pages
        self._taken: set[str] = set()

    def take(self, url: str, page: Page | PrunusError) -> None:
        """Write one page, or note why it could not be fetched."""
        try:
            if isinstance(page, PrunusError):
                raise page
            if page.wall:
                raise OutsideFailed(f"{page.url}: no content, but a {page.wall}", subject=page.url)
            suffix = formats().file_suffix(page)
            record = self.file.record(page) if self.file else b""
        except PrunusError as error:
            self.failures.note(error, url)
            if self.as_json:
                emit_json({"url": hide_logins(url), "error": str(error)})
            return
        self.done += 1
        if self.file is not None:
            self.file.add(url, record)
        _write(page, self.out if self.file else self._place(url, suffix), self.as_json, self.file is None)
        if self.several and self.queue is None and suffix in _WEB_PAGES:
            with suppress(BadPage):
                self.trees.append(clean_page(page, lambda page: page.content))

    def close(self) -> None:
        """Close the file of all pages."""
        if self.file is not None:
            self.file.close()

    def _place(self, url: str, suffix: str) -> Path | None:
        """Return the file for a page, a different one for each page; None is stdout.

        :param suffix: the suffix of the page's type; a file that the user named keeps its own.
        """
        if self.out is None:
            return None
        if not self.several and not self.out.is_dir() and not str(self.out).endswith("/"):
            return self.out if self.out.suffix else self.out.with_name(self.out.name + suffix)
        if self.queue is not None:
            return self.out / self._name_of_site(self.queue, url, suffix)
        parts = urlsplit(url)
        stem = _UNSAFE.sub("-", f"{parts.netloc}{parts.path}").strip("-.").removesuffix(suffix)[:_LONGEST] or "page"
        name = _free(stem, suffix, self._taken)
        self._taken.add(name)
        return self.out / name

    def _name_of_site(self, queue: SiteQueue, url: str, suffix: str) -> str:
        """Return the name of a page's file: the one that it got before a kill, or one that no other has."""
        if not self._taken:
            self._taken = set(queue.facts("file "))
        name = queue.fact(f"name {url}")
        if not name:
            parts = urlsplit(url)
            stem = _UNSAFE.sub("-", f"{parts.netloc}{parts.path}-{parts.query}").strip("-.").removesuffix(suffix)
            name = _free(stem[:_LONGEST] or "page", suffix, self._taken)
            queue.put_fact(f"name {url}", name)
            queue.put_fact(f"file {name}", url)
            self._taken.add(name)
        return name


def _free(stem: str, suffix: str, taken: set[str]) -> str:
    name, number = f"{stem}{suffix}", 1
    while name in taken:
        number += 1
        name = f"{stem}.{number}{suffix}"
    return name


def _write(page: Page, place: Path | None, as_json: bool, alone: bool = True) -> None:
    """Write a page's content to a file or stdout, or its description as a JSON line.

    :param alone: in a file of its own; else it was written into that of all pages.
    """
    content = page.content.encode() if isinstance(page.content, str) else page.content
    if place is not None and alone:
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
