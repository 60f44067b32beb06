"""``local`` and ``replay``: searches that need no network."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from prunus.errors import BadInput, BadPage
from prunus.search import local, replay
from prunus.types import Hit, Results, SearchRequest

SITE = Path(__file__).parents[2] / "examples" / "site"


def search(provider: Any, query: str, **fields: Any) -> Results:
    return asyncio.run(provider.search(SearchRequest(query, **fields)))


# --- local ---------------------------------------------------------------------------------------


def test_a_folder_is_searched_by_title_and_text() -> None:
    found = search(local.Engine(str(SITE)), "How much did the Linden Trust pay towards reading the rolls?", count=3)
    assert Path(found.hits[0].url).name == "tide-rolls-story.html"
    assert "Linden Trust" in found.hits[0].snippet
    assert found.hits[0].title == "The river that lost its memory | Velmar Tideworks"
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert found.hits[0].text == ""
    assert found.warnings == ()


def test_pages_follow_each_other_without_overlap() -> None:
    engine = local.Engine(str(SITE))
    both = [hit.url for hit in search(engine, "gauge water level", count=4).hits]
    halves = [hit.url for page in (1, 2) for hit in search(engine, "gauge water level", count=2, page=page).hits]
    assert both == halves


def test_what_no_page_holds_is_not_found() -> None:
    assert search(local.Engine(str(SITE)), "zeppelin photosynthesis").hits == ()


def test_text_is_sent_where_it_is_wanted_and_other_filters_are_warnings() -> None:
    found = search(local.Engine(str(SITE)), "Linden Trust", want_text=True, country="ch", exclude_domains=("a.org",))
    assert "Linden Trust" in found.hits[0].text
    assert [warning.split("filter ")[1] for warning in found.warnings] == ["country", "exclude_domains"]


def test_a_changed_folder_is_indexed_again(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<title>A</title><p>Quinces are yellow.")
    engine = local.Engine(str(tmp_path))
    assert search(engine, "quinces").hits
    page.write_text("<title>A</title><p>Medlars are brown and soft.")
    assert not search(engine, "quinces").hits
    (tmp_path / "b.txt").write_text("# Notes\nquinces again")
    assert [hit.title for hit in search(engine, "quinces").hits] == ["Notes"]


def test_a_page_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text("<p>Quinces are yellow.")
    (tmp_path / "odd.xyz").write_bytes(b"?")

    def reader(page: Any) -> str | bytes:
        if page.url.endswith(".xyz"):
            raise BadPage("no such format", subject=page.url)
        return page.content  # type: ignore[no-any-return]

    found = search(local.Engine(str(tmp_path), reader, (".html", ".xyz")), "quinces")
    assert [Path(hit.url).name for hit in found.hits] == ["good.html"]
    assert found.warnings == ("local: odd.xyz was left out: no such format",)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("<p>quinces")
    inside = tmp_path / "pages"
    inside.mkdir()
    (inside / "a.html").write_text("<p>medlars")
    os.symlink(tmp_path / "secret.html", inside / "b.html")
    assert search(local.Engine(str(inside)), "quinces").hits == ()


@pytest.mark.parametrize("model", ["", "no/such/folder"])
def test_a_missing_folder_is_bad_input(model: str) -> None:
    with pytest.raises(BadInput, match="search local"):
        search(local.Engine(model), "x")


def test_an_empty_folder_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no page in this folder"):
        search(local.Engine(str(tmp_path)), "x")


# --- replay --------------------------------------------------------------------------------------


class Counting:
    """A provider that says how often it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    async def search(self, request: SearchRequest) -> Results:
        self.asked += 1
        return Results((Hit("https://example.org/", request.query, "s", rank=1),), ("w",), 0.5, 7)


def test_what_was_recorded_comes_again_and_nothing_is_asked(tmp_path: Path) -> None:
    file, provider = tmp_path / "deep" / "r.jsonl", Counting()
    first = search(replay.Engine(str(file), provider), "tide")
    assert search(replay.Engine(str(file), provider), "tide") == first
    assert search(replay.Engine(str(file)), "tide") == first
    assert provider.asked == 1


def test_another_request_is_not_in_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    search(replay.Engine(str(file), Counting()), "tide")
    with pytest.raises(BadInput, match="no results are recorded for 'tide'"):
        search(replay.Engine(str(file)), "tide", page=2)


def test_a_line_that_a_killed_writer_left_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    search(replay.Engine(str(file), Counting()), "one")
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    assert search(replay.Engine(str(file)), "one").hits
    search(replay.Engine(str(file), Counting()), "two")
    assert search(replay.Engine(str(file), Counting()), "two").hits[0].title == "two"


@pytest.mark.parametrize("line", ["{}", "[1]", '{"digest": 1}', "x" * 50])
def test_a_file_of_something_else_is_bad_input(tmp_path: Path, line: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(line + "\n" + line + "\n")
    with pytest.raises(BadInput, match="line 1 holds no recorded results"):
        search(replay.Engine(str(file)), "x")


def test_a_missing_recording_is_bad_input(tmp_path: Path) -> None:
    for model in ("", str(tmp_path / "none")):
        with pytest.raises(BadInput, match="replay"):
            search(replay.Engine(model), "x")
