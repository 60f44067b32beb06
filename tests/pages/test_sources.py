"""Sources of pages: HTML, bytes, paths, folders and Pages are read; everything else is one clear error."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import prunus
from prunus.core.errors import BadInput, BadPage, PrunusError
from prunus.pages.sources import Reading, as_page, each_source

SUFFIXES = (".html", ".htm", ".txt")


def names(pages: list[prunus.Page]) -> list[str]:
    return [Path(page.url).name for page in pages]


@pytest.mark.parametrize("source", ["<p>x", b"<p>x", "plain words", "C:\\not\\a\\path but words"])
def test_text_and_bytes_are_pages(source: Any) -> None:
    assert as_page(source).content == source


def test_a_file_is_a_page_with_its_path_as_address(folder: Path) -> None:
    (folder / "a.html").write_bytes(b"<p>x")
    page = as_page(folder / "a.html")
    assert (page.content, page.url) == (b"<p>x", str(folder / "a.html"))


def test_a_page_stays_itself() -> None:
    page = prunus.Page("<p>x", url="https://example.org/")
    assert as_page(page) is page


def every(sources: Any, reading: Reading) -> Iterator[prunus.Page]:
    """Yield the pages of sources; raise the first error."""
    for page in each_source(sources, reading):
        if isinstance(page, PrunusError):
            raise page
        yield page


def test_a_folder_is_its_pages_in_order(folder: Path) -> None:
    (folder / "b").mkdir()
    for name in ("z.html", "a.HTM", "b/c.txt", "d.png", "e"):
        (folder / name).write_text("<p>x")
    assert names(list(every(folder, Reading(lambda: SUFFIXES)))) == ["a.HTM", "c.txt", "z.html"]


def test_several_sources_keep_their_order(folder: Path) -> None:
    (folder / "a.html").write_text("<p>file")
    pages = list(every(["<p>one", folder / "a.html", b"<p>two"], Reading(lambda: SUFFIXES)))
    assert [page.content for page in pages] == ["<p>one", b"<p>file", b"<p>two"]


def test_any_iterable_of_sources_will_do() -> None:
    assert len(list(every((page for page in ("<p>a", "<p>b")), Reading(lambda: SUFFIXES)))) == 2


def test_links_out_of_a_folder_are_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.html"
    secret.write_text("<p>secret")
    (folder / "in.html").write_text("<p>x")
    (folder / "out.html").symlink_to(secret)
    (folder / "gone.html").symlink_to(folder / "nowhere")
    (folder / "loop").symlink_to(folder)
    assert names(list(every(folder, Reading(lambda: SUFFIXES)))) == ["in.html"]


@pytest.mark.parametrize(
    "source",
    [Path("no/such/file.html"), Path("."), Path("\0"), Path("x" * 5000), 5, None, ["<p>x"], {"a": 1}, object()],
    ids=lambda source: type(source).__name__ + str(source)[:12].replace("\0", "0"),
)
def test_what_is_no_page_is_one_clear_error(folder: Path, source: Any) -> None:
    with pytest.raises(BadInput) as caught:
        list(every([source], Reading(lambda: SUFFIXES)))
    assert "\n" not in str(caught.value)
    assert str(caught.value)


@pytest.mark.parametrize("sources", [[], ()])
def test_an_empty_list_of_sources_is_refused(sources: Any) -> None:
    with pytest.raises(BadInput, match="no page"):
        list(every(sources, Reading(lambda: SUFFIXES)))


def test_an_address_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(BadInput, match="save the page"):
        as_page("https://example.org/a?b=c")


def test_text_that_begins_with_an_address_is_text() -> None:
    assert as_page("https://example.org/ is a site").content.startswith("https")


@pytest.mark.parametrize("text", ["pages/no-such.html", "No_such.PDF", r"C:\notes\no-such.md", " ./no-such.txt\n"])
def test_text_that_looks_like_a_path_is_refused_on_every_way_in(text: str, tmp_path: Path) -> None:
    ways: list[Callable[[], object]] = [
        lambda: prunus.clean(text),
        lambda: prunus.metadata(text),
        lambda: prunus.read(text),
        lambda: prunus.prune([text], "q"),
        lambda: prunus.Index.open(tmp_path / "index").add(text),
    ]
    for way in ways:
        with pytest.raises(BadInput, match="Path\\("):
            way()


@pytest.mark.parametrize("text", ["See notes.md", "<p>notes.md", "version 1.2", "notes.unknown"])
def test_text_with_white_space_or_tags_is_no_path(text: str) -> None:
    assert prunus.clean(text, "text") == text.removeprefix("<p>")


def test_a_folder_without_pages_says_what_it_looked_for(folder: Path) -> None:
    (folder / "a.png").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"\.html"):
        list(every(folder, Reading(lambda: SUFFIXES)))


def test_a_file_over_the_limit_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "big.html").open("wb") as file:
        file.truncate(3 * 1024 * 1024)
    with pytest.raises(BadPage, match="limit of 2 MiB"):
        list(every(folder / "big.html", Reading(lambda: SUFFIXES, max_file_mb=2)))


def test_a_folder_of_too_many_pages_is_refused(folder: Path) -> None:
    for number in range(4):
        (folder / f"{number}.html").write_text("<p>x")
    with pytest.raises(BadInput, match="more than 3"):
        list(every(folder, Reading(lambda: SUFFIXES, max_files=3)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "a.html").write_text("<p>x")
    (folder / "a.html").chmod(0)
    with pytest.raises(BadPage, match="cannot be read"):
        list(every(folder / "a.html", Reading(lambda: SUFFIXES)))


def test_a_device_without_end_is_refused() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("this system has no /dev/zero")
    with pytest.raises(BadPage, match="limit of 1 MiB"):
        list(every(Path("/dev/zero"), Reading(lambda: SUFFIXES, max_file_mb=1)))


@pytest.mark.parametrize("content", ["<p>größe", "<p>größe".encode(), "<p>\ud800"])
def test_the_snapshot_is_the_sha256_of_the_content(content: str | bytes) -> None:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    (tree,) = prunus.read(content).trees
    assert tree.snapshot == hashlib.sha256(data).hexdigest()


def test_without_strictness_what_cannot_be_read_is_noted_and_the_rest_is_read(folder: Path) -> None:
    (folder / "good.html").write_text("<p>words")
    (folder / "empty.html").write_text("")
    (folder / "picture.html").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    documents = prunus.read([folder, folder / "missing.html", "<p>more"], strict=False)
    assert len(documents) == 2
    assert sorted(Path(name).name for name in documents.failures) == ["empty.html", "missing.html", "picture.html"]
    with pytest.raises(BadPage):
        prunus.read([folder])


def test_when_nothing_can_be_read_the_reason_is_given(folder: Path) -> None:
    (folder / "empty.html").write_text("")
    with pytest.raises(BadPage, match="empty"):
        prunus.read([folder / "empty.html"], strict=False)
