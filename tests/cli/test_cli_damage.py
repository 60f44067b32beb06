"""A damaged index, or one of an older layout, is named in one line and built again from its pages by one command."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.cli.command import Cli, only_line
from tests.index.library import SUBJECTS, page

QUESTION = "Where do passengers of the night train sleep?"


def retrieved(cli: Cli, index: str = "I") -> list[str]:
    found = cli("index", "retrieve", index, "-q", QUESTION, "--retrieval", "flat", "--json", "--quiet")
    return [document["url"] for document in json.loads(found.stdout)["documents"]]


@pytest.fixture
def docs(folder: Path) -> Path:
    (folder / "docs").mkdir()
    for name in SUBJECTS:
        (folder / "docs" / f"{name}.html").write_text(page(name), "utf-8")
    return folder / "docs"


def test_a_damaged_index_is_built_again_from_its_documents_and_the_old_one_is_kept(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs, "--chunk-tokens", "40")
    wanted, tree = retrieved(cli), cli("index", "tree", "I").stdout
    vectors = Path("I/vectors.1.f32")
    data = bytearray(vectors.read_bytes())
    data[100] ^= 1
    vectors.write_bytes(data)
    assert "I/vectors.1.f32: damaged (its rows 0 to" in only_line(cli("index", "retrieve", "I", "-q", QUESTION))
    shutil.rmtree(docs)  # the pages are in the index
    rebuilt = cli("index", "rebuild", "I")
    assert rebuilt.exit_code == 0 and "5 documents indexed again" in rebuilt.stdout and "I.old" in rebuilt.stdout
    assert retrieved(cli) == wanted and cli("index", "tree", "I").stdout == tree
    assert Path("I.old/vectors.1.f32").read_bytes() == data
    assert cli("index", "verify", "I").exit_code == 0
    assert json.loads(cli("index", "info", "I", "--json").stdout)["built"]["chunk_tokens"] == 40


def test_a_document_that_is_lost_is_named_and_the_others_are_kept(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    with sqlite3.connect("I/index.sqlite3") as file:
        file.execute("UPDATE documents SET text = 'other' WHERE id LIKE '%bread%'")  # its page is whole
        file.execute("UPDATE documents SET text = 'other', source = x'0102' WHERE id LIKE '%bees%'")
        file.execute("UPDATE documents SET title = 'other' WHERE id LIKE '%glass%'")
    file.close()
    rebuilt = cli("index", "rebuild", "I", "--json")
    assert rebuilt.exit_code == 5
    found = json.loads(rebuilt.stdout)
    assert found["documents"] == 3 and len(found["lost"]) == 2 and str(docs / "bees.html") in found["lost"]
    assert str(docs / "bees.html") in rebuilt.stderr and "add it again" in rebuilt.stderr
    assert cli("index", "add", "I", docs).exit_code == 0
    assert json.loads(cli("index", "info", "I", "--json").stdout)["documents"] == 5
    assert "kneaded" in cli("index", "retrieve", "I", "-q", "How is bread dough kneaded?").stdout


def test_an_index_of_which_nothing_is_left_says_so(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    Path("I/index.sqlite3").write_bytes(b"")
    assert "prunus index rebuild I" in only_line(cli("index", "add", "I", docs))
    assert "no document in it is whole" in only_line(cli("index", "rebuild", "I"))
    assert "there is no index" in only_line(cli("index", "rebuild", "J"))
    assert not Path("I.new").exists()


def test_an_index_of_an_older_layout_is_refused_and_built_again(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    wanted = retrieved(cli)
    with sqlite3.connect("I/index.sqlite3") as file:
        file.execute("ALTER TABLE documents DROP COLUMN body")
        file.execute("ALTER TABLE documents DROP COLUMN checksum")
        file.execute("ALTER TABLE notes DROP COLUMN checksum")
        file.execute("PRAGMA user_version = 1")
    file.close()
    assert "prunus index rebuild I" in only_line(cli("index", "retrieve", "I", "-q", QUESTION))
    assert cli("index", "rebuild", "I").exit_code == 0
    assert retrieved(cli) == wanted
