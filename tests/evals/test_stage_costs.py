"""The cost of stages: the tokens of each stage, for many pages at once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from click.testing import CliRunner

from prunus_evals import stage_costs, tasks
from prunus_evals.cli import main
from prunus_evals.records import Question, one_page


def asked(number: int) -> Question:
    rows = "".join(f"<tr><td>City {n}<td>{n * number}" for n in range(30))
    page = f"<p>Ann has {number} apples.</p><script>var x = {number};</script><table><tr><th>City<th>Size{rows}</table>"
    return Question(
        str(number), "nq", str(number), one_page(page), f"How many apples has Ann {number}?", (str(number),)
    )


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "groups", lambda name, half, limit: iter([[asked(n)] for n in range(3, 11)]))


@pytest.mark.usefixtures("pages")
def test_every_stage_hands_on_what_the_next_one_reads() -> None:
    questions = stage_costs.load("dev", pages=4, count=2)
    assert [len(question.documents) for question in questions] == [4, 4]
    assert all(any(one.id.endswith(f"/{question.page}") for one in question.documents) for question in questions)
    (costs,) = stage_costs.run(questions, ["prunus:bm25>static:html@coarse=200"], 100, lambda line: None)
    result = stage_costs.summary([costs], questions, "dev", 100)
    stages = list(result["systems"][costs.system]["stages"].items())
    names = [name for name, _ in stages]
    assert names == ["clean", "cut into blocks", "first stage", "second stage", "choose and write"]
    for (_, before), (_, after) in pairwise(stages):
        assert before["tokens_out"] == after["tokens_in"]
    assert dict(stages)["first stage"]["tokens_out"] <= 200
    assert stages[-1][1]["tokens_out"] == result["systems"][costs.system]["tokens"] <= 100


@pytest.mark.usefixtures("pages")
def test_the_command_prints_a_table_and_refuses_more_pages_than_there_are() -> None:
    shown = CliRunner().invoke(main, ["stages", "--pages", "4", "--limit", "1", "--budget", "100"])
    assert shown.exit_code == 0, shown.output
    assert "choose and write" in shown.output and "rank and pack" in shown.output
    refused = CliRunner().invoke(main, ["stages", "--pages", "400"])
    assert refused.exit_code == 2 and "too few for" in refused.output
    unknown = CliRunner().invoke(main, ["stages", "--pages", "4", "--systems", "text_cut"])
    assert unknown.exit_code == 2 and "Traceback" not in unknown.output
