"""Finds engines by name in the folder of their kind and among the entry points of other packages.

A file ``<folder>/<name>.py`` with a class ``Engine`` is the engine ``name``. So is a package ``<folder>/<name>/`` with
that class in its ``engine.py``. Names that begin with ``_`` are helpers. Other packages register engines under the
entry-point group of the kind, as ``prunus.scorers``; they may not take the name of a built-in engine. A spec is
``name``, ``name:model``, or ``path/to/file.py:Class`` (followed by ``:model``, where the class takes a model).
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from .checked_engines import adopted
from .errors import UnknownEngine
from .text.near import did_you_mean


class Kind(NamedTuple):
    """Where the engines of a kind are found.

    :param folder: folder of the built-in engines, below the package.
    :param group: entry-point group of the engines of other packages.
    """

    folder: str
    group: str


KINDS: Final = {
    "format": Kind("pages/formats", "prunus.formats"),
    "search": Kind("web/search", "prunus.search_providers"),
    "llm": Kind("models/llm", "prunus.llms"),
    "embedder": Kind("models/embed", "prunus.embedders"),
    "reranker": Kind("models/rerank", "prunus.rerankers"),
    "tokenizer": Kind("models/tokens", "prunus.tokenizers"),
    "scorer": Kind("evidence/score", "prunus.scorers"),
    "path_scorer": Kind("evidence/score/paths", "prunus.path_scorers"),
    "planner": Kind("answer/plan", "prunus.planners"),
    "extractor": Kind("answer/extract", "prunus.extractors"),
    "generator": Kind("answer/generate", "prunus.generators"),
    "clusterer": Kind("index/cluster", "prunus.clusterers"),
    "summarizer": Kind("index/summarize", "prunus.summarizers"),
    "store": Kind("index/store", "prunus.stores"),
}
"""Every kind of engine, by the name of its setting; ``format`` has no setting."""

_ROOT: Final = Path(__file__).parents[1]
_IN_A_FILE: Final = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*)(?::(?P<model>.*))?", re.DOTALL)


def engine_names(kind: str) -> list[str]:
    """Return the names of a kind's engines, built-in and foreign, sorted."""
    return sorted({*_built_in(kind), *_foreign(kind)})


def split_spec(spec: str) -> tuple[str, str]:
    """Split a spec into the engine's name and its model; the model is '' where the spec has none.

    A spec that is an address means the engine ``http``. The name of an engine in a file is ``path/to/file.py:Class``.
    """
    spec = spec.strip()
    if spec.lower().startswith(("http://", "https://")):
        return "http", spec
    in_a_file = _IN_A_FILE.fullmatch(spec)
    if in_a_file:
        return f"{in_a_file['file']}:{in_a_file['name']}", (in_a_file["model"] or "").strip()
    name, _, model = spec.partition(":")
    return name.strip(), model.strip()


def names_a_file(spec: str) -> bool:
    """Tell whether a spec names a class in a Python file. Making such an engine runs the file."""
    return _IN_A_FILE.fullmatch(spec.strip()) is not None


def engine_class(kind: str, spec: str) -> Any:
    """Return the class of an engine.

    :raises UnknownEngine: no such engine, or it cannot be loaded; the message lists the engines of the kind.
    """
    name, _ = split_spec(spec)
    if names_a_file(spec):
        return _class_in_a_file(kind, name)
    if name in _built_in(kind):
        return import_module(_built_in(kind)[name]).Engine
    foreign = _foreign(kind)
    if name in foreign:
        try:
            return foreign[name].load()
        except Exception as error:  # another package's code may fail in any way
            raise UnknownEngine(
                f"{kind} {name!r} of the package {_package_of(foreign[name])} cannot be loaded "
                f"({type(error).__name__}: {error}); repair or remove that package",
                subject=spec,
            ) from error
    there = engine_names(kind)
    hint = did_you_mean(name, there)
    if kind == "llm" and not hint:  # mostly the bare name of a model, or a program that serves one
        _, model = split_spec(spec)
        hint = f"; a server's model is http://HOST/v1#{model}" if model else f"; did you mean 'openai:{name}'?"
    raise UnknownEngine(f"no {kind} is called {name!r}; there are: {', '.join(there)}{hint}", subject=spec)


