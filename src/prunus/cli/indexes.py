"""How indexes are asked on a command line: options that commands share, and what is opened by them."""

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

F = TypeVar("F", bound=Callable[..., Any])
WAYS = click.Choice(["hybrid", "collapsed", "traversal", "flat"])


def retrieval_options(function: F) -> F:
    """Add how an index is asked."""
    for name, kind, text in (
        ("--start-layer", click.IntRange(min=0), "For traversal: begin with this layer instead of the roots."),
        ("--depth", click.IntRange(min=0), "For traversal: layers that are gone through."),
        ("--top", click.IntRange(min=1), "For traversal: nodes chosen on each layer."),
        ("--layers", str, "For collapsed: only these layers, as 0,1; 0 are the leaves."),
    ):
        function = click.option(name, type=kind, default=None, help=text)(function)
    return short_retrieval_options(function)


def short_retrieval_options(function: F) -> F:
    """Add how an index is asked, without what only studies of the method need."""
    function = click.option(
        "--document", "document", multiple=True, metavar="ID", help="Ask only this document of the index; repeatable."
    )(function)
    return click.option("--retrieval", type=WAYS, default=None, help="How the index is asked; hybrid by default.")(
        function
    )


def retrieval_from(given: Mapping[str, Any]) -> Retrieval:
    """Return how an index is asked.

    :raises BadInput: the layers are no numbers.
    """
    layers = given.get("layers") or ""
    try:
        numbers = tuple(int(one) for one in layers.split(",") if one.strip())
    except ValueError as error:
        raise BadInput(f"--layers: {layers!r} is no list of layers; write it as 0,1", subject="--layers") from error
    start = given.get("start_layer")
    return Retrieval(
        way=given.get("retrieval") or "",
        documents=tuple(given.get("document") or ()),
        layers=numbers,
        start_layer=-1 if start is None else start,
        top=given.get("top") or 5,
        depth=given.get("depth") or 0,
    )


def indexes_from(given: Mapping[str, Any], settings: Settings) -> Choices:
    """Return the indexes of a command line, opened, and how they are asked; nothing where there is none."""
    if not given.get("index"):
        return Choices()
    options = Options(embedder=given.get("embedder") or "", tokenizer=given.get("tokenizer") or "")
    return Choices(index=opened(given["index"], settings, options), retrieval=retrieval_from(given))
