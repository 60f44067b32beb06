"""A damaged index gives the answer of the whole one, or one line that names the file: never another answer."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.index.library import COUNTER, EMBEDDER, built, source

from prunus.core.errors import BadInput, OutsideFailed
from prunus.index.evidence import tree_of
from prunus.index.retrieve import Retriever
from prunus.index.store.file.engine import Engine as Store

QUESTIONS = ("Where do passengers of the night train sleep?", "Summarize everything.")
FILES = ("index.sqlite3", "vectors.1.f32", "nodes.bin", "search.bin")
FEW = 10
"""Nodes from which on an index of these tests is large."""
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undamaged index that has changed, with the files of a large one."""
    made = built(tmp_path_factory.mktemp("whole"))
    made.store.delete_many(["glass"])
    made.add([source("glass")])
    asyncio.run(made.update())
    folder = made.store.folder
    answer(folder, FEW)
    assert all((folder / name).is_file() for name in FILES)
    return folder


def answer(folder: Path, exact_nodes: int) -> list[Any]:
    """Return all that questions read of an index."""
    store = Store(folder, exact_nodes=exact_nodes)
    retriever = Retriever(store, EMBEDDER, COUNTER)
    found: list[Any] = []
    for question in QUESTIONS:
        results = [retriever.hybrid(question, 200), retriever.collapsed(question, 200)]
        if exact_nodes > FEW:
            results.append(retriever.traversal(question, 3, 2, budget=200))
        for result in results:
            found.append((result.text, [float(score).hex() for score in result.scores], result.nodes))
            for node in result.nodes:
                found.append(sorted(retriever.leaves_of(node.id)) if node.layer else node.document)
                if not node.layer:
                    tree = tree_of(store.document(node.document))
                    found.append((tree.canonical, tree.title, tree.url))
    return [*found, sorted(store.notes().items())]


def fates(whole: Path, folder: Path, damages: Iterator[Damage], sizes: tuple[int, ...] = (50_000, FEW)) -> Counter[str]:
    """Damage a copy of the index in each of the ways and question it; fail for a different answer."""
    wanted = {size: answer(whole, size) for size in sizes}
    counts: Counter[str] = Counter()
    for number, damage in enumerate(damages):
        for size in sizes:
            shutil.copytree(whole, folder)
            damage(folder)
            try:
                assert answer(folder, size) == wanted[size], f"damage {number} changed an answer"
                counts["same"] += 1
            except (BadInput, OutsideFailed) as error:
                line = str(error)
                assert str(folder) in line and "\n" not in line and len(line) < 500, line
                counts["refused"] += 1
            shutil.rmtree(folder)
    return counts


def flips(name: str, count: int, seed: int) -> Iterator[Damage]:
    """Yield ways to change one bit of a file, at random places."""
    draw = random.Random(seed)
    for _ in range(count):
        share, bit = draw.random(), draw.randrange(8)

        def flip(folder: Path, share: float = share, bit: int = bit) -> None:
            data = bytearray((folder / name).read_bytes())
            data[int(share * len(data))] ^= 1 << bit
            (folder / name).write_bytes(data)

        yield flip


def test_a_changed_bit_never_changes_an_answer(whole: Path, tmp_path: Path) -> None:
    for name in FILES:
        fates(whole, tmp_path / "i", flips(name, 4, 1))
    assert fates(whole, tmp_path / "i", flips("vectors.1.f32", 2, 2), (50_000,)) == {"refused": 2}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [*zip(FILES, (100, 20, 20, 20), strict=True)])
def test_many_changed_bits_never_change_an_answer(whole: Path, tmp_path: Path, name: str, count: int) -> None:
    counts = fates(whole, tmp_path / "i", flips(name, count, 3))
    assert counts["refused"] > count / 10 or name.endswith(".bin")  # files that are made again when they are damaged


def other_files() -> Iterator[Damage]:
    """Yield ways to cut, empty, remove and replace the files of an index."""
    for name in FILES[:2]:
        yield lambda folder, name=name: (folder / name).write_bytes((folder / name).read_bytes()[:20_000])
        yield lambda folder, name=name: (folder / name).write_bytes(bytes((folder / name).stat().st_size))
        yield lambda folder, name=name: (folder / name).write_bytes(b"")
        yield lambda folder, name=name: (folder / name).unlink()
        yield lambda folder, name=name: (folder / name).write_text("not of this program\n" * 500)

    def foreign(folder: Path) -> None:
        (folder / "index.sqlite3").unlink()
        with sqlite3.connect(folder / "index.sqlite3") as file:
            file.execute("CREATE TABLE meta (a, b)")
        file.close()

    yield foreign


def test_files_that_are_cut_emptied_removed_or_replaced_are_named(whole: Path, tmp_path: Path) -> None:
    assert fates(whole, tmp_path / "i", other_files(), (50_000,)) == {"refused": 11}


def test_derived_files_that_are_cut_or_of_another_index_are_made_again(whole: Path, tmp_path: Path) -> None:
    def cut(folder: Path) -> None:
        for name in FILES[2:]:
            (folder / name).write_bytes((folder / name).read_bytes()[:-1])

    def remove(folder: Path) -> None:
        for name in FILES[2:]:
            (folder / name).unlink()

    assert fates(whole, tmp_path / "i", iter([cut, remove]), (FEW,)) == {"same": 2}


CHANGES = (
    "UPDATE documents SET text = replace(text, 'nine', 'nina')",
    "UPDATE documents SET source = x'00'",
    "UPDATE documents SET title = 'other'",
    "UPDATE nodes SET text = replace(text, 'night train', 'right train')",
    "UPDATE nodes SET tokens = 'many'",
    "UPDATE nodes SET document = NULL WHERE layer = 0",
    "UPDATE nodes SET own = own + 1",
    "UPDATE nodes SET checksum = 'x' WHERE id = 4",
    "UPDATE notes SET text = 'x'",
    "UPDATE meta SET value = 'far too many' WHERE name = 'rows'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'diacritics 0', 'diacritics 1')",
    "DELETE FROM leaf_terms_docsize WHERE id = 4",
    "DELETE FROM blocks",
)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_the_database_is_found(whole: Path, tmp_path: Path, change: str) -> None:
    def by_sql(folder: Path) -> None:
        with sqlite3.connect(folder / "index.sqlite3") as file:
            file.executescript(change)
        file.close()

    fates(whole, tmp_path / "i", iter([by_sql]))
    shutil.copytree(whole, tmp_path / "i")
    if "notes" in change:
        Store(tmp_path / "i").put_notes({"a": "b"})
    by_sql(tmp_path / "i")
    try:
        damage = Store(tmp_path / "i").damage()
    except BadInput as error:
        damage = [str(error)]
    assert damage and "damaged" in damage[0]
