"""The prompts of readers and judges: files ``<name>.txt`` with messages under lines ``[system]`` and ``[user]``.

A placeholder is written ``{{name}}``. The evidence of a reader stands in its prompt as it is: a reader is measured, and
nothing that it says is done.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from prunus.core.types import Message
from prunus_evals.errors import EvalError, UnknownName

_ROLE = re.compile(r"^\[(system|user)\]\s*$", re.MULTILINE)
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")


def names() -> list[str]:
    """Return the names of all prompts."""
    return sorted(file.name[:-4] for file in files(__package__).iterdir() if file.name.endswith(".txt"))


@cache
def template(name: str) -> str:
    """Return the text of a prompt.

    :raises UnknownName: there is no such prompt.
    """
    if name not in names():
        raise UnknownName.among("prompt", name, names())
    return files(__package__).joinpath(f"{name}.txt").read_text("utf-8")


def render(name: str, fields: Mapping[str, str]) -> list[Message]:
    """Return the messages of a prompt; what stands in a field is not filled in again.

    :raises UnknownName: there is no such prompt.
    :raises EvalError: the prompt has a place for which there is no field.
    """
    start, *parts = _ROLE.split(template(name))
    if start.strip() or not parts:
        raise EvalError(f"prompt {name} must begin with a line [system] or [user]")
    missing = {*_PLACE.findall(template(name))} - {*fields}
    if missing:
        raise EvalError(f"prompt {name} has a place {sorted(missing)[0]!r}, which nothing fills in")
    return [
        Message("system" if role == "system" else "user", _PLACE.sub(lambda place: fields[place[1]], text.strip("\n")))
        for role, text in zip(parts[::2], parts[1::2], strict=True)
    ]


def digest(messages: list[Message]) -> str:
    """Return the sha256 of messages."""
    state = hashlib.sha256()
    for message in messages:
        state.update(f"{message.role}\0{message.content}\0".encode("utf-8", "replace"))
    return state.hexdigest()
