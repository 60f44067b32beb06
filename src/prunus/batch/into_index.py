"""Pages into an index: workers read, clean, cut and embed, and this process alone writes to the store.

What the index has already, with the same digest, is not done again: that is all a later run needs to go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..api.index import Index
from ..core.errors import BadInput, BadPage, Failures, OutsideFailed
from ..core.settings import Settings
from ..pages.read import snapshot_of
from ..pages.sources import as_page
from .output import Counts
from .rows import Part, Row, digest_of
from .work import document_id, page_at

_NOTED: Final = 1000
"""Failed pages that are named at most; all are counted."""


@dataclass(slots=True)
class IndexOutput:
    """Writes documents that workers cut to an index.

    ``failures`` holds the reasons of failed pages by name, the first thousand; ``chunks`` counts what was stored.
    """

    index: Index
    failures: Failures = field(default_factory=Failures)
    chunks: int = 0

    def write(self, part: Part, records: Sequence[Mapping[str, Any]]) -> Counts:
        """Store the documents of a part, all of them or none; on return they are durable.

        :raises OutsideFailed: the store cannot be reached or written.
        """
        documents = [record["document"] for record in records if record["status"] == "done"]
        self.chunks += self.index.add_cut(documents)
        for record in records:
            if record["status"] == "failed" and len(self.failures) < _NOTED:
                name = f"{part.name}, record {record['record']}"
                self.failures.note(BadPage(f"{part.name}: {record['error']}", subject=name))
        return Counts.of(part, records)

    def finish(self) -> None:
        """Bring the tree up to date with the documents, once for all of them."""
        self.index.update()


@dataclass(slots=True)
class Skim:
    """Says which pages the index has already.

    Of pages with the same id the first counts, whatever the order in which the workers end. The ids of a run are kept
    in memory, as digests of 16 bytes.

    :param known: the digest of each document in the index, by id.
    """

    known: Mapping[str, str]
    settings: Settings
    seen: set[bytes] = field(default_factory=set)

    def __call__(self, row: Row) -> str:
        """Return ``unchanged`` or ``repeated`` for a row that needs no work, else ''."""
        if row.error:
            return ""
        id = document_id(row)
        key = digest_of(id.encode("utf-8", "surrogatepass"))
        if key in self.seen:
            return "repeated"
        self.seen.add(key)
        digest = self.known.get(id)
        return "unchanged" if digest and digest == self._digest(row) else ""

    def _digest(self, row: Row) -> str:
        if not row.path:
            return snapshot_of(row.content or "")
        try:
            return snapshot_of(as_page(page_at(row.path, self.settings), self.settings.max_file_mb).content)
        except (BadInput, OutsideFailed):  # the worker says why
            return ""
