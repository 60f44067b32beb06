"""``prunus trust``: let the settings of a folder run code, and use keys that are the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...core.errors import BadInput
from ...core.settings import FILE, state_folder
from ...core.trust import distrust, trust
from ..choices import common
from ..output import emit, emit_json


@click.command("trust")
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="[FOLDER]")
@click.option("--revoke", is_flag=True, help="Trust it no more.")
@common
def command(folder: Path, revoke: bool, **flags: Any) -> None:
    """Trust the prunus.toml of a folder, as it is now.

    Until then the settings of a folder name no engine in a file of code, no program, and no address that would get
    a key which the file does not hold itself, as one from PRUNUS_LLM_KEY. A change of the file ends the trust.

    \b
    Examples:
      prunus trust
      prunus trust --revoke
    """
    path = folder / FILE
    if revoke:
        distrust(path, state_folder())
    elif not path.is_file():
        raise BadInput(f"there is no {path}", subject=str(path))
    else:
        trust(path, state_folder())
    if flags["as_json"]:
        emit_json({"file": str(path.resolve()), "trusted": not revoke})
    else:
        emit(f"{path.resolve()} is {'no longer trusted' if revoke else 'trusted until it changes'}")
