"""The suites of ``prunus eval run --suite``: studies that are run one after the other."""

from __future__ import annotations

from prunus_evals import studies
from prunus_evals.errors import UnknownName
from prunus_evals.studies import Study


def suites() -> dict[str, tuple[Study, ...]]:
    """Return the studies of every suite, by name.

    ``offline`` holds those that need no reader and have stand-ins in the data folder, or do all themselves; ``all``
    holds every study.
    """
    known = tuple(studies.known().values())
    offline = tuple(study for study in known if not study.reader and (study.stand_ins or study.run))
    return {"offline": offline, "all": known}


def named(name: str) -> tuple[Study, ...]:
    """Return the studies of a suite.

    :raises UnknownName: there is no such suite, or it has no study.
    """
    found = suites()
    if name not in found:
        raise UnknownName(f"unknown suite {name}; the suites are: {', '.join(found)}")
    if not found[name]:
        raise UnknownName(f"suite {name} has no study yet")
    return found[name]
