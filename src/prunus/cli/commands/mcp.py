"""``prunus mcp``: tools of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ...core.errors import BadInput, MissingExtra
from ...core.installation import pip_install
from ...core.settings import load_settings
from ..choices import common
from ..output import say


@click.command("mcp")
@click.option("--index", multiple=True, metavar="NAME=FOLDER", help="Let the client ask this index; repeatable.")
@click.option("--fetch/--no-fetch", default=None, help="Let the client name addresses of pages; on by default.")
@click.option("--allow", multiple=True, metavar="FOLDER", help="Let the client read the files in it; repeatable.")
@click.option("--seconds", type=click.FloatRange(min=1), default=None, metavar="N", help="Seconds a call may take.")
@common
def command(**flags: Any) -> None:
    """Give an assistant Prunus as tools: read, ask, search and index_ask.

    Speaks the Model Context Protocol on standard input and output, so that clients start it themselves. It ends when
    its input ends. Engines, search providers and limits are those of the settings; the client cannot change them, and
    reads no file but those that --allow names. The same tools over HTTP are at /mcp of prunus serve.

    \b
    Examples:
      prunus mcp
      prunus mcp --allow ~/papers --no-fetch
      prunus mcp --index handbook=indexes/handbook
      claude mcp add prunus -- prunus mcp
    """
    settings = load_settings()
    folders = [Path(folder).expanduser() for folder in flags["allow"]]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"--allow {folder}: there is no such folder", subject="allow")
    try:
        from ...serve.mcp_transports import serve_stdio
        from ...serve.options import index_named, serve_options
    except ImportError as error:
        raise MissingExtra(
            f"mcp needs {error.name or error}, which is not installed; run: {pip_install('server')}", subject="mcp"
        ) from error
    indexes = dict(index_named(text) for text in flags["index"]) or None
    options = serve_options(settings.serve, indexes=indexes, fetch=flags["fetch"], seconds=flags["seconds"])
    if sys.stdin.isatty() and not flags["quiet"]:
        say("prunus mcp waits for a client on standard input; Ctrl-C ends it")
    serve_stdio(settings, options, folders)
