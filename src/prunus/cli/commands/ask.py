"""``prunus ask``: answer a question from pages, indexes and the web."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, cast

import click

from ...answer.chat import Conversation
from ...answer.trace import as_record
from ...api.answers import Choices, Taped, stream
from ...api.fill import FillChoices, fill
from ...api.index import opened
from ...api.pages import with_links
from ...api.plain import answer_record
from ...api.runs import Recording
from ...core.deadline import limited
from ...core.errors import BadInput, NothingFound, PrunusError
from ...core.events import DoneEvent, ErrorEvent, Event, PageEvent, SearchEvent, TokenEvent
from ...core.settings import load_settings
from ...core.sync import run
from ...core.types import Answer, Citation, Trace
from ...evidence.documents import Documents
from ...pages.sources import is_address
from ..choices import (
    PAGE,
    Sections,
    as_text,
    budget,
    common,
    filters,
    limits_from,
    options_from,
    origin,
    retrieval_from,
    short_retrieval_options,
    shown_only,
    web_from,
)
from ..choices import question as question_option
from ..inputs import pages_given, read_given
from ..output import DoneInPart, counted, emit, emit_json, emit_piece, one_line, say, working

SECTIONS: Final = {
    "Where the evidence comes from": "question index document retrieval search follow url kind shown_only",
    "What the answer is made of": "llm budget quotes min_confidence best pictures always unread scorer embedder",
    "Filters of a web search": "language country time_range include_domain exclude_domain",
    "What the whole answer may cost": "max_tokens max_usd max_seconds",
    "What is written": "as_json schema events trace record chat quiet",
}


@click.command("ask", cls=Sections, sections=SECTIONS)
@click.argument("pages", nargs=-1, type=PAGE, metavar="QUESTION [PAGE...]")
@question_option("The question; then every argument is a page.")
@click.option("--index", multiple=True, metavar="INDEX", help="Use this index as a source, too; repeatable.")
@short_retrieval_options
@click.option("--search", default="", metavar="SPECS", help="Providers of web search, separated by commas.")
@click.option("--follow", type=click.IntRange(0, 100), default=0, metavar="N", help="Also read the N best links.")
@origin
@shown_only
@click.option(
    "--llm",
    default="",
    metavar="SPEC",
    help="The language model, as http://127.0.0.1:11434/v1#qwen3:4b after `ollama run qwen3:4b`, or "
    "http://127.0.0.1:8080/v1#any of `llama-server -m MODEL.gguf`; prunus doctor names those that run here.",
)
@budget("evidence, of pages and indexes together,", ", with a model what fits its window")
@click.option(
    "--quotes",
    type=click.IntRange(1, 50),
    metavar="N",
    help="Quotes at most without a model; by default 3 of one page, 5 of several.",
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="CHANCE",
    help="Without a model, answer only where a quote answers with this chance; by default 0.2.",
)
@click.option("--best", type=click.IntRange(1, 50), metavar="N", help="Web pages to answer from; 5 by default.")
@click.option("--pictures", type=click.IntRange(0, 20), default=0, metavar="N", help="Show the model up to N pictures.")
@click.option("--always", is_flag=True, help="Search even where the plan says that no search is needed.")
@click.option("--unread", is_flag=True, help="Let the model answer without pages where none bears on it.")
@click.option("--scorer", default="", metavar="SPEC", help="Engine that scores blocks, as bm25.")
@click.option("--embedder", default="", metavar="SPEC", help="Engine that embeds texts.")
@filters
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Model tokens at most, in all.")
@click.option("--max-usd", type=click.FloatRange(min=0), metavar="USD", help="Money at most, by configured prices.")
@click.option("--max-seconds", type=click.FloatRange(min=0), metavar="S", help="Seconds at most for the answer.")
@click.option("--events", is_flag=True, help="Write each event as one JSON line, as it happens.")
@click.option("--trace", type=click.Path(readable=False), metavar="FILE", help="Write each stage as one JSON line.")
@click.option("--record", type=click.Path(), metavar="FILE", help="Write the whole run to a file for prunus replay.")
@click.option("--schema", type=click.Path(), metavar="FILE", help="Write JSON by this JSON schema; see below.")
@click.option("--chat", is_flag=True, help="Then answer the questions on standard input, one per line.")
@common
def command(pages: tuple[str, ...], question: str, **flags: Any) -> None:
    """Answer a question from pages, indexes and the web, with quotes that are checked against the pages.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input. Without a page and an
    --index the web is searched, with the providers of --search or of the settings. Pages, indexes and a search can
    be combined; they share one budget. Without a model the answer consists of quotes from the pages. Where no page
    bears on the question, the exit code is 4. Where a page or a search failed, the failure is reported and the exit
    code is 5. With --schema the result is JSON: its fields are filled from labels and passages of the pages, each with
    the words that say it, and null where there are none; the question may be left out then. Rarer choices are
    settings: planner, extractor, generator, second_scorer, web_options and others.

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
      prunus ask --schema examples/gauge.schema.json examples/site/pell-2-gauge.html
    """
    settings = load_settings({"shown_only": flags["shown_only"] or None})
    if flags["schema"] and not question and (not pages or is_address(pages[0]) or os.path.exists(pages[0])):
        question = ""  # the fields say what is asked
    else:
        question, pages = question_and_pages(question, pages)
    if flags["schema"] and (flags["chat"] or flags["record"] or flags["index"] or flags["events"]):
        raise BadInput("--schema: leave out --chat, --record, --index and --events", subject="schema")
    if not pages and not flags["index"] and not flags["search"] and not settings.search:
        raise BadInput("no page was given; name a file, a folder, - for standard input, an --index or a --search")
    for flag in ("document", "since", "max_age"):
        if flags[flag] and not flags["index"]:
            raise BadInput(f"--{flag.replace('_', '-')} chooses documents of an --index; name one", subject=flag)
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
            with limited(flags["max_seconds"]):
                documents = read_given(named, settings, flags["quiet"], keep=True, done=keep)
        if documents is not None and flags["follow"]:
            documents = with_links(documents, question, flags["follow"], settings)
        if flags["schema"]:
            fill_schema(
                flags, documents, question, FillChoices(settings=settings, options=options, budget=flags["budget"])
            )
            return
        choices = Choices(settings=settings, options=options, budget=flags["budget"])
        if flags["index"]:
            choices["index"] = opened(flags["index"], settings, options)
            choices["retrieval"] = retrieval_from(flags)
        asking = Asking(choices, documents, flags, recording)
        if flags["chat"]:
            asking.converse(question)
        else:
            asking.once(question)


def fill_schema(flags: dict[str, Any], documents: Documents | None, question: str, choices: FillChoices) -> None:
    """Write JSON by a schema; on standard error the words that each field is from.

    :raises BadInput: the file holds no schema.
    :raises NothingFound: not one field was found.
    """
    path = flags["schema"]
    try:
        schema = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: no JSON schema can be read from it ({error})", subject=path) from None
    if flags["search"]:
        choices["search"] = flags["search"]
    filled = fill(schema, documents, question, **choices)
    if flags["as_json"]:
        emit_json(asdict(filled))
    else:
        emit(json.dumps(filled.data, ensure_ascii=False, indent=2))
        for field in () if flags["quiet"] else filled.fields:
            said = field.citation
            words = f"{said.url or 'page'}  {said.place}  “{one_line(said.quote)[:300]}”" if said else field.reason
            say(f"{field.path}: {' '.join(words.split())}")
    for line in filled.failures.values():
        say(f"prunus: {one_line(line)}")
    if all(field.value in (None, []) for field in filled.fields):
        raise NothingFound("nothing on the pages is what the schema asks for", subject=path)
    if filled.failures:
        raise DoneInPart(f"{len(filled.failures)} of the pages could not be read; they are listed above")


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
        printer = AnswerPrinter(question, self._flags["as_json"], self._flags["events"], self._flags["quiet"])
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


class AnswerPrinter:
    """Prints a running answer: each event as JSON, or the text as the model writes it and then the sources.

    ``pages`` counts the pages that were read; ``failures`` lists the searches and pages that failed, with the reason.
    """

    def __init__(self, question: str, as_json: bool, events: bool, quiet: bool = False) -> None:
        self._question, self._json, self._events, self._quiet = question, as_json, events, quiet or events
        self.pages = 0
        self.failures: list[str] = []

    async def follow(self, events: AsyncIterator[Event]) -> Answer:
        """Print the events and return the answer that ends them.

        :raises PrunusError: the run failed; with ``--events`` the error is printed as the last event, too.
        """
        text_printed = False
        try:
            async with AsyncExitStack() as waiting, aclosing(cast(Any, events)) as stream:
                waiting.enter_context(working("looking for evidence", self._quiet))
                async for event in stream:
                    if isinstance(event, SearchEvent | TokenEvent | DoneEvent):
                        await waiting.aclose()  # before anything is printed
                    self._count(event)
                    if self._events:
                        emit_json(asdict(event))
                    elif isinstance(event, TokenEvent) and not self._json:
                        emit_piece(event.text)
                        text_printed = True
                    if isinstance(event, DoneEvent):
                        self._end(event.answer)
                        return event.answer
        except PrunusError as error:
            if self._events:
                code = "nothing_found" if isinstance(error, NothingFound) else ""
                emit_json(asdict(ErrorEvent(str(error), error.subject, code)))
            if text_printed:
                emit("")
            raise
        raise RuntimeError("the events ended without an answer")

    def _count(self, event: Event) -> None:
        if isinstance(event, PageEvent):
            self.pages += not event.failure
        failure = event.failure if isinstance(event, PageEvent | SearchEvent) else ""
        if failure:
            self.failures.append(failure)
        if isinstance(event, SearchEvent) and not self._events:
            for warning in event.warnings:
                say(f"prunus: {one_line(warning)}")

    def _end(self, answer: Answer) -> None:
        if self._json and not self._events:
            emit_json(answer_record(self._question, answer))
        elif not self._events:
            emit("\n\n" + sources(answer))


def sources(answer: Answer) -> str:
    """Return the sources of an answer as text: cited places, the check of each quote, unsupported sentences."""
    lines: list[str] = []
    text = " ".join(answer.text.split())
    last = 0
    for citation in sorted(answer.citations, key=lambda citation: citation.number):
        if citation.number != last:
            lines.append(f"[{citation.number}] {one_line(citation.title) or 'page'}")
            last = citation.number
            site = "" if citation.site in citation.title else citation.site
            read = f"read {citation.read_at[:10]}" if citation.read_at else ""
            about = " · ".join(text for text in (", ".join(citation.authors), site, citation.published, read) if text)
            lines += [f"    {one_line(about)}"] if about else []
        lines.append("  ".join(filter(None, [f"    {citation.url or 'page'}", citation.place, citation.xpath])))
        sure = "" if citation.confidence is None else f", confidence {citation.confidence:.2f}"
        lines.append(f"    quote: {_quote_check(citation, text)}{sure}")
    reasons = {claim.text: claim.reason for claim in answer.claims}
    if answer.unsupported and answer.engines.get("generator") == "llm":
        lines.append(f"Not supported by the pages ({len(answer.unsupported)}):")
        lines += [_with_reason(sentence, reasons) for sentence in answer.unsupported]
    doubtful = [text for text, reason in reasons.items() if reason and text not in answer.unsupported]
    if doubtful:
        lines.append(f"Supported in part ({len(doubtful)}):")
        lines += [_with_reason(sentence, reasons) for sentence in doubtful]
    return "\n".join(lines)


def _with_reason(sentence: str, reasons: Mapping[str, str]) -> str:
    reason = reasons.get(sentence, "")
    return f"  - {one_line(sentence)}" + (f" ({reason})" if reason else "")


def _quote_check(citation: Citation, text: str) -> str:
    """Say whether the quote was found; print its words where the answer's text does not contain them."""
    if not citation.found:
        return "NOT FOUND"
    words = one_line(citation.quote)
    if " ".join(citation.quote.split()) in text or citation.support >= 1.0:
        return "found"
    return f"found, support {citation.support:.2f}: {words[:300]}"


def questions(first: str) -> Iterator[str]:
    """Yield the first question, then one question for each line of standard input, until an empty line or its end."""
    yield first
    while sys.stdin is not None:
        if sys.stdin.isatty():
            say("Next question (an empty line ends):")
        line = sys.stdin.readline()
        if not line.strip():
            return
        yield line.strip()


@contextmanager
def traced(path: str | None) -> Iterator[Callable[[Trace], None] | None]:
    """Open a trace file; yield the function that writes a stage into it as one line of JSON, or None without a path.

    :raises BadInput: the file cannot be written.
    """
    if not path:
        yield None
        return
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed below, so that this `except` catches only the opening
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror})", subject=path) from error
    with file:

        def write(trace: Trace) -> None:
            file.write(json.dumps(as_record(trace, time.time()), ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()

        yield write
