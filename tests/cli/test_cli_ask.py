"""``prunus ask``: an answer with sources that can be checked, or exit code 4."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import SITE, Cli, Shell, lines_of, only_line

import prunus
from prunus.cli.commands.ask import sources

QUESTION = "How much did the Linden Trust pay towards reading the rolls?"


def test_an_answer_names_its_sources(cli: Cli) -> None:
    result = cli("ask", QUESTION, "examples/site")
    assert result.exit_code == 0
    assert "€74,400" in result.stdout
    assert "[1] The river that lost its memory" in result.stdout
    assert "examples/site/tide-rolls-story.html  /" in result.stdout
    assert "quote: found" in result.stdout and "NOT FOUND" not in result.stdout
    assert "12 pages read" in result.stderr


def test_json_is_the_whole_answer(cli: Cli) -> None:
    [record] = lines_of(cli("ask", QUESTION, "examples/site/tide-rolls-story.html", "--json", "--quiet"))
    assert record["question"] == QUESTION
    assert {"text", "citations", "unsupported", "engines", "usage", "failures"} <= set(record)
    text = prunus.read(SITE / "tide-rolls-story.html").trees[0].canonical
    for citation in record["citations"]:
        assert citation["found"] and citation["xpath"].startswith("/")
        assert citation["quote"] == text[citation["span"]["start"] : citation["span"]["end"]]


def test_events_come_in_order(cli: Cli) -> None:
    events = [line["event"] for line in lines_of(cli("ask", QUESTION, "examples/site", "--events", "--quiet"))]
    assert events[:12] == ["page"] * 12
    assert list(dict.fromkeys(events[12:])) == [
        "kept", "extracted", "token", "citation", "usage", "done",
    ]  # fmt: skip


def test_nothing_relevant_is_said_and_not_invented(cli: Cli) -> None:
    question = "zygote chromosome mitosis telophase"
    result = cli("ask", question, "examples/site/old-bulletin.html", "--quiet")
    assert result.exit_code == 4
    assert "no passage of the pages is likely to answer" in only_line(result)
    events = cli("ask", question, "examples/site/old-bulletin.html", "--events", "--quiet")
    assert events.exit_code == 4
    assert lines_of(events)[-1]["event"] == "error"


def test_an_answer_without_some_pages_is_done_in_part(cli: Cli, small_site: Path) -> None:
    result = cli("ask", "When did the bridge open?", small_site, "missing.html")
    assert result.exit_code == 5
    assert "1932" in result.stdout
    for name in ("empty.html", "picture.html", "missing.html"):
        assert name in result.stderr
    assert "Traceback" not in result.stderr


def test_no_page_at_all(cli: Cli) -> None:
    result = cli("ask", QUESTION)
    assert result.exit_code == 2
    assert "no page was given" in only_line(result)


def test_a_quote_that_is_not_in_its_page_is_marked() -> None:
    span = prunus.Span("d", 0, 0)
    citation = prunus.Citation(1, "a.html", "A", "", "d", "d", "never said", span, "", False, 0.0)
    text = sources(prunus.Answer("“never said” [1]", [citation]))
    assert text.splitlines()[-1].strip() == "quote: NOT FOUND"


@pytest.mark.parametrize("name", ["-q", "--question"])
def test_the_question_comes_first_or_by_its_option(cli: Cli, name: str) -> None:
    page = "examples/site/tide-rolls-story.html"
    assert cli("ask", page, name, QUESTION, "--quiet").stdout == cli("ask", QUESTION, page, "--quiet").stdout != ""


@pytest.mark.parametrize("arguments", [("examples/site", QUESTION), ("https://example.org/", QUESTION), ()])
def test_a_question_in_the_wrong_place_is_one_line(cli: Cli, arguments: tuple[str, ...]) -> None:
    result = cli("ask", *arguments)
    assert result.exit_code == 2
    assert "write prunus ask" in only_line(result) and "-q" in result.stderr


def test_a_home_that_cannot_be_written_is_one_warning_and_no_failure(folder: Path, shell: Shell) -> None:
    (folder / "home").write_text("a file", "utf-8")
    (folder / "prunus.toml").write_text('home = "home/below"\n', "utf-8")
    done = shell("ask", QUESTION, SITE / "tide-rolls-story.html", SITE / "faq.html")
    assert done.returncode == 0 and b"Linden Trust" in done.stdout
    [warning, _] = done.stderr.decode().splitlines()
    assert warning.startswith("prunus: home/below: cannot store pages here") and "going on" in warning


def test_a_number_of_quotes_is_given_on_the_command_line(cli: Cli) -> None:
    asked = [
        "ask",
        "How much did the Linden Trust pay towards reading the rolls?",
        "examples/site/tide-rolls-story.html",
    ]
    one = cli(*asked, "--quotes", "1")
    assert one.stdout.count("\u201c") == 1
    assert "1 quote;" in one.stderr
