"""``prunus serve``: the HTTP server, and the keys of its clients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from ...core.errors import BadInput, MissingExtra
from ...core.installation import pip_install
from ...core.settings import load_settings
from ..choices import common
from ..output import emit, emit_json, say


@click.group("serve", invoke_without_command=True)
@click.option("--host", default=None, metavar="HOST", help="Address to listen on; by default 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), default=None, metavar="PORT", help="Port; by default 8080.")
@click.option("--index", multiple=True, metavar="NAME=FOLDER", help="Let clients ask this index; repeatable.")
@click.option("--writable", multiple=True, metavar="NAME", help="Let clients change this index, too; repeatable.")
@click.option(
    "--index-home", default=None, metavar="PLACE", help="Let clients make indexes in this folder, or postgres:ADDRESS."
)
@click.option("--jobs", type=click.IntRange(min=0), default=None, metavar="N", help="Jobs of indexes at work at once.")
@click.option(
    "--shapes",
    multiple=True,
    metavar="NAME",
    help="Answer other programs' requests, too: all, or a name; repeatable.",
)
@click.option("--fetch/--no-fetch", default=None, help="Let clients name addresses of pages; on by default.")
@click.option("--workers", type=click.IntRange(1, 256), default=None, metavar="N", help="Processes; by default 1.")
@click.option("--at-once", type=click.IntRange(min=1), default=None, metavar="N", help="Requests at work at once.")
@click.option("--seconds", type=click.FloatRange(min=1), default=None, metavar="N", help="Seconds a request may take.")
@click.option("--state", default=None, metavar="PLACE", help="File of keys and counts, or postgres:ADDRESS.")
@click.option("--log", default=None, metavar="FOLDER", help="Keep questions, evidence and answers as JSON lines.")
@common
@click.pass_context
def command(context: click.Context, /, **flags: Any) -> None:
    """Serve Prunus over HTTP, and as a model to clients of OpenAI's API.

    By default only this machine can reach the server, and no key is needed. On any other address every request
    needs a key, and the server does not start before there is one. Engines, search providers and limits are those
    of the settings; clients cannot change them. The table "serve" of prunus.toml takes the same options.

    \b
    Examples:
      prunus serve
      prunus serve --index handbook=indexes/handbook --port 9000
      prunus serve --index-home indexes
      prunus serve --shapes openwebui --shapes rerank
      prunus serve keys add anna && prunus serve --host 0.0.0.0
    """
    context.obj = {"state": flags["state"]}
    if context.invoked_subcommand is not None:
        return
    settings = load_settings()
    try:
        from ...serve.options import index_named, serve_options
        from ...serve.start import serve
    except ImportError as error:
        raise _missing(error) from error
    indexes = dict(index_named(text) for text in flags["index"]) or None
    names = ("host", "port", "index_home", "jobs", "fetch", "workers", "at_once", "seconds", "state", "log")
    given = {name: flags[name] for name in names} | {name: flags[name] or None for name in ("writable", "shapes")}
    options = serve_options(settings.serve, indexes=indexes, **given)
    serve(settings, options, quiet=flags["quiet"], say=say)


@command.group("keys")
def keys() -> None:
    """Make, list and revoke the keys of clients.

    \b
    Examples:
      prunus serve keys add anna --scope read --scope ask --a-minute 60
      prunus serve keys list
      prunus serve keys revoke anna
    """


@keys.command("add")
@click.argument("name", metavar="NAME")
@click.option("--scope", multiple=True, metavar="SCOPE", help="read, search, ask or index; repeatable; by default all.")
@click.option("--a-minute", type=click.IntRange(min=0), default=0, metavar="N", help="Requests a minute at most.")
@click.option("--a-day", type=click.IntRange(min=0), default=0, metavar="N", help="Requests a day at most.")
@common
@click.pass_context
def add(context: click.Context, /, name: str, **flags: Any) -> None:
    """Make a key and print it; it is stored as a digest and cannot be shown again.

    \b
    Examples:
      prunus serve keys add anna
      prunus serve keys add robot --scope read --a-day 1000
    """
    from ...serve.keys import new_key

    state = _state(context)
    key = new_key(state, name, flags["scope"], flags["a_minute"], flags["a_day"])
    if flags["as_json"]:
        emit_json({"name": name, "key": key})
    else:
        emit(key)
        if not flags["quiet"]:
            say(f"this is the key of {name}; it cannot be shown again")


@keys.command("list")
@common
@click.pass_context
def list_keys(context: click.Context, /, **flags: Any) -> None:
    """List the keys: names, scopes, quotas; never the keys themselves.

    \b
    Examples:
      prunus serve keys list
      prunus serve keys list --json
    """
    known = _state(context).keys()
    for key in known:
        record = {name: value for name, value in asdict(key).items() if name != "digest"}
        if flags["as_json"]:
            emit_json(record)
        else:
            limits = f"{key.a_minute or 'any'} a minute, {key.a_day or 'any'} a day"
            fate = f"revoked {key.revoked}" if key.revoked else "works"
            emit(f"{key.name:20} {', '.join(key.scopes):20} {limits:28} made {key.made}  {fate}")


@keys.command("revoke")
@click.argument("name", metavar="NAME")
@common
@click.pass_context
def revoke(context: click.Context, /, name: str, **flags: Any) -> None:
    """Stop a key at once.

    \b
    Examples:
      prunus serve keys revoke anna
    """
    from ...serve.keys import now

    if not _state(context).revoke(name, now()):
        raise BadInput(f"no working key is called {name}; prunus serve keys list shows all", subject=name)
    if flags["as_json"]:
        emit_json({"revoked": name})
    elif not flags["quiet"]:
        say(f"{name} is revoked")


def _state(context: click.Context) -> Any:
    from ...serve.state import ServerState, state_place

    settings = load_settings()
    return ServerState(state_place(settings, (context.obj or {}).get("state")))


def _missing(error: ImportError) -> MissingExtra:
    return MissingExtra(
        f"serve needs {error.name or error}, which is not installed; run: {pip_install('server')}",
        subject="serve",
    )
