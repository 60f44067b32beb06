"""Arguments and options that commands share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

import click

from ..answer.baselines import MODES
from ..core.options import Limits, Options, WebOptions

F = TypeVar("F", bound=Callable[..., Any])

FORMATS: Final = click.Choice(["html", "markdown", "text"])
_MODE: Final = "How evidence is made; all but default are systems to compare with, and need a model."
_PICTURES: Final = "Pictures of the evidence from the web sent to a model that sees them; none by default."
PAGE: Final = click.Path()
"""A file, a folder or ``-``; what is wrong with it is said when it is read."""


def as_unicode(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Make Unicode of an argument whose bytes are none."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def common(function: F) -> F:
    """Add what every command has: ``--json`` and ``--quiet``."""
    function = click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")(function)
    return click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")(function)


def engines(function: F) -> F:
    """Add the engines of one call; each is ``name`` or ``name:model``."""
    function = click.option("--tokenizer", default="", metavar="SPEC", help="What counts tokens.")(function)
    function = click.option("--embedder", default="", metavar="SPEC", help="What embeds texts.")(function)
    return click.option("--scorer", default="", metavar="SPEC", help="What scores blocks.")(function)


def stages(function: F) -> F:
    """Add pruning in two stages."""
    function = click.option(
        "--coarse-words",
        type=click.IntRange(min=1),
        metavar="N",
        help="Words of a block in the first of two stages; --max-words is then of the second.",
    )(function)
    function = click.option(
        "--coarse-budget",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tokens that the first of two stages leaves; by default 8192, or twice the budget.",
    )(function)
    function = click.option(
        "--two-stage/--one-stage",
        "stages",
        default=None,
        callback=_number_of_stages,
        help="Score in two stages, or in one; by default two where a fine scorer is named and the pages are large.",
    )(function)
    return click.option(
        "--fine", default="", metavar="SPEC", help="What scores the blocks that the first of two stages left."
    )(function)


def _number_of_stages(ctx: click.Context, parameter: click.Parameter, value: bool | None) -> int:
    return 0 if value is None else 1 + value


def granularity(function: F) -> F:
    """Add how finely pages are cut."""
    function = click.option(
        "--units",
        type=click.Choice(["blocks", "leaves"]),
        default="blocks",
        show_default=True,
        help="What is kept or dropped: blocks, or the leaves of the page.",
    )(function)
    return click.option(
        "--max-words",
        type=click.IntRange(min=1),
        metavar="N",
        help="Words of a block at most; by default as page, budget and question want it.",
    )(function)


def shape(function: F) -> F:
    """Add how HTML is written."""
    function = click.option("--pretty", is_flag=True, help="Full HTML, indented.")(function)
    return click.option("--full", is_flag=True, help="Full HTML: every end tag, quote and wrapper.")(function)


def filters(function: F) -> F:
    """Add how the web is searched."""
    ranges = "day, week, month, year, or two days as 2024-01-01..2024-06-30."
    for option in (
        click.option("--no-safe-search", is_flag=True, help="Switch the providers' safe search off."),
        click.option("--topic", default="", metavar="NAME", help="news and others, where a provider has them."),
        click.option("--exclude-domain", multiple=True, metavar="DOMAIN", help="None of this site; may be repeated."),
        click.option("--include-domain", multiple=True, metavar="DOMAIN", help="Of this site only; may be repeated."),
        click.option("--time-range", default="", metavar="RANGE", help=ranges),
        click.option("--country", default="", metavar="CODE", help="As DE."),
        click.option("--language", default="", metavar="CODE", help="As de."),
        click.option("--count", type=click.IntRange(1, 100), metavar="N", help="Hits of each query; 10 by default."),
    ):
        function = option(function)
    return function


def answering(function: F) -> F:
    """Add who answers, how, and what it may cost."""
    ranking = click.Choice(["hybrid", "paper", "reranker"])
    for option in (
        click.option("--max-seconds", type=click.FloatRange(min=0), metavar="S", help="Time of the whole answer."),
        click.option("--max-usd", type=click.FloatRange(min=0), metavar="USD", help="Money, by the prices configured."),
        click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Model tokens of the whole answer."),
        click.option("--unread", is_flag=True, help="Where no page bears on it, let the model answer without one."),
        click.option("--pictures", type=click.IntRange(0, 20), default=0, metavar="N", help=_PICTURES),
        click.option("--always", is_flag=True, help="Search whatever the plan says."),
        click.option("--ranking", type=ranking, default="hybrid", show_default=True, help="How pages are ranked."),
        click.option(
            "--read", type=click.IntRange(1, 100), metavar="N", help="Pages read to be ranked; 20 by default."
        ),
        click.option("--best", type=click.IntRange(1, 50), metavar="N", help="Best pages that are used; 5 by default."),
        click.option("--mode", type=click.Choice(list(MODES)), default="default", show_default=True, help=_MODE),
        click.option("--planner", default="", metavar="SPEC", help="What plans the search."),
        click.option("--extractor", default="", metavar="SPEC", help="What chooses sentences."),
        click.option("--generator", default="", metavar="SPEC", help="What composes the answer."),
        click.option("--llm", default="", metavar="SPEC", help="The language model, as http://host/v1#model."),
        click.option("--search", default="", metavar="SPECS", help="Providers of web search, separated by commas."),
    ):
        function = option(function)
    return function


def limits_from(given: Mapping[str, Any]) -> Limits:
    """Return what a command line lets the whole answer cost."""
    return Limits(given["max_tokens"] or 0, given["max_usd"] or 0.0, given["max_seconds"] or 0.0)


def web_from(given: Mapping[str, Any]) -> WebOptions:
    """Return how a command line searches the web; what it leaves out keeps its default."""
    same = {field.name for field in fields(WebOptions)}
    values = {name: value for name, value in given.items() if name in same and value is not None}
    values["pages"] = given.get("best") or WebOptions().pages
    values["include_domains"] = given.get("include_domain", ())
    values["exclude_domains"] = given.get("exclude_domain", ())
    values["safe_search"] = not given.get("no_safe_search", False)
    return WebOptions(**values)


def options_from(given: Mapping[str, Any]) -> Options:
    """Return the options that a command line gives; what it leaves out is left to the settings."""
    known = {field.name for field in fields(Options)}
    return Options(**{name: value for name, value in given.items() if name in known and value is not None})
