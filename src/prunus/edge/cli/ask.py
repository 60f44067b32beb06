"""``prunus ask``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from ...api import run
from ...assemble import Formats, assemble
from ...config import load_settings
from ...errors import BadInput, NothingFound
from ...events import DoneEvent, ErrorEvent, Event
from ...html.documents import Documents
from ...pipeline import Engines, answer
from ...types import Answer, Options
from .choices import PAGE, as_unicode, common, engines, granularity, options_from
from .given import pages_given, read_given, with_links
from .indexes import from_indexes, short_retrieval_options
from .output import emit, emit_json, one_line, say, settle


@click.command("ask")
@click.argument("question", metavar="QUESTION", callback=as_unicode)
@click.argument("pages", nargs=-1, type=PAGE, metavar="[PAGE...]")
@click.option("--index", multiple=True, metavar="INDEX", help="Answer from this index, too; repeatable.")
@short_retrieval_options
@click.option("--budget", type=int, metavar="N", help="Tokens of evidence at most, of pages and indexes together.")
@engines
@granularity
@click.option("--events", is_flag=True, help="Write each event as one JSON line, as it happens.")
@click.option(
    "--follow", type=click.IntRange(0, 100), default=0, metavar="N", help="Read the N most promising links, too."
)
@common
def command(question: str, pages: tuple[str, ...], **given: Any) -> None:
    """Answer a question from pages and indexes, with quotes that are checked against them.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input. Without a model the
    answer is made of the pages' own words. Where nothing bears on the question, the exit code is 4.

    \b
    Examples:
      prunus ask "How long is the Pell 2 guaranteed?" examples/site
      prunus ask "How far down does the stilling well go?" examples/site/gallery.html --json
      prunus ask "How long does the current pause at Dunnock Quay?" - --events < examples/site/faq.html
      prunus ask "How do I back up the store?" --index handbook
    """
    if not pages and not given["index"]:
        raise BadInput("no page was given; name a file, a folder, - for standard input, or an --index")
    settings, formats = load_settings(), Formats()
    options = options_from(given)
    made = assemble(settings, options)
    started = time.perf_counter()
    documents = Documents([])
    if pages:
        documents = read_given(pages_given(pages, settings, formats), settings, formats, given["quiet"], keep=True)
    if given["follow"]:
        documents = with_links(documents, question, given["follow"], settings, formats)
    budget = settings.budget if given["budget"] is None else given["budget"]

    stream: Callable[[Options, Engines], AsyncIterator[Event]] = partial(answer, documents, question, budget)
    if given["index"]:
        documents, stream = from_indexes(question, documents if pages else None, given, settings, budget)
    try:
        found = run(lambda: _answer(stream(options, made), given["events"]))
    except NothingFound as error:
        if given["events"]:
            emit_json(asdict(ErrorEvent(str(error), error.subject)))
        for line in documents.failures.values():
            say(f"prunus: {one_line(line)}")
        raise
    if given["as_json"] and not given["events"]:
        emit_json({"question": question, **asdict(found)})
    elif not given["events"]:
        emit(written(found))
    if not given["quiet"]:
        pages_read = f"{len(documents)} page{'' if len(documents) == 1 else 's'}"
        say(f"{pages_read} read, {len(found.citations)} quotes; {time.perf_counter() - started:.2f} s")
    settle(documents.failures, len(documents))


async def _answer(events: AsyncIterator[Event], show: bool) -> Answer:
    """Run the pipeline to its answer, showing its events where that is wanted."""
    found: Answer | None = None
    async for event in events:
        if show:
            emit_json(asdict(event))
        if isinstance(event, DoneEvent):
            found = event.answer
    assert found is not None  # the pipeline ends in done, or raises
    return found


def written(found: Answer) -> str:
    """Return an answer as text: what it says, then each source with its place and the check of its quote."""
    lines = [found.text, ""]
    for citation in found.citations:
        title = citation.title or "(no title)"
        check = "found" if citation.found else "NOT FOUND"
        lines.append(f"[{citation.number}] {one_line(title)}")
        lines.append(f"    {citation.url or 'page'}  {citation.xpath}".rstrip())
        lines.append(f"    quote: {check}")
    return "\n".join(lines)
