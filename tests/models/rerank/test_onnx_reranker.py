"""The ``onnx`` reranker on a tiny graph that counts shared words, and its errors for wrong models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.extras import need
from tests.models.embed.tiny import save_encoder, save_reranker

from prunus.core.errors import BadInput, MissingExtra
from prunus.models.rerank.onnx import Engine

pytestmark = pytest.mark.full

TEXTS = ["income tax form", "the ferry leaves at noon", "", "a lighthouse was built", "the ferry " * 90]


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("onnx")
    need("onnxruntime")
    return save_reranker(tmp_path_factory.mktemp("rank") / "reranker")


def test_question_and_text_are_read_together(reranker: Path) -> None:
    found = Engine(str(reranker)).rerank("when does the ferry leaves", TEXTS[:4])
    assert (found - found[0]).tolist() == [0, 3, 0, 0]  # the, ferry, leaves


def test_two_labels_are_one_number(reranker: Path, tmp_path: Path) -> None:
    one = Engine(str(reranker)).rerank("the ferry", TEXTS)
    assert np.allclose(Engine(str(save_reranker(tmp_path, labels=2))).rerank("the ferry", TEXTS), 2 * one)


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_the_batch_changes_nothing(reranker: Path, batch: int) -> None:
    texts = TEXTS * 7
    wanted = [Engine(str(reranker)).rerank("the ferry", [text])[0] for text in texts]
    assert np.allclose(Engine(str(reranker), batch=batch).rerank("the ferry", texts), wanted)


def test_a_long_text_is_cut_and_the_question_stays_whole(reranker: Path) -> None:
    engine = Engine(str(reranker))
    assert engine.max_tokens == 32
    pairs = engine._load()[1]
    (row,) = pairs.rows([("when does the ferry", "tax " * 500)])
    assert len(row.ids) == 32
    assert sum(kind == 0 for kind in row.types) == 6  # [CLS] when does the ferry [SEP]


def test_a_question_takes_no_more_than_half(reranker: Path) -> None:
    pairs = Engine(str(reranker))._load()[1]
    (row,) = pairs.rows([("ferry " * 500, "tax " * 500)])
    assert sum(kind == 0 for kind in row.types) == 16  # [CLS], 14 words, [SEP]
    assert sum(kind == 1 for kind in row.types) == 16


def test_an_odd_question_is_read_too(reranker: Path) -> None:
    for query in ["", "\ud800", "\U0001f600" * 100, "x" * 10_000]:
        assert np.isfinite(Engine(str(reranker)).rerank(query, ["\udfff", "noon"])).all()


@pytest.mark.parametrize("labels", [3])
def test_a_classifier_of_many_labels_is_refused(tmp_path: Path, labels: int) -> None:
    need("onnx")
    with pytest.raises(BadInput, match="a reranker has one or two labels"):
        Engine(str(save_reranker(tmp_path, labels))).rerank("the ferry", TEXTS)


def test_a_sentence_encoder_is_refused(tmp_path: Path) -> None:
    need("onnx")
    with pytest.raises(BadInput, match="a reranker has one or two labels"):
        Engine(str(save_encoder(tmp_path / "encoder"))).rerank("the ferry", TEXTS)


@pytest.mark.parametrize(
    ("model", "said"), [("", "onnx needs a model"), ("no/such/one", "no such folder"), ("x#int4", "int4")]
)
def test_a_model_that_is_not_there_is_one_line(model: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Engine(model).rerank("x", ["y"])


def test_without_onnxruntime_the_message_holds_the_pip_line(reranker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[onnx\]'"):
        Engine(str(reranker), threads=3).rerank("x", ["y"])
