"""Every file that Prunus keeps beside indexes: damaged, it gives what it held, or nothing, or an error in one line."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus.batch.ledger import Ledger
from prunus.batch.rows import Part
from prunus.cli.main import app
from prunus.core.errors import PrunusError
from prunus.core.types import Page
from prunus.index.summarize.llm import KeptSummaries
from prunus.web.fetch.cache import Cache
from prunus.web.fetch.snapshots import Snapshots

PAGES = [Page(f"<p>Page {n} about {'boats ' * 40 * n}", f"https://a.example/{n}") for n in range(12)]
FRESH = {"cache-control": "max-age=3600", "date": "Thu, 01 Jan 1970 00:16:40 GMT"}
TEXTS = [f"text number {n}" for n in range(40)]


def cache(folder: Path) -> Iterator[object]:
    kept = Cache(folder, clock=lambda: 1000.0)
    for page in PAGES:
        found = kept.fresh(page.url)
        yield None if found is None else (found.content, found.url, found.status)
        if found is None:
            kept.store(page.url, page, FRESH, 1000.0, 1000.0)
    kept.close()


def snapshots(folder: Path) -> Iterator[object]:
    from prunus.web.fetch._store import page_bytes
    from prunus.web.fetch.snapshots import hashlib

    kept = Snapshots(folder, clock=lambda: 1000.0)
    for page in PAGES:
        id = hashlib.sha256(page_bytes(page)).hexdigest()
        try:
            found = kept.get(id)
            yield (found.content, found.url, found.status)
        except PrunusError:
            yield None
            assert kept.put(page) == id
    kept.info()
    kept.close()


def summaries(folder: Path) -> Iterator[object]:
    kept = KeptSummaries(folder / "summaries.sqlite3")
    for text in TEXTS[:10]:
        found = kept.get(text)
        yield found
        if found is None:
            kept.put(text, f"the summary of {text}")


def ledger(folder: Path) -> Iterator[object]:
    with Ledger(folder / "out.jsonl") as kept:
        if not kept.fates:
            kept.write(Part(0, 0, "jobs", (), None), [{"id": n, "text": "answer"} for n in range(20)])
    yield None  # what it holds is for the user, and is never answered from


@dataclass(frozen=True)
class Stored:
    """A kind of file. ``use`` fills it where it lacks something, and yields what it held."""

    file: str
    use: Callable[[Path], Iterator[object]]


STORES = [
    Stored("cache.sqlite", cache),
    Stored("snapshots.sqlite", snapshots),
    Stored("summaries.sqlite3", summaries),
    Stored("out.jsonl", ledger),
]
Damage = Callable[[Path], None]


def flips(count: int) -> Iterator[Damage]:
    """Yield ways to change one byte, at random places."""
    draw = random.Random(7)
    for _ in range(count):
        share, bits = draw.random(), draw.randrange(1, 256)

        def flip(path: Path, share: float = share, bits: int = bits) -> None:
            data = bytearray(path.read_bytes())
            data[int(share * len(data))] ^= bits
            path.write_bytes(data)

        yield flip


def others(sql: bool) -> Iterator[Damage]:
    """Yield ways to cut, empty and replace a file, and to change the types in its columns."""
    yield lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    yield lambda path: path.write_bytes(bytes(path.stat().st_size))
    yield lambda path: path.write_bytes(b"")
    yield lambda path: path.write_bytes(b"{" * 3000)
    yield lambda path: path.write_bytes(b'{"id": ' + b"[" * 200_000 + b"\n")
    yield lambda path: path.write_text("not of this program\n" * 999)
    yield lambda path: path.unlink()
    if sql:
        yield foreign
        for value in ("NULL", "'text'", "x'00ff'", "1e300", "-9223372036854775808"):

            def change(path: Path, value: str = value) -> None:
                with sqlite3.connect(path) as file:
                    for (table,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                        for _, column, *_ in file.execute(f"PRAGMA table_info({table})").fetchall():
                            with suppress(sqlite3.Error):  # a constraint of the column
                                file.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}")
                file.close()

            yield change


def foreign(path: Path) -> None:
    """Put another program's database in the place of the file."""
    path.unlink()
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE rows (a)")
        file.execute("CREATE TABLE vectors (a)")
        file.execute("CREATE TABLE summaries (a)")
    file.close()


@pytest.mark.slow
@pytest.mark.parametrize("stored", STORES, ids=lambda stored: stored.file)
def test_a_damaged_file_never_gives_what_it_did_not_hold(stored: Stored, tmp_path: Path) -> None:
    list(stored.use(tmp_path / "whole"))
    wanted = list(stored.use(tmp_path / "whole"))
    fates: Counter[str] = Counter()
    said: list[str] = []
    for damage in [*flips(120), *others(stored.file.endswith(("sqlite", "sqlite3")))]:
        folder = tmp_path / "damaged"
        shutil.copytree(tmp_path / "whole", folder)
        damage(folder / stored.file)
        for _ in range(2):  # a file that was mended or moved aside works again
            try:
                found = list(stored.use(folder))
            except PrunusError as error:
                fates["refused"] += 1
                said.append(str(error))
            else:
                assert len(found) == len(wanted)
                assert all(one in (whole, None) for one, whole in zip(found, wanted, strict=True))
                fates["same" if found == wanted else "less"] += 1
        shutil.rmtree(folder)
    assert all("\n" not in line and stored.file in line and len(line) < 500 for line in said)
    assert fates["refused"] + fates["less"] + fates["same"] == 2 * (127 + 6 * (stored.file != "out.jsonl"))


def test_the_commands_for_the_caches_name_a_damaged_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_HOME", str(folder / "home"))
    for command in (["cache", "info"], ["cache", "clear", "--what", "all"], ["doctor"]):
        CliRunner().invoke(app, ["cache", "info"])
        for path in (folder / "home").rglob("*.sqlite*"):
            path.write_text("not of this program\n" * 999)
        found = CliRunner().invoke(app, command)
        assert "Traceback" not in found.output and found.exit_code in (0, 2, 3), found.output
