"""``prunus ask``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import click

from ...answer.chat import Conversation
from ...api.answers import Choices, Taped, stream
from ...api.pages import with_links
from ...api.runs import Recording
from ...core.errors import BadInput, NothingFound, PrunusError
from ...core.events import Event
from ...core.settings import load_settings
from ...core.sync import run
from ...core.types import Answer
from ...evidence.documents import Documents
from ..answers import Following, Shown, questions, traced, written
from ..choices import (
    PAGE,
    answering,
    as_unicode,
    common,
    engines,
    filters,
    granularity,
    limits_from,
    options_from,
    stages,
    web_from,
)
from ..given import pages_given, read_given
from ..indexes import indexes_from, short_retrieval_options
from ..output import DoneInPart, one_line, say

__all__ = ["command", "written"]


@click.command("ask")
@click.argument("question", metavar="QUESTION", callback=as_unicode)
@click.argument("pages", nargs=-1, type=PAGE, metavar="[PAGE...]")
@click.option("--index", multiple=True, metavar="INDEX", help="Ask this index, too; repeatable.")
@short_retrieval_options
@click.option("--budget", type=int, metavar="N", help="Tokens of evidence at most, of pages and indexes together.")
@answering
@filters
@engines
@stages
@granularity
@click.option("--events", is_flag=True, help="Write each event as one JSON line, as it happens.")
@click.option(
    "--follow", type=click.IntRange(0, 100), default=0, metavar="N", help="Read the N most promising links, too."
)
@click.option("--chat", is_flag=True, help="Go on with the questions of standard input, a line each.")
@click.option("--record", type=click.Path(), metavar="FILE", help="Keep the whole run in a file, for prunus replay.")
@click.option("--trace", type=click.Path(readable=False), metavar="FILE", help="Write each stage as one JSON line.")
@common
def command(question: str, pages: tuple[str, ...], **given: Any) -> None:
    """Answer a question from pages, indexes and the web, with quotes that are checked against the pages.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input. Without a page and an
    --index the web is searched, with the providers of --search or of the settings; what is given together is used
    together, within one budget. Without a model the answer is made of the pages' own words. Where nothing bears on
    the question, the exit code is 4; where something failed on the way, it is said, and the exit code is 5.

    \b
    Examples:
      prunus ask "How long is the Pell 2 guaranteed?" examples/site
      prunus ask "How far down does the stilling well go?" examples/site/gallery.html --json
      prunus ask "How long does the current pause at Dunnock Quay?" - --events < examples/site/faq.html
      prunus ask "How deep is the stilling well?" --search local:examples/site
      prunus ask "How long is the Pell 2 guaranteed?" --search local:examples/site --max-seconds 20 --json
      prunus ask "Is the tide late?" examples/site/faq.html --index handbook --search local:examples/site
      prunus ask "How long is the Pell 2 guaranteed?" --search local:examples/site --record build/run.prunus
    """
    settings = load_settings()
    if not pages and not given["index"] and not given["search"] and not settings.search:
        raise BadInput("no page was given; name a file, a folder, - for standard input, an --index or a --search")
    if given["record"] and (given["chat"] or given["index"]):
        raise BadInput(
            "--record keeps one question to pages or the web: leave --chat and --index out", subject="record"
        )
    recording = Recording(given["record"], settings) if given["record"] else None
    with traced(given["trace"]) as listen:
        options = replace(options_from(given), limits=limits_from(given), web=web_from(given), trace=listen)
        documents: Documents | None = None
        if pages:
            named = pages_given(pages, settings)
            keep = recording.given if recording is not None else None
            documents = read_given(named, settings, given["quiet"], keep=True, done=keep)
        if documents is not None and given["follow"]:
            documents = with_links(documents, question, given["follow"], settings)
        choices = Choices(settings=settings, options=options, budget=given["budget"])
        asking = Asking(choices | indexes_from(given, settings), documents, given, recording)
        if given["chat"]:
            asking.converse(question)
        else:
            asking.once(question)


class Asking:
    """Asks one question, or one after the other.

    :param taped: records the run, or plays it back.
    """

    def __init__(
        self, choices: Choices, documents: Documents | None, given: dict[str, Any], taped: Taped | None = None
    ) -> None:
        self._choices, self._documents, self._given, self._taped = choices, documents, given, taped

    def once(self, question: str) -> None:
        """Ask, and end with the right code."""
        started = time.perf_counter()
        found, shown = self._ask(question, None)
        if not self._given["quiet"]:
            for warning in found.warnings:
                say(f"prunus: {one_line(warning)}")
            say(_summary(found, shown.pages, time.perf_counter() - started))
        for line in found.failures.values():
            say(f"prunus: {one_line(line)}")
        if found.failures:
            raise DoneInPart(f"{len(found.failures)} of the steps to this answer failed; they are listed above")

    def converse(self, question: str) -> None:
        """Ask this question and those of standard input; one that fails ends nothing."""
        chat = Conversation()
        worst: PrunusError | None = None
        for each in questions(question):
            try:
                found, _ = self._ask(each, chat)
            except PrunusError as error:
                say(f"prunus: {one_line(str(error))}")
                worst = error
                continue
            for line in found.failures.values():
                say(f"prunus: {one_line(line)}")
        if worst is not None and not chat.turns:
            raise worst

    def _ask(self, question: str, chat: Conversation | None) -> tuple[Answer, Shown]:
        shown = Shown(question, self._given["as_json"], self._given["events"])
        try:
            events = stream(question, self._documents, self._choices, chat, self._taped)
            found = run(lambda: _followed(shown, events))
        except NothingFound:
            for line in shown.failures:
                say(f"prunus: {one_line(line)}")
            raise
        return found, shown


async def _followed(shown: Following, events: AsyncIterator[Event]) -> Answer:
    return await shown.follow(events)


def _summary(found: Answer, pages: int, seconds: float) -> str:
    """Say in one line what was read and what it cost."""
    usage = found.usage
    parts = [f"{pages} page{'' if pages == 1 else 's'} read, {len(found.citations)} quotes"]
    if found.unsupported:
        parts.append(f"{len(found.unsupported)} sentences not borne out")
    tokens = usage.prompt_tokens + usage.completion_tokens
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if usage.usd:
        parts.append(f"{usage.usd:.4f} USD")
    return f"{'; '.join(parts)}; {seconds:.2f} s"
