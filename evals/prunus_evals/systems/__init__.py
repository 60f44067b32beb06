"""The systems, one file each; the file's name is the system's name.

A file has ``make(counter, variant) -> System`` and, where it has several variants, ``VARIANTS``. A system's name is
``file`` or ``file:variant``. Where a file has ``accepts(variant) -> bool``, it takes further variants that are not
listed and that ``all`` does not include; it may raise :class:`.errors.UnknownName` to say what is wrong. Where it has
``missing(variant) -> str``, that says in one line what a variant lacks here; '' where it lacks nothing. Such a variant
cannot be made, and ``all`` leaves it out. ``NEEDS`` then says what its variants need, here or not.
"""

from __future__ import annotations

import importlib
import pkgutil

from prunus_evals.errors import DataMissing, UnknownName
from prunus_evals.records import System
from prunus_evals.tokens import Counter

DEFAULT = "prunus:trees:html"


def files() -> list[str]:
    """Return the names of all systems, without variants."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name[0] != "_")


def names() -> list[str]:
    """Return the names of all systems and variants."""
    found: list[str] = []
    for module in files():
        variants = getattr(importlib.import_module(f"{__name__}.{module}"), "VARIANTS", ())
        found.extend(f"{module}:{variant}" for variant in variants)
        if not variants:
            found.append(module)
    return found


def expand(wanted: str) -> list[str]:
    """Return the systems of a comma-separated list; a file's name means all its variants.

    ``all`` means every listed system that lacks nothing here.

    :raises UnknownName: there is no such system.
    """
    known = names()
    found: list[str] = []
    for part in filter(None, (part.strip() for part in wanted.split(","))):
        if part == "all":
            matches = [name for name in known if not missing(name)]
        else:
            matches = [name for name in known if name == part or name.startswith(f"{part}:")]
        if not matches and _on_request(part):
            matches = [part]
        if not matches:
            raise UnknownName.among("system", part, [*known, *files()])
        found.extend(name for name in matches if name not in found)
    return found


def make(name: str, counter: Counter) -> System:
    """Construct the system of this name.

    :raises UnknownName: there is no such system.
    :raises DataMissing: the system lacks a package or a model.
    """
    lacking = missing(name)
    if lacking:
        raise DataMissing(f"{name}: {lacking}")
    module, _, variant = name.partition(":")
    system: System = importlib.import_module(f"{__name__}.{module}").make(counter, variant)
    return system


def exists(name: str) -> bool:
    """Return whether there is a system of this name; it may lack something to be run."""
    return name in names() or _on_request(name)


def missing(name: str) -> str:
    """Return in one line what a system lacks here; '' where it can be run.

    :raises UnknownName: there is no such system.
    """
    if not exists(name):
        raise UnknownName.among("system", name, names())
    module, _, variant = name.partition(":")
    lacks = getattr(importlib.import_module(f"{__name__}.{module}"), "missing", None)
    return str(lacks(variant)) if lacks else ""


def holds(name: str) -> bool:
    """Return whether a system takes vectors, scores or trees that its run made before, so that its seconds lack them.

    The name alone decides, as a report may show systems that are no longer there.
    """
    file, _, variant = name.partition(":")
    head, *options = variant.split("@")
    if "costs=yes" in options:
        return False
    if file == "chunks":
        return not head.endswith(":bm25")
    named = "+" in head or any(option.startswith(("embedder=", "reranker=")) for option in options)
    return file in ("tree", "vectors") or (file == "prunus" and (named or head in ("sentences", "extract", "ask")))


def _on_request(name: str) -> bool:
    """Return whether a file accepts this variant without listing it."""
    module, _, variant = name.partition(":")
    if module.startswith("_") or module not in {info.name for info in pkgutil.iter_modules(__path__)}:
        return False
    accepts = getattr(importlib.import_module(f"{__name__}.{module}"), "accepts", None)
    return accepts is not None and bool(accepts(variant))
