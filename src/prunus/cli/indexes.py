"""The options of retrieval from indexes, which several commands share, and the opened indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ..api.answers import Choices
from ..api.index import opened
from ..core.errors import BadInput
from ..core.options import Options
from ..core.settings import Settings
from ..index.terms import Retrieval
from .choices import Choice

F = TypeVar("F", bound=Callable[..., Any])
WAYS = Choice(["hybrid", "collapsed", "traversal", "flat"])


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


def short_retrieval_options(function: F) -> F:
    """Add the everyday options of retrieval from an index; the others serve studies of the method."""
    function = click.option(
        "--document", "document", multiple=True, metavar="ID", help="Use only this document of the index; repeatable."
    )(function)
    return click.option("--retrieval", type=WAYS, default=None, help="How to search the index; hybrid by default.")(
        function
    )


def retrieval_from(flags: Mapping[str, Any]) -> Retrieval:
    """Return the retrieval options of a command line.

    :raises BadInput: ``--layers`` is not a list of numbers.
    """
    layers = flags.get("layers") or ""
    try:
        numbers = tuple(int(number) for number in layers.split(",") if number.strip())
    except ValueError as error:
        raise BadInput(f"--layers: {layers!r} is not a list of layers; write it as 0,1", subject="--layers") from error
    start = flags.get("start_layer")
    return Retrieval(
        way=flags.get("retrieval") or "",
        documents=tuple(flags.get("document") or ()),
        layers=numbers,
        start_layer=-1 if start is None else start,
        top=flags.get("top") or 5,
        depth=flags.get("depth") or 0,
    )


def indexes_from(flags: Mapping[str, Any], settings: Settings) -> Choices:
    """Return the opened indexes of a command line with their retrieval options; empty without ``--index``."""
    if not flags.get("index"):
        return Choices()
    options = Options(embedder=flags.get("embedder") or "", tokenizer=flags.get("tokenizer") or "")
    return Choices(index=opened(flags["index"], settings, options), retrieval=retrieval_from(flags))
