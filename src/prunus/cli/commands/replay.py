"""``prunus replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...api.answers import Choices
from ...api.runs import Replay
from ...core.errors import BadInput
from ...record.file import unpack
from ..choices import common
from ..output import DoneInPart
from .ask import Asking


@click.command("replay")
@click.argument("run", type=click.Path(), metavar="RUN")
@click.option("--change", "changes", multiple=True, metavar="NAME=VALUE", help="Another setting, engine or option.")
@click.option("--events", is_flag=True, help="Write each event as one JSON line, as it happens.")
@common
def command(run: str, changes: tuple[str, ...], **given: Any) -> None:
    """Answer a recorded question again, from what was recorded.

    RUN was written by: prunus ask ... --record RUN. Without a change nothing goes out, and the answer is the same,
    byte for byte; if it is not, that is said, and the exit code is 5. With --change, which may be repeated, what is
    asked otherwise than it was recorded is asked live, and the rest is taken from the record.

    \b
    Examples:
      prunus ask "How long is the Pell 2 guaranteed?" examples/site/faq.html --record build/run.prunus
      prunus replay build/run.prunus
      prunus replay build/run.prunus --change scorer=bm25 --json
    """
    replay = Replay(unpack(Path(run)), _changes(changes))
    choices = Choices(settings=replay.settings, options=replay.options, budget=replay.budget)
    Asking(choices, replay.documents(), given, replay).once(replay.question)
    if replay.differs:
        raise DoneInPart(f"{run}: {replay.differs}")


def _changes(given: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE.

    :raises BadInput: it is not of that form.
    """
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--change {one!r}: write it as NAME=VALUE, as llm=http://localhost:8000/v1#model")
        found[name.strip().replace("-", "_")] = value.strip()
    return found
