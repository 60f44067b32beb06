"""The contract of all rerankers: tiny ones built in code, and a service over sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.models.embed.server import PlainDoor, as_json, serve
from tests.models.embed.tiny import SPECIAL, WORDS, save_reranker

from prunus.core.registry import engine_names, make_engine

pytestmark = pytest.mark.full

TEXTS = ["the ferry leaves at noon", "income tax form", "", "潮汐站每天记录水位", "a", "x\n\n  y\t<b>&amp;</b>"]
ODD = ["", " ", "\x00", "\ud800", "\U0001f600" * 40, "a\u0301" * 40, "\u202eabc", "水" * 900, "the tide " * 9000]


def shared_words(path: str, body: Any) -> Any:
    texts = body.get("texts") or body["documents"]
    scores = [float(len(set(body["query"].split()) & set(text.split()))) for text in texts]
    order = sorted(range(len(texts)), key=lambda place: -scores[place])
    if "texts" in body:
        return as_json([{"index": place, "score": scores[place]} for place in order])
    return as_json({"results": [{"index": place, "relevance_score": scores[place]} for place in order]})


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with serve(shared_words) as server:
        yield server.url


def save_torch_reranker(folder: Path) -> Path:
    """Write a cross-encoder of two layers of random weights, as transformers saves one."""
    torch, transformers = need("torch"), need("transformers")
    from tests.models.embed.tiny import save_tokenizer, settings

    folder.mkdir(parents=True)
    torch.manual_seed(3)
    said = {key: value for key, value in settings().items() if key not in ("model_type",)}
    transformers.BertForSequenceClassification(transformers.BertConfig(**said, num_labels=1)).save_pretrained(folder)
    save_tokenizer(folder)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizerFast", "model_max_length": 32, **special})
    )
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]))
    return folder


@pytest.fixture(scope="module")
def make(service: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Any] = {}

    def build(name: str) -> Any:
        if name == "sentence_transformers":
            need("sentence_transformers")
            folder = save_torch_reranker(tmp_path_factory.mktemp("torch") / "reranker")
            return make_engine("reranker", f"sentence_transformers:{folder}", device="cpu")
        if name == "onnx":
            need("onnx")
            need("onnxruntime")
            return make_engine("reranker", f"onnx:{save_reranker(tmp_path_factory.mktemp('rank') / 'onnx')}", threads=1)
        if name == "prunus":
            need("onnx")
            need("onnxruntime")
            folder = save_reranker(tmp_path_factory.mktemp("rank") / "reader")
            said = json.loads((folder / "config.json").read_text("utf-8"))
            (folder / "config.json").write_text(json.dumps(said | {"prunus": {"above": 200, "beside": 0.5}}))
            return make_engine("reranker", f"prunus:{folder}", threads=1)
        path = {"http:cohere": "/v2/rerank#m", "http:tei": "/rerank"}[name]
        return make_engine("reranker", f"http:{service}{path}", door=PlainDoor())

    def once(name: str) -> Any:
        if name not in made:
            made[name] = build(name)
        return made[name]

    return once


EVERY = ["onnx", "prunus", "http:cohere", "http:tei", "sentence_transformers"]
every = pytest.mark.parametrize("name", EVERY)


def test_every_engine_of_the_room_is_here() -> None:
    assert set(engine_names("reranker")) == {name.split(":")[0] for name in EVERY}


@every
def test_each_text_gets_a_finite_number(make: Any, name: str) -> None:
    found = make(name).rerank("the ferry", TEXTS + ODD)
    assert found.shape == (len(TEXTS + ODD),)
    assert np.issubdtype(found.dtype, np.floating)
    assert np.isfinite(found).all()


@every
def test_the_same_texts_get_the_same_numbers(make: Any, name: str) -> None:
    engine = make(name)
    assert np.array_equal(engine.rerank("the ferry", TEXTS), engine.rerank("the ferry", TEXTS))


@every
def test_a_batch_says_what_each_text_says_alone(make: Any, name: str) -> None:
    engine = make(name)
    alone = [float(engine.rerank("the ferry", [text])[0]) for text in TEXTS]
    assert np.allclose(engine.rerank("the ferry", TEXTS), alone, atol=1e-4)


@every
def test_no_texts_give_no_numbers(make: Any, name: str) -> None:
    assert make(name).rerank("the ferry", []).shape == (0,)


@every
@pytest.mark.parametrize("query", ["", "?!", "\ud800", "x" * 5000, "潮汐"])
def test_odd_questions_are_answered(make: Any, name: str, query: str) -> None:
    assert np.isfinite(make(name).rerank(query, TEXTS)).all()


@every
def test_threads_may_share_it(make: Any, name: str) -> None:
    engine = make(name)
    wanted = engine.rerank("the ferry", TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: engine.rerank("the ferry", TEXTS), range(6)):
            assert np.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["onnx", "http:cohere", "http:tei"])
def test_the_text_that_answers_comes_first(make: Any, name: str) -> None:
    assert int(make(name).rerank("when leaves the ferry", TEXTS).argmax()) == 0
