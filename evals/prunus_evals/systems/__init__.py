"""One file for every system; the file's name is the system's name.

A file holds ``make(counter, variant) -> System`` and, where it has several variants, the
tuple ``VARIANTS``. A name is ``file`` or ``file:variant``. With ``accepts(variant) -> bool`` a file takes
further variants when they are asked for by name; they are in no list, and ``all`` leaves them out.
"""

from __future__ import annotations

import importlib
import pkgutil

from prunus_evals.errors import UnknownName
from prunus_evals.records import System
from prunus_evals.tokens import Counter

DEFAULT = "prunus:hybrid:html"


def names() -> list[str]:
    """Return the names of all systems, every variant by itself."""
    found: list[str] = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        if module.startswith("_"):
            continue
        variants = getattr(importlib.import_module(f"{__name__}.{module}"), "VARIANTS", ())
        found.extend(f"{module}:{variant}" for variant in variants)
        if not variants:
            found.append(module)
    return found


def expand(wanted: str) -> list[str]:
    """Turn a comma-separated list into names; a file's name means all its variants."""
    known = names()
    found: list[str] = []
    for part in filter(None, (part.strip() for part in wanted.split(","))):
        if part == "all":
            matches = known
        else:
            matches = [name for name in known if name == part or name.startswith(f"{part}:")]
        if not matches and _on_request(part):
            matches = [part]
        if not matches:
            raise UnknownName(f"no system is called {part}; there are {', '.join(known)}")
        found.extend(name for name in matches if name not in found)
    return found


def make(name: str, counter: Counter) -> System:
    """Make the system that has a name."""
    if name not in names() and not _on_request(name):
        raise UnknownName(f"no system is called {name}; there are {', '.join(names())}")
    module, _, variant = name.partition(":")
    system: System = importlib.import_module(f"{__name__}.{module}").make(counter, variant)
    return system


def _on_request(name: str) -> bool:
    """Tell whether a file takes this variant though it does not list it."""
    module, _, variant = name.partition(":")
    if module.startswith("_") or module not in {info.name for info in pkgutil.iter_modules(__path__)}:
        return False
    accepts = getattr(importlib.import_module(f"{__name__}.{module}"), "accepts", None)
    return accepts is not None and bool(accepts(variant))
