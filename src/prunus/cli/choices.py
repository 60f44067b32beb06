"""The arguments and options that several commands share, and the `Options`, `Limits` and `WebOptions` made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar, get_args

import click

from ..core.errors import BadInput
from ..core.options import Limits, Options, WebOptions
from ..core.settings import Settings
from ..core.text.near import did_you_mean
from ..core.types import OutputFormat

F = TypeVar("F", bound=Callable[..., Any])


class Sections(click.Command):
    """A command whose help lists its options under headings.

    :param sections: heading → names of options, without dashes; all others come last.
    """

    def __init__(self, *args: Any, sections: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = {heading: names.split() for heading, names in sections.items()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each under its heading."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        rows = {str(option.name): option.get_help_record(ctx) for option in options}
        flags = {name: row for name, row in rows.items() if row is not None}
        headed = {name for names in self._sections.values() for name in names}
        sections = {**self._sections, "Other options": [name for name in flags if name not in headed]}
        for heading, names in sections.items():
            with formatter.section(heading):
                formatter.write_dl([flags[name] for name in names])


class Choice(click.Choice):  # type: ignore[type-arg]  # older versions of click have no type parameter
    """A choice between names; the error for another name says which one was meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that was given.

        :raises click.BadParameter: it is none of the names.
        """
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter as error:
            self.fail(error.message.rstrip(".") + (did_you_mean(str(value), self.choices) or "."), param, ctx)


FORMATS: Final = Choice(get_args(OutputFormat))
PAGE: Final = click.Path()
"""A file, a folder, an address or ``-``; it is checked when it is read, not by click."""


def as_unicode(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Replace the bytes of an argument that are not valid Unicode."""
    return value and as_text(value)


