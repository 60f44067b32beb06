"""Where the numbers of a run come from: its plans, the versions and the machine of every start, and how each ended."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import prunus
from prunus.core.errors import one_line
from prunus.core.settings import ADDRESSED, SECRETS, load_settings
from prunus_evals.errors import EvalError
from prunus_evals.records import LeftOut
from prunus_evals.split import Wanted
from prunus_evals.store import Store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NO_MATTER = SECRETS | ADDRESSED | {"home", "serve"}
"""Settings that no outcome depends on: secrets, and places."""

UNFINISHED = "killed"
"""How a start ended that did not say so itself."""


@contextmanager
def noted(store: Store, plan: Mapping[str, Any], halves: Mapping[str, Wanted], add: bool = False) -> Iterator[None]:
    """Note a start of a run in its folder: what is run, with which versions, when, and how it ends.

    :param plan: the fields of the plan, by name.
    :param halves: the half of each task.
    :param add: whether a plan that is not the folder's may be added.
    :raises EvalError: the folder holds another plan.
    """
    around, wanted = surroundings(), _plain(plan)
    with store.alone():
        plans = store.fact("plans", [])
        if wanted not in plans:
            if plans and not add:
                raise EvalError(
                    "the folder holds a run of another plan: take another folder, or add the plan with --add "
                    f"({'; '.join(differences(plans[-1], wanted))})"
                )
            plans.append(wanted)
        starts, known = store.fact("starts", []), store.fact("halves", {})
        place = len(starts)  # starts are only ever added
        starts.append({"at": _now(), "until": "", "end": UNFINISHED, "plan": plans.index(wanted), **around})
        both = {task: half if known.get(task, half) == half else "all" for task, half in halves.items()}
        store.note({"plans": plans, "starts": starts, "halves": {**known, **both}})
    end = UNFINISHED
    try:
        yield
        end = "finished"
    except KeyboardInterrupt:
        end = "interrupted"
        raise
    except Exception as error:
        end = f"failed: {one_line(str(error), longest=600) or type(error).__name__}"
        raise
    finally:
        with store.alone():
            starts = store.fact("starts", [])
            starts[place] |= {"until": _now(), "end": end}
            store.note({"starts": starts})


def reasons(left_out: Sequence[LeftOut]) -> dict[str, int]:
    """Return how many questions were left out, by reason."""
    return dict(Counter(left.why for left in left_out))


def note_left_out(store: Store, task: str, left_out: Sequence[LeftOut]) -> None:
    """Note how many questions of a task were left out, and which, with the reason; see :func:`.tasks.groups`."""
    with store.alone():
        store.note({"left_out": {**store.fact("left_out", {}), task: reasons(left_out)}})
        store.note({f"left out of {task}": [[left.page, left.question, left.why] for left in left_out]})


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the fields in which two plans, or two sets of versions, differ, one line each."""
    names = dict.fromkeys([*old, *new])
    return [
        f"{name}: {_shown(old.get(name))} there, {_shown(new.get(name))} here"
        for name in names
        if old.get(name) != new.get(name)
    ]


def surroundings() -> dict[str, Any]:
    """Return the versions, the digest of the code, and the machine."""
    return {"versions": versions(), "code": code(), "machine": machine(), "state": state()}


def state() -> str:
    """Return the first 12 digits of the sha256 over what can change an outcome: code, packages and settings.

    An outcome of another state is not used again. Keys and places of files are left out.
    """
    settings = load_settings()
    chosen = {one.name: getattr(settings, one.name) for one in fields(settings) if one.name not in NO_MATTER}
    facts = json.dumps([code(), versions(), chosen], sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of Prunus and of every package that Prunus names and that is installed."""
    found = {"python": platform.python_version(), "prunus": prunus.__version__}
    for name in sorted(_packages(), key=str.lower):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
    return found


def _packages() -> set[str]:
    try:
        lines = requires("prunus") or []
    except PackageNotFoundError:  # run from its sources
        return set()
    return {match[0] for line in lines if (match := _NAME.match(line))}


@cache
def code() -> str:
    """Return the first 12 digits of the sha256 over the files of Prunus and of the evaluations.

    Prompts and weights are files of these packages, too. Two starts with one version number can have different code.
    """
    digest = hashlib.sha256()
    for folder in (Path(prunus.__file__).parent, Path(__file__).parent):
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def machine() -> dict[str, Any]:
    """Return the system, the architecture and the number of processors."""
    return {"system": platform.system(), "architecture": platform.machine(), "processors": os.cpu_count()}


def _plain(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan as JSON gives it back."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plan.items()}


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
