"""A base installation is small: under 250 MB with its dependencies, without torch and browsers."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement

LIMIT = 250_000_000


def needed_by(name: str) -> dict[str, Distribution]:
    """Return a distribution and its dependencies, direct and indirect, without extras, by name."""
    found: dict[str, Distribution] = {}
    todo = [Requirement(name)]
    while todo:
        wanted = todo.pop()
        key = re.sub(r"[-_.]+", "-", wanted.name).lower()
        try:
            installed = distribution(wanted.name)
        except PackageNotFoundError as error:
            raise AssertionError(f"{wanted.name} is needed and not installed") from error
        seen = key in found
        found[key] = installed
        for line in installed.requires or ():
            inner = Requirement(line)
            extras = wanted.extras or {""}
            applies = not inner.marker or any(
                inner.marker.evaluate({**default_environment(), "extra": extra}) for extra in extras
            )
            if applies and not (seen and not wanted.extras):
                todo.append(inner)
    return found


def size_of(package: Distribution) -> int:
    """Return the bytes of a distribution's files on disk, without byte code."""
    paths = [Path(str(package.locate_file(file))) for file in package.files or () if not str(file).endswith(".pyc")]
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_the_base_installation_is_under_250_megabytes() -> None:
    sizes = {name: size_of(package) for name, package in needed_by("prunus").items()}
    total = sum(sizes.values())
    shown = ", ".join(
        f"{name} {size / 1e6:.0f} MB" for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:8]
    )
    assert total > 30_000_000, "nothing was measured"
    assert total < LIMIT, shown


def test_the_base_installation_holds_nothing_heavy() -> None:
    heavy = "torch transformers playwright scipy scikit-learn pandas lxml beautifulsoup4".split()
    assert not set(needed_by("prunus")) & set(heavy)
