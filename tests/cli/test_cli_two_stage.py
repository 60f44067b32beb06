"""Pruning in two stages on the command line and in jobs: messages, output and refused options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.command import SITE, Cli, only_line

QUESTION = "How long is the Pell 2 guaranteed?"
TWO = ("--two-stage", "--second-scorer", "bm25", "--coarse-budget", "1500", "--budget", "300")


def test_both_stages_are_told(cli: Cli) -> None:
    result = cli("prune", str(SITE), "-q", QUESTION, *TWO)
    assert result.exit_code == 0
    first, second = [line for line in result.stderr.splitlines() if line.startswith("stage ")]
    assert first.startswith("stage first: trees read ")
    assert "(budget 1,500)" in first
    assert second.startswith("stage second: bm25 read ")
    assert "Pell 2" in result.stdout


def test_json_names_stages_and_who_scored_each_block(cli: Cli) -> None:
    found = json.loads(cli("prune", str(SITE), "-q", QUESTION, *TWO, "--json=full").stdout)
    assert [stage["stage"] for stage in found["stages"]] == ["first", "second"]
    assert found["stages"][0]["tokens"] <= 1500
    assert found["engines"]["second_scorer"] == "bm25"
    assert {block["stage"] for block in found["blocks"]} == {1, 2}
    assert all(block["stage"] == 2 for block in found["blocks"] if block["kept"])
    assert found["tokens"] <= 300
    assert all("not read" in warning for warning in found["warnings"])


def test_explain_puts_what_the_second_stage_scored_first(cli: Cli) -> None:
    result = cli("prune", str(SITE / "faq.html"), "-q", "When is a value final?", "--explain", *TWO[:3], "--coarse-budget",
                 "400", "--budget", "150", "--max-words", "40")  # fmt: skip
    assert "the score of the first stage from here on:" in result.stderr
    before, _, after = result.stderr.partition("the score of the first stage from here on:")
    assert " kept " in before
    assert " kept " not in after.partition("stage first")[0]


def test_the_report_says_which_stage_scored(cli: Cli, folder: Path) -> None:
    assert cli("prune", str(SITE), "-q", QUESTION, *TWO, "--report", "report.html", "--quiet").exit_code == 0
    text = (folder / "report.html").read_text("utf-8")
    assert "score of stage 2" in text
    assert "scored by stage 1" in text
    assert "score, second" in text


def test_two_stages_are_chosen_where_a_fine_scorer_meets_large_pages(cli: Cli) -> None:
    large = cli("prune", str(SITE), "-q", QUESTION, "--second-scorer", "bm25", "--budget", "300", "--json")
    small = cli("prune", str(SITE / "faq.html"), "-q", QUESTION, "--second-scorer", "bm25", "--budget", "300", "--json")
    alone = cli(
        "prune", str(SITE), "-q", QUESTION, "--second-scorer", "bm25", "--one-stage", "--budget", "300", "--json"
    )
    assert [len(json.loads(one.stdout)["stages"]) for one in (large, small, alone)] == [2, 1, 1]
    assert json.loads(alone.stdout)["engines"]["scorer"] == "bm25"


def test_a_mark_of_two_stages_leads_into_the_page(cli: Cli, folder: Path) -> None:
    assert cli("prune", str(SITE / "faq.html"), "-q", QUESTION, *TWO, "--mark", "marked.html").exit_code == 0
    assert 'data-prunus="kept' in (folder / "marked.html").read_text("utf-8")


def test_ask_takes_two_stages(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_SECOND_SCORER", "bm25")
    found = json.loads(cli("ask", QUESTION, str(SITE), "--budget", "400", "--json").stdout)
    assert found["engines"]["second_scorer"] == "bm25"
    assert found["citations"]
    assert all(citation["found"] for citation in found["citations"])


def test_jobs_take_two_stages(cli: Cli, folder: Path) -> None:
    job = {"id": 1, "command": "prune", "pages": [str(SITE)], "question": QUESTION, "budget": 300}
    more = {"second_scorer": "bm25", "stages": 2, "coarse_budget": 1500, "coarse_words": 100}
    lines = [job | more, {**job, "id": 2, "second_scorer": 3}, {**job, "id": 3, "stages": 7}]
    (folder / "jobs.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    cli("batch", "jobs.jsonl", "-o", "out.jsonl", "--workers", "1")
    records = {one["id"]: one for one in map(json.loads, (folder / "out.jsonl").read_text("utf-8").splitlines())}
    assert records[1]["stages"][0]["max_words"] == 100
    assert "second_scorer is 3" in records[2]["error"]
    assert "1 or 2 stages" in records[3]["error"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--two-stage"], "two stages need a second scorer"),
        (["--second-scorer", "none-such"], "no scorer is called 'none-such'"),
        (["--second-scorer", "bm25", "--coarse-budget", "10"], "cannot leave 10 tokens for a budget of 300"),
        (["--second-scorer", "bm25", "--coarse-words", "5", "--max-words", "9"], "finer than the second's of 9"),
        (["--second-scorer", "generative"], "needs a path scorer"),
        (["--second-scorer", "crossencoder"], "needs a reranker"),
    ],
)
def test_what_cannot_be_is_one_line(cli: Cli, given: list[str], said: str) -> None:
    result = cli("prune", str(SITE / "faq.html"), "-q", QUESTION, "--budget", "300", *given)
    assert result.exit_code == 2
    assert said in only_line(result)
