"""Tiny real text models, built in code: a tokenizer of some words, two layers of random weights, an ONNX graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = """the a ferry boat leaves departs at noon lighthouse was built in 1871 income tax form charts are sold here
when does tide tables harbour what is x y b amp ##s ##a ##x""".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "</s>"]


def save_tokenizer(folder: Path, special: bool = True) -> None:
    """Write a word-piece tokenizer, as BERT's, for single texts and pairs."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))


def settings(**changed: Any) -> dict[str, Any]:
    """Return the ``config.json`` of a tiny BERT."""
    return {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": 24,
        "intermediate_size": 48,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 32,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": len(WORDS) + len(SPECIAL),
        **changed,
    }


def weights(said: dict[str, Any], seed: int = 7) -> dict[str, np.ndarray]:
    """Return random weights under the names of Hugging Face's BertModel."""
    random = np.random.default_rng(seed)
    size, wide = said["hidden_size"], said["intermediate_size"]

    def matrix(*shape: int) -> np.ndarray:
        return random.normal(0, 0.4, shape).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": matrix(said["vocab_size"], size),
        "embeddings.position_embeddings.weight": matrix(said["max_position_embeddings"], size),
        "embeddings.token_type_embeddings.weight": matrix(2, size),
    }
    layers = [f"encoder.layer.{number}" for number in range(said["num_hidden_layers"])]
    for layer in layers:
        shapes = {f"attention.self.{part}": (size, size) for part in ("query", "key", "value")}
        shapes |= {"attention.output.dense": (size, size), "intermediate.dense": (wide, size)}
        shapes |= {"output.dense": (size, wide)}
        for name, shape in shapes.items():
            found[f"{layer}.{name}.weight"] = matrix(*shape)
            found[f"{layer}.{name}.bias"] = matrix(shape[0])
    norms = [f"{layer}.{part}output.LayerNorm" for layer in layers for part in ("", "attention.")]
    for name in ["embeddings.LayerNorm", *norms]:
        found[f"{name}.weight"] = 1 + matrix(size) / 4
        found[f"{name}.bias"] = matrix(size) / 4
    return found


def save_encoder(folder: Path, seed: int = 7, **changed: Any) -> Path:
    """Write a whole sentence encoder: graph, tokenizer, settings."""
    from safetensors.numpy import save_file

    from prunus.models.embed._graph import bert_graph

    folder.mkdir(parents=True, exist_ok=True)
    said = settings(**changed)
    save_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(said))
    save_file(weights(said, seed), str(folder / "model.safetensors"))
    (folder / "model.onnx").write_bytes(bert_graph(folder / "model.safetensors", said))
    return folder


def say_pooling(folder: Path, *modes: str) -> None:
    """Write sentence-transformers' settings of pooling."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    said = {"word_embedding_dimension": 24, "pooling_mode_mean_tokens": False} | dict.fromkeys(modes, True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))


def save_graph(
    path: Path, inputs: dict[str, int], nodes: list[Any], outputs: dict[str, list[Any]], constants: Any = ()
) -> None:
    """Write an ONNX graph of some nodes; inputs are [batch, tokens] of a number type."""
    from onnx import helper, save

    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "tokens"]) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in outputs.items()],
        list(constants),
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), str(path))


def bert(found: dict[str, np.ndarray], said: dict[str, Any], ids: list[int]) -> np.ndarray:
    """The slow, trusted reading of BERT: one text, float64, straight from the paper. Returns [tokens, size]."""
    from math import erf

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        spread = np.sqrt(x.var(-1, keepdims=True) + said["layer_norm_eps"])
        return (x - x.mean(-1, keepdims=True)) / spread * found[f"{name}.weight"] + found[f"{name}.bias"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ found[f"{name}.weight"].astype(np.float64).T + found[f"{name}.bias"]

    x = found["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    x += found["embeddings.position_embeddings.weight"][: len(ids)]
    x += found["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    heads = said["num_attention_heads"]
    step = said["hidden_size"] // heads
    for number in range(said["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        query, key, value = (dense(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for head in range(heads):
            part = slice(head * step, (head + 1) * step)
            scores = query[:, part] @ key[:, part].T / np.sqrt(step)
            share = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, part] = share / share.sum(-1, keepdims=True) @ value[:, part]
        x = norm(x + dense(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        wide = dense(x, f"{layer}.intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        x = norm(x + dense(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x


def save_reranker(folder: Path, labels: int = 1) -> Path:
    """Write a cross-encoder that counts the words which question and text share: a graph that really reads pairs."""
    from onnx import helper, numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    save_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(settings(max_position_embeddings=32)))
    node = helper.make_node
    nodes = [
        node("Unsqueeze", ["input_ids", "two"], ["down"]),
        node("Unsqueeze", ["input_ids", "one"], ["across"]),
        node("Equal", ["down", "across"], ["same"]),
        node("Cast", ["same"], ["alike"], to=1),
        node("Cast", ["token_type_ids"], ["text"], to=1),
        node("Cast", ["attention_mask"], ["seen"], to=1),
        node("Sub", ["seen", "text"], ["question"]),
        node("Unsqueeze", ["question", "two"], ["rows"]),
        node("Unsqueeze", ["text", "one"], ["columns"]),
        node("Mul", ["alike", "rows"], ["half"]),
        node("Mul", ["half", "columns"], ["shared"]),
        node("ReduceSum", ["shared", "both"], ["count"], keepdims=0),
        node("Unsqueeze", ["count", "one"], ["score"]),
        node("Neg", ["score"], ["other"]),
        node("Concat", ["other", "score"] if labels == 2 else ["score"] * labels, ["logits"], axis=1),
    ]
    constants = [
        numpy_helper.from_array(np.array(value), name) for name, value in (("one", [1]), ("two", [2]), ("both", [1, 2]))
    ]
    inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), 7)
    save_graph(folder / "model.onnx", inputs, nodes, {"logits": ["batch", labels]}, constants)
    return folder
