"""The HTTP cache: what it stores, when it returns a page, and how it handles damage."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import pytest

from prunus.core.errors import BadInput
from prunus.core.types import Page
from prunus.web.fetch.cache import Cache

URL = "https://example.org/page"
START = 1_800_000_000.0


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> Cache:
    return Cache(tmp_path / "cache", clock=clock)


def page(text: str = "Text.", status: int = 200, **more: object) -> Page:
    content = text.encode()
    return Page(content, URL, URL, "text/html", "utf-8", status, "2027-01-15T08:00:00+00:00", **more)  # type: ignore[arg-type]


def keep(cache: Cache, clock: Clock, headers: dict[str, str], kept: Page | None = None, url: str = URL) -> None:
    cache.store(url, kept or page(), {"Date": formatdate(clock.now, usegmt=True), **headers}, clock.now, clock.now)


# --- fresh ---------------------------------------------------------------------------------------


def test_a_page_comes_back_as_it_was_while_it_is_fresh(cache: Cache, clock: Clock) -> None:
    kept = page("Wörter.", headers={"content-language": "de"})
    keep(cache, clock, {"Cache-Control": "max-age=60"}, kept)
    clock.now += 59
    found = cache.fresh(URL)
    assert found is not None
    assert (found.content, found.final_url, found.media_type, found.charset) == (
        kept.content,
        URL,
        "text/html",
        "utf-8",
    )
    assert (found.status, found.fetched_at) == (200, kept.fetched_at)
    assert found.headers == {"content-language": "de", "age": "59", "cache-status": "prunus; hit; ttl=1"}
    assert len(found.snapshot) == 64
    clock.now += 1
    assert cache.fresh(URL) is None


def test_a_fragment_is_part_of_no_key_but_comes_back(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    found = cache.fresh(URL + "#part")
    assert found is not None and found.url == URL + "#part"
    assert cache.fresh(URL + "?x=1") is None


NEVER = {
    "no-store": ({"Cache-Control": "no-store, max-age=60"}, 200),
    "a part": ({"Cache-Control": "max-age=60"}, 206),
    "an error that says nothing": ({"Last-Modified": formatdate(START - 9_999)}, 500),
    "too many requests": ({"Retry-After": "5"}, 429),
    "a temporary redirect that says nothing": ({"Location": "/x", "ETag": '"a"'}, 302),
    "headers beyond measure": ({"Cache-Control": "max-age=60", "X": "x" * 70_000}, 200),
    "what could never be used": ({"Cache-Control": "no-cache"}, 200),
}


@pytest.mark.parametrize(("headers", "status"), NEVER.values(), ids=NEVER)
def test_what_may_not_be_kept_is_not_kept(cache: Cache, clock: Clock, headers: dict[str, str], status: int) -> None:
    keep(cache, clock, headers, page(status=status))
    assert cache.info().entries == 0


def test_a_redirect_that_says_for_how_long_it_holds_is_kept(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Location": "/x", "Cache-Control": "max-age=9"}, page(status=302, headers={"location": "/x"}))
    found = cache.fresh(URL)
    assert found is not None and (found.status, found.headers["location"]) == (302, "/x")


def test_a_response_to_credentials_is_not_kept_and_replaces_nothing(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    secret = page("For one reader.")
    cache.store(URL, secret, {"Cache-Control": "max-age=60"}, clock.now, clock.now, authorised=True)
    found = cache.fresh(URL)
    assert found is not None and found.content == b"Text."


def test_no_cookie_and_no_credential_reaches_the_disk(cache: Cache, clock: Clock, tmp_path: Path) -> None:
    private = {"Set-Cookie": "id=verysecret", "Authorization": "verysecret", "X-Hop": "verysecret"}
    headers = {"Cache-Control": "max-age=60", "Connection": "x-hop", **private}
    keep(
        cache,
        clock,
        headers,
        page(headers={name.lower(): value for name, value in private.items()} | {"connection": "x-hop"}),
    )
    found = cache.fresh(URL)
    assert found is not None and "set-cookie" not in found.headers
    cache.close()
    assert all(b"verysecret" not in file.read_bytes() for file in (tmp_path / "cache").iterdir())


def test_no_store_removes_what_was_kept_before(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    keep(cache, clock, {"Cache-Control": "no-store"})
    assert cache.fresh(URL) is None and cache.info().entries == 0


def test_must_understand_wins_over_no_store_for_a_status_that_is_understood(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Cache-Control": "must-understand, no-store, max-age=60"})
    assert cache.fresh(URL) is not None


def test_a_page_that_is_gone_is_not_served_from_before(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    keep(cache, clock, {"Cache-Control": "no-store"}, page(status=404))
    assert cache.stale(URL) is None


# --- variants ------------------------------------------------------------------------------------


def test_an_answer_that_varies_is_given_to_the_same_request_only(tmp_path: Path, clock: Clock) -> None:
    german, french = (
        Cache(tmp_path, request_headers={"Accept-Language": language}, clock=clock) for language in ("de", "fr")
    )
    keep(german, clock, {"Cache-Control": "max-age=60", "Vary": "accept-language", "ETag": '"d"'}, page("Deutsch."))
    assert french.fresh(URL) is None and french.stale(URL) is None
    keep(french, clock, {"Cache-Control": "max-age=60", "Vary": "Accept-Language", "ETag": '"f"'}, page("Français."))
    assert [cache.fresh(URL).content.decode() for cache in (german, french)] == ["Deutsch.", "Français."]  # type: ignore[union-attr]
    assert french.validators(URL) == {"if-none-match": '"f", "d"'}
    chosen = french.revalidate(
        URL, {"ETag": '"d"', "Vary": "accept-language", "Cache-Control": "max-age=60"}, clock.now
    )
    assert chosen is not None and chosen.content == b"Deutsch."
    assert french.fresh(URL).content == b"Deutsch."  # type: ignore[union-attr]


def test_vary_star_is_never_fresh_but_can_be_confirmed(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60", "Vary": "*", "ETag": '"a"'})
    assert cache.fresh(URL) is None and cache.stale(URL) is None
    assert cache.validators(URL) == {"if-none-match": '"a"'}


def test_an_address_has_few_variants_at_most(tmp_path: Path, clock: Clock) -> None:
    for number in range(40):
        one = Cache(tmp_path, request_headers={"x": str(number)}, clock=clock)
        keep(one, clock, {"Cache-Control": "max-age=60", "Vary": "x"}, page(f"{number}"))
        one.close()
    assert Cache(tmp_path, clock=clock).info().entries == 8


# --- revalidation --------------------------------------------------------------------------------


def test_a_stale_page_is_asked_for_with_its_validators(cache: Cache, clock: Clock) -> None:
    changed = formatdate(START - 9_999, usegmt=True)
    keep(cache, clock, {"ETag": 'W/"a1"', "Last-Modified": changed, "Cache-Control": "no-cache"})
    assert cache.fresh(URL) is None
    assert cache.validators(URL) == {"if-none-match": 'W/"a1"', "if-modified-since": changed}
    assert cache.validators(URL + "/other") == {}


@pytest.mark.parametrize("tag", ['"a\r\nX: y"', '"' + "a" * 5000 + '"', '"ä"', ""])
def test_a_hostile_tag_is_never_sent_back(cache: Cache, clock: Clock, tag: str) -> None:
    keep(cache, clock, {"ETag": tag, "Cache-Control": "max-age=1"})
    assert cache.validators(URL) == {}


def test_a_confirmed_page_is_fresh_again(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"ETag": '"a"', "Cache-Control": "max-age=60", "Age": "59", "Content-Type": "text/html"})
    clock.now += 1000
    found = cache.revalidate(
        URL,
        {"ETag": '"a"', "Cache-Control": "max-age=30", "Content-Type": "x/y", "Date": formatdate(clock.now)},
        clock.now,
    )
    assert found is not None
    assert (found.content, found.status, found.media_type) == (b"Text.", 200, "text/html")
    assert found.fetched_at == "2027-01-15T08:16:40+00:00"
    assert found.headers["cache-status"] == "prunus; fwd=stale; fwd-status=304"
    clock.now += 29
    assert cache.fresh(URL) is not None
    clock.now += 1
    assert cache.fresh(URL) is None


def test_a_304_for_another_version_confirms_nothing(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"ETag": '"a"', "Cache-Control": "max-age=60"})
    assert cache.revalidate(URL, {"ETag": '"b"'}, clock.now) is None
    cache.clear()
    assert cache.revalidate(URL, {"ETag": '"a"'}, clock.now) is None


def test_a_304_that_forbids_keeping_gives_the_page_once(cache: Cache, clock: Clock) -> None:
    keep(cache, clock, {"ETag": '"a"', "Cache-Control": "max-age=60"})
    assert cache.revalidate(URL, {"Cache-Control": "no-store"}, clock.now) is not None
    assert cache.info().entries == 0


# --- stale if error ------------------------------------------------------------------------------

STALE = {
    "the server says for how long": ("max-age=60, stale-if-error=100", 159, True),
    "and no longer": ("max-age=60, stale-if-error=100", 161, False),
    "it says nothing": ("max-age=60", 60 + 86_399, True),
    "a day is over": ("max-age=60", 60 + 86_401, False),
    "it must be asked": ("max-age=60, must-revalidate", 61, False),
    "it must always be asked": ('no-cache="x", max-age=60', 1, False),
    "still fresh": ("max-age=60", 1, True),
    "no number": ("max-age=60, stale-if-error=x", 61, False),
}


@pytest.mark.parametrize(("control", "later", "served"), STALE.values(), ids=STALE)
def test_a_page_stands_in_for_a_failing_server(
    cache: Cache, clock: Clock, control: str, later: float, served: bool
) -> None:
    keep(cache, clock, {"Cache-Control": control, "ETag": '"a"'})
    keep(cache, clock, {"Cache-Control": "no-store"}, page("Sorry.", 503))  # supersedes nothing
    clock.now += later
    found = cache.stale(URL)
    assert (found is not None) == served
    if found is not None and later > 60:
        assert int(found.headers["cache-status"].rpartition("=")[2]) < 0


def test_standing_in_can_be_switched_off(tmp_path: Path, clock: Clock) -> None:
    cache = Cache(tmp_path, stale_if_error=0, clock=clock)
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    clock.now += 61
    assert cache.stale(URL) is None


# --- bounds --------------------------------------------------------------------------------------


def test_the_least_recently_used_page_goes_first_and_the_limit_holds(tmp_path: Path, clock: Clock) -> None:
    cache = Cache(tmp_path, max_bytes=100_000, clock=clock)
    for number in range(30):
        keep(cache, clock, {"Cache-Control": "max-age=99999"}, page(f"{number}" * 5_000), f"{URL}/{number}")
        clock.now += 100
        assert cache.fresh(f"{URL}/0") is not None, "read each time: never the least recently used"
        assert cache.info().bytes <= 100_000
    kept = [number for number in range(30) if cache.fresh(f"{URL}/{number}")]
    assert kept[0] == 0 and kept[1:] == list(range(31 - len(kept), 30)) and len(kept) > 5


def test_a_page_larger_than_the_cache_is_left_out_and_said(tmp_path: Path, clock: Clock) -> None:
    cache = Cache(tmp_path, max_bytes=10_000, clock=clock)
    keep(cache, clock, {"Cache-Control": "max-age=60"}, page("x" * 20_000))
    info = cache.info()
    assert (info.entries, info.failures) == (0, 1) and "larger than" in info.last_failure


def test_the_same_content_is_kept_once(cache: Cache, clock: Clock) -> None:
    for number in range(50):
        keep(cache, clock, {"Cache-Control": "max-age=60"}, page("x" * 10_000), f"{URL}/{number}")
    assert cache.info().entries == 50 and cache.info().bytes < 100_000


def test_the_file_stays_about_as_small_as_what_it_keeps(tmp_path: Path, clock: Clock) -> None:
    cache = Cache(tmp_path, max_bytes=20_000_000, clock=clock)
    for number in range(12):
        keep(cache, clock, {"Cache-Control": "max-age=99999"}, page(f"{number:04}" * 450_000), f"{URL}/{number}")
    before = cache.info().disk_bytes
    keep(cache, clock, {"Cache-Control": "max-age=99999"}, page("x" * 19_000_000), f"{URL}/large")
    keep(cache, clock, {"Cache-Control": "max-age=99999"}, page("y" * 1_000_000), f"{URL}/small")
    info = cache.info()
    assert info.entries == 1 and info.bytes < 1_100_000
    cache.close()
    assert (tmp_path / "cache.sqlite").stat().st_size < 10_000_000 < before


def test_info_and_clear(cache: Cache, clock: Clock, tmp_path: Path) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"}, page("x" * 500_000))
    info = cache.info()
    assert (info.entries, info.failures, info.path) == (1, 0, str(tmp_path / "cache" / "cache.sqlite"))
    assert 500_000 < info.bytes < 510_000 and info.disk_bytes > 500_000
    assert cache.clear() == 1
    info = cache.info()
    assert (info.entries, info.bytes) == (0, 0) and info.disk_bytes < 200_000


def test_the_folder_is_for_its_owner_alone(cache: Cache, tmp_path: Path) -> None:
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match=r"cannot store pages.*set home"):
        Cache(tmp_path / "file" / "cache")


# --- damage, threads, processes ------------------------------------------------------------------


def spoil(tmp_path: Path, statement: str) -> None:
    connection = sqlite3.connect(tmp_path / "cache" / "cache.sqlite")
    connection.execute(statement)
    connection.commit()
    connection.close()


SPOILED = {
    "content": "UPDATE bodies SET content = CAST('Torn.' AS BLOB)",
    "half of the content": "UPDATE bodies SET content = substr(content, 1, 3)",
    "no content": "DELETE FROM bodies",
    "what is known": "UPDATE rows SET meta = replace(meta, '200', '203')",
    "the address": "UPDATE rows SET name = name || '/other'",
}


@pytest.mark.parametrize("statement", SPOILED.values(), ids=SPOILED)
def test_a_torn_entry_is_never_served(cache: Cache, clock: Clock, tmp_path: Path, statement: str) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60", "ETag": '"a"'})
    spoil(tmp_path, statement)
    for url in (URL, URL + "/other"):
        assert cache.fresh(url) is None and cache.stale(url) is None
        assert cache.revalidate(url, {}, clock.now) is None
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    assert cache.fresh(URL) is not None, "the damage is gone"


def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "cache.sqlite").write_bytes(b"no database at all, " * 500)
    cache = Cache(tmp_path, clock=clock)
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    assert cache.fresh(URL) is not None
    assert (tmp_path / "cache.sqlite.damaged").exists() and cache.info().failures == 1


def test_a_file_that_is_damaged_while_it_is_open_is_set_aside(tmp_path: Path, clock: Clock) -> None:
    cache = Cache(tmp_path, clock=clock)
    for number in range(200):
        keep(cache, clock, {"Cache-Control": "max-age=60"}, page("x" * 5_000 + str(number)), f"{URL}/{number}")
    cache.close()
    file = tmp_path / "cache.sqlite"
    content = bytearray(file.read_bytes())
    content[4096 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4096)
    file.write_bytes(content)
    cache = Cache(tmp_path, clock=clock)
    found = [cache.fresh(f"{URL}/{number}") for number in range(200)]
    assert all(one is None or one.content.endswith(str(number).encode()) for number, one in enumerate(found))  # type: ignore[union-attr]
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    keep(cache, clock, {"Cache-Control": "max-age=60"})  # the first may meet the damage
    assert cache.fresh(URL) is not None


def test_a_disk_that_refuses_costs_the_entry_and_not_the_page(cache: Cache, clock: Clock, tmp_path: Path) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    cache._store._connection.execute("PRAGMA query_only = ON")  # type: ignore[union-attr]
    keep(cache, clock, {"Cache-Control": "max-age=60"}, url=URL + "/2")
    assert cache.fresh(URL) is not None and cache.fresh(URL + "/2") is None
    assert cache.info().failures > 0 and "readonly" in cache.info().last_failure
    with pytest.raises(BadInput, match="cannot be cleared"):
        cache.clear()


def test_many_threads_share_a_cache(cache: Cache, clock: Clock) -> None:
    faults: list[str] = []

    def work(thread: int) -> None:
        for number in range(30):
            url = f"{URL}/{number % 7}"
            keep(cache, clock, {"Cache-Control": "max-age=60"}, page(f"{number % 7} " * 100), url)
            found = cache.fresh(url)
            if found is not None and not found.content.startswith(f"{number % 7} ".encode()):  # type: ignore[arg-type]
                faults.append(url)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == [] and cache.info().entries == 7 and cache.info().failures == 0


WRITER = """
import hashlib, sys
from pathlib import Path
from prunus.web.fetch.cache import Cache
from prunus.core.types import Page
cache = Cache(Path(sys.argv[1]), max_bytes=3_000_000, clock=lambda: 1_800_000_000.0)
print("ready", flush=True)
number = 0
while True:
    number += 1
    text = f"{sys.argv[2]} {number} " * 2_000
    url = f"https://example.org/{number % 50}"
    cache.store(url, Page(text.encode(), url), {"cache-control": "max-age=600"}, 1_800_000_000.0, 1_800_000_000.0)
    cache.fresh(url)
