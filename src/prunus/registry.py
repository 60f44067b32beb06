"""Engines by file name: the folder of a room is its list.

A file ``src/prunus/<room>/<name>.py`` with a class ``Engine`` is the engine ``name``; files that
begin with ``_`` are none. Strangers register under the entry-point group ``prunus.<room>`` and may
not shadow a built-in. A spec is ``name`` or ``name:model``.
"""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .errors import UnknownEngine

ROOMS: Final = {
    "embedder": "embed",
    "scorer": "score",
    "path_scorer": "score/paths",
    "tokenizer": "tokens",
    "extractor": "extract",
    "generator": "generate",
    "format": "formats",
    "reranker": "rank",
    "llm": "llm",
    "search": "search",
    "planner": "plan",
    "clusterer": "index/cluster",
    "summarizer": "index/summarize",
    "store": "index/store",
}
"""The room of each kind of engine, as a folder; the kind is the name of its setting."""


def engine_names(kind: str) -> list[str]:
    """Return the engines of a kind, built-in and foreign, sorted."""
    return sorted({*_built_in(kind), *_foreign(kind)})


def split_spec(spec: str) -> tuple[str, str]:
    """Split ``name:model`` into its parts; the model is '' when there is none. An address names ``http``."""
    if spec.strip().lower().startswith(("http://", "https://")):
        return "http", spec.strip()
    name, _, model = spec.partition(":")
    return name.strip(), model.strip()


def engine_class(kind: str, spec: str) -> Any:
    """Return the class of an engine.

    :raises UnknownEngine: no such engine; the message lists those that there are.
    """
    name, _ = split_spec(spec)
    if name in _built_in(kind):
        return import_module(f"{__package__}.{_package(kind)}.{name}").Engine
    foreign = _foreign(kind)
    if name in foreign:
        return foreign[name].load()
    raise UnknownEngine(f"no {kind} is called {name!r}; there are: {', '.join(engine_names(kind))}", subject=spec)


def make_engine(kind: str, spec: str, **others: Any) -> Any:
    """Make an engine, giving it the engines that its constructor asks for.

    :param others: engines and settings by parameter name; those that it does not ask for are left out.
    """
    built = engine_class(kind, spec)
    _, model = split_spec(spec)
    wanted = inspect.signature(built).parameters
    given = {name: value for name, value in others.items() if name in wanted}
    if "model" in wanted:
        given["model"] = model
    elif model:
        raise UnknownEngine(f"{kind} {split_spec(spec)[0]!r} takes no model, but {spec!r} names one", subject=spec)
    return built(**given)


def needs_of(kind: str, spec: str, required: bool = False) -> list[str]:
    """Return the kinds of engine that an engine's constructor asks for.

    :param required: only those that it cannot do without.
    """
    wanted = inspect.signature(engine_class(kind, spec)).parameters
    return [
        name
        for name in wanted
        if name in ROOMS and not (required and wanted[name].default is not inspect.Parameter.empty)
    ]


def shadowed(kind: str) -> list[tuple[str, str]]:
    """Return the foreign engines that have the name of a built-in one and are never used: (name, package)."""
    return sorted(
        (entry.name, entry.dist.name if entry.dist else entry.value)
        for entry in _entry_points(f"prunus.{_package(kind)}")
        if entry.name in _built_in(kind)
    )


def is_built_in(kind: str, name: str) -> bool:
    """Tell whether an engine comes with Prunus."""
    return name in _built_in(kind)


def _package(kind: str) -> str:
    """Return the room of a kind as a dotted name; strangers register under it."""
    return ROOMS[kind].replace("/", ".")


@cache
def _built_in(kind: str) -> list[str]:
    folder = Path(__file__).parent / ROOMS[kind]
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


@cache
def _foreign(kind: str) -> dict[str, Any]:
    built_in = set(_built_in(kind))
    found = {}
    for entry in _entry_points(f"prunus.{_package(kind)}"):
        if entry.name not in built_in:
            found[entry.name] = entry
    return found


def _entry_points(group: str) -> Any:
    from importlib.metadata import entry_points  # here: it takes its time, and nobody asks before an engine is made

    return entry_points(group=group)
