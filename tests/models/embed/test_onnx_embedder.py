"""The ``onnx`` embedder on tiny encoders: equal to a slow BERT in numpy, with clear errors for wrong models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.models.embed.tiny import bert, save_encoder, save_graph, save_tokenizer, say_pooling, settings, weights

from prunus.core.errors import BadInput, MissingExtra
from prunus.models.embed.onnx import Engine
from prunus.models.model_folder import find_model
from prunus.models.onnx_encoder import SLICE, CuttingTokenizer, in_batches

pytestmark = pytest.mark.full

TEXTS = ["the ferry leaves at noon", "tax", "", "a lighthouse was built in 1871 " * 20, "what is x y b"]


def slow_vectors(folder: Path, texts: list[str], pooling: str = "mean", longest: int = 32) -> np.ndarray:
    """Embed by the slow reading."""
    said = settings()
    found = []
    for row in CuttingTokenizer(folder / "tokenizer.json", longest).rows(texts):
        tokens = bert(weights(said), said, list(row.ids))
        one = {"mean": tokens.mean(0), "cls": tokens[0], "last": tokens[-1], "max": tokens.max(0)}[pooling]
        found.append(one / np.linalg.norm(one))
    return np.stack(found)


def copy(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "model"))


# --- what comes out ------------------------------------------------------------------------------


def test_the_graph_says_what_bert_says(tiny: Path) -> None:
    assert np.allclose(Engine(str(tiny)).embed(TEXTS), slow_vectors(tiny, TEXTS), atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "pooling"),
    [("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last"), ("pooling_mode_max_tokens", "max")],
)
def test_pooling_follows_the_models_own_settings(tiny: Path, tmp_path: Path, mode: str, pooling: str) -> None:
    folder = copy(tiny, tmp_path)
    say_pooling(folder, mode)
    assert np.allclose(Engine(str(folder)).embed(TEXTS), slow_vectors(tiny, TEXTS, pooling), atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_the_batch_changes_nothing(tiny: Path, batch: int) -> None:
    assert np.allclose(Engine(str(tiny), batch=batch).embed(TEXTS), Engine(str(tiny)).embed(TEXTS), atol=1e-5)


def test_texts_longer_than_the_model_are_cut_at_its_tokens(tiny: Path) -> None:
    long = "ferry " * 500
    assert np.allclose(Engine(str(tiny)).embed([long]), Engine(str(tiny)).embed(["ferry " * 30]), atol=1e-6)
    assert np.allclose(
        Engine(str(tiny), max_tokens=5).embed([long]), Engine(str(tiny)).embed(["ferry " * 3]), atol=1e-6
    )


def test_a_graph_file_may_be_named_itself(tiny: Path) -> None:
    assert np.array_equal(Engine(str(tiny / "model.onnx")).embed(TEXTS), Engine(str(tiny)).embed(TEXTS))


def test_the_graph_may_lie_in_a_folder_of_its_own(tiny: Path, tmp_path: Path) -> None:
    folder = copy(tiny, tmp_path)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert np.array_equal(Engine(str(folder)).embed(TEXTS), Engine(str(tiny)).embed(TEXTS))
    assert np.array_equal(Engine(str(folder / "onnx" / "model.onnx")).embed(TEXTS), Engine(str(tiny)).embed(TEXTS))


def test_int8_is_made_from_fp32_and_stays_close(tiny: Path) -> None:
    whole, small = Engine(str(tiny)).embed(TEXTS), Engine(f"{tiny}#int8").embed(TEXTS)
    assert not np.array_equal(whole, small)
    assert ((whole * small).sum(1) > 0.98).all()


def test_an_int8_file_that_is_there_is_taken(tiny: Path, tmp_path: Path) -> None:
    folder = copy(tiny, tmp_path)
    shutil.copy(save_encoder(tmp_path / "other", seed=8) / "model.onnx", folder / "model_quantized.onnx")
    assert np.array_equal(Engine(f"{folder}#int8").embed(TEXTS), Engine(str(tmp_path / "other")).embed(TEXTS))


def test_a_graph_that_pools_by_itself_is_taken_as_it_is(tmp_path: Path, tiny: Path) -> None:
    from onnx import helper, numpy_helper

    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["ids"], to=1),
        helper.make_node("ReduceSum", ["ids", "one"], ["total"], keepdims=1),
        helper.make_node("Concat", ["total", "total"], ["sentence_embedding"], axis=1),
    ]
    one = numpy_helper.from_array(np.array([1]), "one")
    save_graph(tmp_path / "model.onnx", {"input_ids": 7}, nodes, {"sentence_embedding": ["batch", 2]}, [one])
    assert np.allclose(Engine(str(tmp_path)).embed(["ferry", ""]), 2**-0.5)


# --- prefixes, presets, two encoders -------------------------------------------------------------


def test_a_preset_writes_its_prefix_before_queries_only(tiny: Path) -> None:
    engine, plain = Engine(str(tiny), preset="bge-large-en-v1.5"), Engine(str(tiny))
    assert np.allclose(engine.embed(["the ferry"]), slow_vectors(tiny, ["the ferry"], "cls"), atol=1e-5)
    wanted = slow_vectors(tiny, ["Represent this sentence for searching relevant passages: the ferry"], "cls")
    assert np.allclose(engine.embed(["the ferry"], "query"), wanted, atol=1e-5)
    assert np.array_equal(plain.embed(["the ferry"]), plain.embed(["the ferry"], "query"))


def test_a_folder_that_is_called_like_a_preset_gets_it(tiny: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "bge-large-en-v1.5"))
    assert np.allclose(Engine(str(folder)).embed(["tax"]), slow_vectors(tiny, ["tax"], "cls"), atol=1e-5)


def test_prompts_of_the_models_own_settings_are_written(tiny: Path, tmp_path: Path) -> None:
    folder = copy(tiny, tmp_path)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "what is "}}))
    assert np.allclose(Engine(str(folder)).embed(["x"], "query"), Engine(str(tiny)).embed(["what is x"]), atol=1e-6)


def test_the_last_token_is_the_end_token_where_the_preset_wants_it(tiny: Path) -> None:
    engine = Engine(str(tiny), preset="e5-mistral-7b-instruct")
    rows = engine._encoder("document")[0]._rows(["ferry " * 3, "ferry " * 90])
    assert [row.ids[-1] for row in rows] == [4, 4]
    assert len(rows[1].ids) == 32


def test_a_pair_of_encoders_embeds_queries_with_one_and_documents_with_the_other(tmp_path: Path, tiny: Path) -> None:
    questions = save_encoder(tmp_path / "dpr" / "question_encoder", seed=1)
    passages = save_encoder(tmp_path / "dpr" / "ctx_encoder", seed=2)
    engine = Engine(str(tmp_path / "dpr"), preset="dpr-multiset")
    alone = [Engine(str(one), preset="dpr-multiset") for one in (questions, passages)]
    assert np.array_equal(engine.embed(TEXTS, "query"), alone[0].embed(TEXTS))
    assert np.array_equal(engine.embed(TEXTS, "document"), alone[1].embed(TEXTS))
    assert engine.identity not in (alone[0].identity, alone[1].identity)


# --- order and bounds ----------------------------------------------------------------------------


def test_batches_are_of_like_length_and_bounded(tiny: Path) -> None:
    texts = ["ferry " * (number * 7 % 31) for number in range(SLICE + 40)]
    seen: list[int] = []
    for places, rows in in_batches(texts, CuttingTokenizer(tiny / "tokenizer.json", 32).rows, 16):
        lengths = [len(row.ids) for row in rows]
        assert len(rows) <= 16
        assert lengths == sorted(lengths, reverse=True)
        assert lengths == [min(32, 2 + int(place) * 7 % 31) for place in places]
        seen += places.tolist()
    assert sorted(seen) == list(range(len(texts)))


def test_a_batch_holds_few_long_texts(tmp_path: Path) -> None:
    save_tokenizer(tmp_path)
    long = CuttingTokenizer(tmp_path / "tokenizer.json", 3000)
    sizes = [len(rows) for _, rows in in_batches(["ferry " * 3000] * 5 + ["tax"], long.rows, 64)]
    assert sizes == [2, 2, 2]


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("", "needs a model"),
        ("no/such/folder", "no such folder"),
        ("./nowhere", "no such folder"),
        ("owner/model", "hf download owner/model"),
        ("nowhere.onnx", "no such file"),
        ("x#int4", "no such precision: int4"),
    ],
)
def test_a_model_that_is_not_there_is_one_line(model: str, said: str, folder: Path) -> None:
    with pytest.raises(BadInput) as caught:
        Engine(model).embed(["x"])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "said"),
    [("model.onnx", "neither model.onnx nor onnx/model.onnx"), ("tokenizer.json", "no tokenizer.json")],
)
def test_a_missing_file_is_named(tiny: Path, tmp_path: Path, missing: str, said: str) -> None:
    folder = copy(tiny, tmp_path)
    (folder / missing).unlink()
    with pytest.raises(BadInput, match=said):
        Engine(str(folder)).embed(["x"])


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model.onnx", b"no graph", "not an ONNX graph"),
        ("tokenizer.json", b"{}", "not a tokenizer"),
        ("config.json", b"[1]", "not a JSON object"),
        ("config.json", b"{", "not valid JSON"),
        ("modules.json", b'[{"type": "sentence_transformers.models.Dense"}]', "a layer 'Dense'"),
        ("modules.json", b"7", "not a list of modules"),
    ],
)
def test_a_broken_file_is_named(tiny: Path, tmp_path: Path, file: str, content: bytes, said: str) -> None:
    folder = copy(tiny, tmp_path)
    (folder / file).write_bytes(content)
    with pytest.raises(BadInput, match=said) as caught:
        Engine(str(folder)).embed(["x"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "modes", [("pooling_mode_weightedmean_tokens",), ("pooling_mode_cls_token", "pooling_mode_max_tokens")]
)
def test_a_way_of_pooling_that_is_not_known_is_refused(tiny: Path, tmp_path: Path, modes: tuple[str, ...]) -> None:
    folder = copy(tiny, tmp_path)
    say_pooling(folder, *modes)
    with pytest.raises(BadInput, match="is not known"):
        Engine(str(folder)).embed(["x"])


def test_a_graph_that_is_no_encoder_is_refused(tiny: Path, tmp_path: Path) -> None:
    from onnx import helper

    folder = copy(tiny, tmp_path)
    cast = [helper.make_node("Cast", ["pixel_values"], ["logits"], to=1)]
    save_graph(folder / "model.onnx", {"pixel_values": 7}, cast, {"logits": ["batch", "tokens"]})
    with pytest.raises(BadInput, match="wants the input 'pixel_values'"):
        Engine(str(folder)).embed(["x"])


def test_a_graph_with_odd_outputs_is_refused(tiny: Path, tmp_path: Path) -> None:
    from onnx import helper

    folder = copy(tiny, tmp_path)
    flat = [
        helper.make_node("Cast", ["input_ids"], ["x"], to=1),
        helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0),
    ]
    save_graph(folder / "model.onnx", {"input_ids": 7}, flat, {"y": []})
    with pytest.raises(BadInput, match="no output holds vectors"):
        Engine(str(folder)).embed(["x"])


def test_numbers_that_are_not_finite_are_refused(tiny: Path, tmp_path: Path) -> None:
    from onnx import helper

    folder = copy(tiny, tmp_path)
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["x"], to=1),
        helper.make_node("Sub", ["x", "x"], ["zero"]),
        helper.make_node("Div", ["x", "zero"], ["y"]),
    ]
    save_graph(folder / "model.onnx", {"input_ids": 7}, nodes, {"y": ["batch", "tokens"]})
    with pytest.raises(BadInput, match="not finite"):
        Engine(str(folder)).embed(["x"])


def test_a_preset_that_is_not_known_is_named() -> None:
    with pytest.raises(BadInput, match="no preset is called 'gpt'"):
        Engine("x", preset="gpt")


def test_without_onnxruntime_the_message_holds_the_pip_line(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[onnx\]'"):
        Engine(str(tiny), threads=3).embed(["x"])


def test_nothing_is_loaded_before_the_first_call(tmp_path: Path) -> None:
    Engine(str(tmp_path / "nowhere"))


def test_a_model_in_the_hubs_cache_is_found_and_nothing_else_is_fetched(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def snapshot(model: str, allow_patterns: list[str], local_files_only: bool) -> str:
        assert (model, local_files_only) == ("owner/model", True)
        assert "model.onnx" in allow_patterns
        assert not any(pattern.endswith((".bin", ".py", "*")) for pattern in allow_patterns)
        return str(tiny)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert find_model("owner/model").path == tiny
