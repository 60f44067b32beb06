"""Sources of every kind are cut into the same parts at every run, whatever earlier runs have done."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.web.archives import packed, page, record, write_archive, write_wacz

from prunus.batch.read import Partitioner, Reader, row_of
from prunus.batch.rows import START, BatchSource, Row
from prunus.batch.sources import sources_of
from prunus.core.errors import BadPage, Failures
from prunus.core.settings import Settings

SETTINGS = Settings()


def lines(path: Path, rows: Sequence[Any]) -> Path:
    data = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def parquet(path: Path, columns: dict[str, Any], group: int = 7) -> Path:
    need("pyarrow.parquet").write_table(need("pyarrow").table(columns), path, row_group_size=group)
    return path


def source_of(path: Path) -> BatchSource:
    failures = Failures()
    [source] = sources_of([str(path)], failures)
    assert not failures
    return source


def made(folder: Path, kind: str) -> BatchSource:
    """Make a source of 23 pages."""
    rows = [
        {"id": number, "html": page(number).decode(), "url": f"https://example.org/{number}"} for number in range(23)
    ]
    if kind in ("jsonl", "jsonl.gz"):
        return source_of(lines(folder / f"a.{kind}", [*rows[:5], "", "{broken", *rows[5:], {"colour": "red"}]))
    if kind == "parquet":
        return source_of(parquet(folder / "a.parquet", {name: [row[name] for row in rows] for name in rows[0]}))
    if kind == "txt":
        return source_of(
            lines(folder / "a.txt", ["# pages", *(f"https://example.org/{number}" for number in range(23)), "no"])
        )
    if kind in ("warc", "warc.gz"):
        need("fastwarc")
        return source_of(write_archive(folder / f"a.{kind}", 23))
    if kind == "wacz":
        need("fastwarc")
        archives = [
            packed([record(0, b"x", status=404), *(record(n, page(n)) for n in range(first, min(first + 8, 23)))])
            for first in (0, 8, 16)
        ]
        return source_of(write_wacz(folder / "a.wacz", archives))
    for number in range(23):
        (folder / "pages" / f"{number % 3}").mkdir(parents=True, exist_ok=True)
        (folder / "pages" / f"{number % 3}" / f"{number:02}.html").write_bytes(page(number))
    return source_of(folder / "pages")


KINDS = ["jsonl", "jsonl.gz", "parquet", "txt", "warc", "warc.gz", "wacz", "folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_is_cut_as_it_was_before(tmp_path: Path, kind: str) -> None:
    source = made(tmp_path, kind)
    partitioner = Partitioner(SETTINGS, rows=4)
    whole = list(partitioner.parts(0, source, {}))
    assert [part.number for part in whole] == list(range(len(whole))) and len(whole) >= 6
    assert sum(len(part.rows) for part in whole) >= 23
    assert whole[-1].end is None and all(part.end is not None for part in whole[:-1])
    chance = random.Random(7)
    for _ in range(30):
        done = {part.number: part.end for part in whole if chance.random() < 0.6}
        assert list(partitioner.parts(0, source, done)) == [part for part in whole if part.number not in done]
    assert list(partitioner.parts(0, source, {part.number: part.end for part in whole})) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_is_there_once_in_order(tmp_path: Path, kind: str) -> None:
    source = made(tmp_path, kind)
    rows = [row for part in Partitioner(SETTINGS, rows=4).parts(0, source, {}) for row in part.rows]
    good = [row for row in rows if not row.error]
    assert len(good) == 23
    assert [row.record for row in rows] == sorted({row.record for row in rows})
    if kind not in ("txt", "folder"):
        assert [_bytes(row) for row in good] == [page(number) for number in range(23)]
    if kind == "txt":
        assert [row.url for row in good] == [f"https://example.org/{number}" for number in range(23)]
        assert all(row.fetch for row in good) and rows[-1].error == "line 25: not an address: no"


def _bytes(row: Row) -> bytes:
    return row.content.encode() if isinstance(row.content, str) else row.content or b""


def test_large_pages_end_a_part_early(tmp_path: Path) -> None:
    big = "x" * (12 << 20)
    source = source_of(lines(tmp_path / "a.jsonl", [{"text": big} for _ in range(5)]))
    parts = list(Partitioner(SETTINGS, rows=100).parts(0, source, {}))
    assert [len(part.rows) for part in parts] == [2, 2, 1]


def test_a_source_without_rows_is_one_part_without_rows(tmp_path: Path) -> None:
    table = {"html": need("pyarrow").array([], need("pyarrow").string())}
    for path in (lines(tmp_path / "a.jsonl", []), parquet(tmp_path / "a.parquet", table)):
        [part] = Partitioner(SETTINGS).parts(0, source_of(path), {})
        assert (part.rows, part.end) == ((), None)


def test_columns_that_hold_no_page_are_told(tmp_path: Path) -> None:
    source = source_of(parquet(tmp_path / "a.parquet", {"colour": ["red"], "size": [1]}))
    with pytest.raises(BadPage, match=r"a\.parquet: no column called html, content.*it has: colour, size"):
        list(Partitioner(SETTINGS).parts(0, source, {}))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 this is no Parquet")
    with pytest.raises(BadPage, match=r"b\.parquet: cannot be read as Parquet"):
        list(Partitioner(SETTINGS).parts(0, source_of(tmp_path / "b.parquet"), {}))


def test_a_damaged_row_group_is_a_row_that_says_so(tmp_path: Path) -> None:
    texts = [os.urandom(3000).hex() for _ in range(40)]
    path = parquet(tmp_path / "a.parquet", {"text": texts}, group=10)
    data = bytearray(path.read_bytes())
    place = len(data) // 2
    data[place : place + 2000] = bytes(2000)
    path.write_bytes(data)
    rows = [row for part in Partitioner(SETTINGS, rows=3).parts(0, source_of(path), {}) for row in part.rows]
    damaged = [row for row in rows if row.error]
    if damaged:  # where the codec has no checksum, the texts differ and nothing can tell
        assert [row.kind for row in damaged] == ["source"] and rows[-1] is damaged[0]
        assert "damaged file: nothing from row" in damaged[0].error


def test_a_cut_packed_file_ends_in_a_row_that_says_so(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl.gz", [{"html": os.urandom(300).hex()} for _ in range(50)])
    path.write_bytes(path.read_bytes()[:-4000])
    partitioner = Partitioner(SETTINGS, rows=4)
    whole = list(partitioner.parts(0, source_of(path), {}))
    rows = [row for part in whole for row in part.rows]
    assert 5 < len(rows) < 50 and rows[-1].kind == "source" and "damaged file: nothing after line" in rows[-1].error
    done = {part.number: part.end for part in whole[::2]}
    assert list(partitioner.parts(0, source_of(path), done)) == whole[1::2]


def test_a_cut_archive_is_resumed_at_its_damage(tmp_path: Path) -> None:
    need("fastwarc")
    path = tmp_path / "a.warc.gz"
    whole = b"".join(packed([record(n, page(n) + os.urandom(90).hex().encode())]) for n in range(9))
    path.write_bytes(whole[:-100])
    partitioner = Partitioner(SETTINGS, rows=2)
    parts = list(partitioner.parts(0, source_of(path), {}))
    assert [row.kind for part in parts for row in part.rows] == [""] * 8 + ["source"]
    for done in range(len(parts)):
        ends = {part.number: part.end for part in parts[:done]}
        assert list(partitioner.parts(0, source_of(path), ends)) == parts[done:]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"html": "<p>x", "text": "y"}, Row(1, content="<p>x")),
        ({"html": None, "text": "y"}, Row(1, content="y", media_type="text/plain")),
        ({"content": b"%PDF", "media_type": "application/pdf"}, Row(1, content=b"%PDF", media_type="application/pdf")),
        ({"path": "a.html", "id": 7, "question": " why? "}, Row(1, id="7", path="a.html", question="why?")),
        ({"url": " https://a.example/ "}, Row(1, "https://a.example/", fetch=True)),
    ],
)
def test_columns_become_pages(values: dict[str, Any], expected: Row) -> None:
    assert row_of(1, values, "row 1", SETTINGS) == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"html": 7}, "row 1: html is of type int, not text"),
        ({"html": ["x"]}, "row 1: html is of type list, not text"),
        ({"html": "", "url": "nowhere"}, "row 1: no page: "),
        ({"text": "x" * (3 << 20)}, "row 1: 3 MiB is over the limit of 2 MiB"),
    ],
)
def test_a_row_without_a_page_says_why(values: dict[str, Any], reason: str) -> None:
    row = row_of(1, values, "row 1", Settings(max_file_mb=2))
    assert row.error.startswith(reason) and row.kind in ("page", "large") and row.content is None


def test_what_cannot_be_used_is_noted_and_the_rest_goes_on(tmp_path: Path) -> None:
    lines(tmp_path / "good.jsonl", [{"text": "x"}])
    (tmp_path / "empty").mkdir()
    failures = Failures()
    given = ["good.jsonl", "gone.warc.gz", "empty", "https://example.org/"]
    found = sources_of([given[3], *(str(tmp_path / name) for name in given[:3])], failures)
    assert [source.kind for source in found] == ["jsonl"]
    told = list(failures.values())
    assert "write addresses into a .txt file" in told[0]
    assert told[1].endswith("gone.warc.gz: no such file or folder") and "nothing in this folder" in told[2]


def test_a_folder_gives_its_archives_and_its_documents(tmp_path: Path) -> None:
    for name in ("b.html", "a.warc.gz", "sub/c.html", "sub/d.jsonl", "sub/e.unknown", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = sources_of([str(tmp_path)], Failures())
    assert [(source.kind, Path(source.name).name) for source in found] == [
        ("warc", "a.warc.gz"), ("jsonl", "d.jsonl"), ("files", tmp_path.name),
    ]  # fmt: skip
    assert [Path(file).name for file in found[2].files] == ["b.html", "notes.txt", "c.html"]
    (tmp_path / "b.html").write_bytes(b"xy")
    assert sources_of([str(tmp_path)], Failures())[2].stamp != found[2].stamp


def test_a_reader_counts_what_it_skips_between_two_parts(tmp_path: Path) -> None:
    need("fastwarc")
    path = tmp_path / "a.warc.gz"
    path.write_bytes(packed([record(n, page(n), status=200 if n % 2 else 404) for n in range(8)]))
    parts = list(Partitioner(SETTINGS, rows=2).parts(0, source_of(path), {}))
    assert [dict(part.skipped) for part in parts] == [{"status": 3}, {"status": 1}]
    assert [part.skipped for part in Partitioner(SETTINGS, rows=2).parts(0, source_of(path), {0: parts[0].end})] == [
        {"status": 1}
    ]
    assert len(list(Reader(source_of(path), SETTINGS).rows(START))) == 4


@pytest.mark.usefixtures("in_this_process")
def test_the_actors_of_ray_write_what_one_machine_writes(tmp_path: Path) -> None:
    """Called by hand, without Ray: what Ray adds is only where and when they are called."""
    need("pyarrow")
    need("fastwarc")
    from prunus.batch.on_ray import _Cut, _Do, _readers
    from prunus.batch.output import Counts, Output
    from prunus.batch.run import Batch
    from prunus.batch.work import Task

    given = [write_archive(tmp_path / "a.warc.gz", 9), lines(tmp_path / "b.jsonl", [{"text": "Trams."}, "{broken"])]
    given += [
        lines(tmp_path / "c.txt", ["https://example.org/"]),
        parquet(tmp_path / "bad.parquet", {"colour": ["red"]}),
    ]
    batch = Batch([str(path) for path in given], Task(), SETTINGS, rows=4)
    batch.find()
    assert _readers(batch) == [[0], [1], [3], [2]]  # lists of addresses are read together
    output = Output(tmp_path / "out", batch.task, "jsonl")
    batch.begin(output)
    cut, do = _Cut(batch), _Do(batch, str(output.folder), "jsonl")
    counts, failures = Counts(), {}
    for table in cut({"sources": [[0], [1], [3]]}):
        message = do(table)["message"][0].content
        if isinstance(message, Counts):
            counts.add(message)
        else:
            failures |= message
    output.close()
    assert (counts.parts, counts.done, dict(counts.failed)) == (4, 10, {"page": 1})
    assert [Path(name).name for name in failures] == ["bad.parquet"]
    texts = [path.read_text("utf-8") for path in sorted((tmp_path / "out").glob("part-*"))]
    written = [json.loads(line) for text in texts for line in text.splitlines()]
    assert [(Path(row["source"]).name, row["record"]) for row in written] == [
        *(("a.warc.gz", number) for number in range(1, 10)), ("b.jsonl", 1), ("b.jsonl", 2),
    ]  # fmt: skip
    assert output.finished()[1].pages == 11


def test_an_archive_that_was_packed_as_one_stream_is_resumed_whole(tmp_path: Path) -> None:
    need("fastwarc")
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(b"".join(record(n, page(n)) for n in range(6))))
    source = source_of(path)
    parts = list(Partitioner(SETTINGS, rows=2).parts(0, source, {}))
    rest = list(Partitioner(SETTINGS, rows=2).parts(0, source, {0: parts[0].end}))
    assert [row.url for part in rest for row in part.rows] == [f"https://example.org/{n}" for n in range(2, 6)]


def test_a_text_of_a_table_that_is_no_utf_8_is_read_as_bytes(tmp_path: Path) -> None:
    arrow = need("pyarrow")
    values = arrow.StringArray.from_buffers(
        2, arrow.py_buffer(bytes([0, 0, 0, 0, 7, 0, 0, 0, 13, 0, 0, 0])), arrow.py_buffer(b"<p>caf\xe9<p>tea")
    )
    source = source_of(parquet(tmp_path / "a.parquet", {"html": values}))
    rows = list(Reader(source, SETTINGS).rows(START))
    assert [row.content for _, row in rows] == [b"<p>caf\xe9", "<p>tea"]


def test_the_notes_of_a_batch_are_no_pages_of_the_next_one(tmp_path: Path) -> None:
    lines(tmp_path / "part-00000-00000.jsonl", [{"html": "<p>One"}])
    (tmp_path / "_batch").mkdir()
    (tmp_path / "_batch" / "plan.json").write_text("{}", "utf-8")
    assert source_of(tmp_path).kind == "jsonl"
