"""What reading one document may use: cells, letters, seconds and more. A few hundred bytes can ask for gigabytes."""

from __future__ import annotations

import time
from typing import Final

from ....core.errors import BadPage

_LIMITS: Final = {
    "bytes": 128 << 20,  # unpacked bytes of an archive that are read
    "marks": 3_000_000,  # "<" and "=" of XML that is read as trees: tags, attributes
    "tags": 4_000_000,  # "<" of XML that is read as a stream
    "items": 1_000_000,  # blocks, runs of text, values
    "values": 8_000_000,  # VALUE_MARKS of JSON; a value takes 30 to 100 bytes for each of its marks
    "cells": 300_000,  # cells of tables, points of charts
    "copies": 20_000,  # cells that only repeat those of the row above
    "places": 1_000_000,  # empty cells of sheets, and places under merged cells
    "looks": 5_000_000,  # places of sheets that are only looked at: for a header, or under a hidden column
    "sheets": 5_000,
    "letters": 32 << 20,  # letters that are written again: of repeated cells, links, labels
}


VALUE_MARKS: Final = ",:[{"
"""Letters of JSON of which each value has one or more; counted before it is parsed, they bound its memory."""


class Allowance:
    """The limits of one document. Readers spend from it inside their loops, before they use the memory.

    :param name: name of the document in errors; '' for a page without name.
    :param seconds: wall time from now; default 60.
    :param limits: limits that differ from the defaults, by kind: ``cells=200_000``.
    """

    def __init__(self, name: str, seconds: float = 60.0, **limits: int) -> None:
        self.name = name or "page"
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._limits = {**_LIMITS, **limits}
        self.left = dict(self._limits)

    def is_late(self) -> bool:
        """Tell whether the time is up."""
        return time.monotonic() > self._deadline

    def take(self, kind: str, amount: int = 1) -> bool:
        """Charge an amount of a kind, and return True; charge nothing and return False where too little is left."""
        if amount > self.left[kind]:
            return False
        self.left[kind] -= amount
        return True

    def spend(self, kind: str, amount: int = 1) -> None:
        """Charge an amount of a kind.

        :raises BadPage: too little of it is left, or the time is up.
        """
        if not self.take(kind, amount):
            raise self.fault(f"more than {self._limits[kind]:,} {kind.replace('_', ' ')}; split the document")
        if self.is_late():
            raise self.fault(f"reading it takes over {self._seconds:g} s; split the document")

    def fault(self, reason: str) -> BadPage:
        """Return an error that names the document and the reason."""
        return BadPage(f"{self.name}: {reason}", subject=self.name)
