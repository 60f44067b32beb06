"""The search provider ``local``: a folder of pages, without a network."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from prunus.core.errors import BadInput, BadPage
from prunus.core.types import Results, SearchRequest
from prunus.web.search import local

SITE = Path(__file__).parents[3] / "examples" / "site"


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
