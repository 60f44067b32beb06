"""``prunus completion``: print the completion script of a shell."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from ..choices import common
from ..output import emit, emit_json


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
@click.pass_context
def command(ctx: click.Context, /, shell: str, **flags: Any) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      prunus completion bash > prunus-completion.sh
      prunus completion fish

    Add to ~/.bashrc: eval "$(prunus completion bash)"
    """
    completion = get_completion_class(shell)
    assert completion is not None  # click has these three shells
    script = completion(ctx.find_root().command, {}, "prunus", "_PRUNUS_COMPLETE")
    text = script.source_template % script.source_vars()
    if flags["as_json"]:
        emit_json({"shell": shell, "script": text})
    else:
        emit(text)
