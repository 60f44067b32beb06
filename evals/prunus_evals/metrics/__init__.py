"""The metrics by name: what each scores, and which questions it applies to.

A metric is a :class:`Metric`. Modules of this folder define them in a tuple ``METRICS``. A metric that does not apply
to a question returns None; a metric that applies and cannot be computed raises :class:`.errors.MetricError`, which
ends the run, so that no table lacks a number silently.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from prunus.core.errors import MissingExtra
from prunus.core.installation import pip_install_folder
from prunus_evals.errors import UnknownName
from prunus_evals.records import Output, Question

Of = Literal["evidence", "answer", "tags", "quotes", "ranking"]
INSTALL = pip_install_folder("evals")


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a question's output; tables show its mean.

    A metric over all answers together, as the BLEU of a corpus, has ``counts`` and ``combine``: tables show ``combine``
    of the sums of the counts (:func:`.stats.combined`), not the mean of ``score``.

    :param of: what it scores. A metric of answers needs a reader.
    :param score: returns the number, higher is better; None where it does not apply to the question.
    :param title: one line for tables and lists.
    :param source: the paper or the script that defines it.
    :param packages: the modules of the extra ``evals`` that it needs.
    :param counts: returns what is added up over questions; None where the metric does not apply to the question.
    :param combine: returns the number for sums of counts.
    """

    name: str
    of: Of
    title: str
    score: Callable[[Question, Output], float | None]
    source: str = ""
    packages: tuple[str, ...] = ()
    counts: Callable[[Question, Output], Sequence[float] | None] | None = None
    combine: Callable[[Sequence[float]], float] | None = None

    def missing(self) -> str:
        """Return which package is missing and how to install it, in one line; '' where the metric can be used."""
        gone = [package for package in self.packages if importlib.util.find_spec(package) is None]
        return f"{self.name} needs the package {gone[0]}; run: {INSTALL}" if gone else ""


@cache
def known() -> dict[str, Metric]:
    """Return all metrics by name."""
    found: dict[str, Metric] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name[0] != "_"):
        for metric in getattr(importlib.import_module(f"{__name__}.{module}"), "METRICS", ()):
            if metric.name in found:
                raise ValueError(f"two metrics are called {metric.name}")
            found[metric.name] = metric
    return found


def named(names: Sequence[str]) -> list[Metric]:
    """Return metrics by their names.

    :raises UnknownName: there is no such metric.
    :raises MissingExtra: a package that one of them needs is not installed.
    """
    for name in names:
        if name not in known():
            raise UnknownName.among("metric", name, sorted(known()))
    found = [known()[name] for name in names]
    for metric in found:
        if missing := metric.missing():
            raise MissingExtra(missing, subject=metric.name)
    return found
