"""A tiny random model as the second of two stages, from the command line: its window, its trees, its budgets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.command import SITE
from tests.extras import need

pytestmark = pytest.mark.full

QUESTION = "When is a value final?"


@pytest.fixture(scope="module")
def folder_of_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama that reads 3,000 letters."""
    need("transformers")
    from tests.models.llm.tiny import causal

    return causal(tmp_path_factory.mktemp("tiny"), window=3000)


def prune(*given: str | Path) -> Result:
    from prunus.cli.main import app

    page = SITE / "faq.html"
    return CliRunner().invoke(app, ["prune", str(page), "-q", QUESTION, "--budget", "120", *map(str, given)])


def test_over_the_window_the_first_stage_shrinks_the_prompt_and_says_so(folder_of_model: Path) -> None:
    result = prune("--scorer", f"generative:{folder_of_model}", "--json=full")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [one["stage"] for one in found["stages"]] == ["window", "second"]
    assert found["tokens"] <= 120
    assert "window of 3,000 tokens" in found["warnings"][0]
    assert found["warnings"][0] in result.stderr
    assert found["engines"]["second_scorer"] == f"generative:{folder_of_model}"
    scores = [block["score"] for block in found["blocks"] if block["stage"] == 2]
    assert 1 < len(scores) < len(found["blocks"])
    assert max(scores) < 0


def test_the_trees_are_printed_and_drawn(folder_of_model: Path, folder: Path) -> None:
    result = prune("--scorer", f"generative:{folder_of_model}", "--explain", "--report", folder / "report.html")
    assert result.exit_code == 0, result.stderr
    assert "block tree: P at every branch" in result.stderr
    assert "of them without inference" in result.stderr
    assert (folder / "report.html").read_text("utf-8").count('class="panel tree"') == 2


def test_a_window_that_holds_no_block_is_one_line(folder_of_model: Path, folder: Path) -> None:
    (folder / "prunus.toml").write_text("path_options = { context_window = 300 }\n", "utf-8")
    result = prune("--scorer", f"generative:{folder_of_model}")
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert "window of 300" in line


def test_two_stages_as_published_with_a_model(folder_of_model: Path) -> None:
    result = prune(
        "--two-stage", "--second-scorer", f"generative:{folder_of_model}", "--coarse-budget", "400", "--json"
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [one["stage"] for one in found["stages"]] == ["first", "second"]
    assert found["stages"][0]["tokens"] <= 400
    assert all(block["stage"] == 2 for block in found["blocks"] if block["kept"])
