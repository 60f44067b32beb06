"""Arguments and options that commands share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

import click

from ...types import Options

F = TypeVar("F", bound=Callable[..., Any])

FORMATS: Final = click.Choice(["html", "markdown", "text"])
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


def options_from(given: Mapping[str, Any]) -> Options:
    """Return the options that a command line gives; what it leaves out is left to the settings."""
    known = {field.name for field in fields(Options)}
    return Options(**{name: value for name, value in given.items() if name in known and value is not None})