def make_engine(kind: str, spec: str, **others: Any) -> Any:
    """Make an engine; pass the engines and settings that its constructor has parameters for.

    What an engine of another package returns is checked; a store is used as it is.

    :param others: engines and settings by parameter name; what the constructor has no parameter for is left out.
    :raises UnknownEngine: no such engine, or the spec names a model and the engine takes none.
    """
    built = engine_class(kind, spec)
    name, model = split_spec(spec)
    parameters = inspect.signature(built).parameters
    arguments = {key: value for key, value in others.items() if key in parameters}
    if "model" in parameters:
        arguments["model"] = model
    elif model:
        raise UnknownEngine(f"{kind} {name!r} takes no model, but {spec!r} names one", subject=spec)
    engine = built(**arguments)
    return engine if is_built_in(kind, name) or kind == "store" else adopted(kind, engine, name)


def needs_of(kind: str, spec: str, required: bool = False) -> list[str]:
    """Return the kinds of engine that an engine's constructor takes.

    :param required: leave out kinds whose parameter has a default.
    """
    parameters = inspect.signature(engine_class(kind, spec)).parameters
    return [
        name
        for name in parameters
        if name in KINDS and not (required and parameters[name].default is not inspect.Parameter.empty)
    ]


@cache
def class_constants(kind: str, spec: str, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return constants of an engine's class. A built-in engine's module is parsed, not imported: a PDF reader is large.

    :raises UnknownEngine: no such engine, or its class lacks a constant.
    """
    if spec in _built_in(kind):
        module = _ROOT.joinpath(*_built_in(kind)[spec].split(".")[1:]).with_suffix(".py")
        values = _constants_of(module.read_text("utf-8"))
        return tuple(values[name] for name in names)
    built = engine_class(kind, spec)
    try:
        return tuple(getattr(built, name) for name in names)
    except AttributeError as error:
        raise UnknownEngine(f"{kind} {spec}: the class has no {error.name}", subject=spec) from error


def _constants_of(source: str) -> dict[str, Any]:
    """Return the literal assignments at the head of a module's class ``Engine``."""
    head = source[source.index("\nclass Engine") :]
    [body] = ast.parse(head[: head.index("\n    def ")]).body
    assert isinstance(body, ast.ClassDef)  # by the search above
    return {
        target.id: ast.literal_eval(node.value)
        for node in body.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def shadowed(kind: str) -> list[tuple[str, str]]:
    """Return the foreign engines that are never used because a built-in engine has their name: (name, package)."""
    entries = _entry_points(KINDS[kind].group)
    return sorted((entry.name, _package_of(entry)) for entry in entries if entry.name in _built_in(kind))


def is_built_in(kind: str, name: str) -> bool:
    """Tell whether an engine comes with Prunus."""
    return name in _built_in(kind)


@cache
def _built_in(kind: str) -> dict[str, str]:
    """Return the module of each built-in engine by the engine's name."""
    folder = KINDS[kind].folder
    package = f"prunus.{folder.replace('/', '.')}"
    files = {path.stem: f"{package}.{path.stem}" for path in (_ROOT / folder).glob("*.py")}
    packages = {
        path.parent.name: f"{package}.{path.parent.name}.engine" for path in (_ROOT / folder).glob("*/engine.py")
    }
    return {name: module for name, module in sorted((files | packages).items()) if not name.startswith("_")}


@cache
def _foreign(kind: str) -> dict[str, Any]:
    return {entry.name: entry for entry in _entry_points(KINDS[kind].group) if entry.name not in _built_in(kind)}


def _entry_points(group: str) -> Any:
    from importlib.metadata import (
        entry_points,  # imported here: it is slow to load, and only needed when an engine is made
    )

    return entry_points(group=group)


def _package_of(entry: Any) -> str:
    return str(entry.dist.name if entry.dist else entry.value)


@cache
def _class_in_a_file(kind: str, name: str) -> Any:
    """Load a Python file that the operator named and return a class of it."""
    from importlib.util import module_from_spec, spec_from_file_location

    file, _, attribute = name.rpartition(":")
    path = Path(file).expanduser()
    if not path.is_file():
        raise UnknownEngine(f"{kind} {name}: there is no file {file}", subject=name)
    module_spec = spec_from_file_location(f"prunus_engine_{path.stem}", path)
    assert module_spec is not None and module_spec.loader is not None  # always so for a name that ends in .py
    module = module_from_spec(module_spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:  # the operator's file may fail in any way
        reason = f"{type(error).__name__}: {error}"
        raise UnknownEngine(f"{kind} {name}: {file} cannot be loaded ({reason})", subject=name) from error
    if not hasattr(module, attribute):
        raise UnknownEngine(f"{kind} {name}: {file} holds no class {attribute}", subject=name)
    return getattr(module, attribute)
