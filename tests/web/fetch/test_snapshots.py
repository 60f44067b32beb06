"""Snapshots: fetched pages by the hash of their content, so that citations can be checked later."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus import clean
from prunus.core.errors import BadInput, BadPage
from prunus.core.types import Page
from prunus.web.fetch.snapshots import Snapshots


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "kept")


def test_a_page_comes_back_as_it_was_read(snapshots: Snapshots) -> None:
    page = Page(
        b"\xff\x00 any bytes", "https://a.example/", "https://b.example/", "text/html", "gbk", 203,
        "2027-01-15T08:00:00+00:00", "2026-12-01", headers={"content-language": "zh"},
    )  # fmt: skip
    snapshot = snapshots.put(page)
    assert snapshot == hashlib.sha256(b"\xff\x00 any bytes").hexdigest()
    found = snapshots.get(snapshot)
    assert found.snapshot == snapshot
    for name in (
        "content",
        "url",
        "final_url",
        "media_type",
        "charset",
        "status",
        "fetched_at",
        "published",
        "headers",
    ):
        assert getattr(found, name) == getattr(page, name), name


@given(st.text() | st.binary(), st.text())
def test_any_content_and_any_name_come_back(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes, url: str
) -> None:
    snapshots = Snapshots(tmp_path_factory.mktemp("kept"))
    snapshot = snapshots.put(Page(content, url))
    assert snapshots.get(snapshot).content == content and snapshots.get(snapshot, url).url == url
    snapshots.close()


def test_content_with_lone_surrogates_comes_back(snapshots: Snapshots) -> None:
    assert snapshots.get(snapshots.put(Page("a\ud800b", "x\ud800"))).content == "a\ud800b"


def test_the_id_is_the_one_that_citations_carry(snapshots: Snapshots) -> None:
    from prunus import ask

    answer = ask("How many rolls were found?", pages=["<p>They found 1,914 rolls in the attic.</p>"])
    snapshot = snapshots.put(Page("<p>They found 1,914 rolls in the attic.</p>"))
    assert answer.citations[0].snapshot == snapshot
    assert answer.citations[0].quote in clean(snapshots.get(snapshot), format="text")


def test_the_same_content_is_kept_once_and_known_by_every_address(snapshots: Snapshots) -> None:
    ids = {snapshots.put(Page(b"x" * 100_000, f"https://example.org/{number}")) for number in range(20)}
    assert len(ids) == 1 and snapshots.info().entries == 20 and snapshots.info().bytes < 140_000
    snapshot = ids.pop()
    assert snapshots.get(snapshot, "https://example.org/7").url == "https://example.org/7"
    assert snapshots.get(snapshot).url == "https://example.org/19"
    with pytest.raises(BadPage, match="not stored for https://other"):
        snapshots.get(snapshot, "https://other.example/")


def test_a_page_read_twice_is_one_entry_and_the_later_reading_is_known(snapshots: Snapshots) -> None:
    for when in ("2027-01-01", "2027-01-02"):
        snapshot = snapshots.put(Page(b"Text.", "file.html", fetched_at=when))
    assert snapshots.info().entries == 1 and snapshots.get(snapshot).fetched_at == "2027-01-02"


def test_what_was_evicted_says_so(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, max_bytes=50_000)
    ids = [snapshots.put(Page(f"{number}" * 5_000, f"{number}")) for number in range(20)]
    assert snapshots.verify(ids[-1]) and not snapshots.verify(ids[0]) and snapshots.info().bytes <= 50_000
    with pytest.raises(BadPage, match="read the page again, or raise the limit"):
        snapshots.get(ids[0])


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 63, "G" * 64, "0" * 64 + "\n"])
def test_what_is_no_id_says_so(snapshots: Snapshots, name: str) -> None:
    with pytest.raises(BadPage, match="64 hexadecimal digits"):
        snapshots.get(name)
    assert not snapshots.verify(name)


def test_what_is_damaged_is_never_given_out(snapshots: Snapshots, tmp_path: Path) -> None:
    snapshot = snapshots.put(Page(b"Text.", "file.html"))
    connection = sqlite3.connect(tmp_path / "kept" / "snapshots.sqlite")
    connection.execute("UPDATE bodies SET content = CAST('Tent.' AS BLOB)")
    connection.commit()
    connection.close()
    with pytest.raises(BadPage, match="damaged"):
        snapshots.get(snapshot)
    assert snapshots.put(Page(b"Text.", "file.html")) == snapshot and snapshots.verify(snapshot)


def test_a_second_process_sees_what_the_first_kept(snapshots: Snapshots, tmp_path: Path) -> None:
    other = Snapshots(tmp_path / "kept")
    assert other.get(snapshots.put(Page(b"Text."))).content == b"Text."
    assert other.clear() == 1 and not snapshots.verify(hashlib.sha256(b"Text.").hexdigest())


def test_a_folder_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match=r"file/kept/snapshots\.sqlite: .*set home"):
        Snapshots(tmp_path / "file" / "kept")


def test_many_threads_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    for round in range(10):
        folder = tmp_path / str(round)
        begin = threading.Barrier(16)

        def opened(folder: Path = folder, begin: threading.Barrier = begin) -> str:
            begin.wait()
            return Snapshots(folder).put(Page("<p>the same"))

        with ThreadPoolExecutor(16) as pool:
            assert len({found.result() for found in [pool.submit(opened) for _ in range(16)]}) == 1
