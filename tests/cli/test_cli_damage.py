"""A damaged index gives what the whole one gives, or one line that names the file: never another answer in silence."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.command import Cli, only_line
from tests.index.library import SUBJECTS, page

from prunus.cli.main import app

QUESTION = "Where do passengers of the night train sleep?"
COMMANDS = {
    "retrieve": [("index", "retrieve", "I", "-q", QUESTION, "--budget", "300", "--json", "--quiet")],
    "ask": [("ask", QUESTION, "--index", "I")],
    "verify": [("index", "verify", "I", "--json")],
    "tree": [("index", "tree", "I")],
    "info": [("index", "info", "I", "--documents")],
    "bill": [("index", "summarize", "I", "--anew", "--yes", "--json", "--llm", "scripted:They rest.")],
    "add": [("index", "add", "I", "more.html", "--json"), ("index", "retrieve", "I", "-q", QUESTION, "--quiet")],
    "remove": [("index", "remove", "I", "docs/bees.html", "--json"), ("index", "tree", "I")],
}
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an undamaged index ``I``, its pages, and a page to add."""
    root = tmp_path_factory.mktemp("whole")
    (root / "docs").mkdir()
    for name in SUBJECTS:
        (root / "docs" / f"{name}.html").write_text(page(name, 8), "utf-8")
    (root / "more.html").write_text(page("tides", 3).replace("tide", "flood"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert CliRunner().invoke(app, ["index", "add", "I", "docs"]).exit_code == 0
        CliRunner().invoke(app, ["index", "remove", "I", "docs/glass.html"])  # an index that has changed
        CliRunner().invoke(app, ["index", "add", "I", "docs/glass.html"])
    return root


@pytest.fixture
def inside(whole: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is that of the index: ids of its documents are paths."""
    monkeypatch.chdir(whole)
    return whole


def said(name: str) -> tuple[list[Result], str]:
    """Run a command, and return its results and what they say of the index."""
    results = []
    for arguments in COMMANDS[name]:
        results.append(CliRunner().invoke(app, [*arguments]))
        if results[-1].exit_code:
            break
    # a size on the disk says nothing of what is in it
    return results, "\n".join(line for result in results for line in result.stdout.splitlines() if " MiB" not in line)


def fate_of(name: str, wanted: str) -> str:
    """Return ``same`` or ``refused``; fail for anything else."""
    results, text = said(name)
    last = results[-1]
    assert ("Traceback" not in last.stderr and last.exception is None) or isinstance(last.exception, SystemExit), name
    if last.exit_code in (2, 3):
        *bill, line = last.stderr.splitlines()
        assert all("summaries by scripted" in before for before in bill)
        assert line.startswith("prunus: I") or "I/" in line, line
        assert len(line) < 500
        return "refused"
    assert last.exit_code == 0, (name, last.stderr)
    assert text == wanted, name
    return "same"


def each_fate(inside: Path, damages: Iterator[Damage]) -> Counter[str]:
    """Damage a copy of the index in each of the ways, and run every command on it."""
    kept = inside / "kept"
    (inside / "I").rename(kept)
    try:
        wanted = {}
        for name in [*COMMANDS] * 2:  # the first run fills the caches under home
            shutil.copytree(kept, "I")
            results, wanted[name] = said(name)
            assert results[-1].exit_code == 0, results[-1].output
            shutil.rmtree("I")
        fates: Counter[str] = Counter()
        for damage in damages:
            for name in COMMANDS:
                shutil.copytree(kept, "I")
                damage(Path("I"))
                fates[fate_of(name, wanted[name])] += 1
                shutil.rmtree("I")
        return fates
    finally:
        shutil.rmtree("I", ignore_errors=True)
        kept.rename(inside / "I")


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


def test_a_changed_bit_of_the_database_never_changes_an_answer(inside: Path) -> None:
    fates = each_fate(inside, flips("index.sqlite3", 12, 1))
    assert fates["refused"] >= 5  # other bits are unused, or not read


def test_a_changed_bit_of_the_vectors_is_always_found(inside: Path) -> None:
    fates = each_fate(inside, flips("vectors.1.f32", 6, 2))
    assert fates["refused"] == 6 * len(COMMANDS)


@pytest.mark.slow
def test_many_changed_bits_never_change_an_answer(inside: Path) -> None:
    fates = each_fate(inside, flips("index.sqlite3", 60, 3))
    assert fates["refused"] > 60


def other_files(inside: Path) -> Iterator[Damage]:
    """Yield ways to cut, empty, remove and swap the files of an index."""
    for name in ("index.sqlite3", "vectors.1.f32"):

        def cut(folder: Path, name: str = name) -> None:
            data = (folder / name).read_bytes()
            (folder / name).write_bytes(data[: len(data) // 2])

        def zero(folder: Path, name: str = name) -> None:
            (folder / name).write_bytes(bytes((folder / name).stat().st_size))

        def zero_in_the_middle(folder: Path, name: str = name) -> None:
            data = bytearray((folder / name).read_bytes())
            data[len(data) // 2 : len(data) // 2 + 4096] = bytes(4096)
            (folder / name).write_bytes(data)

        def empty(folder: Path, name: str = name) -> None:
            (folder / name).write_bytes(b"")

        def remove(folder: Path, name: str = name) -> None:
            (folder / name).unlink()

        def of_text(folder: Path, name: str = name) -> None:
            (folder / name).write_text("not of this program\n" * 500, "utf-8")

        yield from (cut, zero, zero_in_the_middle, empty, remove, of_text)

    def swap(folder: Path) -> None:
        (folder / "index.sqlite3").rename(folder / "x")
        (folder / "vectors.1.f32").rename(folder / "index.sqlite3")
        (folder / "x").rename(folder / "vectors.1.f32")

    def foreign(folder: Path) -> None:
        (folder / "index.sqlite3").unlink()
        with sqlite3.connect(folder / "index.sqlite3") as file:
            file.execute("CREATE TABLE meta (a, b)")
        file.close()

    def log_of_text(folder: Path) -> None:
        (folder / "index.sqlite3-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(64))
        (folder / "index.sqlite3-shm").write_bytes(b"no index of a log" * 2000)

    yield from (swap, foreign, log_of_text)


def test_files_that_are_cut_emptied_removed_or_swapped_are_named(inside: Path) -> None:
    fates = each_fate(inside, other_files(inside))
    assert fates["refused"] >= 13 * len(COMMANDS)  # an unused page may be emptied, and SQLite drops a foreign log


CHANGES = {
    "a letter of a text": "UPDATE documents SET text = replace(text, 'nine', 'nina')",
    "a letter of a chunk": "UPDATE nodes SET text = replace(text, 'night train', 'right train')",
    "a page": "UPDATE documents SET source = x'00' || substr(source, 2)",
    "a title": "UPDATE documents SET title = 'other'",
    "an id": "UPDATE documents SET id = id || 'x'",
    "a type": "UPDATE nodes SET tokens = 'many'",
    "an empty number": "UPDATE nodes SET document = NULL WHERE layer = 0",
    "a row of a vector": "UPDATE nodes SET own = own + 1",
    "a lost chunk": "DELETE FROM nodes WHERE id = 3; UPDATE totals SET count = count + 1 WHERE name = 'nodes'",
    "an edge": "UPDATE edges SET child = child + 1000 WHERE child = 2",
    "a note": "UPDATE notes SET text = replace(text, 'ward', 'random')",
    "the meta data": "UPDATE meta SET value = 'far too many' WHERE name = 'rows'",
    "the schema": "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'remove_diacritics 0', "
    "'remove_diacritics 1') WHERE name = 'leaf_terms'",
    "the words": "DELETE FROM leaf_terms_docsize WHERE id = 4",
    "a checksum": "UPDATE nodes SET seal = 'x' WHERE id = 4",
    "the sums": "DELETE FROM totals",
    "the checksums of vectors": "DELETE FROM blocks",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_the_database_is_found_when_it_is_read(inside: Path, change: str) -> None:
    def by_sql(folder: Path) -> None:
        with sqlite3.connect(folder / "index.sqlite3") as file:
            file.executescript(CHANGES[change])
        file.close()

    fates = each_fate(inside, iter([by_sql]))
    assert fates["refused"]
    shutil.copytree(inside / "I", inside / "kept")
    by_sql(inside / "I")
    try:
        line = only_line(CliRunner().invoke(app, ["index", "verify", "I"]))
        assert "--mend" in line
    finally:
        shutil.rmtree(inside / "I")
        (inside / "kept").rename(inside / "I")


# --- mending -------------------------------------------------------------------------------------


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
    assert cli("index", "verify", "I", "--mend").stdout == "nothing is damaged\n"
    wanted, tree = retrieved(cli), cli("index", "tree", "I").stdout
    vectors = Path("I/vectors.1.f32")
    data = bytearray(vectors.read_bytes())
    data[100] ^= 1
    vectors.write_bytes(data)
    assert "I/vectors.1.f32: damaged (its rows 0 to" in only_line(cli("index", "retrieve", "I", "-q", QUESTION))
    shutil.rmtree(docs)  # the pages are in the index
    mended = cli("index", "verify", "I", "--mend")
    assert mended.exit_code == 0 and "5 documents are whole" in mended.stdout and "I.damaged" in mended.stdout
    assert retrieved(cli) == wanted and cli("index", "tree", "I").stdout == tree
    assert Path("I.damaged/vectors.1.f32").read_bytes() == data
    assert cli("index", "verify", "I").exit_code == 0
    assert json.loads(cli("index", "info", "I", "--json").stdout)["built"]["chunk_tokens"] == 40


def test_a_document_that_is_lost_is_named_and_the_others_are_mended(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    with sqlite3.connect("I/index.sqlite3") as file:
        file.execute("UPDATE documents SET text = 'other' WHERE id LIKE '%bread%'")  # its page is whole
        file.execute("UPDATE documents SET text = 'other', source = x'0102' WHERE id LIKE '%bees%'")
        file.execute("UPDATE documents SET title = 'other' WHERE id LIKE '%glass%'")
    file.close()
    mended = cli("index", "verify", "I", "--mend", "--json")
    assert mended.exit_code == 5
    found = json.loads(mended.stdout)
    assert found["documents"] == 3 and len(found["lost"]) == 2 and str(docs / "bees.html") in found["lost"]
    assert str(docs / "bees.html") in mended.stderr and "add it again" in mended.stderr
    assert cli("index", "add", "I", docs).exit_code == 0
    assert json.loads(cli("index", "info", "I", "--json").stdout)["documents"] == 5
    assert "kneaded" in cli("index", "retrieve", "I", "-q", "How is bread dough kneaded?").stdout


def test_an_index_of_which_nothing_is_left_says_so(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    Path("I/index.sqlite3").write_bytes(b"")
    assert "--mend" in only_line(cli("index", "add", "I", docs))
    assert "no document in it is whole" in only_line(cli("index", "verify", "I", "--mend"))
    assert "there is no index" in only_line(cli("index", "verify", "J", "--mend"))
    assert not Path("I.mending").exists()


def test_an_index_of_the_layout_without_checksums_gets_them_when_it_is_opened(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    wanted = cli("index", "retrieve", "I", "-q", QUESTION).stdout
    without_seals(Path("I"))
    assert cli("index", "retrieve", "I", "-q", QUESTION).stdout == wanted
    assert cli("index", "verify", "I").exit_code == 0
    with sqlite3.connect("I/index.sqlite3") as file:
        file.execute("UPDATE documents SET text = 'other'")
    file.close()
    assert "damaged" in only_line(cli("index", "verify", "I"))


def without_seals(folder: Path) -> None:
    """Bring an index back to the layout before."""
    with sqlite3.connect(folder / "index.sqlite3") as file:
        for table in ("documents", "nodes", "notes", "edges"):
            for event in ("INSERT", "DELETE", "UPDATE"):
                file.execute(f"DROP TRIGGER IF EXISTS {table}_{event}")
        for table in ("totals", "blocks"):
            file.execute(f"DROP TABLE {table}")
        for table, columns in {
            "documents": ("body", "seal"),
            "nodes": ("body", "words", "seal"),
            "notes": ("seal",),
        }.items():
            for column in columns:
                file.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        file.execute("DELETE FROM meta WHERE name IN ('seal', 'schema')")
        file.execute("PRAGMA user_version = 1")
    file.close()
