"""The engine ``prunus``: its weights, its settings, and its errors; its training is in ``tests/train``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prunus.core.errors import BadInput
from prunus.engines import installed_reranker
from prunus.models.rerank.prunus.engine import Engine


def test_without_its_runtime_it_is_not_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.engines.find_spec", lambda name: None)
    assert installed_reranker() == ""


@pytest.mark.parametrize("said", [{}, {"prunus": []}])
def test_a_folder_of_another_model_is_one_line(tmp_path: Path, said: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(said))
    with pytest.raises(BadInput, match="no model of `prunus train reader`"):
        Engine(str(tmp_path)).rerank("x", ["y"])


@pytest.mark.parametrize("value", ["much", -1, None])
def test_a_wrong_setting_is_named(tmp_path: Path, value: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"prunus": {"above": 200, "beside": value}}))
    with pytest.raises(BadInput, match="lacks the setting 'beside'"):
        _ = Engine(str(tmp_path)).beside


def test_its_settings_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"prunus": {"above": 120, "beside": 0.25}}))
    engine = Engine(str(tmp_path))
    assert (engine.above, engine.beside, engine.added) == (120, 0.25, 0)  # a model of blocks alone reads no segments


def test_the_packaged_weights_prefer_the_row_that_answers() -> None:
    assert installed_reranker() == "prunus"
    rows = ["Month Mean level\nNovember 1.307", "Month Mean level\nMarch 0.421", "Contact\nWrite to the office."]
    assert Engine(threads=1).rerank("What was the mean level in November?", rows).argmax() == 0
