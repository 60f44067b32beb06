"""Pages of web archives: what the crawler saved is what is read, and a damaged archive is told."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from pathlib import Path

import brotli
import pytest
from tests.extras import need
from tests.web.archives import HTML, packed, page, record, write_archive, write_wacz

from prunus.core.errors import BadPage
from prunus.web.warc import WarcArchive, WarcRecord

need("fastwarc")


def read(path: Path, data: bytes | None = None, max_mb: int = 64) -> tuple[list[WarcRecord], dict[str, int]]:
    if data is not None:
        path.write_bytes(data)
    archive = WarcArchive(path, max_mb, lambda kind: kind in ("text/html", "text/plain", "application/pdf"))
    return list(archive.records()), dict(archive.skipped)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_every_page_is_read_with_what_the_crawler_noted(tmp_path: Path, name: str) -> None:
    found, skipped = read(write_archive(tmp_path / name, 5))
    assert [row.page and row.page.content for row in found] == [page(number) for number in range(5)]
    assert [row.url for row in found] == [f"https://example.org/{number}" for number in range(5)]
    assert found[3].page is not None and found[3].id == f"<urn:uuid:{3:032}>"
    assert (found[3].page.media_type, found[3].page.charset) == ("text/html", "utf-8")
    assert skipped == {} and not any(row.error for row in found)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_reading_can_begin_at_every_record(tmp_path: Path, name: str) -> None:
    path = write_archive(tmp_path / name, 6)
    found, _ = read(path)
    for number, row in enumerate(found):
        again = list(WarcArchive(path, 64, lambda kind: True).records(row.place))
        assert [other.url for other in again] == [other.url for other in found[number:]]
        assert [other.place for other in again] == [other.place for other in found[number:]]


def test_another_reader_finds_the_same_pages(tmp_path: Path) -> None:
    reader = need("warcio.archiveiterator")
    path = tmp_path / "a.warc.gz"
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page(2)), page(2))
    data = [
        record(1, page(1)),
        record(2, chunks, headers=HTML + b"Transfer-Encoding: chunked\r\n"),
        record(3, zlib.compress(page(3)), headers=HTML + b"Content-Encoding: deflate\r\n"),
        record(4, gzip.compress(page(4)), headers=HTML + b"Content-Encoding: gzip\r\n"),
    ]
    path.write_bytes(packed(data))
    with path.open("rb") as file:
        theirs = [
            (row.rec_headers.get_header("WARC-Target-URI"), row.content_stream().read())
            for row in reader.ArchiveIterator(file)
            if row.rec_type == "response"
        ]
    found, _ = read(path)
    assert [(row.url, row.page and row.page.content) for row in found] == theirs
    assert [content for _, content in theirs] == [page(number) for number in range(1, 5)]


def test_texts_of_wet_files_and_resources_are_pages(tmp_path: Path) -> None:
    data = [
        record(1, "Brücke".encode(), kind="conversion"),
        record(2, page(2), kind="resource", content="text/html"),
        record(3, b"\x89PNG", kind="resource", content="image/png"),
    ]
    found, skipped = read(tmp_path / "a.warc.wet.gz", packed(data))
    assert [row.page and (row.page.media_type, row.page.charset) for row in found] == [
        ("text/plain", "utf-8"),
        ("text/html", ""),
    ]
    assert skipped == {"type": 1}


def test_what_is_no_page_is_counted(tmp_path: Path) -> None:
    data = [
        record(1, page(1), status=404),
        record(2, b"body{}", headers=b"Content-Type: text/css\r\n"),
        record(3, b"", kind="revisit"),
        record(4, page(4)),
        record(5, page(5), status=301),
    ]
    found, skipped = read(tmp_path / "a.warc.gz", packed(data))
    assert [row.url[-1] for row in found] == ["4"]
    assert skipped == {"status": 2, "type": 1, "revisit": 1}


def test_all_archives_of_a_wacz_file_are_read(tmp_path: Path) -> None:
    archives = [packed([record(1, page(1)), record(2, page(2))]), packed([record(3, page(3))])]
    found, _ = read(write_wacz(tmp_path / "a.wacz", archives))
    assert [(row.url[-1], row.place) for row in found] == [("1", 0), ("2", 0), ("3", 0)]
    (tmp_path / "b.wacz").write_bytes((tmp_path / "a.wacz").read_bytes()[:-30])
    with pytest.raises(BadPage, match=r"b\.wacz: not a whole WACZ file"):
        read(tmp_path / "b.wacz")


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_an_archive_cut_anywhere_gives_a_prefix_of_its_pages(tmp_path: Path, name: str) -> None:
    """A cut is told, except where a record ends exactly there; no page is ever cut short without a word."""
    whole = [record(number, page(number) + os.urandom(60).hex().encode()) for number in range(3)]
    data = packed(whole) if name.endswith("gz") else b"".join(whole)
    full, _ = read(tmp_path / name, data)
    ends = {sum(len(packed([row]) if name.endswith("gz") else row) for row in whole[:count]) for count in range(4)}
    for size in range(1, len(data), 7):
        found, _ = read(tmp_path / name, data[:size])
        good = [row for row in found if row.page]
        assert [row.page for row in good] == [row.page for row in full[: len(good)]]
        told = bool(found) and found[-1].last and "damaged archive" in found[-1].error
        assert told or size in ends or len(good) == sum(end <= size + 8 + 4 for end in ends) - 1, size


def test_damage_ends_the_archive_and_is_told(tmp_path: Path) -> None:
    data = [record(number, page(number) + os.urandom(200).hex().encode()) for number in range(3)]
    first, second, third = (packed([row]) for row in data)
    broken = bytearray(second)
    broken[40] ^= 0xFF
    found, _ = read(tmp_path / "a.warc.gz", first + bytes(broken) + third)
    assert found[0].page is not None and found[-1].last
    assert found[-1].error.startswith("damaged archive: ")
    found, _ = read(tmp_path / "b.warc.gz", b"this is no archive" * 50)
    assert [(row.last, row.page) for row in found] == [(True, None)]
    assert read(tmp_path / "c.warc.gz", b"")[0] == []


def test_a_page_with_a_damaged_coding_fails_alone(tmp_path: Path) -> None:
    data = [
        record(1, b"\x1f\x8bnot gzip", headers=HTML + b"Content-Encoding: gzip\r\n"),
        record(2, page(2), headers=HTML + b"Transfer-Encoding: chunked\r\n"),  # many crawlers keep the header
        record(3, page(3), headers=HTML + b"Content-Encoding: compress\r\n"),
        record(4, brotli.compress(page(4)), headers=HTML + b"Content-Encoding: br\r\n"),
    ]
    found, _ = read(tmp_path / "a.warc.gz", packed(data))
    assert [row.page and row.page.content for row in found] == [None, page(2), None, page(4)]
    assert "damaged" in found[0].error and "compress" in found[2].error


def test_a_bomb_and_a_record_of_200_mb_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    bomb = gzip.compress(gzip.compress(b"a" * 200_000_000, 1), 1)
    path = tmp_path / "a.warc.gz"
    with path.open("wb") as file:
        file.write(packed([record(1, gzip.decompress(bomb), headers=HTML + b"Content-Encoding: gzip\r\n")]))
        with gzip.open(file, "wb", 1) as big:
            big.write(record(2, b"b" * 200_000_000))
        file.write(packed([record(3, page(3))]))
    code = (
        "import resource, sys; from pathlib import Path; from prunus.web.warc import WarcArchive\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for row in WarcArchive(Path(sys.argv[1]), 16, lambda kind: True).records(): print(row.url[-1], row.large, row.error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300)
    *lines, more = done.stdout.splitlines()
    assert [line.split(" ", 2)[:2] for line in lines] == [["1", "True"], ["2", "True"], ["3", "False"]], done.stderr
    assert "190 MiB is over the limit of 16 MiB" in lines[1]
    assert int(more) < 80 * 1024, f"{int(more) >> 10} MiB"


def test_a_file_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadPage, match=r"gone\.warc: cannot be read \(No such file"):
        read(tmp_path / "gone.warc")


def test_a_response_without_http_headers_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    data = [record(1, page(1)), record(2, page(2), content="text/html"), record(3, page(3))]
    data[1] = data[1].replace(b"application/http; msgtype=response", b"text/html")
    found, _ = read(tmp_path / "a.warc.gz", packed(data))
    assert [bool(row.page) for row in found] == [True, False, True] and "HTTP headers" in found[1].error


def test_a_damaged_member_of_a_wacz_file_is_told_and_the_next_is_read(tmp_path: Path) -> None:
    path = write_wacz(tmp_path / "a.wacz", [packed([record(n, page(n))]) for n in (1, 2)])
    data = path.read_bytes()
    first = data.index(b"archive/") - 30
    path.write_bytes(data[: first + 8] + b"\x63\x00" + data[first + 10 :])  # an unknown method, in the local header
    names = [place for place in range(len(data)) if data.startswith(b"PK\x01\x02", place)]
    place = next(at for at in names if data[at + 46 :].startswith(b"archive/"))
    path.write_bytes(data[: place + 10] + b"\x63\x00" + data[place + 12 :])
    found, _ = read(path)
    assert [bool(row.page) for row in found] == [False, True] and "damaged archive" in found[0].error
