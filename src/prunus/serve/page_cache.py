"""Pages kept in memory for some minutes, so that another budget or question needs no new fetch, parse or embedding.

They are of this process alone and end with it: a client whose pages are gone sends them again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ..core.types import OutputFormat
from ..evidence.documents import Documents
from .errors import RequestRefused

SECONDS: Final = 600.0
"""Time after their last use for which pages are kept."""
_OF_ONE: Final = 4
"""Requests of one key whose pages are kept; the oldest makes room."""
_WORDS: Final = 500_000
"""Words of all pages that are kept; they take about 200 MB."""


@dataclass(slots=True)
class CachedPages:
    """The pages of one request, cleaned.

    :param caller: the name of the key that sent them; no other key can use them.
    :param before: tokens of the cleaned pages by format, as far as they were counted.
    """

    caller: str
    documents: Documents
    before: dict[OutputFormat, int] = field(default_factory=dict)
    used: float = 0.0


class KeptPages:
    """All pages that are kept; threads may share it.

    :param clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._kept: dict[str, CachedPages] = {}  # the longest unused first

    def keep(self, kept: CachedPages) -> str:
        """Keep pages and return the id by which they are found; '' where they are too large to be kept."""
        if kept.documents.words > _WORDS:
            return ""
        id = secrets.token_urlsafe(16)
        with self._lock:
            self._forget_old()
            mine = [known for known, other in self._kept.items() if other.caller == kept.caller]
            for known in mine[: max(0, len(mine) - _OF_ONE + 1)]:
                del self._kept[known]
            room = _WORDS - kept.documents.words
            while self._kept and sum(other.documents.words for other in self._kept.values()) > room:
                del self._kept[next(iter(self._kept))]
            kept.used = self._clock()
            self._kept[id] = kept
        return id

    def __contains__(self, id: str) -> bool:
        """Tell whether pages are kept here."""
        with self._lock:
            return id in self._kept

    def find(self, id: str, caller: str) -> CachedPages:
        """Return kept pages, and keep them on.

        :raises RequestRefused: 404; they are gone, or are another key's.
        """
        with self._lock:
            self._forget_old()
            kept = self._kept.get(id)
            if kept is None or kept.caller != caller:
                raise RequestRefused(404, "these pages are no longer kept; send them again", param="kept")
            kept.used = self._clock()
            self._kept[id] = self._kept.pop(id)
            return kept

    def forget_old(self) -> None:
        """Forget what was not used for a while."""
        with self._lock:
            self._forget_old()

    def _forget_old(self) -> None:
        least = self._clock() - SECONDS
        for id in [id for id, kept in self._kept.items() if kept.used < least]:
            del self._kept[id]
