"""What a format engine or cleaning raises fails one page, named in one line, in every command and call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Cli, lines_of, only_line

import prunus
from prunus.core.errors import BadEngine, errors_of_page
from prunus.core.settings import load_settings
from prunus.core.types import Page
from prunus.pages.formats.markdown import Engine
from prunus.pages.write.markdown import MarkdownWriter
from prunus.web.fetch.http import HttpFetcher
from prunus.web.reader import fetch_each

BUGS = [
    IndexError("list index\nout of range"),
    RecursionError("too deep"),
    MemoryError(),
    ValueError("²"),
    OSError(5, "x"),
]
QUESTION = "When did the harbour open?"
GOOD = "The harbour opened in {year}. A ticket costs four coins."


def in_the_engine(monkeypatch: pytest.MonkeyPatch, bug: Exception) -> None:
    whole = Engine.to_html

    def to_html(self: Engine, page: Page) -> str:
        if "odd" in page.url:
            raise bug
        return whole(self, page)

    monkeypatch.setattr(Engine, "to_html", to_html)


def in_cleaning(monkeypatch: pytest.MonkeyPatch, bug: Exception) -> None:
    from prunus.pages import read
    from prunus.web.search import local

    whole = read.clean_tree

    def clean_tree(markup: str | bytes, **options: Any) -> Any:
        if "odd" in options["name"]:
            raise bug
        return whole(markup, **options)

    monkeypatch.setattr(read, "clean_tree", clean_tree)
    monkeypatch.setattr(local, "clean_tree", clean_tree)


@pytest.fixture(params=BUGS, ids=lambda bug: type(bug).__name__)
def bug(request: pytest.FixtureRequest) -> Exception:
    error: Exception = request.param
    return error


@pytest.fixture(params=[in_the_engine, in_cleaning])
def pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path, bug: Exception) -> Path:
    """A folder of three pages, the second of which raises an error."""
    request.param(monkeypatch, bug)
    root = folder / "three"
    root.mkdir()
    for name, year in (("a", 1932), ("odd", 1933), ("z", 1934)):
        (root / f"{name}.markdown").write_text(f"# Page {name}\n\n{GOOD.format(year=year)}\n", "utf-8")
    return root


def check_line(text: str, bug: Exception) -> None:
    """Check that one line names the page and the type of the error."""
    assert "Traceback" not in text
    [line] = [line for line in text.splitlines() if "odd.markdown" in line]
    assert type(bug).__name__ in line and "report it" in line


def test_clean_writes_the_other_pages(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("clean", pages, "-o", "out")
    assert result.exit_code == 5
    assert sorted(path.name for path in Path("out").iterdir()) == ["a.html", "z.html"]
    check_line(result.stderr, bug)
    assert [record["page"][-5:] for record in lines_of(cli("clean", pages, "--json")) if "error" in record] == ["kdown"]


def test_clean_of_that_page_alone_is_one_line(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("clean", pages / "odd.markdown")
    assert result.exit_code == 2
    check_line(only_line(result), bug)


def test_prune_keeps_evidence_of_the_other_pages(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("prune", *sorted(pages.iterdir()), "-q", QUESTION)
    assert result.exit_code == 5
    assert "1932" in result.stdout and "1934" in result.stdout
    check_line(result.stderr, bug)


def test_ask_answers_from_the_other_pages(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("ask", QUESTION, *sorted(pages.iterdir()))
    assert result.exit_code == 5
    assert "1932" in result.stdout
    check_line(result.stderr, bug)


def test_a_search_in_a_folder_finds_the_other_pages(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("search", "harbour", "--search", f"local:{pages}")
    assert result.exit_code == 0
    assert "a.markdown" in result.stdout and "z.markdown" in result.stdout
    check_line(result.stderr, bug)


def test_ask_with_a_search_answers_from_the_other_pages(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("ask", QUESTION, "--search", f"local:{pages}")
    assert result.exit_code in (0, 5)
    assert "1932" in result.stdout and "Traceback" not in result.stderr


def test_index_add_takes_the_other_pages(cli: Cli, pages: Path, bug: Exception) -> None:
    result = cli("index", "add", "I", pages, "--json")
    assert result.exit_code == 5
    assert len(json.loads(result.stdout)["added"]) == 2
    check_line(result.stderr, bug)


@pytest.mark.usefixtures("in_this_process")
def test_batch_fails_that_job_alone(cli: Cli, pages: Path, bug: Exception) -> None:
    jobs = [{"id": path.stem, "command": "clean", "pages": [str(path)]} for path in sorted(pages.iterdir())]
    jobs += [{"id": "p", "command": "prune", "question": QUESTION, "pages": [str(path) for path in pages.iterdir()]}]
    Path("jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs), "utf-8")
    result = cli("batch", "jobs.jsonl", "-o", "out.jsonl")
    assert result.exit_code == 5
    records = {record["id"]: record for record in map(json.loads, Path("out.jsonl").read_text("utf-8").splitlines())}
    assert {id for id, record in records.items() if "error" in record} == {"odd", "p"}
    check_line(records["odd"]["error"], bug)


def test_the_library_notes_the_page_and_keeps_the_cause(pages: Path, bug: Exception) -> None:
    documents = prunus.read(pages, strict=False)
    assert len(documents) == 2
    [(name, reason)] = documents.failures.items()
    assert name.endswith("odd.markdown")
    check_line(reason, bug)
    with pytest.raises(prunus.BadPage) as caught:
        prunus.extract(QUESTION, pages)
    assert caught.value.__cause__ is bug


def test_a_page_that_cannot_be_written_fails_alone(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, bug: Exception
) -> None:
    def fails(self: MarkdownWriter) -> str:
        if "odd" in self.tree.canonical:
            raise bug
        return "written"

    monkeypatch.setattr(MarkdownWriter, "markdown", fails)
    for name in ("a", "odd", "z"):
        (folder / f"{name}.markdown").write_text(f"the {name} page\n", "utf-8")
    result = cli("clean", "a.markdown", "odd.markdown", "z.markdown", "--format", "markdown", "-o", "out")
    assert result.exit_code == 5 and len(list(Path("out").iterdir())) == 2
    check_line(result.stderr, bug)


def test_a_page_that_cannot_be_fetched_fails_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, bug: Exception
) -> None:
    async def walk(self: HttpFetcher, session: Any, url: Any) -> Page:
        await asyncio.sleep(0)
        if "odd" in str(url):
            raise bug
        return Page(GOOD, url=str(url))

    monkeypatch.setattr(HttpFetcher, "_walk", walk)
    urls = [f"https://example.org/{name}.markdown" for name in ("a", "odd", "z")]
    first, odd, last = fetch_each(load_settings(), urls)
    assert isinstance(first, Page) and isinstance(last, Page)
    assert isinstance(odd, prunus.BadPage) and odd.__cause__ is bug
    check_line(str(odd), bug)


def test_an_engine_of_another_package_is_named_with_the_page() -> None:
    with pytest.raises(BadEngine, match=r"^a\.x: format y: it failed"), errors_of_page("a.x"):
        raise BadEngine("format y: it failed", subject="y")
