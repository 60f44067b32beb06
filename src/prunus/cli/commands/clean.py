"""``prunus clean``: clean one page or many, to stdout or to files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from ...api.pages import read_each
from ...core.errors import BadInput, Failures, PrunusError, errors_of_page
from ...core.settings import Settings, load_settings
from ...core.types import OutputFormat
from ...engines import formats
from ...pages.links import make_absolute
from ...pages.metadata import known_metadata
from ...pages.tree import Tree
from ...pages.write.selection import main_part
from ...pages.write.style import Style
from ...pages.write.whole import write_tree
from ..choices import FORMATS, PAGE, common, origin, shape, shown_only
from ..inputs import Given, is_saved, pages_given
from ..output import Interrupted, counted, emit, emit_json, progress, say, settle, working, write_whole

SUFFIXES: Final[dict[str, str]] = {"html": ".html", "markdown": ".md", "text": ".txt"}


@dataclass(slots=True)
class CleaningJob:
    """The pages of one call, the form of the output, and the counts of what is done.

    :param targets: the file for each page, None for stdout.
    :param main: write only each page's main content.
    :param skip_existing: skip a page whose file exists.
    """

    pages: Sequence[Given]
    targets: Sequence[Path | None]
    format: OutputFormat
    style: Style
    settings: Settings
    main: bool = False
    as_json: bool = False
    skip_existing: bool = False
    quiet: bool = False
    done: int = 0
    skipped: int = 0
    failures: Failures = field(default_factory=Failures)

    def run(self) -> None:
        """Clean every page, one in memory at a time; a page that fails is noted, and the others go on."""
        wanted = list(zip(self.pages, self.targets, strict=True))
        if self.skip_existing:
            wanted = [(page, target) for page, target in wanted if target is None or not target.exists()]
            self.skipped = len(self.pages) - len(wanted)
        if not wanted:
            return
        with (
            progress(len(wanted), "cleaning", self.quiet) as step,
            closing(read_each([page.source for page, _ in wanted], self.settings, self.main)) as trees,
        ):
            started = time.perf_counter()
            for page, target in wanted:
                with working("cleaning", self.quiet or len(wanted) > 1):
                    tree = next(trees)
                self._write(page, target, tree, started)
                step()
                started = time.perf_counter()

    def _write(self, page: Given, target: Path | None, tree: Tree | PrunusError, started: float) -> None:
        try:
            if isinstance(tree, PrunusError):
                raise tree
            if is_saved(page):
                make_absolute(tree)
            with errors_of_page(page.name):
                output = write_tree(tree, self.format, self.style, main_part(tree))
        except PrunusError as error:
            self.failures.note(error, page.name)
            if self.as_json:
                emit_json({"page": page.name, "error": str(error)})
            return
        if not self.quiet:
            for warning in tree.warnings:
                say(f"prunus: {page.name}: {warning}")
        if target is not None:
            write_whole(target, output + "\n")
        if self.as_json:
            record = {
                "page": page.name,
                "title": tree.title,
                "format": self.format,
                "words": _kept_words(tree),
                "snapshot": tree.snapshot,
                "metadata": asdict(known_metadata(tree)),
                **({"main_confidence": round(tree.main_confidence, 3)} if tree.main_confidence is not None else {}),
                **({"warnings": list(tree.warnings)} if tree.warnings else {}),
                "seconds": round(time.perf_counter() - started, 6),
            }
            emit_json({**record, **({"output": output} if target is None else {"file": str(target)})})
        elif target is None:
            emit(output)
        self.done += 1


@click.command("clean")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@click.option("--format", "format_", type=FORMATS, default="html", show_default=True, help="What to write.")
@click.option("--main", is_flag=True, help="Write only the page's own content: no menus, banners, footers.")
@shown_only
@shape
@click.option("--links/--no-links", default=True, help="Write the targets of links, or only their words.")
@click.option("--images/--no-images", default=True, help="Write the addresses of pictures, or only their words.")
@click.option(
    "-o",
    "--output",
    type=click.Path(readable=False),
    metavar="PATH",
    help="File to write to; for several pages, a folder.",
)
@origin
@click.option("--skip-existing", is_flag=True, help="Skip pages whose file exists, to resume after a stop.")
@common
def command(pages: tuple[str, ...], **flags: Any) -> None:
    """Clean pages: keep what a reader sees, drop the rest.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input.

    \b
    Examples:
      prunus clean examples/site/faq.html
      prunus clean examples/site/station-data.html --format markdown
      prunus clean examples/site/faq.html --main
      prunus clean - --format text < examples/site/forum-calibration-drift.html
      prunus clean examples/site -o cleaned --format markdown
      prunus clean examples/site --json
      prunus clean - --url https://example.org/faq.html --format markdown < examples/site/faq.html
    """
    started = time.perf_counter()
    settings = load_settings({"shown_only": flags["shown_only"] or None})
    out = Path(flags["output"]) if flags["output"] else None
    result = pages_given(pages, settings, out, url=flags["url"], kind=flags["kind"])
    job = CleaningJob(
        result,
        targets_of(result, out, SUFFIXES[flags["format_"]], flags["as_json"]),
        flags["format_"],
        Style(
            links=flags["links"], images=flags["images"], full=flags["full"] or flags["pretty"], pretty=flags["pretty"]
        ),
        settings,
        flags["main"],
        flags["as_json"],
        flags["skip_existing"],
        flags["quiet"],
    )
    try:
        job.run()
    except KeyboardInterrupt:
        raise Interrupted(_so_far(job, out)) from None
    if len(result) > 1 and not flags["quiet"]:
        skipped = f", {job.skipped} skipped" if job.skipped else ""
        say(f"{job.done} of {counted(len(result), 'page')} cleaned{skipped}; {time.perf_counter() - started:.1f} s")
    settle(job.failures, job.done + job.skipped)


def _kept_words(tree: Tree) -> int:
    """Return the number of words that are written."""
    if tree.main is None:
        return tree.words[-1]
    return sum(tree.words[node + 1] - tree.words[node] for node, kept in enumerate(tree.main) if kept)


def targets_of(pages: Sequence[Given], out: Path | None, suffix: str, as_json: bool = False) -> list[Path | None]:
    """Return the file that each page is written to; None is stdout.

    The tree of a folder is kept; ``suffix`` replaces the suffixes of known formats. Where two pages would get the
    same file, the later page keeps its own suffix before ``suffix``.

    :raises BadInput: several pages and no folder for them, or the output would overwrite an input.
    """
    several = len(pages) > 1 or any(page.folder for page in pages)
    if out is None:
        if several and not as_json:
            raise BadInput("several pages need a place: give -o FOLDER, or --json for one JSON line a page")
        return [None] * len(pages)
    if not several and not (out.is_dir() or str(out).endswith("/")):
        targets = [out]
    elif out.exists() and not out.is_dir():
        raise BadInput(f"{out}: this is a file; several pages need a folder", subject=str(out))
    else:
        targets = list(_mirrored(pages, out, suffix))
    sources = {page.path.resolve() for page in pages if page.path is not None}
    for target in targets:
        if target.resolve() in sources:
            raise BadInput(f"{target}: this would overwrite an input page; give another -o", subject=str(target))
    return list(targets)


def _mirrored(pages: Sequence[Given], out: Path, suffix: str) -> Iterator[Path]:
    """Yield a file below ``out`` for each page, no two the same."""
    folders = {page.folder for page in pages if page.folder}
    taken: set[Path] = set()
    known_suffixes = formats().suffixes
    for page in pages:
        path = page.path or Path(page.name)
        inside = path.relative_to(page.folder) if page.folder else Path(path.name)
        if page.folder and len(folders) > 1:
            inside = Path(page.folder.resolve().name) / inside
        known = inside.suffix.lower() in known_suffixes
        target = out / (inside.with_suffix(suffix) if known else inside.with_name(inside.name + suffix))
        number = 1
        while target in taken:
            target = out / inside.with_name(f"{inside.name}{f'.{number}' if number > 1 else ''}{suffix}")
            number += 1
        taken.add(target)
        yield target


def _so_far(job: CleaningJob, out: Path | None) -> str:
    """Return the message for a run that the user stopped: how many pages are done, and how to resume."""
    line = f"interrupted; {job.done} of {len(job.pages)} pages are done"
    return f"{line} and are whole in {out}; resume with --skip-existing" if out and len(job.pages) > 1 else line
