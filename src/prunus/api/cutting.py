"""Documents of an index are read, cleaned, cut and embedded by workers, in parts; the results come in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ..core.options import Options
from ..core.settings import Settings
from ..engines import Maker
from ..index.leaves import BuildSettings, CutDocument, Cutter, parts_of
from ..index.spread import Spread
from ..index.terms import Report
from ..pages.sources import Source, is_address
from .documents import each_document

_PART: Final = 16
"""Documents that a worker gets at a time."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How the documents of an index are cut, for a worker that does not open the index.

    :param options: name the embedder and the tokenizer.
    :param built: the settings of the index.
    :param dimension: of its vectors.
    """

    settings: Settings
    options: Options
    built: BuildSettings
    dimension: int

    def by(
        self,
        spread: Spread,
        sources: Mapping[str, Source],
        known: Mapping[str, str],
        report: Report,
        done: Callable[[str, str], None],
    ) -> Iterator[list[CutDocument]]:
        """Yield the documents that are new or have changed, in order; see :func:`.each_document`."""
        parts = (
            ({id: sources[id] for id in ids}, {id: known[id] for id in ids if id in known})
            for ids in _batched([*sources])
        )
        for documents, told in spread(partial(_Worker, self), parts):
            report.unchanged += told.unchanged
            for id in told.unchanged:
                done(id, "unchanged")
            report.failures.update(told.failures)
            report.failures.first = report.failures.first or told.failures.first
            for id in told.failures:
                done(id, "failed")
            yield documents


class _Worker:
    """Cuts the documents of one part after the other."""

    def __init__(self, how: Cutting) -> None:
        make = Maker(how.settings, how.options).make
        self._settings = how.settings
        self._cutter = Cutter(make("embedder"), make("tokenizer"), how.built, how.dimension)

    def __call__(self, part: tuple[dict[str, Source], dict[str, str]]) -> tuple[list[CutDocument], Report]:
        """Return the documents of a part, and what is to be told of the others."""
        report = Report()
        documents = each_document(*part, self._settings, report, lambda id, fate: None)
        return [cut for some in parts_of(documents) for cut in self._cutter.cut_each(some)], report


def can_be_shared(sources: Mapping[str, Source], options: Options) -> bool:
    """Tell whether workers may read these documents.

    Addresses are fetched by one process, so that each host gets its pauses; engines that are objects stay in theirs.
    """
    addresses = any(isinstance(source, str) and is_address(source) for source in sources.values())
    named: list[Any] = [options.embedder, options.tokenizer]
    return not addresses and all(isinstance(engine, str) for engine in named)


def _batched(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _PART):
        yield ids[start : start + _PART]
