"""A model that the user names is looked for before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from prunus_evals import readers, studies, tasks
from prunus_evals.errors import EvalError
from prunus_evals.studies import Choice
from prunus_evals.systems import _embed


@pytest.mark.parametrize(
    ("name", "chosen", "words"),
    [
        ("htmlrag:5", {"pruner": "x"}, "transformers and torch are not installed"),
        ("htmlrag:tokens", {"pruner": "x"}, "transformers and torch are not installed"),
        ("htmlrag:5", {"jina": "readerlm:nothing:x"}, "nothing"),
        ("htmlrag:5", {"bge": "bge"}, "pip install"),
        ("raptor:hallucination", {"judge": "nothing:x"}, "nothing"),
        ("sag:2", {"extractor": "prunus:tags@llm=transformers:x"}, "transformers and torch are not installed"),
    ],
)
def test_a_model_that_the_user_names_and_that_is_not_here_is_told_before_anything_is_measured(
    name: str, chosen: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("something was measured")

    monkeypatch.setattr(studies, "missing", lambda study, choice: [])
    monkeypatch.setattr(readers, "find_spec", lambda package: None)
    monkeypatch.setattr(_embed, "find_spec", lambda package: None)
    monkeypatch.setattr(tasks, "groups", measured)
    with pytest.raises(EvalError, match=words):
        studies.run(studies.named(name), Choice(stand_ins=True, options=chosen))


def test_a_folder_of_a_model_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(readers, "find_spec", lambda package: True)
    (tmp_path / "pruner").mkdir()
    assert readers.missing(f"transformers:{tmp_path}/pruner") == ""
    assert "no such folder" in readers.missing(f"transformers:{tmp_path}/none")
    assert "not in the hub's local cache" in readers.missing("transformers:some/model-that-nobody-has")
