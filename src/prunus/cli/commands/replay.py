"""``prunus replay``: answer a recorded question again from its record."""

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
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a setting or an option; repeatable.",
)
@click.option("--events", is_flag=True, help="Write each event as one JSON line, as it happens.")
@common
def command(run: str, changes: tuple[str, ...], **flags: Any) -> None:
    """Answer a recorded question again from its record.

    RUN was written by: prunus ask ... --record RUN. Without --change nothing uses the network, and the answer is the
    same, byte for byte; a difference is reported, and the exit code is 5. With --change, requests that differ from
    the recorded ones go to the real services, and all others are answered from the record.

    \b
    Examples:
      prunus ask "How long does slack water last at Dunnock Quay?" examples/site/faq.html --record build/run.prunus
      prunus replay build/run.prunus
      prunus replay build/run.prunus --change scorer=bm25 --json
    """
    replay = Replay(unpack(Path(run)), _changes(changes))
    choices = Choices(settings=replay.settings, options=replay.options, budget=replay.budget)
    Asking(choices, replay.documents(), flags, replay).once(replay.question)
    if replay.differs:
        raise DoneInPart(f"{run}: {replay.differs}")


def _changes(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the changes by name, read from ``NAME=VALUE``.

    :raises BadInput: a change has another form.
    """
    changes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--change {text!r}: write it as NAME=VALUE, as llm=http://localhost:8000/v1#model")
        changes[name.strip().replace("-", "_")] = value.strip()
    return changes