def as_text(value: str) -> str:
    """Return an argument with the bytes replaced that are not valid Unicode."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def common(function: F) -> F:
    """Add the options of every command: ``--json`` and ``--quiet``."""
    function = click.option("--quiet", is_flag=True, help="Print nothing on stderr but errors.")(function)
    return click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")(function)


def question(help: str, required: bool = False) -> Callable[[F], F]:
    """Return the decorator that adds ``-q``, the option for the question in every command."""
    presence: dict[str, Any] = {"required": True} if required else {"default": ""}
    return click.option("-q", "--question", metavar="TEXT", callback=as_unicode, help=help, **presence)


def budget(of: str, else_: str = "") -> Callable[[F], F]:
    """Return the decorator that adds ``--budget``; the help shows the default of the settings.

    :param of: what the tokens are counted of.
    :param else_: what the default is besides.
    """
    shown = f"by default {Settings().budget}{else_} (setting budget)"
    return click.option("--budget", type=int, metavar="N", help=f"Tokens of {of} at most; {shown}.")


def origin(function: F) -> F:
    """Add the options that say what standard input or a saved page was: ``--url`` and ``--type``."""
    function = click.option(
        "--type",
        "kind",
        default="",
        metavar="TYPE",
        help="What the page is, as csv or text/csv, for standard input and unknown suffixes.",
    )(function)
    return click.option(
        "--url",
        default="",
        metavar="URL",
        help="Address that the page was saved from: its relative links lead from there.",
    )(function)


def site_options(function: F) -> F:
    """Add the options that say which pages of a site are meant."""
    for option in (
        click.option(
            "--latest",
            is_flag=True,
            help="Of a documentation with versions in its paths, as /3.11/ or /stable/, only the latest.",
        ),
        click.option(
            "--alike",
            type=click.IntRange(1),
            metavar="N",
            help="Addresses at most that differ only in numbers or behind the ? and that only links name; 200.",
        ),
        click.option(
            "--pages", "most_pages", type=click.IntRange(1), metavar="N", help="Pages at most; as max_files, 10000."
        ),
        click.option("--depth", type=click.IntRange(0), metavar="N", help="Links at most between URL and a page."),
        click.option("--exclude", multiple=True, metavar="PATTERN", help="No pages that match; repeatable."),
        click.option(
            "--include",
            multiple=True,
            metavar="PATTERN",
            help="Only pages that match, as /guide/ or *.html$, as in robots.txt; repeatable.",
        ),
        click.option(
            "--scope",
            type=Choice(["prefix", "host", "domain"]),
            help="What the site is: the folder of URL (prefix, the default), its host, or all hosts of its domain.",
        ),
    ):
        function = option(function)
    return function


def site_rules(flags: Mapping[str, Any], settings: Settings) -> Any:
    """Return the rules of a site of a command line."""
    from ..web.site.scope import SiteRules  # here: most commands read no site

    names = ("scope", "include", "exclude", "depth", "alike", "latest", "question")
    given = {name: flags[name] for name in names if flags.get(name)} | {
        "pages": flags["most_pages"] or settings.max_files
    }
    if flags["depth"] is not None:
        given["depth"] = flags["depth"]
    return SiteRules(**given)


def shown_only(function: F) -> F:
    """Add ``--shown-only``, which sets the setting of that name."""
    text = "Leave out the speaker notes, comments, hidden sheets and hidden slides of documents."
    return click.option("--shown-only", is_flag=True, help=text)(function)


def engines(function: F) -> F:
    """Add the options that choose engines; each is ``name`` or ``name:model``."""
    function = click.option("--tokenizer", default="", metavar="SPEC", help="Engine that counts tokens.")(function)
    function = click.option("--embedder", default="", metavar="SPEC", help="Engine that embeds texts.")(function)
    return click.option("--scorer", default="", metavar="SPEC", help="Engine that scores blocks, as bm25.")(function)


def stages(function: F) -> F:
    """Add the options of pruning in two stages."""
    function = click.option(
        "--coarse-words",
        type=click.IntRange(min=1),
        metavar="N",
        help="Words of a block at most in the first of two stages; --max-words then holds for the second.",
    )(function)
    function = click.option(
        "--coarse-budget",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tokens that the first of two stages keeps; by default 8192, or twice the budget.",
    )(function)
    function = click.option(
        "--two-stage/--one-stage",
        "stages",
        default=None,
        callback=_number_of_stages,
        help="Score in two stages or in one; by default two where --second-scorer is set and the pages are large.",
    )(function)
    return click.option(
        "--second-scorer",
        default="",
        metavar="SPEC",
        help="Scorer of the second stage, for the blocks that the first keeps.",
    )(function)


def _number_of_stages(ctx: click.Context, parameter: click.Parameter, value: bool | None) -> int:
    return 0 if value is None else 1 + value


def granularity(function: F) -> F:
    """Add the options that say how finely pages are cut into blocks."""
    function = click.option(
        "--units",
        type=Choice(["blocks", "leaves"]),
        default="blocks",
        show_default=True,
        help="Keep or drop blocks, or leaves of the page's tree.",
    )(function)
    return click.option(
        "--max-words",
        type=click.IntRange(min=1),
        metavar="N",
        help="Words of a block at most; by default chosen from the pages, the budget and the question.",
    )(function)


def shape(function: F) -> F:
    """Add the options that say how HTML is written."""
    function = click.option("--pretty", is_flag=True, help="Full HTML, indented.")(function)
    return click.option("--full", is_flag=True, help="Full HTML: every end tag, quote and wrapper.")(function)


def filters(function: F) -> F:
    """Add the options that filter a web search."""
    ranges = "day, week, month, year, or two dates: 2024-01-01..2024-06-30."
    for option in (
        click.option("--exclude-domain", multiple=True, metavar="DOMAIN", help="No hits of this site; repeatable."),
        click.option("--include-domain", multiple=True, metavar="DOMAIN", help="Only hits of this site; repeatable."),
        click.option("--time-range", default="", metavar="RANGE", help=ranges),
        click.option("--country", default="", metavar="CODE", help="Country code, as DE."),
        click.option("--language", default="", metavar="CODE", help="Language code, as de."),
    ):
        function = option(function)
    return function


def limits_from(flags: Mapping[str, Any]) -> Limits:
    """Return the limits of the whole answer; 0 where the command line sets none."""
    return Limits(flags["max_tokens"] or 0, flags["max_usd"] or 0.0, flags["max_seconds"] or 0.0)


def web_from(flags: Mapping[str, Any]) -> WebOptions:
    """Return the web options of a command line; an option that is left out keeps its default."""
    known = {field.name for field in fields(WebOptions)}
    values = {name: value for name, value in flags.items() if name in known and value is not None}
    values["pages"] = flags.get("best") or WebOptions().pages
    values["include_domains"] = flags.get("include_domain", ())
    values["exclude_domains"] = flags.get("exclude_domain", ())
    values["safe_search"] = not flags.get("no_safe_search", False)
    return WebOptions(**values)


def options_from(flags: Mapping[str, Any]) -> Options:
    """Return the engine and run options of a command line; an option that is left out follows the settings."""
    known = {field.name for field in fields(Options)}
    given = {name: value for name, value in flags.items() if name in known and value is not None}
    if flags.get("quotes"):
        given["extractor"] = f"sentences:{flags['quotes']}"
    return Options(**given)


_WAYS: Final = Choice(["hybrid", "collapsed", "traversal", "flat"])


def short_retrieval_options(function: F) -> F:
    """Add the everyday options of retrieval from an index; the others serve studies of the method."""
    function = click.option(
        "--document",
        multiple=True,
        metavar="ID",
        help="Use only this document of the index, or all like it: /docs/2.0/*; repeatable.",
    )(function)
    function = click.option(
        "--since",
        default="",
        metavar="TIME",
        help="Use only documents of the index published since 2026-01-31, or in the last 24h, 7d, 2w.",
    )(function)
    function = click.option(
        "--max-age", default="", metavar="TIME", help="Use only documents of the index fetched since then, as --since."
    )(function)
    return click.option("--retrieval", type=_WAYS, default=None, help="How to search the index; hybrid by default.")(
        function
    )


def retrieval_options(function: F) -> F:
    """Add all options of retrieval from an index."""
    for name, kind, text in (
        ("--embedder", str, "Engine that embeds the question, if the index does not name it."),
        ("--start-layer", click.IntRange(min=0), "For traversal: start at this layer instead of the roots."),
        ("--depth", click.IntRange(min=0), "For traversal: number of layers to descend."),
        ("--top", click.IntRange(min=1), "For traversal: nodes to choose on each layer."),
        ("--layers", str, "For collapsed: only these layers, as 0,1; layer 0 is the leaves."),
    ):
        function = click.option(name, type=kind, default=None, help=text)(function)
    return short_retrieval_options(function)


def retrieval_from(flags: Mapping[str, Any]) -> Any:
    """Return the retrieval options of a command line.

    :raises BadInput: ``--layers`` is not a list of numbers.
    """
    from ..index.terms import Retrieval  # here: most commands search no index

    layers = flags.get("layers") or ""
    try:
        numbers = tuple(int(number) for number in layers.split(",") if number.strip())
    except ValueError as error:
        raise BadInput(f"--layers: {layers!r} is not a list of layers; write it as 0,1", subject="--layers") from error
    start = flags.get("start_layer")
    return Retrieval(
        way=flags.get("retrieval") or "",
        documents=tuple(flags.get("document") or ()),
        since=flags.get("since") or "",
        max_age=flags.get("max_age") or "",
        layers=numbers,
        start_layer=-1 if start is None else start,
        top=flags.get("top") or 5,
        depth=flags.get("depth") or 0,
    )
