"""The folder that a batch writes: a file for each part, and beside them which parts are done.

``OUT/part-00000-00000.jsonl`` holds the records of the first part of the first source. ``OUT/_batch`` holds the plan,
and a small file for each part that is done, written after the part: readers of data sets skip names with ``_``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from ..core.errors import BadInput, Failures, OutsideFailed
from .folder import OWN, Folder, folder_at
from .jobs import as_bytes
from .remote import is_remote
from .rows import BatchSource, Mark, Part
from .work import Task

Form: TypeAlias = "Literal['jsonl', 'parquet', 'lance']"
FORMS: Final = ("jsonl", "parquet", "lance")
_VERSION: Final = 1


@dataclass(slots=True)
class Counts:
    """What came of some pages.

    :param failed: pages by kind of failure, see :data:`.work.FAILURES`.
    :param skipped: records of archives that are no pages, by reason.
    """

    parts: int = 0
    done: int = 0
    nothing: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def pages(self) -> int:
        """All pages."""
        return self.done + self.nothing + self.failed.total()

    def add(self, other: Counts) -> None:
        """Add the counts of other parts."""
        self.parts += other.parts
        self.done += other.done
        self.nothing += other.nothing
        self.failed.update(other.failed)
        self.skipped.update(other.skipped)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "parts": self.parts, "pages": self.pages, "done": self.done, "nothing_found": self.nothing,
            "failed": self.failed.total(), "failed_by_kind": dict(sorted(self.failed.items())),
            "skipped_records": dict(sorted(self.skipped.items())),
        }  # fmt: skip

    def as_note(self) -> dict[str, Any]:
        """Return the counts of one part as :meth:`from_note` reads them."""
        return {"done": self.done, "nothing": self.nothing, "failed": self.failed, "skipped": self.skipped}

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> Counts:
        """Return the counts of one part.

        :raises KeyError: one is missing.
        """
        return cls(1, note["done"], note["nothing"], Counter(note["failed"]), Counter(note["skipped"]))

    @classmethod
    def of(cls, part: Part, records: Sequence[Mapping[str, Any]]) -> Counts:
        """Return the counts of a part."""
        kinds = Counter(record["kind"] for record in records if record["status"] == "failed")
        fates = Counter(record["status"] for record in records)
        return cls(1, fates["done"], fates["nothing found"], kinds, Counter(part.skipped))


class Writes(Protocol):
    """Where the records of a batch go."""

    def write(self, part: Part, records: Sequence[Mapping[str, Any]]) -> Counts:
        """Write the records of a part, whole or not at all."""
        ...


@dataclass(slots=True)
class Output:
    """The output of one batch, open for writing; close it at the end.

    :param folder: a path or an address; it is made where it does not exist.
    :param form: ``jsonl``, ``parquet`` or ``lance``.
    """

    folder: Path | str
    task: Task
    form: Form
    store: Folder = field(init=False)

    def __post_init__(self) -> None:
        """Make the handle of the folder; nothing is written.

        :raises BadInput: the folder is an address that holds a key.
        """
        self.store = folder_at(self.folder)

    def open(
        self, identity: Mapping[str, Any], sources: Sequence[BatchSource], failures: Failures
    ) -> dict[int, BatchSource]:
        """Lock the folder, and return the sources to do by their numbers.

        :param identity: what the records depend on; another run with another identity is refused.
        :param failures: collects the sources that have changed since an earlier run.
        :raises BadInput: the folder cannot be written, another run is writing it, or another batch wrote it.
        :raises OutsideFailed: the store of an address cannot be reached, or refuses.
        """
        with self._errors():
            if self.store.is_foreign():
                raise BadInput(
                    f"{self.folder}: this is not the output of a batch of pages; give another -o",
                    subject=str(self.folder),
                )
            self.store.begin()
            return self._planned(dict(identity) | {"form": self.form}, sources, failures)

    def close(self) -> None:
        """Let other runs write."""
        with self._errors():
            self.store.close()

    def finished(self, retry_failed: bool = False) -> tuple[dict[int, dict[int, Mark | None]], Counts]:
        """Return the parts that are done with their ends, by source, and what came of them.

        :param retry_failed: parts with failed pages are not done.
        :raises BadInput: a file of the folder is damaged.
        """
        ends: dict[int, dict[int, Mark | None]] = {}
        counts = Counts()
        for name, note in self.notes():
            try:
                part, end = Counts.from_note(note), note["end"]
                if retry_failed and part.failed:
                    continue
                key = note["source"], note["part"]
                ends.setdefault(key[0], {})[key[1]] = None if end is None else Mark(*end)
                counts.add(part)
            except (KeyError, TypeError) as error:
                raise self._damaged(name) from error
        return ends, counts

    def notes(self) -> Iterator[tuple[str, Any]]:
        """Yield the note of each part that is done, with the name of its file.

        :raises BadInput: one is damaged.
        """
        with self._errors():
            for name in self.store.names():
                if name[:1].isdigit() and name.endswith(".json"):
                    try:
                        yield name, json.loads(self.store.read(name) or b"")
                    except (OSError, ValueError) as error:
                        raise self._damaged(name) from error

    def _damaged(self, name: str) -> BadInput:
        path = f"{self.folder}/{OWN}/{name}"
        return BadInput(f"{path}: damaged; remove it, and its part runs again", subject=path)

    def write(self, part: Part, records: Sequence[Mapping[str, Any]]) -> Counts:
        """Write the records of a part, whole or not at all, then note that it is done.

        :raises OutsideFailed: the folder cannot be written, as on a full disk.
        """
        counts = Counts.of(part, records)
        name = f"{part.source:05}-{part.number:05}"
        located = [{"source": part.name, **record} for record in records]
        more: dict[str, Any] = {}
        try:
            if self.form == "lance":
                more = {"fragments": self._fragments(located)}
            elif located:
                with self.store.whole(f"part-{name}.{self.form}") as path:
                    self._fill(path, located)
            end = None if part.end is None else [part.end.record, part.end.position]
            note = {"source": part.source, "part": part.number, "end": end} | counts.as_note() | more
            with self.store.whole(f"{OWN}/{name}.json") as path:
                path.write_text(json.dumps(note), "utf-8")
        except OSError as error:
            raise OutsideFailed(
                f"{self.folder}: cannot be written ({error.strerror or error})", subject=str(self.folder)
            ) from error
        return counts

    def finish(self) -> None:
        """Make the parts that are done visible together, where the form needs it: a Lance dataset.

        :raises OutsideFailed: it cannot be written.
        """
        if self.form == "lance":
            from .arrow import schema_of
            from .lance_form import commit

            fragments = [fragment for _, note in self.notes() for fragment in note["fragments"]]
            commit(self.folder, schema_of(self.task, located=True), fragments)

    def _fragments(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        from .arrow import table_of
        from .lance_form import write_fragments

        return write_fragments(self.folder, table_of(records, self.task, located=True)) if records else []

    def _fill(self, path: Path, records: list[dict[str, Any]]) -> None:
        if self.form == "jsonl":
            with path.open("wb") as file:
                for record in records:
                    file.write(as_bytes(record) + b"\n")
            return
        from .arrow import table_of  # here: JSON lines need no Arrow
        from .read import parquet_packages

        parquet_packages()[1].write_table(table_of(records, self.task, located=True), path, compression="zstd")

    def _planned(
        self, identity: dict[str, Any], sources: Sequence[BatchSource], failures: Failures
    ) -> dict[int, BatchSource]:
        """Compare with the plan of earlier runs, add the new sources to it, and number all."""
        plan: dict[str, Any] = {"version": _VERSION, "identity": identity, "sources": []}
        identity = json.loads(json.dumps(identity))
        held = self.store.read("plan.json")
        if held is not None:
            try:
                plan = json.loads(held)
                earlier, known = plan["identity"], {row["name"]: number for number, row in enumerate(plan["sources"])}
            except (ValueError, KeyError, TypeError) as error:
                path = f"{self.folder}/{OWN}/plan.json"
                raise BadInput(f"{path}: damaged; give another -o", subject=path) from error
            if plan["version"] != _VERSION or earlier != identity:
                raise BadInput(f"{self.folder}: {_difference(earlier, identity)}; give another -o", subject="-o")
        else:
            known = {}
        numbered: dict[int, BatchSource] = {}
        for source in sources:
            number = known.setdefault(source.name, len(plan["sources"]))
            if number == len(plan["sources"]):
                plan["sources"].append({"name": source.name, "kind": source.kind, "stamp": source.stamp})
            elif plan["sources"][number]["stamp"] != source.stamp:
                reason = "has changed since an earlier run into this folder; give another -o for what is new"
                failures.note(BadInput(f"{source.name}: {reason}", subject=source.name))
                continue
            numbered[number] = source
        with self.store.whole(f"{OWN}/plan.json") as beside:
            beside.write_text(json.dumps(plan, indent=1), "utf-8")
        return numbered

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            wrong = OutsideFailed if is_remote(str(self.folder)) else BadInput
            raise wrong(f"{self.folder}: cannot be written ({reason})", subject=str(self.folder)) from error


def _difference(earlier: Any, now: Mapping[str, Any]) -> str:
    """Say what another run into the folder did differently."""
    if isinstance(earlier, Mapping):
        for name, value in now.items():
            if earlier.get(name) != value:
                if isinstance(value, Mapping) and isinstance(earlier.get(name), Mapping):
                    return _difference(earlier[name], value)
                return f"an earlier run wrote this folder with {name} {earlier.get(name)!r}, and this one has {value!r}"
    return "an earlier run with other choices wrote this folder"
