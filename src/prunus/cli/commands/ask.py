"""``prunus ask``: answer a question from pages, indexes and the web."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from ...answer.chat import Conversation
from ...api.answers import Choices, Taped, stream
from ...api.pages import with_links
from ...api.runs import Recording
from ...core.errors import BadInput, NothingFound, PrunusError
from ...core.settings import load_settings
from ...core.sync import run
from ...core.types import Answer
from ...evidence.documents import Documents
from ...pages.sources import is_address
from ..answers import AnswerPrinter, questions, traced
from ..choices import (
    PAGE,
    answering,
    as_text,
    budget,
    common,
    engines,
    filters,
    granularity,
    limits_from,
    options_from,
    origin,
    stages,
    web_from,
)
from ..choices import question as question_option
from ..indexes import indexes_from, short_retrieval_options
from ..inputs import pages_given, read_given
from ..output import DoneInPart, counted, one_line, say


@click.command("ask")
@click.argument("pages", nargs=-1, type=PAGE, metavar="QUESTION [PAGE...]")
@question_option("The question; then every argument is a page.")
@click.option("--index", multiple=True, metavar="INDEX", help="Use this index as a source, too; repeatable.")
@short_retrieval_options
@budget("evidence, of pages and indexes together,", ", with a model what fits its window")
@answering
@filters
@engines
@stages
@granularity
@click.option("--events", is_flag=True, help="Write each event as one JSON line, as it happens.")
@click.option(
    "--follow",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Also read the N most promising links.",
)
@click.option("--chat", is_flag=True, help="Then answer the questions on standard input, one per line.")
@click.option("--record", type=click.Path(), metavar="FILE", help="Write the whole run to a file for prunus replay.")
@click.option("--trace", type=click.Path(readable=False), metavar="FILE", help="Write each stage as one JSON line.")
@origin
@common
def command(pages: tuple[str, ...], question: str, **flags: Any) -> None:
    """Answer a question from pages, indexes and the web, with quotes that are checked against the pages.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input. Without a page and an
    --index the web is searched, with the providers of --search or of the settings. Pages, indexes and a search can
    be combined; they share one budget. Without a model the answer consists of quotes from the pages. Where no page
    bears on the question, the exit code is 4. Where a page or a search failed, the failure is reported and the exit
    code is 5.

    \b
    Examples:
      prunus ask "How long does slack water last at Dunnock Quay?" examples/site
      prunus ask examples/site -q "How long does slack water last at Dunnock Quay?"
      prunus ask "How far down does the stilling well go?" examples/site/gallery.html --json
      prunus ask "How long does the current pause at Dunnock Quay?" - --events < examples/site/faq.html
      prunus ask "How deep is the stilling well?" --search local:examples/site
      prunus ask "How long does slack water last at Dunnock Quay?" --search local:examples/site --max-seconds 20 --json
      prunus ask "Is the tide late?" examples/site/faq.html --index handbook --search local:examples/site
      prunus ask "How deep is the stilling well?" --search local:examples/site --record build/run.prunus
    """
    settings = load_settings()
    question, pages = question_and_pages(question, pages)
    if not pages and not flags["index"] and not flags["search"] and not settings.search:
        raise BadInput("no page was given; name a file, a folder, - for standard input, an --index or a --search")
    if flags["record"] and (flags["chat"] or flags["index"]):
        raise BadInput(
            "--record works for one question to pages or the web; leave out --chat and --index", subject="record"
        )
    recording = Recording(flags["record"], settings) if flags["record"] else None
    with traced(flags["trace"]) as listen:
        options = replace(options_from(flags), limits=limits_from(flags), web=web_from(flags), trace=listen)
        documents: Documents | None = None
        if pages:
            named = pages_given(pages, settings, url=flags["url"], kind=flags["kind"])
            keep = recording.given if recording is not None else None
            documents = read_given(named, settings, flags["quiet"], keep=True, done=keep)
        if documents is not None and flags["follow"]:
            documents = with_links(documents, question, flags["follow"], settings)
        choices = Choices(settings=settings, options=options, budget=flags["budget"])
        asking = Asking(choices | indexes_from(flags, settings), documents, flags, recording)
        if flags["chat"]:
            asking.converse(question)
        else:
            asking.once(question)


def question_and_pages(question: str, arguments: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the question and the pages of a command line; without ``-q`` the first argument is the question.

    :raises BadInput: there is no question, or a page stands in its place.
    """
    if question:
        return question, tuple(arguments)
    if not arguments:
        raise BadInput('no question was given; write prunus ask "QUESTION" PAGE, or give it by -q', subject="question")
    first = as_text(arguments[0])
    if is_address(first) or os.path.exists(first):
        raise BadInput(f'{first}: this is a page; write prunus ask "QUESTION" {first}, or give -q', subject="question")
    return first, tuple(arguments[1:])


class Asking:
    """Answers one question or a conversation, prints the answers and the failures.

    :param taped: records the run, or replays it.
    """

    def __init__(
        self, choices: Choices, documents: Documents | None, flags: dict[str, Any], taped: Taped | None = None
    ) -> None:
        self._choices, self._documents, self._flags, self._taped = choices, documents, flags, taped

    def once(self, question: str) -> None:
        """Answer one question.

        :raises DoneInPart: there is an answer, but a page, search or engine failed on the way.
        :raises NothingFound: nothing bears on the question.
        """
        started = time.perf_counter()
        answer, printer = self._ask(question, None)
        if not self._flags["quiet"]:
            for warning in answer.warnings:
                say(f"prunus: {one_line(warning)}")
            say(_summary(answer, printer.pages, time.perf_counter() - started))
        for line in answer.failures.values():
            say(f"prunus: {one_line(line)}")
        if answer.failures:
            raise DoneInPart(f"{len(answer.failures)} of the steps to this answer failed; they are listed above")

    def converse(self, question: str) -> None:
        """Answer this question and those of standard input; a question that fails does not end the conversation.

        :raises PrunusError: no question was answered; this is the last failure.
        """
        chat = Conversation()
        failure: PrunusError | None = None
        for text in questions(question):
            try:
                answer, _ = self._ask(text, chat)
            except PrunusError as error:
                say(f"prunus: {one_line(str(error))}")
                failure = error
                continue
            for line in answer.failures.values():
                say(f"prunus: {one_line(line)}")
        if failure is not None and not chat.turns:
            raise failure

    def _ask(self, question: str, chat: Conversation | None) -> tuple[Answer, AnswerPrinter]:
        printer = AnswerPrinter(question, self._flags["as_json"], self._flags["events"])
        try:
            events = stream(question, self._documents, self._choices, chat, self._taped)
            answer = run(lambda: printer.follow(events))
        except NothingFound:  # the failures may be why nothing was found
            for line in printer.failures:
                say(f"prunus: {one_line(line)}")
            raise
        return answer, printer


def _summary(answer: Answer, pages: int, seconds: float) -> str:
    """Return one line with the pages read, the quotes, the tokens, the money and the time."""
    usage = answer.usage
    parts = [f"{counted(pages, 'page')} read, {counted(len(answer.citations), 'quote')}"]
    if answer.unsupported:
        parts.append(f"{counted(len(answer.unsupported), 'sentence')} unsupported")
    tokens = usage.prompt_tokens + usage.completion_tokens
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if usage.usd:
        parts.append(f"{usage.usd:.4f} USD")
    return f"{'; '.join(parts)}; {seconds:.2f} s"