"""


@pytest.mark.slow
def test_after_writers_were_killed_every_entry_is_whole_or_absent(tmp_path: Path, clock: Clock) -> None:
    for turn in range(3):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), f"{turn}{name}"], stdout=subprocess.PIPE)
            for name in "ab"
        ]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(0.4)
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()  # type: ignore[union-attr]
    cache = Cache(tmp_path, max_bytes=3_000_000, clock=clock)
    found = [entry for number in range(50) if (entry := cache.fresh(f"https://example.org/{number}"))]
    assert len(found) > 20
    for entry in found:
        text = str(entry.content, "utf-8")  # type: ignore[arg-type]
        assert text == " ".join([*text.split()[:2], ""]) * 2_000
    info = cache.info()
    assert (info.failures, info.bytes <= 3_000_000) == (0, True)
    connection = sqlite3.connect(tmp_path / "cache.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    real = connection.execute(
        "SELECT (SELECT sum(bytes) FROM rows) + (SELECT sum(bytes) FROM bodies), (SELECT count(*) FROM bodies"
        " WHERE sha NOT IN (SELECT body FROM rows))"
    ).fetchone()
    connection.close()
    assert real == (info.bytes, 0), "the running total is exact, and no content is left behind"


def test_a_forked_child_opens_the_file_anew(cache: Cache, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, clock, {"Cache-Control": "max-age=60"})
    before = cache._store._connection
    real: Callable[[], int] = cache._store.__init__.__globals__["os"].getpid  # type: ignore[misc]
    monkeypatch.setattr("prunus.web.fetch._store.os.getpid", lambda: real() + 1)
    assert cache.fresh(URL) is not None
    assert cache._store._connection is not before
