"""``prunus train``: its help texts, and errors in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("selectolax")

from prunus_train.cli import main
from prunus_train.pruner_command import run


@pytest.mark.parametrize("command", ["labels", "pack", "pack-samples", "content", "quotes"])
def test_every_command_shows_an_example(command: str) -> None:
    shown = CliRunner().invoke(main, [command, "--help"])
    assert shown.exit_code == 0
    assert f"Example: prunus train {command} " in shown.output


def test_the_trainer_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["--help"])
    assert ended.value.code == 0
    assert "--preset tiny --device cuda" in capsys.readouterr().out


def test_a_budget_that_is_no_number_is_one_line(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["labels", "-o", str(tmp_path / "out"), "--budgets", "many"])
    assert shown.exit_code == 2
    assert "--budgets" in shown.output and "many" in shown.output
