"""``prunus train``: its help texts, and errors in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("selectolax")

from prunus_train.cli import main


@pytest.mark.parametrize("command", ["content", "quotes", "dpo"])
def test_every_command_shows_an_example(command: str) -> None:
    shown = CliRunner().invoke(main, [command, "--help"])
    assert shown.exit_code == 0
    assert f"Example: prunus train {command} " in shown.output


def test_a_budget_that_is_no_number_is_one_line(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["data", "pruner", "-o", str(tmp_path / "out"), "--budgets", "many"])
    assert shown.exit_code == 2
    assert "--budgets" in shown.output and "many" in shown.output


@pytest.mark.parametrize("command", ["parser", "extractor"])
def test_every_maker_of_data_shows_an_example(command: str) -> None:
    shown = CliRunner().invoke(main, ["data", command, "--help"])
    assert shown.exit_code == 0
    assert f"Example: prunus train data {command} " in shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sft", "no.jsonl", "-o", "out", "--base", "b", "--rate", "0"], "'--rate': 0.0 is not in the range x>0"),
        (["sft", "no.jsonl", "-o", "out", "--base", "b", "--micro", "3"], "--batch 16 is no multiple of --micro 3"),
        (["sft", "no.jsonl", "-o", "out", "--base", "b", "--launch", "zero3", "--lora", "8"], "--lora trains on one"),
        (["dpo", "no.jsonl", "-o", "out", "--base", "b", "--launch", "sequence"], "use zero3 for dpo"),
        (["data", "parser", "-o", "out"], "name a file of REQUESTS"),
        (["data", "pruner", "-o", "out", "--bare", "b"], "--bare needs --search"),
        (["data", "parser", "--made", "2", "-o", "no/such/out"], "there is no folder"),
    ],
)
def test_wrong_options_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 2
    assert message in " ".join(shown.output.replace("│", " ").split())


def test_a_launch_shows_its_command_without_the_options_of_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["sft", "s.jsonl", "-o", "out", "--base", "b", "--launch", "zero3", "--processes=4", "--dry-run"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["prunus", "train", *arguments])
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0, shown.output
    assert shown.output.strip().endswith("-m prunus_train sft s.jsonl -o out --base b")
    assert "zero3.yaml --num_processes 4 --deepspeed_config_file" in shown.output
