"""The gate: a number below its floor fails, whatever vanishes fails, and no floor goes down by accident."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus_evals import gate, tokens
from prunus_evals.cli import main
from prunus_evals.errors import EvalError

FLOORS = {"survival/nq/s/512/answer": 0.5, "quotes/nq/first": 0.4, "content/s/f": 0.9}
MEASURED = {"survival/nq/s/512/answer": 0.51, "quotes/nq/first": 0.45, "content/s/f": 0.95}

LEAST = {
    "survival/table_qa/prunus:trees:html": {"512/answer": 0.76, "1024/answer": 0.86, "2048/answer": 0.91, "4096/answer": 0.945,
                                              "512/gold_whole": 0.11, "1024/gold_whole": 0.36, "2048/gold_whole": 0.65, "4096/gold_whole": 0.8},
    "survival/websrc/prunus:trees:html": {f"{budget}/{measure}": 0.98 for budget in (512, 1024, 2048, 4096) for measure in ("answer", "gold_whole")},
    "survival/nq/prunus:trees:html": {"512/answer": 0.54, "1024/answer": 0.74, "2048/answer": 0.84, "4096/answer": 0.98},
    "articles": {f"prunus:{format}/survived": 0.999 for format in ("html", "markdown", "text")},
    "content/prunus:body": {"f": 0.945},
    "kinds/prunus:main": {"all": 0.84},
    "quotes/table_qa": {"first": 0.33, "any": 0.43, "turned_away": 0.92},
    "quotes/xquad_de": {"first": 0.84, "any": 0.88, "turned_away": 0.88},
    "quotes/xquad_zh": {"first": 0.81, "any": 0.88, "turned_away": 0.95},
    "extraction/prunus": {"f1": 0.57},
    "segmentation/all": {"right": 0.875, "lossless": 1.0},
    "claims/prunus": {"balanced": 0.7},
}  # fmt: skip
"""What nobody lowers without saying so in this file, too."""


@pytest.fixture
def floors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of floors, beside a gate that measures `MEASURED`."""
    path = tmp_path / "floors.json"
    gate.write_floors(FLOORS, path)
    monkeypatch.setattr(tokens, "llama2", lambda: None)
    monkeypatch.setattr(gate, "measure", lambda counter, progress: dict(MEASURED))
    return path


def test_the_floors_of_the_package_are_whole_and_no_lower_than_here() -> None:
    floors = gate.load_floors()
    for place, least in LEAST.items():
        for name, value in least.items():
            assert floors[f"{place}/{name}"] >= value, f"{place}/{name} was lowered"


@pytest.mark.parametrize("gone", MEASURED)
def test_a_metric_a_task_or_a_system_that_vanishes_fails(
    gone: str, floors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = {name: value for name, value in MEASURED.items() if name != gone}
    monkeypatch.setattr(gate, "measure", lambda counter, progress: less)
    result = CliRunner().invoke(main, ["gate", "--floors", str(floors)])
    assert result.exit_code == 1
    assert f"FAIL {gone}: not measured" in result.stdout


@pytest.mark.parametrize("gone", FLOORS)
def test_a_floor_that_vanishes_fails(gone: str, floors: Path) -> None:
    gate.write_floors({name: value for name, value in FLOORS.items() if name != gone}, floors)
    result = CliRunner().invoke(main, ["gate", "--floors", str(floors)])
    assert result.exit_code == 1
    assert f"FAIL {gone}: {MEASURED[gone]:.4f}, floor missing" in result.stdout


def test_floors_of_a_kind_that_nothing_measures_fail_too(floors: Path) -> None:
    gate.write_floors({**FLOORS, "taste/nq/s": 0.1}, floors)
    assert CliRunner().invoke(main, ["gate", "--floors", str(floors)]).exit_code == 1


def test_a_gate_passes_where_every_number_reaches_its_floor(floors: Path) -> None:
    result = CliRunner().invoke(main, ["gate", "--floors", str(floors)])
    assert result.exit_code == 0
    assert json.loads(result.stdout.splitlines()[-1]) == {"gate": "quality", "checks": 3, "failed": 0}


def test_pinning_raises_floors_and_shows_old_and_new(floors: Path) -> None:
    result = CliRunner().invoke(main, ["gate", "--pin", "--floors", str(floors)])
    assert result.exit_code == 0
    assert "raised  quotes/nq/first: 0.4000 -> 0.4300" in result.stdout
    assert "raised  content/s/f: 0.9000 -> 0.9300" in result.stdout
    assert gate.load_floors(floors) == {**FLOORS, "quotes/nq/first": 0.43, "content/s/f": 0.93}  # .51 - .02 is no raise


def test_pinning_lowers_no_floor_that_is_not_named(floors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worse = {**MEASURED, "quotes/nq/first": 0.3}
    del worse["content/s/f"]
    monkeypatch.setattr(gate, "measure", lambda counter, progress: worse)
    before = floors.read_bytes()
    for named in ([], ["--lower", "quotes"], ["--lower", "content/s"]):
        result = CliRunner().invoke(main, ["gate", "--pin", "--floors", str(floors), *named])
        assert result.exit_code == 1
        assert "LOWERED quotes/nq/first: 0.4000 -> 0.2800" in result.stdout
        assert "DROPPED content/s/f: 0.9000 -> none" in result.stdout
        assert "nothing was written" in result.stderr
        assert floors.read_bytes() == before
    result = CliRunner().invoke(
        main, ["gate", "--pin", "--floors", str(floors), "--lower", "quotes", "--lower", "content/s/f"]
    )
    assert result.exit_code == 0
    assert "2 of them lowered or dropped" in result.stdout
    assert gate.load_floors(floors) == {"survival/nq/s/512/answer": 0.5, "quotes/nq/first": 0.28}


def test_lower_names_floors_that_would_go_down(floors: Path) -> None:
    for arguments, said in (
        (["--pin", "--lower", "quotes/nq"], "no floor of this name"),
        (["--lower", "quotes"], "goes with --pin"),
    ):
        result = CliRunner().invoke(main, ["gate", "--floors", str(floors), *arguments])
        assert result.exit_code == 2
        assert said in result.stderr


def test_part_of_a_name_is_no_name() -> None:
    changes = [gate.Change("quotes/nq/first", 0.4, 0.3)]
    assert gate.refused(changes, ["quotes/nq"]) == []
    with pytest.raises(EvalError):
        gate.refused(changes, ["quotes/n"])


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"half": "dev"}', '{"half": "report", "quotes": {"x": "high"}}', '{"half": "report", "quotes": null}'],
)
def test_floors_that_cannot_be_read_are_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "floors.json"
    path.write_text(text)
    with pytest.raises(EvalError, match="floor"):
        gate.load_floors(path)
