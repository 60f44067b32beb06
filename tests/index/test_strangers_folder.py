"""An index folder of a stranger: links, pipes and a foreign schema are refused before anything is read or written."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.index.library import built

from prunus.api.rebuild import rebuild as rebuild_index
from prunus.core.errors import BadInput, PrunusError
from prunus.core.settings import load_settings
from prunus.core.sqlite import checksum
from prunus.index.store.file.database import RECORD
from prunus.index.store.file.engine import Engine as Store

FILES = ("index.sqlite3", "vectors.1.f32")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return built(tmp_path).store.folder


def use(folder: Path) -> None:
    """Open an index, read its vectors and write one document."""
    store = Store(folder, exact_nodes=10_000)
    assert len(store.view().matrix)
    store.delete_many([store.documents()[0].id])


@pytest.mark.parametrize("name", FILES)
def test_a_link_is_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine"
    shutil.move(folder / name, mine)
    before = mine.read_bytes()
    (folder / name).symlink_to(mine)
    with pytest.raises(PrunusError, match=name):
        use(folder)
    assert mine.read_bytes() == before
    assert list(tmp_path.glob("mine-*")) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(PrunusError):
        use(folder)
    if name == FILES[0]:
        with pytest.raises(PrunusError):
            rebuild_index(str(folder), load_settings())


@pytest.mark.parametrize("statement", [
    "CREATE TRIGGER more AFTER DELETE ON documents BEGIN DELETE FROM notes; END",
    "CREATE VIEW more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "CREATE TABLE more (x)",
    "CREATE INDEX more ON nodes (length(text))",
    "ALTER TABLE notes ADD COLUMN more AS (length(text))",
])  # fmt: skip
def test_a_foreign_schema_is_refused_at_once(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / "index.sqlite3") as file:
        file.execute(statement)
    file.close()
    with pytest.raises(BadInput, match="not of Prunus"):
        Store(folder)


def test_a_table_that_is_a_view_is_refused_by_a_rebuild_too(folder: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    with sqlite3.connect(folder / "index.sqlite3") as file:
        file.execute("DROP TABLE documents")
        file.execute(f"CREATE VIEW documents AS {endless} SELECT i AS number, 1 AS checksum FROM n")
    file.close()
    with pytest.raises(BadInput, match="not of Prunus"):
        Store(folder)
    with pytest.raises(BadInput, match="views or triggers"):
        rebuild_index(str(folder), load_settings())


def test_an_index_behind_a_linked_folder_is_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(folder)
    use(tmp_path / "linked")
    assert len(Store(tmp_path / "linked").documents()) == 4


@pytest.mark.parametrize("metadata", ["[]", "{", "[" * 100_000, '{"a": 1}'])
def test_a_record_with_a_checksum_that_fits_is_read_by_its_kind(folder: Path, metadata: str) -> None:
    file = sqlite3.connect(folder / "index.sqlite3")
    file.execute("UPDATE documents SET metadata = ?", (metadata,))
    for row in file.execute(f"SELECT {RECORD} FROM documents").fetchall():
        file.execute("UPDATE documents SET checksum = ? WHERE number = ?", (checksum(*row), row[0]))
    file.commit()
    file.close()
    with pytest.raises(PrunusError, match="damaged") as caught:
        use(folder)
    assert "\n" not in str(caught.value)
